//! Tables from the latest snapshot and the journal since.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::Directory;
use super::error::StoreError;
use super::record::Record;
use super::scan::{Scanned, scan};
use crate::table::{Counts, Item, Table, Window, Writers};

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Restored {
    pub(crate) items: u64,
    /// Bytes that belong to no valid record; their records are lost.
    pub(crate) damaged_bytes: u64,
    /// For the next segment and snapshot.
    pub(crate) next_number: u64,
    /// Of the segments that were read.
    pub(crate) journal_bytes: u64,
    /// Greater than all keys.
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
    /// Numbers of the present file.
    numbers: HashMap<u16, String>,
    path: PathBuf,
    is_complete: bool,
    greatest_key: u64,
}

/// Fills empty tables with what the directory has.
pub(crate) fn restore(directory: &Directory, tables: &mut [&mut Table]) -> Result<Restored, StoreError> {
    let (snapshots, journals) = (directory.numbers("snapshot")?, directory.numbers("journal")?);
    let newest = snapshots.last().copied().into_iter().chain(journals.last().copied()).max();
    let mut restored = Restored { next_number: newest.map_or(0, |newest| newest + 1), ..Restored::default() };
    let mut replay = Replay {
        tables: tables.iter().map(|table| (table.config().name.clone(), Saved::default())).collect(),
        numbers: HashMap::new(),
        path: directory.path().to_owned(),
        is_complete: false,
        greatest_key: 0,
    };
    let snapshot = snapshots.last().copied();
    if let Some(number) = snapshot {
        let path = directory.snapshot(number);
        let scanned = replay.file(&path)?;
        restored.damaged_bytes += report(&path, &scanned);
        if !replay.is_complete {
            tracing::error!("{} has no end: items may be missing", path.display());
        }
    }
    let since: Vec<u64> = journals.into_iter().filter(|journal| Some(*journal) >= snapshot).collect();
    for number in &since {
        let path = directory.journal(*number);
        let scanned = replay.file(&path)?;
        restored.journal_bytes += scanned.len;
        if Some(number) == since.last() && scanned.valid_end > 0 {
            // The process ended while it wrote: nobody was told that this is durable.
            cut(&path, &scanned)?;
        }
        restored.damaged_bytes += report(&path, &scanned);
    }
    restored.next_key = replay.greatest_key + 1;
    for table in tables {
        let Some(saved) = replay.tables.remove(&table.config().name) else { continue };
        table.writers = saved.writers;
        let removed = table.restore(saved.items.into_values(), saved.counts);
        if removed > 0 {
            tracing::warn!("table {:?} has no room for {removed} items that were saved", table.config().name);
        }
        restored.items += table.len() as u64;
    }
    Ok(restored)
}

fn report(path: &Path, scanned: &Scanned) -> u64 {
    if scanned.damaged_bytes > 0 {
        tracing::error!(
            "{}: {} of {} bytes are damaged and are not used; {} records are whole",
            path.display(),
            scanned.damaged_bytes,
            scanned.len,
            scanned.records
        );
    }
    scanned.damaged_bytes
}

fn cut(path: &Path, scanned: &Scanned) -> Result<(), StoreError> {
    if scanned.valid_end == scanned.len {
        return Ok(());
    }
    let file = std::fs::OpenOptions::new().write(true).open(path);
    let cut = file.and_then(|file| file.set_len(scanned.valid_end).and_then(|()| file.sync_all()));
    cut.map_err(|source| StoreError::io("cut", path, source))
}

impl Replay {
    fn file(&mut self, path: &Path) -> Result<Scanned, StoreError> {
        self.numbers.clear();
        path.clone_into(&mut self.path);
        scan(path, |record| self.apply(record))
    }

    /// Nothing if the record that names the table was damaged.
    fn saved(&mut self, table: u16) -> Option<&mut Saved> {
        let saved = self.numbers.get(&table).and_then(|name| self.tables.get_mut(name));
        if saved.is_none() {
            tracing::error!("{}: a record of table {table}, whose name is damaged", self.path.display());
        }
        saved
    }

    fn apply(&mut self, record: Record) -> Result<(), StoreError> {
        match record {
            Record::Table { table, name } => {
                if !self.tables.contains_key(&name) {
                    return Err(StoreError::UnknownTable { path: self.path.clone(), table: name });
                }
                self.numbers.insert(table, name);
            }
            Record::End { .. } => self.is_complete = true,
            Record::Writer { table, actor, window } => self.writer(table, actor, *window),
            Record::Reset { table } => {
                if let Some(saved) = self.saved(table) {
                    saved.items.clear();
                    saved.counts = Counts::default();
                }
            }
            Record::Item { table, counts, item } => {
                self.greatest_key = self.greatest_key.max(item.key);
                if let Some(saved) = self.saved(table) {
                    saved.writers.mark(item.origin);
                    saved.items.insert(item.key, *item);
                    saved.counts = counts;
                }
            }
            Record::Removed { table, counts, .. }
            | Record::Sampled { table, counts, .. }
            | Record::Priorities { table, counts, .. }
            | Record::Counts { table, counts } => {
                if let Some(saved) = self.saved(table) {
                    saved.counts = counts;
                    saved.change(&record);
                }
            }
        }
        Ok(())
    }

    fn writer(&mut self, table: u16, actor: u64, window: Window) {
        if let Some(saved) = self.saved(table) {
            saved.writers.restore(actor, window);
        }
    }
}

impl Saved {
    fn change(&mut self, record: &Record) {
        match record {
            Record::Removed { keys, .. } => {
                for key in keys {
                    self.items.remove(key);
                }
            }
            Record::Sampled { times, .. } => {
                for (key, times) in times {
                    if let Some(item) = self.items.get_mut(key) {
                        item.times_sampled = *times;
                    }
                }
            }
            Record::Priorities { priorities, .. } => {
                for (key, priority) in priorities {
                    if let Some(item) = self.items.get_mut(key) {
                        item.priority = *priority;
                    }
                }
            }
            _ => {}
        }
    }
}
