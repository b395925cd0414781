//! Appends records, many to one write and one `fdatasync`.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::watch;

use super::error::StoreError;
use super::format::{FORMAT, FRAME_BYTES, HEADER_BYTES, Header, RECORD_MAGIC, frame_crc, new_salt};
use super::record::{Payload, Record};
use super::{Directory, Durability};
use crate::limits::{BACKLOG_BYTES, SEGMENT_BYTES};
use crate::lock;

/// Bytes that were appended to all segments: a record is durable when as many are.
pub(crate) type Lsn = u64;

/// Payloads up to this length are copied behind their record instead of being a part of the write of their own.
const COPY_BYTES: usize = 4096;
/// Parts of one system call.
const PARTS_MAX: usize = 512;

/// The journal cannot be written any more, and says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal has failed, and nothing is durable until the shard is started again: {reason}")]
pub struct JournalFailed {
    reason: Arc<str>,
}

/// How far the writer is.
#[derive(Clone, Debug, Default)]
struct Progress {
    durable: Lsn,
    failure: Option<JournalFailed>,
}

enum Part {
    Bytes(Bytes),
    /// The segment of that number begins.
    Segment {
        number: u64,
        header: [u8; HEADER_BYTES],
    },
}

struct Queue {
    parts: Vec<Part>,
    appended: Lsn,
    segment: u64,
    salt: u64,
    offset: u64,
    is_closing: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    progress: watch::Sender<Progress>,
    /// Names of the tables, by their numbers.
    tables: Vec<String>,
}

/// The end of a shard's journal. Dropping it writes what is left.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl Journal {
    /// Starts segment `number`.
    pub(crate) fn open(
        directory: Arc<Directory>,
        number: u64,
        durability: Durability,
        tables: Vec<String>,
    ) -> Result<Self, StoreError> {
        let queue =
            Queue { parts: Vec::new(), appended: 0, segment: 0, salt: 0, offset: 0, is_closing: false };
        let (progress, _) = watch::channel(Progress::default());
        let shared = Arc::new(Shared { queue: Mutex::new(queue), filled: Condvar::new(), progress, tables });
        shared.begin_segment(&mut lock(&shared.queue), number);
        let writer = Writer { directory, durability, file: None };
        let path = writer.directory.path().to_owned();
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("journal".to_owned()).spawn(move || shared.run(writer))
        };
        let writer = thread.map_err(|source| StoreError::io("start the writer of", &path, source))?;
        Ok(Self { shared, writer: Some(writer) })
    }

    /// Takes in a record, to be written behind all earlier ones. Does not wait: see [`Self::room`].
    pub(crate) fn append(&self, record: &Record, payload: Option<&Payload>) -> Lsn {
        let mut queue = lock(&self.shared.queue);
        if queue.offset >= SEGMENT_BYTES {
            let next = queue.segment + 1;
            self.shared.begin_segment(&mut queue, next);
        }
        queue.push(record, payload);
        self.shared.filled.notify_one();
        queue.appended
    }

    /// Begins a segment and gives its number: a snapshot from now on replaces all before it. Waits until that is in its
    /// files, or cannot be: the snapshot would not find a file to remove that is made later.
    pub(crate) async fn rotate(&self) -> u64 {
        let (next, begun) = {
            let mut queue = lock(&self.shared.queue);
            let next = queue.segment + 1;
            self.shared.begin_segment(&mut queue, next);
            self.shared.filled.notify_one();
            (next, queue.appended)
        };
        // A failure is told to those who append; the snapshot does without the journal.
        let _ = self.durable(begun).await;
        next
    }

    /// Everything up to now.
    pub(crate) fn appended(&self) -> Lsn {
        lock(&self.shared.queue).appended
    }

    /// Bytes that are still to be written.
    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.appended().saturating_sub(self.shared.progress.borrow().durable)
    }

    /// Why it can no longer be written.
    pub(crate) fn failure(&self) -> Option<JournalFailed> {
        self.shared.progress.borrow().failure.clone()
    }

    /// Waits until `lsn` is durable.
    pub(crate) async fn durable(&self, lsn: Lsn) -> Result<(), JournalFailed> {
        self.reached(|durable| durable >= lsn).await
    }

    /// Waits until little enough is still to be written.
    pub(crate) async fn room(&self) -> Result<(), JournalFailed> {
        if self.backlog_bytes() <= BACKLOG_BYTES && self.failure().is_none() {
            return Ok(());
        }
        self.reached(|durable| self.appended().saturating_sub(durable) <= BACKLOG_BYTES).await
    }

    async fn reached(&self, is_enough: impl Fn(Lsn) -> bool) -> Result<(), JournalFailed> {
        let mut progress = self.shared.progress.subscribe();
        let reached =
            progress.wait_for(|progress| progress.failure.is_some() || is_enough(progress.durable)).await;
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
        let (parts, bytes) = frame(record, payload, self.salt, self.offset);
        self.parts.extend(parts.into_iter().map(Part::Bytes));
        self.offset += bytes;
        self.appended += bytes;
    }
}

