//! The writer of segments, which is the file side of the journal.

use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::Bytes;

use super::disk::{WriteFile, write_all};
use super::error::StoreError;
use super::format::HEADER_BYTES;
use super::{Directory, Durability};

/// Maximum number of parts that are written with one system call.
const PARTS_MAX: usize = 512;

/// Data queued for the journal writer.
pub(super) enum Part {
    Bytes(Bytes),
    /// Start of the segment with this number.
    Segment {
        number: u64,
        header: Box<[u8; HEADER_BYTES]>,
    },
}

/// Writer of journal segments. If it can no longer write to a segment, it drops the remaining data of the segment.
pub(super) struct Writer {
    directory: Arc<Directory>,
    durability: Durability,
    segment: Option<Segment>,
}

struct Segment {
    number: u64,
    file: Box<dyn WriteFile>,
    /// Number of bytes written with the required durability.
    done: u64,
}

impl Writer {
    pub(super) fn new(directory: Arc<Directory>, durability: Durability) -> Self {
        Self { directory, durability, segment: None }
    }

    /// Returns whether the writer has an open segment.
    pub(super) fn is_open(&self) -> bool {
        self.segment.is_some()
    }

    /// Writes parts. Returns the first error if any data was dropped.
    pub(super) fn write(&mut self, parts: &[Part]) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        let mut run: Vec<&[u8]> = Vec::new();
        for part in parts {
            match part {
                Part::Bytes(bytes) => run.push(bytes),
                Part::Segment { number, header } => {
                    // Begin the next segment even if the previous one has failed.
                    let (flushed, begun) = (self.flush(&mut run), self.begin(*number, &header[..]));
                    outcome = outcome.and(flushed).and(begun);
                }
            }
        }
        outcome.and(self.flush(&mut run))
    }

    fn begin(&mut self, number: u64, header: &[u8]) -> Result<(), StoreError> {
        let name = Directory::journal(number);
        let refused = |source| StoreError::io("begin", &self.directory.path().join(&name), source);
        self.segment = None;
        let mut file = self.directory.disk().create(&name).map_err(refused)?;
        let begun = write_all(&mut *file, &mut [IoSlice::new(header)]).map_err(refused);
        let begun = begun.and_then(|()| match self.durability {
            Durability::Sync => self.directory.sync(),
            Durability::None | Durability::Write => Ok(()),
        });
        match begun {
            Ok(()) => self.segment = Some(Segment { number, file, done: header.len() as u64 }),
            // Remove the file: it contains no records, and such files would take up space on a full disk.
            Err(_) => self.directory.discard(&name),
        }
        begun
    }

    fn flush(&mut self, run: &mut Vec<&[u8]>) -> Result<(), StoreError> {
        let parts = std::mem::take(run);
        let Some(segment) = self.segment.as_mut().filter(|_| !parts.is_empty()) else { return Ok(()) };
        let Err(source) = segment.write(&parts, self.durability) else { return Ok(()) };
        let path = self.directory.path().join(Directory::journal(segment.number));
        // After a failed sync, the kernel's page cache may hold data that is not on the disk, and a restarted shard
        // would consider that data durable.
        if let Err(error) = segment.file.cut(segment.done) {
            tracing::warn!("cannot truncate {} to {} bytes: {error}", path.display(), segment.done);
        }
        self.segment = None;
        Err(StoreError::io("write", &path, source))
    }
}

impl Segment {
    fn write(&mut self, parts: &[&[u8]], durability: Durability) -> io::Result<()> {
        for parts in parts.chunks(PARTS_MAX) {
            let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
            write_all(&mut *self.file, &mut slices)?;
        }
        if durability == Durability::Sync {
            self.file.sync()?;
        }
        self.done += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        Ok(())
    }
}
