//! Writes the contents of the tables to a snapshot.

use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::disk::{WriteFile, write_all};
use super::error::StoreError;
use super::format::{HEADER_BYTES, Header};
use super::record::{Payload, Record, TableName, framed};
use super::{Directory, UNFINISHED};
use crate::limits::{SNAPSHOT_PART_BYTES, SNAPSHOT_PART_ITEMS};
use crate::lock;
use crate::table::Table;

/// Number of bytes that are buffered before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Snapshot that has been written completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) path: PathBuf,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

/// Parameters that limit how long a snapshot locks each table.
pub(crate) struct Pace<'a> {
    /// Maximum number of items that are copied under one lock.
    pub(crate) items: usize,
    /// Approximate maximum number of payload bytes that are copied under one lock.
    pub(crate) bytes: u64,
    /// Function that is called whenever the snapshot holds no lock on a table.
    pub(crate) between: &'a mut dyn FnMut(),
}

struct Output<'a> {
    directory: &'a Directory,
    file: Box<dyn WriteFile>,
    path: PathBuf,
    buffer: Vec<u8>,
    salt: u64,
    offset: u64,
}

impl<'a> Output<'a> {
    fn create(directory: &'a Directory, name: &str) -> Result<Self, StoreError> {
        let path = directory.path().join(name);
        let file = directory.disk().create(name).map_err(|source| StoreError::io("make", &path, source))?;
        let salt = directory.disk().salt();
        let buffer = Header::new(salt).emit().to_vec();
        Ok(Self { directory, file, path, buffer, salt, offset: HEADER_BYTES as u64 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = write_all(&mut *self.file, &mut [IoSlice::new(bytes)]);
        written.map_err(|source| StoreError::io("write", &self.path, source))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)
    }

    fn record(&mut self, record: &Record, payload: Option<&Payload>) -> Result<(), StoreError> {
        let (parts, bytes) = framed(record, payload, self.salt, self.offset);
        self.offset += bytes;
        for part in parts {
            if self.buffer.len() + part.len() > BUFFER_BYTES {
                self.flush()?;
            }
            if part.len() > BUFFER_BYTES {
                self.write(&part)?;
            } else {
                self.buffer.extend_from_slice(&part);
            }
        }
        Ok(())
    }

    fn table(&mut self, table: &Mutex<Table>, pace: &mut Pace<'_>) -> Result<u64, StoreError> {
        let (name, counts, writers) = {
            let table = lock(table);
            let writers: Vec<_> = table.writers.iter().map(|(actor, window)| (actor, *window)).collect();
            (TableName::from(&*table.config().name), table.counts(), writers)
        };
        for (actor, window) in writers {
            let window = Box::new(window);
            self.record(&Record::Writer { table: Arc::clone(&name), actor, window }, None)?;
        }
        let (mut start, mut items) = (Some(0), 0);
        while let Some(from) = start {
            (pace.between)();
            let (part, next) = lock(table).part(from, pace.items, pace.bytes);
            start = next;
            items += part.len() as u64;
            for item in part {
                let payload = Payload::new(item.payload.clone());
                let record = Record::Item { table: Arc::clone(&name), counts, item: Box::new(item) };
                self.record(&record, Some(&payload))?;
            }
        }
        self.record(&Record::Counts { table: name, counts }, None)?;
        Ok(items)
    }

    /// Writes all tables, and gives the file its final name.
    fn finish(
        &mut self,
        tables: &[Arc<Mutex<Table>>],
        number: u64,
        pace: &mut Pace<'_>,
    ) -> Result<Snapshot, StoreError> {
        let mut items = 0;
        for table in tables {
            items += self.table(table, pace)?;
        }
        self.record(&Record::End { items }, None)?;
        self.flush()?;
        self.file.sync().map_err(|source| StoreError::io("write", &self.path, source))?;
        let name = Directory::snapshot(number);
        let path = self.directory.path().join(&name);
        let renamed = self.directory.disk().rename(&unfinished(number), &name);
        renamed.map_err(|source| StoreError::io("name", &path, source))?;
        self.directory.sync()?;
        Ok(Snapshot { path, items, bytes: self.offset })
    }
}

impl Pace<'_> {
    /// Returns the default parameters.
    pub(crate) fn new(between: &mut dyn FnMut()) -> Pace<'_> {
        Pace { items: SNAPSHOT_PART_ITEMS, bytes: SNAPSHOT_PART_BYTES, between }
    }
}

fn unfinished(number: u64) -> String {
    Directory::snapshot(number) + UNFINISHED
}

/// Writes the snapshot with the given number, which replaces all files before the journal segment with the same number,
/// and removes the replaced files. Holds the lock on a table only while it copies a few items. This function blocks.
pub(crate) fn write_snapshot(
    directory: &Directory,
    number: u64,
    tables: &[Arc<Mutex<Table>>],
    pace: &mut Pace<'_>,
) -> Result<Snapshot, StoreError> {
    let name = unfinished(number);
    let finished = Output::create(directory, &name)?.finish(tables, number, pace);
    match &finished {
        Ok(_) => directory.remove_before(number),
        // Remove the unfinished file, which frees space on a full disk.
        Err(_) => directory.discard(&name),
    }
    finished
}
