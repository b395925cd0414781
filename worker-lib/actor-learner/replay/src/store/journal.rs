//! Writer of the journal. It combines many records into one write and one `fdatasync`.

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

/// A log sequence number: the total number of bytes appended to all segments. A record is durable once the bytes up to
/// its log sequence number are durable.
pub(crate) type Lsn = u64;

/// Failure of the journal. Records cannot be written again until a new segment has been started and a snapshot has been
/// written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot write the journal: {reason}; writes are refused until the shard has written a snapshot, which it \
     attempts automatically"
)]
pub struct JournalFailed {
    reason: Arc<str>,
}

/// Progress of the journal writer.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Position up to which each record either has been written or has been dropped because of a failure.
    done: Lsn,
    failure: Option<JournalFailed>,
    /// Number of failures so far.
    failures: u64,
    /// Whether the writer has an open segment.
    is_open: bool,
}

struct Queue {
    parts: Vec<Part>,
    appended: Lsn,
    segment: u64,
    salt: u64,
    offset: u64,
    /// Length of a segment, in bytes, at which the next segment is started.
    segment_bytes: u64,
    is_closing: bool,
}

struct Shared {
    directory: Arc<Directory>,
    queue: Mutex<Queue>,
    filled: Condvar,
    progress: watch::Sender<Progress>,
}

/// Appending side of a shard's journal. Dropping this value waits until all queued records have been written.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

/// Segment whose start has been requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rotated {
    /// Number that identifies the segment. A snapshot with the same number replaces everything before the segment.
    pub(crate) number: u64,
    begun_at: Lsn,
}

/// Number of failures so far. A snapshot recovers from all of these failures if it is started after the number was
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecoverableFailures(u64);

impl Journal {
    /// Opens the journal, starting with segment `number`.
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

    /// Creates a journal without a writer thread, so that a test can execute the writes itself.
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

    /// Queues a record to be written after all earlier records. Does not wait; see [`Self::room`].
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

    /// Starts a new segment. A snapshot that is started afterwards replaces everything before this segment. Waits until
    /// the earlier records have been written to their files or dropped. Without this wait, an earlier file could be
    /// created after the snapshot has removed the files that it replaces.
    pub(crate) async fn rotate(&self) -> (u64, Option<RecoverableFailures>) {
        let rotated = self.begin_rotation();
        let mut progress = self.shared.progress.subscribe();
        // This cannot fail, because the sender exists as long as `self` does.
        let _ = progress.wait_for(|progress| progress.done >= rotated.begun_at).await;
        (rotated.number, self.recoverable_failures())
    }

    /// Queues the start of a new segment.
    pub(super) fn begin_rotation(&self) -> Rotated {
        let mut queue = lock(&self.shared.queue);
        let number = queue.segment + 1;
        self.shared.begin_segment(&mut queue, number);
        self.shared.filled.notify_one();
        Rotated { number, begun_at: queue.appended }
    }

    /// Returns the failures from which a snapshot would recover if it were started now, or `None` if the writer has no
    /// open segment.
    pub(super) fn recoverable_failures(&self) -> Option<RecoverableFailures> {
        let progress = self.shared.progress.borrow();
        progress.is_open.then_some(RecoverableFailures(progress.failures))
    }

    /// Clears a failure. Must be called only after the completion of a snapshot that was started after
    /// `recoverable_failures` was obtained, because only such a snapshot is certain to contain the changes whose
    /// records the journal lost. Returns whether the journal is working.
    pub(crate) fn recover(&self, recoverable_failures: RecoverableFailures) -> bool {
        let recover = |progress: &mut Progress| {
            let is_repaired = progress.failure.is_some() && progress.failures == recoverable_failures.0;
            if is_repaired {
                progress.failure = None;
            }
            is_repaired
        };
        if self.shared.progress.send_if_modified(recover) {
            tracing::warn!("the journal accepts records again: a snapshot contains the missing records");
        }
        self.failure().is_none()
    }

    /// Returns the position after the last appended record.
    pub(crate) fn appended(&self) -> Lsn {
        lock(&self.shared.queue).appended
    }

    /// Returns the number of bytes that have not been written yet.
    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.appended().saturating_sub(self.shared.progress.borrow().done)
    }

    /// Returns the current failure, if any.
    pub(crate) fn failure(&self) -> Option<JournalFailed> {
        self.shared.progress.borrow().failure.clone()
    }

    /// Returns the number of failures since the journal was opened.
    pub(crate) fn failures(&self) -> u64 {
        self.shared.progress.borrow().failures
    }

    /// Waits until all records up to `lsn` are durable.
    pub(crate) async fn durable(&self, lsn: Lsn) -> Result<(), JournalFailed> {
        self.reached(|done| done >= lsn).await
    }

    /// Returns whether all records up to `lsn` are durable.
    #[cfg(test)]
    pub(super) fn is_durable(&self, lsn: Lsn) -> Result<bool, JournalFailed> {
        let progress = self.shared.progress.borrow();
        progress.failure.clone().map_or(Ok(progress.done >= lsn), Err)
    }

    /// Writes the queued records with `writer`; used if there is no writer thread.
    #[cfg(test)]
    pub(super) fn write(&self, writer: &mut Writer) {
        self.shared.write(writer);
    }

    /// Waits until the backlog is small enough for another record.
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
        // The wait itself cannot fail, because the sender exists as long as `self` does.
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

    /// Waits for queued data, and returns whether there is any.
    fn wait(&self) -> bool {
        let queue = lock(&self.queue);
        let is_idle = |queue: &mut Queue| queue.parts.is_empty() && !queue.is_closing;
        let queue = self.filled.wait_while(queue, is_idle).unwrap_or_else(PoisonError::into_inner);
        !queue.parts.is_empty()
    }

    /// Writes the queued data.
    fn write(&self, writer: &mut Writer) {
        let (parts, end) = {
            let mut queue = lock(&self.queue);
            (mem::take(&mut queue.parts), queue.appended)
        };
        let failure = writer.write(&parts).err().map(|error| {
            tracing::error!("{error}: refusing writes until the disk is writable again");
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
