//! Restores tables from the latest snapshot and from the journal that follows it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::StoreError;
use super::record::Record;
use super::scan::{Scanned, scan};
use super::{Directory, Durability};
use crate::table::{Counts, Item, Table, Writers};

/// Outcome of a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Restored {
    pub(crate) items: u64,
    /// Number of damaged bytes, that is, bytes that differ from those written. The records that contain them are lost.
    pub(crate) damaged_bytes: u64,
    /// Number of files that contain damaged bytes, and of snapshots that lack their final record.
    pub(crate) damaged_files: u64,
    /// Number of bytes of incompletely written records at the ends of journals. The inserts of these records were never
    /// acknowledged.
    pub(crate) torn_bytes: u64,
    /// Number that the next segment and the next snapshot receive.
    pub(crate) next_number: u64,
    /// Size of the segments that were read, in bytes.
    pub(crate) journal_bytes: u64,
    /// Key that is greater than all keys in use.
    pub(crate) next_key: u64,
}

#[derive(Default)]
struct Saved {
    items: BTreeMap<u64, Item>,
    counts: Counts,
    writers: Writers,
}

struct Replay {
    tables: BTreeMap<String, Saved>,
    /// Path of the file that is currently read.
    path: PathBuf,
    is_complete: bool,
    greatest_key: u64,
}

/// Fills empty tables with the contents of the directory. Does not change any file. With `Durability::Sync`, flushes
/// the data that was read, so that it survives a crash of the machine. The flush is necessary because a shard that was
/// killed may have left the data only in the kernel's page cache.
pub(crate) fn restore(
    directory: &Directory,
    durability: Durability,
    tables: &mut [&mut Table],
) -> Result<Restored, StoreError> {
    let (snapshots, journals) = (directory.numbers("snapshot")?, directory.numbers("journal")?);
    let mut restored = Restored { next_number: directory.next_number()?, ..Restored::default() };
    let mut replay = Replay {
        tables: tables.iter().map(|table| (table.config().name.clone(), Saved::default())).collect(),
        path: directory.path().to_owned(),
        is_complete: false,
        greatest_key: 0,
    };
    let snapshot = snapshots.last().copied();
    if let Some(number) = snapshot {
        let name = Directory::snapshot(number);
        let scanned = replay.file(directory, durability, &name)?;
        restored.note(directory, &name, &scanned, replay.is_complete);
    }
    let superseded = |numbers: &[u64], name_of: fn(u64) -> String| {
        for number in numbers.iter().filter(|number| Some(**number) < snapshot) {
            inspect(directory, &name_of(*number));
        }
    };
    superseded(&snapshots, Directory::snapshot);
    superseded(&journals, Directory::journal);
    for number in journals.into_iter().filter(|journal| Some(*journal) >= snapshot) {
        let name = Directory::journal(number);
        let scanned = replay.file(directory, durability, &name)?;
        restored.journal_bytes += scanned.len;
        restored.note(directory, &name, &scanned, true);
    }
    if durability == Durability::Sync {
        directory.sync()?;
    }
    restored.next_key = replay.greatest_key + 1;
    for table in tables {
        let Some(saved) = replay.tables.remove(&table.config().name) else { continue };
        table.writers = saved.writers;
        let removed = table.restore(saved.items.into_values(), saved.counts);
        if removed > 0 {
            tracing::warn!(
                "table {:?} has no room for {removed} of the saved items, which were dropped",
                table.config().name
            );
        }
        restored.items += table.len() as u64;
    }
    Ok(restored)
}

/// Checks a file that was not restored, and that the next snapshot would remove. If the file is damaged, incomplete or
/// unreadable, marks it so that it is kept.
fn inspect(directory: &Directory, name: &str) {
    let path = directory.path().join(name);
    let is_end = |record: &Record| record.table().is_none();
    let mut is_complete = name.starts_with("journal");
    let scanned = scan(directory.disk(), &path, name, |record| {
        is_complete |= is_end(&record);
        Ok(())
    });
    match scanned {
        Ok(scanned) if scanned.damaged_bytes == 0 && !scanned.is_doubtful && is_complete => {}
        Ok(_) => directory.keep(name),
        Err(error) => {
            tracing::warn!("cannot check a superseded file, so it is kept: {error}");
            directory.leave(name);
        }
    }
}

