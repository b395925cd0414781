//! Headers of files and frames of records. Numbers are little-endian.
//!
//! | bytes | header, written twice in case that one is damaged |
//! |---|---|
//! | 8 | "ISWRPLAY" |
//! | 4 | format, 1 |
//! | 4 | CRC-32C of the other fields |
//! | 8 | salt: differs from file to file |
//!
//! | bytes | record |
//! |---|---|
//! | 4 | "\xf5RJ1" |
//! | 4 | length of the body |
//! | 4 | CRC-32C of salt, offset of the record in its file, length and body |
//! | n | body: [`super::Record`] |
//!
//! With salt and offset in its checksum a record that stands inside another one's payload, or somewhere else than it
//! was written, is none.

pub(super) const FORMAT: u32 = 1;
const MAGIC: [u8; 8] = *b"ISWRPLAY";
const HEADER_COPY_BYTES: usize = 24;
pub(super) const HEADER_BYTES: usize = 2 * HEADER_COPY_BYTES;
pub(super) const RECORD_MAGIC: [u8; 4] = [0xf5, b'R', b'J', b'1'];
pub(super) const FRAME_BYTES: usize = 12;

/// What a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) format: u32,
    pub(super) salt: u64,
}

impl Header {
    pub(super) fn emit(self) -> [u8; HEADER_BYTES] {
        let mut copy = [0; HEADER_COPY_BYTES];
        copy[..8].copy_from_slice(&MAGIC);
        copy[8..12].copy_from_slice(&self.format.to_le_bytes());
        copy[12..16].copy_from_slice(&self.crc().to_le_bytes());
        copy[16..].copy_from_slice(&self.salt.to_le_bytes());
        let mut header = [0; HEADER_BYTES];
        header[..HEADER_COPY_BYTES].copy_from_slice(&copy);
        header[HEADER_COPY_BYTES..].copy_from_slice(&copy);
        header
    }

    /// Nothing if both copies are damaged.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        bytes.chunks_exact(HEADER_COPY_BYTES).find_map(|copy| {
            let header = Self { format: u32_at(copy, 8)?, salt: u64_at(copy, 16)? };
            (copy.starts_with(&MAGIC) && u32_at(copy, 12) == Some(header.crc())).then_some(header)
        })
    }

    fn crc(self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.format.to_le_bytes()), &self.salt.to_le_bytes())
    }
}

/// Checksum of what stands before the body.
pub(super) fn frame_crc(salt: u64, offset: u64, len: u32) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), &offset.to_le_bytes());
    crc32c::crc32c_append(crc, &len.to_le_bytes())
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Differs each time.
pub(super) fn new_salt() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::hash::RandomState::new().build_hasher().finish()
}
