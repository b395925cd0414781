//! File headers and record frames. Numbers are little-endian.
//!
//! | offset | header |
//! |---|---|
//! | 0 | copy: 8 bytes "ISWRPLAY", 4 bytes format, 4 bytes CRC-32C of format and salt, 8 bytes salt |
//! | 24 | zeros |
//! | 4096 | the same copy, in another sector |
//! | 4120 | the first record |
//!
//! | bytes | record |
//! |---|---|
//! | 4 | "\xf5RJ1" |
//! | 4 | length of the body |
//! | 4 | CRC-32C of the body |
//! | 4 | CRC-32C of salt, offset of the record in its file, length and CRC of the body |
//! | n | body: [`super::Record`] |
//!
//! The salt differs from file to file. The checksum covers the salt and the offset. Therefore, a frame inside a payload
//! is invalid, as is a frame that is not at the offset for which it was written. A valid frame determines where the
//! next record begins, even if its body is damaged. After an invalid frame, the reader searches for the next valid
//! frame. As a result, a damaged bit costs at most one record. The time of the search is proportional to the file size.
//!
//! Files in format 1 can still be read. The two copies of their header are adjacent, and their frames have a single
//! checksum over salt, offset, length and body. Their records refer to tables by number; separate records assign names
//! to these numbers.

/// Format of new files.
pub(super) const FORMAT: u32 = 2;
/// Oldest format that can be read.
pub(super) const FORMAT_OLDEST: u32 = 1;
const MAGIC: [u8; 8] = *b"ISWRPLAY";
pub(super) const HEADER_COPY_BYTES: usize = 24;
/// Offset of the second copy of the header. The two copies lie in different sectors, so that an unreadable sector
/// affects only one of them.
pub(super) const SECOND_COPY: usize = 4096;
pub(super) const HEADER_BYTES: usize = SECOND_COPY + HEADER_COPY_BYTES;
pub(super) const RECORD_MAGIC: [u8; 4] = [0xf5, b'R', b'J', b'1'];
pub(super) const FRAME_BYTES: usize = 16;

/// Length of the header in format 1, in bytes. [`FRAME_BYTES_1`] is the length of a frame.
const HEADER_BYTES_1: usize = 2 * HEADER_COPY_BYTES;
const FRAME_BYTES_1: usize = 12;

/// Header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) format: u32,
    pub(super) salt: u64,
}

/// Frame of a record; it precedes the record's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) body_len: u32,
    crc: u32,
}

impl Header {
    pub(super) fn new(salt: u64) -> Self {
        Self { format: FORMAT, salt }
    }

    pub(super) fn emit(self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        for copy in [0, SECOND_COPY] {
            let to = &mut header[copy..copy + HEADER_COPY_BYTES];
            to[..8].copy_from_slice(&MAGIC);
            to[8..12].copy_from_slice(&self.format.to_le_bytes());
            to[12..16].copy_from_slice(&self.crc().to_le_bytes());
            to[16..].copy_from_slice(&self.salt.to_le_bytes());
        }
        header
    }

    /// Parses the beginning of a file. Returns `None` if no copy of the header is valid.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        // The position of the second copy depends on the format.
        let second = |at, is_of: fn(u32) -> bool| {
            Self::parse_copy(bytes.get(at..)?).filter(|header| is_of(header.format))
        };
        Self::parse_copy(bytes)
            .or_else(|| second(HEADER_COPY_BYTES, |format| format == 1))
            .or_else(|| second(SECOND_COPY, |format| format >= 2))
    }

    fn parse_copy(bytes: &[u8]) -> Option<Self> {
        let header = Self { format: u32_at(bytes, 8)?, salt: u64_at(bytes, 16)? };
        (bytes.starts_with(&MAGIC) && u32_at(bytes, 12) == Some(header.crc())).then_some(header)
    }

    fn crc(self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.format.to_le_bytes()), &self.salt.to_le_bytes())
    }

    /// Returns the offset of the first record.
    pub(super) fn len(self) -> usize {
        if self.format == 1 { HEADER_BYTES_1 } else { HEADER_BYTES }
    }

    /// Returns the length of a frame.
    pub(super) fn frame_len(self) -> usize {
        if self.format == 1 { FRAME_BYTES_1 } else { FRAME_BYTES }
    }

    /// Parses the frame at the beginning of `bytes`; `offset` is the position of `bytes` in the file. In format 1, the
    /// length in the returned frame may be corrupt.
    pub(super) fn frame(self, bytes: &[u8], offset: u64) -> Option<Frame> {
        if !bytes.starts_with(&RECORD_MAGIC) {
            return None;
        }
        let frame = Frame { body_len: u32_at(bytes, 4)?, crc: u32_at(bytes, 8)? };
        let is_valid = self.format == 1 || u32_at(bytes, 12)? == frame.check(self.salt, offset);
        is_valid.then_some(frame)
    }

    /// Returns whether `body` is the body for which `frame` was written.
    pub(super) fn is_body(self, frame: Frame, body: &[u8], offset: u64) -> bool {
        let before = if self.format == 1 { place_crc(self.salt, offset, frame.body_len) } else { 0 };
        crc32c::crc32c_append(before, body) == frame.crc
    }
}

impl Frame {
    pub(super) fn new(body_len: u32, crc: u32) -> Self {
        Self { body_len, crc }
    }

    pub(super) fn emit(self, salt: u64, offset: u64) -> [u8; FRAME_BYTES] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[..4].copy_from_slice(&RECORD_MAGIC);
        bytes[4..8].copy_from_slice(&self.body_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.crc.to_le_bytes());
        bytes[12..].copy_from_slice(&self.check(salt, offset).to_le_bytes());
        bytes
    }

    fn check(self, salt: u64, offset: u64) -> u32 {
        crc32c::crc32c_append(place_crc(salt, offset, self.body_len), &self.crc.to_le_bytes())
    }
}

/// Returns the checksum of a record's offset and length.
fn place_crc(salt: u64, offset: u64, body_len: u32) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), &offset.to_le_bytes());
    crc32c::crc32c_append(crc, &body_len.to_le_bytes())
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
