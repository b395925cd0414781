//! Output directories: their creation, and the lock that keeps two programs from using one at the same time.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context as _, bail};

/// Name of the file that is kept locked while a program uses its output directory.
const LOCK_FILE: &str = "lock";

/// Creates a directory and its parents, unless they already exist.
pub fn make_directory(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot create directory {}", path.display()))
}

/// Locks the output directory `out` until the returned file is closed in this process and in all processes that have
/// inherited it.
///
/// # Errors
/// Fails if the directory is locked; the error states that it is in use by `holder`. Also fails if the file cannot be
/// created or locked.
pub fn lock(out: &Path, holder: &str) -> anyhow::Result<File> {
    let path = out.join(LOCK_FILE);
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "{} is in use by {holder}; wait until that process exits, or choose another directory with --out",
                out.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}
