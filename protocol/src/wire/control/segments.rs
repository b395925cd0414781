//! Help, Confirm and FBcast: ranges and sets of segments.

use super::bytes::{at_least, padded, put_u32, round_at, u32_at};
use crate::limits::{MAX_BITMAP_LEN_BYTES, MAX_RANGE_SEGMENTS, MAX_SEGMENTS};
use crate::segment::Round;
use crate::wire::WireError;

/// Length of an encoded range of segments (round, first, count), in bytes.
pub const RANGE_LEN_BYTES: usize = 12;

/// Range of segments of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeRepr {
    /// Round of the segments.
    pub round: Round,
    /// Index of the first segment.
    pub first: u32,
    /// Number of segments, at most [`MAX_RANGE_SEGMENTS`]. The index of the last segment is below [`MAX_SEGMENTS`].
    pub count: u32,
}

/// Subset of the segments of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSetRepr<'a> {
    /// Range that the bitmap covers.
    pub range: RangeRepr,
    /// Bitmap with one bit per segment, lowest first: `count / 8` bytes, rounded up.
    pub bitmap: &'a [u8],
}

impl<'a> SegmentSetRepr<'a> {
    /// Returns those segments of a range whose bits are set. Bits beyond the range are ignored.
    #[inline]
    pub fn of(range: RangeRepr, bits: &'a [u8; MAX_BITMAP_LEN_BYTES]) -> Self {
        Self { range, bitmap: &bits[..range.count.div_ceil(8) as usize] }
    }

    pub(super) fn buffer_len(&self) -> usize {
        RANGE_LEN_BYTES + self.bitmap.len()
    }

    /// Returns the indices of the segments in the set.
    #[inline]
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.range.first;
        (0..self.range.count)
            .filter(|i| self.bitmap[*i as usize / 8] >> (i % 8) & 1 == 1)
            .map(move |i| first + i)
    }
}

pub(super) fn parse_range(buffer: &[u8], at: usize) -> Result<RangeRepr, WireError> {
    let (first, count) = (u32_at(buffer, at + 4..at + 8), u32_at(buffer, at + 8..at + 12));
    if count > MAX_RANGE_SEGMENTS || first > MAX_SEGMENTS - count {
        return Err(WireError::BadValue);
    }
    Ok(RangeRepr { round: round_at(buffer, at..at + 4)?, first, count })
}

pub(super) fn emit_range(buffer: &mut [u8], at: usize, range: &RangeRepr) {
    put_u32(buffer, at..at + 4, range.round.get());
    put_u32(buffer, at + 4..at + 8, range.first);
    put_u32(buffer, at + 8..at + 12, range.count);
}

pub(super) fn parse_set(buffer: &[u8], at: usize) -> Result<SegmentSetRepr<'_>, WireError> {
    at_least(buffer, at + RANGE_LEN_BYTES)?;
    let range = parse_range(buffer, at)?;
    let (bitmap, len) = (&buffer[at + RANGE_LEN_BYTES..], range.count.div_ceil(8) as usize);
    padded(bitmap, len)?;
    Ok(SegmentSetRepr { range, bitmap: &bitmap[..len] })
}

pub(super) fn emit_set(buffer: &mut [u8], at: usize, set: &SegmentSetRepr<'_>) {
    emit_range(buffer, at, &set.range);
    buffer[at + RANGE_LEN_BYTES..][..set.bitmap.len()].copy_from_slice(set.bitmap);
}
