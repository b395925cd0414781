//! Reads the records of a file, and goes on behind what is damaged.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::format::{FORMAT, FRAME_BYTES, HEADER_BYTES, Header, RECORD_MAGIC, frame_crc, u32_at};
use super::record::Record;
use crate::limits::{ITEM_BYTES_MAX, REQUEST_SLACK_BYTES};

/// Longest body: a payload and what stands before it, or the keys of a batch.
const BODY_BYTES_MAX: u64 = ITEM_BYTES_MAX + REQUEST_SLACK_BYTES;
const READ_BYTES: usize = 1 << 20;

/// What a file consisted of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    pub(super) records: u64,
    /// Bytes that belong to no valid record, those at the end included.
    pub(super) damaged_bytes: u64,
    /// Where the last valid record ends.
    pub(super) valid_end: u64,
    pub(super) len: u64,
}

/// A window of the file.
struct Window {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were passed.
    start: usize,
    /// Where `buffer` begins in the file.
    base: u64,
    len: u64,
}

impl Window {
    fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The next bytes, at least so many unless the file ends before.
    fn fill(&mut self, len: usize) -> Result<&[u8], StoreError> {
        if self.buffer.len() - self.start < len {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.start = 0;
            let missing = len.max(READ_BYTES) - self.buffer.len();
            let read = (&mut self.file).take(missing as u64).read_to_end(&mut self.buffer);
            read.map_err(|source| StoreError::io("read", &self.path, source))?;
        }
        Ok(&self.buffer[self.start..])
    }
}

/// Calls `apply` for each valid record, in order.
pub(super) fn scan(
    path: &Path,
    mut apply: impl FnMut(Record) -> Result<(), StoreError>,
) -> Result<Scanned, StoreError> {
    let refused = |source| StoreError::io("read", path, source);
    let file = File::open(path).map_err(refused)?;
    let len = file.metadata().map_err(refused)?.len();
    let mut window = Window { file, path: path.to_owned(), buffer: Vec::new(), start: 0, base: 0, len };
    let mut scanned = Scanned { len, ..Scanned::default() };
    let header = window.fill(HEADER_BYTES)?.first_chunk().and_then(Header::parse);
    let Some(header) = header else { return Ok(Scanned { damaged_bytes: len, ..scanned }) };
    if header.format != FORMAT {
        return Err(StoreError::Format { path: path.to_owned(), found: header.format, expected: FORMAT });
    }
    window.start = HEADER_BYTES;
    scanned.valid_end = HEADER_BYTES as u64;
    loop {
        if let Some((record, body_len)) = next(&mut window, header.salt)? {
            scanned.damaged_bytes += window.offset() - scanned.valid_end;
            scanned.records += 1;
            window.start += FRAME_BYTES + body_len;
            scanned.valid_end = window.offset();
            apply(record)?;
        } else if !skip_to_magic(&mut window)? {
            scanned.damaged_bytes += len.saturating_sub(scanned.valid_end);
            return Ok(scanned);
        }
    }
}

/// The record that begins here, and the length of its body.
fn next(window: &mut Window, salt: u64) -> Result<Option<(Record, usize)>, StoreError> {
    let offset = window.offset();
    let frame = window.fill(FRAME_BYTES)?;
    if !frame.starts_with(&RECORD_MAGIC) {
        return Ok(None);
    }
    let (Some(len), Some(crc)) = (u32_at(frame, 4), u32_at(frame, 8)) else { return Ok(None) };
    // A damaged length must not make us read what there is not.
    let body_len = len as usize;
    if u64::from(len) > BODY_BYTES_MAX || offset + FRAME_BYTES as u64 + u64::from(len) > window.len {
        return Ok(None);
    }
    let rest = window.fill(FRAME_BYTES + body_len)?;
    let Some(body) = rest.get(FRAME_BYTES..FRAME_BYTES + body_len) else { return Ok(None) };
    if crc32c::crc32c_append(frame_crc(salt, offset, len), body) != crc {
        return Ok(None);
    }
    Ok(Record::parse(body).map(|record| (record, body_len)))
}

/// Passes at least one byte; whether another record may begin there.
fn skip_to_magic(window: &mut Window) -> Result<bool, StoreError> {
    window.start += usize::from(window.start < window.buffer.len());
    loop {
        let bytes = window.fill(RECORD_MAGIC.len())?;
        if bytes.len() < RECORD_MAGIC.len() {
            return Ok(false);
        }
        if let Some(at) = bytes.windows(RECORD_MAGIC.len()).position(|candidate| candidate == RECORD_MAGIC) {
            window.start += at;
            return Ok(true);
        }
        // The last bytes may be the beginning of one.
        window.start += bytes.len() - (RECORD_MAGIC.len() - 1);
    }
}