impl Restored {
    /// Counts and reports the damaged bytes of a file.
    fn note(&mut self, directory: &Directory, name: &str, scanned: &Scanned, is_complete: bool) {
        let path = directory.path().join(name);
        let Scanned { records, damaged_bytes, torn_bytes, is_doubtful, len } = *scanned;
        if is_doubtful && damaged_bytes == 0 {
            directory.keep(name);
            tracing::warn!(
                "{}: the last {torn_bytes} bytes are zeros: the machine stopped before they were written, or the disk \
                 has lost them. The file is kept: the next snapshot renames it to {name}.damaged",
                path.display()
            );
        } else if torn_bytes > 0 {
            tracing::info!(
                "{}: the last {torn_bytes} bytes were not written completely and were never acknowledged",
                path.display()
            );
        }
        self.torn_bytes += torn_bytes;
        self.damaged_bytes += damaged_bytes;
        // A snapshot is renamed to its final name only when it is complete.
        if damaged_bytes == 0 && is_complete {
            return;
        }
        self.damaged_files += 1;
        directory.keep(name);
        let end = if is_complete { "" } else { ", and the end of the file is missing" };
        tracing::error!(
            "{}: {damaged_bytes} of {len} bytes are damaged{end}; the items that they held are lost, and {records} \
             intact records were restored. Check the disk. The file is kept: the next snapshot renames it to \
             {name}.damaged",
            path.display()
        );
    }
}

impl Replay {
    fn file(
        &mut self,
        directory: &Directory,
        durability: Durability,
        name: &str,
    ) -> Result<Scanned, StoreError> {
        self.path = directory.path().join(name);
        let path = self.path.clone();
        if durability == Durability::Sync {
            let synced = directory.disk().sync_file(name);
            synced.map_err(|source| StoreError::io("sync", &path, source))?;
        }
        scan(directory.disk(), &path, name, |record| self.apply(record))
    }

    fn apply(&mut self, record: Record) -> Result<(), StoreError> {
        let Some(table) = record.table() else {
            self.is_complete = true;
            return Ok(());
        };
        let Some(saved) = self.tables.get_mut(&**table) else {
            return Err(StoreError::UnknownTable { path: self.path.clone(), table: table.to_string() });
        };
        if let Record::Item { item, .. } = &record {
            self.greatest_key = self.greatest_key.max(item.key);
        }
        saved.apply(record);
        Ok(())
    }
}

impl Saved {
    fn apply(&mut self, record: Record) {
        match record {
            Record::End { .. } => {}
            Record::Writer { actor, window, .. } => self.writers.restore(actor, *window),
            Record::Reset { .. } => {
                self.items.clear();
                self.counts = Counts::default();
            }
            Record::Item { counts, item, .. } => {
                self.writers.mark(item.origin);
                self.items.insert(item.key, *item);
                self.counts = counts;
            }
            Record::Counts { counts, .. } => self.counts = counts,
            Record::Removed { counts, keys, .. } => {
                self.counts = counts;
                for key in keys {
                    self.items.remove(&key);
                }
            }
            Record::Sampled { counts, times, .. } => {
                self.counts = counts;
                self.change(times, |item, times| item.times_sampled = times);
            }
            Record::Priorities { counts, priorities, .. } => {
                self.counts = counts;
                self.change(priorities, |item, priority| item.priority = priority);
            }
        }
    }

    fn change<T>(&mut self, values: Vec<(u64, T)>, set: impl Fn(&mut Item, T)) {
        for (key, value) in values {
            if let Some(item) = self.items.get_mut(&key) {
                set(item, value);
            }
        }
    }
}
