//! Directories that a command makes.

use std::path::Path;

use anyhow::Context as _;

/// Makes a directory, unless it is there.
pub fn make_directory(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))
}
