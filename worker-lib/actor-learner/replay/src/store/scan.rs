//! Reads the records of a file. Continues after damaged records.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::disk::{Disk, ReadFile};
use super::error::StoreError;
use super::format::{FORMAT, FORMAT_OLDEST, HEADER_BYTES, HEADER_COPY_BYTES, Header, RECORD_MAGIC};
use super::record::{Parsed1, Record, TableName};
use crate::limits::{ITEM_BYTES_MAX, REQUEST_SLACK_BYTES};

/// Maximum length of a record body, in bytes: the longest payload with the data that precedes it, or the keys of the
/// largest batch.
const BODY_BYTES_MAX: u64 = ITEM_BYTES_MAX + REQUEST_SLACK_BYTES;
const READ_BYTES: usize = 1 << 20;

/// Result of scanning a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    pub(super) records: u64,
    /// Number of damaged bytes, that is, bytes that differ from those written.
    pub(super) damaged_bytes: u64,
    /// Number of bytes of an incompletely written record at the end of the file. The process or the machine stopped
    /// while the record was being written.
    pub(super) torn_bytes: u64,
    /// Whether the torn bytes may instead be data that was written completely and then damaged.
    pub(super) is_doubtful: bool,
    pub(super) len: u64,
}

/// Buffered window of the file.
struct Window {
    file: Box<dyn ReadFile>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Number of bytes at the start of `buffer` that have been consumed.
    start: usize,
    /// Offset of `buffer` in the file.
    base: u64,
    len: u64,
}

/// Result of reading at a position of the file.
enum Found {
    /// A record, and its length including the frame. The record is `None` if it only assigned a name to a table number.
    Record(Option<Record>, u64),
    /// A valid frame with a damaged body, and the length of both.
    DamagedBody(u64),
    /// A valid frame whose body extends beyond the end of the file.
    TornBody,
    NoFrame,
}

impl Window {
    fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    fn left(&self) -> u64 {
        self.len.saturating_sub(self.offset())
    }

    /// Returns the next bytes: at least `len` of them, unless the file ends earlier.
    fn fill(&mut self, len: usize) -> Result<&[u8], StoreError> {
        if self.buffer.len() - self.start < len {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.start = 0;
            self.read(len.max(READ_BYTES.min(usize::try_from(self.left()).unwrap_or(READ_BYTES))))?;
        }
        Ok(&self.buffer[self.start..])
    }

    /// Discards the buffer and continues at `offset`.
    fn restart(&mut self, offset: u64) {
        (self.base, self.start) = (offset, 0);
        self.buffer.clear();
    }

    /// Discards the buffered bytes, so that they are read again from the file.
    fn forget(&mut self) {
        self.restart(self.offset());
    }

    /// Skips bytes. They need not have been read into the buffer.
    fn skip(&mut self, bytes: u64) {
        if bytes <= (self.buffer.len() - self.start) as u64 {
            self.start += bytes as usize;
        } else {
            self.restart(self.offset() + bytes);
        }
    }

    /// Reads until the buffer has at least `len` bytes or the file ends.
    fn read(&mut self, len: usize) -> Result<(), StoreError> {
        let mut have = self.buffer.len();
        self.buffer.resize(len.max(have), 0);
        while have < len {
            match self.file.read_at(&mut self.buffer[have..], self.base + have as u64) {
                Ok(0) => break,
                Ok(read) => have += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io("read", &self.path, error)),
            }
        }
        self.buffer.truncate(have);
        Ok(())
    }

    /// Returns whether the rest of the file consists only of zeros. If so, skips the rest.
    fn is_zero_from_here(&mut self) -> Result<bool, StoreError> {
        loop {
            let bytes = self.fill(1)?;
            if bytes.is_empty() {
                return Ok(true);
            }
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            self.start = self.buffer.len();
        }
    }
}

/// Calls `apply` for each valid record, in order.
pub(super) fn scan(
    disk: &dyn Disk,
    path: &Path,
    name: &str,
    mut apply: impl FnMut(Record) -> Result<(), StoreError>,
) -> Result<Scanned, StoreError> {
    let refused = |source| StoreError::io("read", path, source);
    let (file, len) = (disk.open(name).map_err(refused)?, disk.len(name).map_err(refused)?);
    let mut window = Window { file, path: path.to_owned(), buffer: Vec::new(), start: 0, base: 0, len };
    let mut scanned = Scanned { len, ..Scanned::default() };
    let Some(header) = header(&mut window)? else {
        scanned.is_doubtful = len >= HEADER_COPY_BYTES as u64;
        let is_torn = !scanned.is_doubtful || window.is_zero_from_here()?;
        *(if is_torn { &mut scanned.torn_bytes } else { &mut scanned.damaged_bytes }) = len;
        return Ok(scanned);
    };
    let mut names = HashMap::new();
    window.skip(header.len() as u64);
    while window.left() > 0 {
        let found = match next(&mut window, header, &mut names)? {
            found @ (Found::Record(..) | Found::TornBody) => found,
            // Read the data again, because the damage may have occurred in the transfer rather than in the file.
            // Format 1 is excluded: it would require too many second reads, because any four bytes of a payload may
            // look like a frame.
            found @ (Found::DamagedBody(_) | Found::NoFrame) if header.format == 1 => found,
            Found::DamagedBody(_) | Found::NoFrame => {
                window.forget();
                next(&mut window, header, &mut names)?
            }
        };
        match found {
            Found::Record(record, bytes) => {
                scanned.records += 1;
                window.skip(bytes);
                record.map_or(Ok(()), &mut apply)?;
            }
            Found::DamagedBody(bytes) => {
                scanned.damaged_bytes += bytes;
                window.skip(bytes);
            }
            Found::TornBody => {
                scanned.torn_bytes = window.left();
                break;
            }
            Found::NoFrame => resynchronise(&mut window, header, &mut scanned)?,
        }
    }
    Ok(scanned)
}

