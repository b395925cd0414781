//! Files and directories that a command writes.

use std::path::Path;

use anyhow::Context as _;

/// Writes a whole file.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Makes a directory, unless it is there.
pub fn make_directory(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))
}
