//! Creation of directories.

use std::path::Path;

use anyhow::Context as _;

/// Creates a directory and its parents, unless they already exist.
pub fn make_directory(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("creating directory {}", path.display()))
}
