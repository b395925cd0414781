//! What a shard has on disk: a journal of every change in segments, and snapshots that replace it.
//!
//! A directory has one owner at a time (`lock`). Segment files `journal-N` and snapshots `snapshot-N` have the same
//! format, a header and then records with a length and CRC-32C checksums each. `snapshot-N` stands for everything
//! before `journal-N`; it is written while the tables change, so that it holds each item as it was at some time after
//! `journal-N` began. Records therefore say what is (a count, a priority), not what is added, and applying those of
//! `journal-N` and later ones to the snapshot ends with the tables as they were.
//!
//! A restore changes no file. A file that was found damaged is never removed: the snapshot that supersedes it renames
//! it to `NAME.damaged`.

mod disk;
mod error;
mod format;
mod journal;
mod record;
mod restore;
mod scan;
mod snapshot;
mod writer;

pub use self::error::StoreError;
pub use self::journal::JournalFailed;
pub(crate) use self::journal::{Journal, Lsn};
pub(crate) use self::record::{Payload, Record, TableName};
pub(crate) use self::restore::{Restored, restore};
pub(crate) use self::snapshot::{Pace, Snapshot, write_snapshot};

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use self::disk::{Disk, RealDisk};
use crate::lock;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
        self.into()
    }
}

/// The directory, locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    /// Files that were found damaged: they are renamed where others are removed.
    damaged: Mutex<BTreeSet<String>>,
    /// Superseded files that could not be read: they are left as they are.
    unread: Mutex<BTreeSet<String>>,
    /// Nothing where no other process can have it.
    _lock: Option<File>,
}

/// Ending of the name of a snapshot that is being written.
const UNFINISHED: &str = ".unfinished";
/// Ending of the name of a file that is kept because it is damaged.
const DAMAGED: &str = ".damaged";

impl Directory {
    /// Makes it if there is none, and removes what an interrupted snapshot left.
    ///
    /// # Errors
    /// Another process has it, or it cannot be used.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(path).map_err(|source| StoreError::io("make", path, source))?;
        let lock_path = path.join("lock");
        let lock = File::create(&lock_path).map_err(|source| StoreError::io("make", &lock_path, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { path: path.to_owned() });
            }
            Err(std::fs::TryLockError::Error(source)) => {
                return Err(StoreError::io("lock", &lock_path, source));
            }
        }
        Self::on(path, Arc::new(RealDisk(path.to_owned())), Some(lock))
    }

    /// A directory on a disk of any kind, without a lock if no other process can have it.
    pub(crate) fn on(path: &Path, disk: Arc<dyn Disk>, lock: Option<File>) -> Result<Self, StoreError> {
        let directory = Self {
            path: path.to_owned(),
            disk,
            damaged: Mutex::default(),
            unread: Mutex::default(),
            _lock: lock,
        };
        let is_unfinished = |name: &String| name.starts_with("snapshot-") && name.ends_with(UNFINISHED);
        for name in directory.names()?.into_iter().filter(is_unfinished) {
            directory.discard(&name);
        }
        Ok(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    fn journal(number: u64) -> String {
        format!("journal-{number:016}")
    }

    fn snapshot(number: u64) -> String {
        format!("snapshot-{number:016}")
    }

    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.disk.names().map_err(|source| StoreError::io("list", &self.path, source))
    }

    /// Numbers of the files of that kind, ascending.
    fn numbers(&self, kind: &str) -> Result<Vec<u64>, StoreError> {
        let number = |name: &String| name.strip_prefix(kind)?.strip_prefix('-')?.parse().ok();
        let mut numbers: Vec<u64> = self.names()?.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Greater than the numbers of all files, of those that are kept too: no name is used twice.
    fn next_number(&self) -> Result<u64, StoreError> {
        let number = |name: &String| -> Option<u64> {
            let number = name.strip_prefix("journal-").or_else(|| name.strip_prefix("snapshot-"))?;
            number.split('.').next()?.parse().ok()
        };
        Ok(self.names()?.iter().filter_map(number).max().map_or(0, |newest| newest.saturating_add(1)))
    }

    /// Makes names in the directory survive the end of the machine.
    fn sync(&self) -> Result<(), StoreError> {
        self.disk.sync_names().map_err(|source| StoreError::io("sync", &self.path, source))
    }

    /// From now on the file is never removed.
    fn keep(&self, name: &str) {
        lock(&self.damaged).insert(name.to_owned());
    }

    /// Leaves the file to the next start.
    fn leave(&self, name: &str) {
        lock(&self.unread).insert(name.to_owned());
    }

    /// Removes what `snapshot-number` stands for, and sets aside what of it is damaged. What cannot be removed is left
    /// to the next snapshot: it is not read any more.
    fn remove_before(&self, number: u64) {
        for (kind, name_of) in [("snapshot", Self::snapshot as fn(u64) -> String), ("journal", Self::journal)]
        {
            let numbers = self.numbers(kind).unwrap_or_else(|error| {
                tracing::warn!("superseded files are not removed: {error}");
                Vec::new()
            });
            for old in numbers.into_iter().filter(|old| *old < number) {
                let name = name_of(old);
                if lock(&self.damaged).contains(&name) {
                    self.set_aside(&name);
                } else if !lock(&self.unread).contains(&name) {
                    self.discard(&name);
                }
            }
        }
    }

    fn set_aside(&self, name: &str) {
        let kept = format!("{name}{DAMAGED}");
        match self.disk.rename(name, &kept) {
            Ok(()) => tracing::warn!("{} is damaged and kept as {kept}", self.path.join(name).display()),
            Err(error) => {
                tracing::warn!("cannot rename {} to {kept}: {error}", self.path.join(name).display());
            }
        }
    }

    /// Removes a superseded file, or one that was not finished.
    fn discard(&self, name: &str) {
        if let Err(error) = self.disk.remove(name) {
            tracing::warn!("cannot remove {}: {error}", self.path.join(name).display());
        }
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let names = self.disk.names().unwrap_or_default();
        names.iter().filter_map(|name| self.disk.len(name).ok()).sum()
    }

    /// Files that are kept because they are damaged.
    pub(crate) fn kept_files(&self) -> u64 {
        let names = self.disk.names().unwrap_or_default();
        names.iter().filter(|name| name.ends_with(DAMAGED)).count() as u64
    }
}

#[cfg(test)]
pub(crate) mod simulation;
#[cfg(test)]
mod tests;
