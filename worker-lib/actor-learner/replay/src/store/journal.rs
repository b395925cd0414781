//! Appends records, many to one write and one `fdatasync`.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::watch;

use super::error::StoreError;
use super::format::{HEADER_BYTES, Header};
use super::record::{Payload, Record, framed};
use super::writer::{Part, Writer};
use super::{Directory, Durability};
use crate::limits::{BACKLOG_BYTES, SEGMENT_BYTES};
use crate::lock;

/// Bytes that were appended to all segments: a record is durable when as many are.
pub(crate) type Lsn = u64;

/// The journal cannot be written at present. It can again when a segment was begun and a snapshot written since.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the journal cannot be written, and writes are refused: {reason}; the shard tries again by itself, and goes on \
     when the disk takes a snapshot"
)]
pub struct JournalFailed {
    reason: Arc<str>,
}

/// How far the writer is.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Everything before has been written, or dropped because of the failure.
    done: Lsn,
    failure: Option<JournalFailed>,
    /// Failures so far.
    failures: u64,
    /// Whether the writer has a segment again.
    is_open: bool,
}

struct Queue {
    parts: Vec<Part>,
    appended: Lsn,
    segment: u64,
    salt: u64,
    offset: u64,
    /// A segment that has so many is followed by another.
    segment_bytes: u64,
    is_closing: bool,
}

struct Shared {
    directory: Arc<Directory>,
    queue: Mutex<Queue>,
    filled: Condvar,
    progress: watch::Sender<Progress>,
}

/// The end of a shard's journal. Dropping it writes what is left.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

/// A segment that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rotated {
    /// A snapshot of this number replaces all before the segment.
    pub(crate) number: u64,
    begun_at: Lsn,
}

/// The failures that a snapshot from now on makes good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mendable(u64);

impl Journal {
    /// Starts segment `number`.
    pub(crate) fn open(
        directory: Arc<Directory>,
        number: u64,
        durability: Durability,
    ) -> Result<Self, StoreError> {
        let path = directory.path().to_owned();
        let (mut journal, mut writer) = Self::unattended(directory, number, durability, SEGMENT_BYTES);
        let shared = Arc::clone(&journal.shared);
        let run = move || {
            while shared.wait() {
                shared.write(&mut writer);
            }
        };
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(run);
        let thread = thread.map_err(|source| StoreError::io("start the writer of", &path, source))?;
        journal.writer = Some(thread);
        Ok(journal)
    }

    /// A journal without a thread that writes it.
    pub(super) fn unattended(
        directory: Arc<Directory>,
        number: u64,
        durability: Durability,
        segment_bytes: u64,
    ) -> (Self, Writer) {
        let queue = Queue {
            parts: Vec::new(),
            appended: 0,
            segment: 0,
            salt: 0,
            offset: 0,
            segment_bytes,
            is_closing: false,
        };
        let (progress, _) = watch::channel(Progress::default());
        let writer = Writer::new(Arc::clone(&directory), durability);
        let shared =
            Arc::new(Shared { directory, queue: Mutex::new(queue), filled: Condvar::new(), progress });
        shared.begin_segment(&mut lock(&shared.queue), number);
        (Self { shared, writer: None }, writer)
    }

    /// Takes in a record, to be written behind all earlier ones. Does not wait: see [`Self::room`].
    pub(crate) fn append(&self, record: &Record, payload: Option<&Payload>) -> Lsn {
        let mut queue = lock(&self.shared.queue);
        if queue.offset >= queue.segment_bytes {
            let next = queue.segment + 1;
            self.shared.begin_segment(&mut queue, next);
        }
        queue.push(record, payload);
        self.shared.filled.notify_one();
        queue.appended
    }

    /// Begins a segment: a snapshot from now on replaces all before it. Waits until that is in its files, or cannot be:
    /// the snapshot would not find a file to remove that is made later.
    pub(crate) async fn rotate(&self) -> (u64, Option<Mendable>) {
        let rotated = self.begin_rotation();
        let mut progress = self.shared.progress.subscribe();
        // The sender lives as long as `self`.
        let _ = progress.wait_for(|progress| progress.done >= rotated.begun_at).await;
        (rotated.number, self.mendable())
    }

    /// Begins a segment, as soon as the writer gets to it.
    pub(super) fn begin_rotation(&self) -> Rotated {
        let mut queue = lock(&self.shared.queue);
        let number = queue.segment + 1;
        self.shared.begin_segment(&mut queue, number);
        self.shared.filled.notify_one();
        Rotated { number, begun_at: queue.appended }
    }

