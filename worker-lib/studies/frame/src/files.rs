//! Output files of a command.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use iswitch_storage::{RealDisk, replace};

/// Writes a file atomically: after a crash, the file contains either the old or the new content.
///
/// Writes in place if the path is not a regular file (but, for example, a pipe or `/dev/stdout`) or is a symbolic
/// link, because such a path must not be replaced with a new file.
///
/// # Errors
/// Returns the errors of the file system.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let is_replaceable = fs::symlink_metadata(path).map_or(true, |metadata| metadata.is_file());
    let written =
        if is_replaceable { replace(&RealDisk, path, text.as_bytes()) } else { fs::write(path, text) };
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_and_links_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for (path, text) in [(&file, "first, longer"), (&file, "second"), (&link, "third")] {
            write(path, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        write(Path::new("/dev/null"), "text").unwrap();
        let error = write(&directory.path().join("none/file"), "").unwrap_err().to_string();
        assert!(error.starts_with("cannot write ") && error.ends_with("none/file"), "{error}");
    }
}
