//! Persistent state of a shard: a segmented journal of every change, and snapshots that replace it.
//!
//! A process locks the file `lock` in its directory, so only one process at a time can use the directory. Segment
//! files `journal-N` and snapshots `snapshot-N` have the same format: a header followed by records, each with a length
//! and CRC-32C checksums. `snapshot-N` replaces everything before `journal-N`. Because the tables change while a
//! snapshot is being written, the snapshot contains each item in a state that the item had at some time after the
//! start of `journal-N`. Therefore, records contain absolute values, such as a count or a priority, and not
//! increments. Applying the records of `journal-N` and later segments to the snapshot restores the final state of the
//! tables.
//!
//! Restoring the tables does not change any file. A file that was found to be damaged is never removed. When a snapshot
//! supersedes such a file, the file is renamed to `NAME.damaged`.

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

/// Support for the fuzz target in `fuzz/`. Decodes the body of a record, encodes the result, and repeats both steps on
/// that encoding. Returns both encodings, or `None` if the body is not a valid record.
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

/// Durability of acknowledged inserts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Durability {
    /// No durability: only snapshots are written.
    #[default]
    None,
    /// Inserts survive the process exiting, because the record has been passed to the kernel.
    Write,
    /// Inserts survive a crash of the machine, because `fdatasync` has returned.
    Sync,
}

impl Durability {
    /// Returns the name used on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Data directory, locked for as long as this value exists.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    /// Names of damaged files. When a snapshot supersedes such a file, the file is renamed instead of removed.
    damaged: Mutex<BTreeSet<String>>,
    /// Names of superseded files that could not be read. They are left unchanged.
    unread: Mutex<BTreeSet<String>>,
    /// Lock on the directory; `None` if no other process can access the directory.
    _lock: Option<File>,
}

/// Suffix of the file name of a snapshot that is being written.
const UNFINISHED: &str = ".unfinished";
/// Suffix of the file name of a damaged file that is kept.
const DAMAGED: &str = ".damaged";

impl Directory {
    /// Opens a data directory. Creates the directory if necessary, and removes the remains of an interrupted snapshot.
    ///
    /// # Errors
    /// Fails if another process has locked the directory, or if the directory cannot be used.
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

    /// Opens a directory on any kind of disk. `lock` is `None` if no other process can access the directory.
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

    /// Returns the numbers N of all files named `KIND-N`, in ascending order.
    fn numbers(&self, kind: &str) -> Result<Vec<u64>, StoreError> {
        let number = |name: &String| name.strip_prefix(kind)?.strip_prefix('-')?.parse().ok();
        let mut numbers: Vec<u64> = self.names()?.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns a number that is greater than the numbers of all files, including kept damaged files, so that no name
    /// is reused.
    fn next_number(&self) -> Result<u64, StoreError> {
        let number = |name: &String| -> Option<u64> {
            let number = name.strip_prefix("journal-").or_else(|| name.strip_prefix("snapshot-"))?;
            number.split('.').next()?.parse().ok()
        };
        Ok(self.names()?.iter().filter_map(number).max().map_or(0, |newest| newest.saturating_add(1)))
    }

    /// Flushes the file names in the directory, so that they survive a crash of the machine.
    fn sync(&self) -> Result<(), StoreError> {
        self.disk.sync_names().map_err(|source| StoreError::io("sync", &self.path, source))
    }

    /// Marks a file as damaged. A damaged file is never removed.
    fn keep(&self, name: &str) {
        lock(&self.damaged).insert(name.to_owned());
    }

    /// Marks a file as unreadable. An unreadable file is left unchanged until the next start.
    fn leave(&self, name: &str) {
        lock(&self.unread).insert(name.to_owned());
    }

    /// Removes the files that the snapshot with this number replaces, and renames those that are damaged. If a file
    /// cannot be removed, it remains, but is no longer read; the next snapshot tries to remove it again.
    fn remove_before(&self, number: u64) {
        for (kind, name_of) in [("snapshot", Self::snapshot as fn(u64) -> String), ("journal", Self::journal)]
        {
            let numbers = self.numbers(kind).unwrap_or_else(|error| {
                tracing::warn!("cannot remove superseded files: {error}");
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

    /// Removes a superseded or unfinished file.
    fn discard(&self, name: &str) {
        if let Err(error) = self.disk.remove(name) {
            tracing::warn!("cannot remove {}: {error}", self.path.join(name).display());
        }
    }

    /// Returns the total size of all files, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let names = self.disk.names().unwrap_or_default();
        names.iter().filter_map(|name| self.disk.len(name).ok()).sum()
    }

    /// Returns the number of damaged files that are kept.
    pub(crate) fn kept_files(&self) -> u64 {
        let names = self.disk.names().unwrap_or_default();
        names.iter().filter(|name| name.ends_with(DAMAGED)).count() as u64
    }
}

#[cfg(test)]
pub(crate) mod simulation;
#[cfg(test)]
mod tests;