    /// What a snapshot makes good that is begun now; nothing if the writer has no segment.
    pub(super) fn mendable(&self) -> Option<Mendable> {
        let progress = self.shared.progress.borrow();
        progress.is_open.then_some(Mendable(progress.failures))
    }

    /// Ends a failure: a snapshot that began after `mendable` was given has what the journal lost. Whether it is well.
    pub(crate) fn mend(&self, mendable: Mendable) -> bool {
        let mend = |progress: &mut Progress| {
            let is_mended = progress.failure.is_some() && progress.failures == mendable.0;
            if is_mended {
                progress.failure = None;
            }
            is_mended
        };
        if self.shared.progress.send_if_modified(mend) {
            tracing::warn!("the journal is written again: a snapshot has what it lacked");
        }
        self.failure().is_none()
    }

    /// Everything up to now.
    pub(crate) fn appended(&self) -> Lsn {
        lock(&self.shared.queue).appended
    }

    /// Bytes that are still to be written.
    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.appended().saturating_sub(self.shared.progress.borrow().done)
    }

    /// Why it cannot be written.
    pub(crate) fn failure(&self) -> Option<JournalFailed> {
        self.shared.progress.borrow().failure.clone()
    }

    /// How often it could not be written since the start.
    pub(crate) fn failures(&self) -> u64 {
        self.shared.progress.borrow().failures
    }

    /// Waits until `lsn` is durable.
    pub(crate) async fn durable(&self, lsn: Lsn) -> Result<(), JournalFailed> {
        self.reached(|done| done >= lsn).await
    }

    /// Whether `lsn` is durable now.
    #[cfg(test)]
    pub(super) fn is_durable(&self, lsn: Lsn) -> Result<bool, JournalFailed> {
        let progress = self.shared.progress.borrow();
        progress.failure.clone().map_or(Ok(progress.done >= lsn), Err)
    }

    /// Writes what is queued, where there is no thread for it.
    #[cfg(test)]
    pub(super) fn write(&self, writer: &mut Writer) {
        self.shared.write(writer);
    }

    /// Waits until little enough is still to be written.
    pub(crate) async fn room(&self) -> Result<(), JournalFailed> {
        if self.backlog_bytes() <= BACKLOG_BYTES && self.failure().is_none() {
            return Ok(());
        }
        self.reached(|done| self.appended().saturating_sub(done) <= BACKLOG_BYTES).await
    }

    async fn reached(&self, is_enough: impl Fn(Lsn) -> bool) -> Result<(), JournalFailed> {
        let mut progress = self.shared.progress.subscribe();
        let reached =
            progress.wait_for(|progress| progress.failure.is_some() || is_enough(progress.done)).await;
        // The sender lives as long as `self`.
        match reached.ok().and_then(|progress| progress.failure.clone()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        lock(&self.shared.queue).is_closing = true;
        self.shared.filled.notify_one();
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the journal panicked");
        }
    }
}

impl Queue {
    fn push(&mut self, record: &Record, payload: Option<&Payload>) {
        let (parts, bytes) = framed(record, payload, self.salt, self.offset);
        self.parts.extend(parts.into_iter().map(Part::Bytes));
        self.offset += bytes;
        self.appended += bytes;
    }
}

impl Shared {
    fn begin_segment(&self, queue: &mut Queue, number: u64) {
        queue.salt = self.directory.disk().salt();
        let header = Box::new(Header::new(queue.salt).emit());
        queue.parts.push(Part::Segment { number, header });
        queue.segment = number;
        queue.offset = HEADER_BYTES as u64;
        queue.appended += HEADER_BYTES as u64;
    }

    /// Waits for something to write; whether there is.
    fn wait(&self) -> bool {
        let queue = lock(&self.queue);
        let is_idle = |queue: &mut Queue| queue.parts.is_empty() && !queue.is_closing;
        let queue = self.filled.wait_while(queue, is_idle).unwrap_or_else(PoisonError::into_inner);
        !queue.parts.is_empty()
    }

    /// Writes what is queued.
    fn write(&self, writer: &mut Writer) {
        let (parts, end) = {
            let mut queue = lock(&self.queue);
            (mem::take(&mut queue.parts), queue.appended)
        };
        let failure = writer.write(&parts).err().map(|error| {
            tracing::error!("{error}: writes are refused until the disk takes them again");
            JournalFailed { reason: error.to_string().into() }
        });
        self.progress.send_modify(|progress| {
            progress.done = end;
            progress.is_open = writer.is_open();
            if failure.is_some() {
                progress.failure = failure;
                progress.failures += 1;
            }
        });
    }
}
