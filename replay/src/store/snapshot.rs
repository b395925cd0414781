//! Writes what the tables hold.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::Directory;
use super::error::StoreError;
use super::format::{FORMAT, HEADER_BYTES, Header, new_salt};
use super::journal::frame;
use super::record::{Payload, Record};
use crate::limits::{SNAPSHOT_PART_BYTES, SNAPSHOT_PART_ITEMS};
use crate::lock;
use crate::table::Table;

/// A snapshot that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) path: PathBuf,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

struct Output {
    file: BufWriter<File>,
    path: PathBuf,
    salt: u64,
    offset: u64,
}

impl Output {
    fn create(path: &Path) -> Result<Self, StoreError> {
        let file = File::create(path).map_err(|source| StoreError::io("make", path, source))?;
        let salt = new_salt();
        let mut output = Self { file: BufWriter::new(file), path: path.to_owned(), salt, offset: 0 };
        output.put(&Header { format: FORMAT, salt }.emit())?;
        output.offset = HEADER_BYTES as u64;
        Ok(output)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(|source| StoreError::io("write", &self.path, source))
    }

    fn record(&mut self, record: &Record, payload: Option<&Payload>) -> Result<(), StoreError> {
        let (parts, bytes) = frame(record, payload, self.salt, self.offset);
        self.offset += bytes;
        parts.iter().try_for_each(|part| self.put(part))
    }

    fn finish(mut self) -> Result<u64, StoreError> {
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|source| StoreError::io("write", &self.path, source))?;
        Ok(self.offset)
    }
}

/// Writes `snapshot-number`, which stands for everything before `journal-number`, and removes that. Tables are locked
/// for a few items at a time. Blocks.
pub(crate) fn write_snapshot(
    directory: &Directory,
    number: u64,
    tables: &[Arc<Mutex<Table>>],
) -> Result<Snapshot, StoreError> {
    let path = directory.snapshot(number);
    let unfinished = path.with_extension("unfinished");
    let mut output = Output::create(&unfinished)?;
    let mut items = 0;
    for (at, table) in tables.iter().enumerate() {
        items += write_table(&mut output, at as u16, table)?;
    }
    output.record(&Record::End { items }, None)?;
    let bytes = output.finish()?;
    std::fs::rename(&unfinished, &path).map_err(|source| StoreError::io("name", &path, source))?;
    directory.sync()?;
    directory.remove_before(number)?;
    Ok(Snapshot { path, items, bytes })
}

fn write_table(output: &mut Output, number: u16, table: &Mutex<Table>) -> Result<u64, StoreError> {
    let (name, counts, writers) = {
        let table = lock(table);
        let writers: Vec<_> = table.writers.iter().map(|(actor, window)| (actor, *window)).collect();
        (table.config().name.clone(), table.counts(), writers)
    };
    output.record(&Record::Table { table: number, name }, None)?;
    for (actor, window) in writers {
        output.record(&Record::Writer { table: number, actor, window: Box::new(window) }, None)?;
    }
    let (mut start, mut items) = (Some(0), 0);
    while let Some(from) = start {
        let (part, next) = lock(table).part(from, SNAPSHOT_PART_ITEMS, SNAPSHOT_PART_BYTES);
        start = next;
        items += part.len() as u64;
        for item in part {
            let payload = Payload::new(item.payload.clone());
            output.record(&Record::Item { table: number, counts, item: Box::new(item) }, Some(&payload))?;
        }
    }
    output.record(&Record::Counts { table: number, counts }, None)?;
    Ok(items)
}
