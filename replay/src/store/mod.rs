//! What a shard has on disk: a journal of every change in segments, and snapshots that replace it.
//!
//! A directory has one owner at a time (`lock`). Segment files `journal-N` and snapshots `snapshot-N` have the same
//! format, a header and then records with a length and a CRC-32C each. `snapshot-N` stands for everything before
//! `journal-N`; it is written while the tables change, so that it holds each item as it was at some time after
//! `journal-N` began. Records therefore say what is (a count, a priority), not what is added, and applying those of
//! `journal-N` and later ones to the snapshot ends with the tables as they were.

mod error;
mod format;
mod journal;
mod record;
mod restore;
mod scan;
mod snapshot;

pub use self::error::StoreError;
pub use self::journal::JournalFailed;
pub(crate) use self::journal::{Journal, Lsn};
pub(crate) use self::record::{Payload, Record};
pub(crate) use self::restore::{Restored, restore};
pub(crate) use self::snapshot::{Snapshot, write_snapshot};

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// For the fuzz target of `fuzz/`: a body of a record as it is written after it was read, and again after that one was
/// read; nothing if it is none.
#[doc(hidden)]
pub fn rewritten_record(body: &[u8]) -> Option<[Vec<u8>; 2]> {
    let rewritten = |body: &[u8]| {
        let record = Record::parse(body)?;
        let mut bytes = record.emit();
        if let Record::Item { item, .. } = &record {
            bytes.extend_from_slice(&item.payload);
        }
        Some(bytes)
    };
    let once = rewritten(body)?;
    let twice = rewritten(&once).unwrap_or_default();
    Some([once, twice])
}

/// What an acknowledged insert has survived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing: only snapshots are written.
    #[default]
    None,
    /// The end of the process: the record is in the kernel's hands.
    Write,
    /// The end of the machine: `fdatasync` has returned.
    Sync,
}

impl Durability {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Write => "write",
            Self::Sync => "sync",
        }
    }
}

/// The directory, locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes it if there is none.
    ///
    /// # Errors
    /// Another process has it, or it cannot be used.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(path).map_err(|source| StoreError::io("make", path, source))?;
        let lock_path = path.join("lock");
        let lock = File::create(&lock_path).map_err(|source| StoreError::io("make", &lock_path, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse { path: path.to_owned() }),
            Err(std::fs::TryLockError::Error(source)) => Err(StoreError::io("lock", &lock_path, source)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn journal(&self, number: u64) -> PathBuf {
        self.path.join(format!("journal-{number:016}"))
    }

    fn snapshot(&self, number: u64) -> PathBuf {
        self.path.join(format!("snapshot-{number:016}"))
    }

    /// Numbers of the files of that kind, ascending.
    fn numbers(&self, kind: &str) -> Result<Vec<u64>, StoreError> {
        let refused = |source| StoreError::io("list", &self.path, source);
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(refused)? {
            let name = entry.map_err(refused)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(kind)?.strip_prefix('-'));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes names in the directory survive the end of the machine.
    fn sync(&self) -> Result<(), StoreError> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|source| StoreError::io("sync", &self.path, source))
    }

    /// Removes what `snapshot-number` stands for.
    fn remove_before(&self, number: u64) -> Result<(), StoreError> {
        let old = |kind| -> Result<Vec<u64>, StoreError> {
            Ok(self.numbers(kind)?.into_iter().filter(|old| *old < number).collect())
        };
        let paths = old("snapshot")?.into_iter().map(|old| self.snapshot(old));
        for path in paths.chain(old("journal")?.into_iter().map(|old| self.journal(old))) {
            std::fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
        }
        Ok(())
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return 0 };
        entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

#[cfg(test)]
mod tests;
