//! Access to integers, rounds, flags and padding at given byte positions of a packet.

use core::ops::Range;

use crate::segment::Round;
use crate::wire::WireError;

/// Checks that the buffer has at least `len` bytes and that all bytes after the first `len` are padding.
pub(super) fn padded(buffer: &[u8], len: usize) -> Result<(), WireError> {
    at_least(buffer, len)?;
    padding(buffer, len).map(|_| ())
}

pub(super) fn at_least(buffer: &[u8], len: usize) -> Result<(), WireError> {
    if buffer.len() < len { Err(WireError::Truncated) } else { Ok(()) }
}

/// Returns the length of the padding that follows the first `len` bytes. All bytes of the padding must be zero
/// (requirement C-4).
pub(super) fn padding(buffer: &[u8], len: usize) -> Result<u16, WireError> {
    let padding = &buffer[len..];
    if padding.iter().any(|byte| *byte != 0) { Err(WireError::Overlong) } else { Ok(padding.len() as u16) }
}

/// Returns the union of the flags whose condition is true.
pub(super) fn all_set(flags: &[(bool, u8)]) -> u8 {
    flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag)
}

pub(super) fn u16_at(buffer: &[u8], at: Range<usize>) -> u16 {
    u16::from_le_bytes(buffer[at].try_into().expect("the field is two bytes long"))
}

pub(super) fn u32_at(buffer: &[u8], at: Range<usize>) -> u32 {
    u32::from_le_bytes(buffer[at].try_into().expect("the field is four bytes long"))
}

pub(super) fn u64_at(buffer: &[u8], at: Range<usize>) -> u64 {
    u64::from_le_bytes(buffer[at].try_into().expect("the field is eight bytes long"))
}

/// Reads a round: 24 bits in a 32-bit field whose upper eight bits are zero (requirement C-5).
pub(super) fn round_at(buffer: &[u8], at: Range<usize>) -> Result<Round, WireError> {
    let value = u32_at(buffer, at);
    if Round::new(value).get() == value { Ok(Round::new(value)) } else { Err(WireError::BadValue) }
}

pub(super) fn put_u16(buffer: &mut [u8], at: Range<usize>, value: u16) {
    buffer[at].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put_u32(buffer: &mut [u8], at: Range<usize>, value: u32) {
    buffer[at].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put_u64(buffer: &mut [u8], at: Range<usize>, value: u64) {
    buffer[at].copy_from_slice(&value.to_le_bytes());
}
