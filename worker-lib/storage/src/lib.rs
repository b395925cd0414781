//! Files that are replaced atomically and survive a crash.
//!
//! [`replace`] writes a new file beside the old one, flushes it to the disk, renames it to the final name, and
//! flushes the directory. After a crash, or an error in any of these steps, the path has either the complete old or
//! the complete new content.
//!
//! All disk access uses the trait [`Disk`]. [`RealDisk`] implements it with the operating system's file system; the
//! `simulated` feature adds a simulated disk that fails, tears writes and loses data, as determined by a seed.

#[cfg(feature = "simulated")]
pub mod simulated;

use std::fmt::Debug;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Suffix of unfinished files.
const UNFINISHED: &str = ".part";
/// Permissions of new files; the umask of the process is applied to them.
const MODE: u32 = 0o666;

/// File system operations that durable files need.
pub trait Disk: Debug + Send + Sync {
    /// Creates a directory and its missing parents, and flushes the directories that contain them.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// Reads a whole file.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns the paths in a directory, in no particular order.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Removes a file. If the machine crashes before the directory is flushed, the file may exist again.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file in the directory of `path`. Its name begins with `.` and the file name of `path`.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    fn create_beside(&self, path: &Path) -> io::Result<Box<dyn NewFile + '_>>;

    /// Flushes the entries of a directory.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

/// New file that does not have its final name yet. Dropping this value removes the file.
pub trait NewFile: Debug {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// Returns the errors of the file system; some of the bytes may have been written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Flushes the written bytes to the disk.
    ///
    /// # Errors
    /// Returns the errors of the file system; the content on the disk is then unknown.
    fn sync(&mut self) -> io::Result<()>;

    /// Gives the file its final name, replacing any existing file with that name.
    ///
    /// # Errors
    /// Returns the errors of the file system.
    fn rename(self: Box<Self>, path: &Path) -> io::Result<()>;
}

/// Replaces or creates a file. After success, the new content survives a crash. After an error, the path has either the
/// complete old or the complete new content. Also removes files that earlier attempts for the same path left behind, so
/// only one process at a time may write to a path.
///
/// # Errors
/// Returns the errors of the disk.
pub fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = parent(path);
    remove_unfinished(disk, directory, &file_name(path)?);
    let mut file = disk.create_beside(path)?;
    file.write(bytes)?;
    file.sync()?;
    file.rename(path)?;
    disk.sync_directory(directory)
}

/// Removes the unfinished files in `directory` that belong to paths whose names begin with `name`. Ignores files that
/// cannot be removed.
pub fn remove_unfinished(disk: &dyn Disk, directory: &Path, name: &str) {
    let prefix = format!(".{name}");
    let is_unfinished = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&prefix) && name.ends_with(UNFINISHED)
    };
    for path in disk.list(directory).unwrap_or_default().iter().filter(|path| is_unfinished(path)) {
        let _ = disk.remove(path);
    }
}

fn file_name(path: &Path) -> io::Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| {
        let problem = format!("{} is not the path of a file with a UTF-8 name", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    })
}

/// Returns the directory of a path, or the current directory if the path names none.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let missing: Vec<_> =
            directory.ancestors().take_while(|it| !it.as_os_str().is_empty() && !it.exists()).collect();
        fs::create_dir_all(directory)?;
        missing.into_iter().rev().try_for_each(|made| self.sync_directory(parent(made)))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_beside(&self, path: &Path) -> io::Result<Box<dyn NewFile + '_>> {
        let prefix = format!(".{}.", file_name(path)?);
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(UNFINISHED).permissions(Permissions::from_mode(MODE));
        Ok(Box::new(RealFile(builder.tempfile_in(parent(path))?)))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }
}

#[derive(Debug)]
struct RealFile(NamedTempFile);

impl NewFile for RealFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.as_file().sync_all()
    }

    fn rename(self: Box<Self>, path: &Path) -> io::Result<()> {
        self.0.persist(path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_leaves_no_temporary_files() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        RealDisk.create_directory(&directory).unwrap();
        let path = directory.join("model");
        // Remains of a killed process, and an unfinished file for another path.
        fs::write(directory.join(".model.x1.part"), "old").unwrap();
        fs::write(directory.join(".other.x1.part"), "other").unwrap();
        for content in ["first", "second"] {
            replace(&RealDisk, &path, content.as_bytes()).unwrap();
            assert_eq!(RealDisk.read(&path).unwrap(), content.as_bytes());
        }
        let mut names = RealDisk.list(&directory).unwrap();
        names.sort();
        assert_eq!(names, [directory.join(".other.x1.part"), path.clone()]);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
    }

    #[test]
    fn a_failed_replacement_keeps_the_old_content() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("model");
        fs::create_dir(&path).unwrap();
        // A directory cannot be replaced by a file.
        assert!(replace(&RealDisk, &path, b"new").is_err());
        assert_eq!(RealDisk.list(root.path()).unwrap(), [path]);
        assert!(replace(&RealDisk, &root.path().join("missing/model"), b"new").is_err());
        assert!(replace(&RealDisk, Path::new("/"), b"new").is_err());
    }
}