/// A record as it stands in a file, in one part or two, and its length.
pub(super) fn frame(record: &Record, payload: Option<&Payload>, salt: u64, offset: u64) -> (Vec<Bytes>, u64) {
    let body = record.emit();
    let payload_len = payload.map_or(0, |payload| payload.bytes.len());
    let len = (body.len() + payload_len) as u32;
    let mut crc = crc32c::crc32c_append(frame_crc(salt, offset, len), &body);
    if let Some(payload) = payload {
        crc = crc32c::crc32c_combine(crc, payload.crc, payload_len);
    }
    let copied = payload.filter(|_| payload_len <= COPY_BYTES);
    let mut head = BytesMut::with_capacity(FRAME_BYTES + body.len() + copied.map_or(0, |_| payload_len));
    head.put_slice(&RECORD_MAGIC);
    head.put_u32_le(len);
    head.put_u32_le(crc);
    head.put_slice(&body);
    copied.into_iter().for_each(|payload| head.put_slice(&payload.bytes));
    let mut parts = vec![head.freeze()];
    parts.extend(payload.filter(|_| payload_len > COPY_BYTES).map(|payload| payload.bytes.clone()));
    (parts, FRAME_BYTES as u64 + u64::from(len))
}

impl Shared {
    fn begin_segment(&self, queue: &mut Queue, number: u64) {
        queue.salt = new_salt();
        let header = Header { format: FORMAT, salt: queue.salt }.emit();
        queue.parts.push(Part::Segment { number, header });
        queue.segment = number;
        queue.offset = HEADER_BYTES as u64;
        queue.appended += HEADER_BYTES as u64;
        for (table, name) in self.tables.iter().enumerate() {
            queue.push(&Record::Table { table: table as u16, name: name.clone() }, None);
        }
    }

    fn run(&self, mut writer: Writer) {
        loop {
            let (parts, end) = {
                let queue = lock(&self.queue);
                let mut queue = self
                    .filled
                    .wait_while(queue, |queue| queue.parts.is_empty() && !queue.is_closing)
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                if queue.parts.is_empty() {
                    return;
                }
                (mem::take(&mut queue.parts), queue.appended)
            };
            // What comes after a failure is taken and dropped: it must not pile up.
            if self.progress.borrow().failure.is_some() {
                continue;
            }
            match writer.write(&parts) {
                Ok(()) => self.progress.send_modify(|progress| progress.durable = end),
                Err(error) => {
                    tracing::error!("{error}: nothing is durable from here on");
                    let failure = JournalFailed { reason: error.to_string().into() };
                    self.progress.send_modify(|progress| progress.failure = Some(failure));
                }
            }
        }
    }
}

/// The file end.
struct Writer {
    directory: Arc<Directory>,
    durability: Durability,
    file: Option<(File, u64)>,
}

impl Writer {
    fn write(&mut self, parts: &[Part]) -> Result<(), StoreError> {
        let mut run: Vec<&[u8]> = Vec::new();
        for part in parts {
            match part {
                Part::Bytes(bytes) => run.push(bytes),
                Part::Segment { number, header } => {
                    self.flush(&mut run)?;
                    self.begin(*number, header)?;
                }
            }
        }
        self.flush(&mut run)
    }

    fn begin(&mut self, number: u64, header: &[u8]) -> Result<(), StoreError> {
        let path = self.directory.journal(number);
        let begun = File::create_new(&path).and_then(|mut file| file.write_all(header).map(|()| file));
        let file = begun.map_err(|source| StoreError::io("begin", &path, source))?;
        self.file = Some((file, number));
        if self.durability == Durability::Sync { self.directory.sync() } else { Ok(()) }
    }

    fn flush(&mut self, run: &mut Vec<&[u8]>) -> Result<(), StoreError> {
        let Some((file, number)) = &mut self.file else { return Ok(()) };
        if run.is_empty() {
            return Ok(());
        }
        let refused = |path: &Path, source| StoreError::io("write", path, source);
        let written = run.chunks(PARTS_MAX).try_for_each(|parts| write_all(file, parts));
        let synced = written.and_then(|()| match self.durability {
            Durability::Sync => file.sync_data(),
            Durability::None | Durability::Write => Ok(()),
        });
        run.clear();
        synced.map_err(|source| refused(&self.directory.journal(*number), source))
    }
}

fn write_all(file: &mut File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut slices = &mut slices[..];
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
