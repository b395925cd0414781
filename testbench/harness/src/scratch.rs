//! Names and directories that belong to one test process, so that a later process can clean up after it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

/// Prefix of all names, followed by the id of the owning process.
const PREFIX: &str = "iswitch-test-";

/// Returns a name that no other test of this or another process uses.
pub fn name(role: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{PREFIX}{}-{}-{role}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns whether a name belongs to a test process that has ended.
pub fn is_leftover(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    owner.is_some_and(|id| !Path::new("/proc").join(id.to_string()).exists())
}

/// Creates an empty directory that is deleted at the end of the test.
///
/// # Panics
/// Panics if the directory cannot be created.
pub fn directory() -> TempDir {
    directory_in(&std::env::temp_dir()).expect("a temporary directory must be creatable")
}

/// Creates in `parent` an empty directory that is deleted at the end of the test.
pub fn directory_in(parent: &Path) -> io::Result<TempDir> {
    static CLEANED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if CLEANED.lock().unwrap_or_else(PoisonError::into_inner).insert(parent.to_owned()) {
        remove_leftovers(parent);
    }
    tempfile::Builder::new().prefix(&name("")).tempdir_in(parent)
}

/// Removes the directories of test processes that were killed.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| is_leftover(&entry.file_name().to_string_lossy())) {
        // Another test process may be removing it at the same time.
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_running_processes_are_not_leftovers() {
        assert!(!is_leftover(&name("w1")));
        // Process ids are below 2^22.
        assert!(is_leftover("iswitch-test-99999999-0-w1"));
        assert!(!is_leftover("iswitch-test-") && !is_leftover("iswitch-testbench-99999999-0"));
        assert_ne!(name("w1"), name("w1"));
    }
}