fn header(window: &mut Window) -> Result<Option<Header>, StoreError> {
    let mut header = Header::parse(window.fill(HEADER_BYTES)?);
    if header.is_none() {
        window.forget();
        header = Header::parse(window.fill(HEADER_BYTES)?);
    }
    match header {
        Some(Header { format, .. }) if !(FORMAT_OLDEST..=FORMAT).contains(&format) => {
            Err(StoreError::Format { path: window.path.clone(), found: format })
        }
        header => Ok(header),
    }
}

/// Identifies the data at the current position.
fn next(
    window: &mut Window,
    header: Header,
    names: &mut HashMap<u16, TableName>,
) -> Result<Found, StoreError> {
    let (offset, left, frame_len) = (window.offset(), window.left(), header.frame_len());
    let Some(frame) = header.frame(window.fill(frame_len)?, offset) else { return Ok(Found::NoFrame) };
    let bytes = frame_len as u64 + u64::from(frame.body_len);
    // In format 1, the length may be damaged, and must not cause a read beyond the end of the file.
    if u64::from(frame.body_len) > BODY_BYTES_MAX || bytes > left {
        return Ok(if header.format == 1 { Found::NoFrame } else { Found::TornBody });
    }
    let all = window.fill(bytes as usize)?;
    let body = all.get(frame_len..bytes as usize).filter(|body| header.is_body(frame, body, offset));
    let found = body.and_then(|body| match header.format {
        1 => Some(match Record::parse_format_1(body, names)? {
            Parsed1::Name => Found::Record(None, bytes),
            Parsed1::Record(record) => Found::Record(Some(record), bytes),
        }),
        _ => Record::parse(body).map(|record| Found::Record(Some(record), bytes)),
    });
    Ok(match found {
        Some(found) => found,
        None if header.format == 1 && body.is_none() => Found::NoFrame,
        None => Found::DamagedBody(bytes),
    })
}

/// Skips data that is not a frame. Stops at the next frame or at the end of the file.
fn resynchronise(window: &mut Window, header: Header, scanned: &mut Scanned) -> Result<(), StoreError> {
    let (began, left, frame_len) = (window.offset(), window.left(), header.frame_len());
    // Data that is shorter than a frame was never a record. A file system may have filled unwritten space with zeros.
    let is_short = header.format != 1 && left < frame_len as u64;
    let starts_zero = window.fill(frame_len)?.iter().take(frame_len).all(|byte| *byte == 0);
    if is_short || (starts_zero && window.is_zero_from_here()?) {
        scanned.torn_bytes = left;
        scanned.is_doubtful = !is_short;
        window.skip(window.left());
        return Ok(());
    }
    // Read the data a second time, so that a frame that was damaged only in the transfer is not skipped.
    if window.offset() == began {
        window.skip(1);
    }
    let mut end = next_frame(window, header)?;
    if header.format != 1 {
        window.restart(began + 1);
        end = end.min(next_frame(window, header)?);
        window.restart(end);
    }
    scanned.damaged_bytes += end - began;
    Ok(())
}

/// Returns the offset of the next valid frame, or the end of the file if there is none.
fn next_frame(window: &mut Window, header: Header) -> Result<u64, StoreError> {
    while find_magic(window)? {
        let offset = window.offset();
        if header.frame(window.fill(header.frame_len())?, offset).is_some() {
            break;
        }
        window.skip(1);
    }
    Ok(window.offset())
}

/// Skips bytes up to the next possible start of a frame, and returns true. If there is none, skips all bytes and
/// returns false.
fn find_magic(window: &mut Window) -> Result<bool, StoreError> {
    loop {
        let bytes = window.fill(RECORD_MAGIC.len())?;
        if bytes.len() < RECORD_MAGIC.len() {
            window.skip(window.left());
            return Ok(false);
        }
        if let Some(at) = bytes.windows(RECORD_MAGIC.len()).position(|candidate| candidate == RECORD_MAGIC) {
            window.skip(at as u64);
            return Ok(true);
        }
        // The last bytes may be the beginning of a frame.
        let passed = bytes.len() - (RECORD_MAGIC.len() - 1);
        window.skip(passed as u64);
    }
}
