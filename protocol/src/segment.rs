//! Segments, into which a gradient vector is divided, and rounds, which identify the aggregation to which a packet
//! belongs.

use core::fmt;
use core::ops::Range;

use crate::element::{ElementType, ElementTypes};
use crate::limits::{
    CONTRIBUTIONS_BITS, FLOAT_LEN_BYTES, INDEX_BITS, MAX_CONTRIBUTIONS, MAX_SEGMENT_FLOATS, MAX_SEGMENTS,
    ROUND_BITS, SEG_LEN_BYTES,
};

const ROUND_MASK: u32 = (1 << ROUND_BITS) - 1;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// Index of a segment in the gradient vector: a 24-bit number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentIndex(u32);

impl SegmentIndex {
    /// Returns the index `value`, or `None` if it is 2^24 or more.
    #[inline]
    pub const fn new(value: u32) -> Option<Self> {
        if value < MAX_SEGMENTS { Some(Self(value)) } else { None }
    }

    /// Returns the index as a number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Round: the 24-bit number that identifies an aggregation. It wraps, and is compared by serial-number arithmetic (RFC
/// 1982).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Round(u32);

impl Round {
    /// Returns the round `value` modulo 2^24.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value & ROUND_MASK)
    }

    /// Returns the number of a member's first vector in an asynchronous job. The number depends not only on the
    /// instance but also on the epoch, because two consecutive incarnations of a job may admit the same instance
    /// (requirement V-2).
    #[inline]
    pub const fn first_vector(instance: u32, epoch: u64) -> Self {
        Self::new(instance.wrapping_add(epoch as u32))
    }

    /// Returns the round as a number below 2^24.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the round that is `distance` rounds after this one.
    #[must_use]
    #[inline]
    pub const fn plus(self, distance: u32) -> Self {
        Self::new(self.0.wrapping_add(distance))
    }

    /// Returns the round that is `distance` rounds before this one.
    #[must_use]
    #[inline]
    pub const fn minus(self, distance: u32) -> Self {
        Self::new(self.0.wrapping_sub(distance))
    }

    /// Returns the next round.
    #[must_use]
    #[inline]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// Returns the previous round.
    #[must_use]
    #[inline]
    pub const fn previous(self) -> Self {
        self.minus(1)
    }

    /// Returns whether this round precedes `other` by less than half of the number range.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        let distance = other.0.wrapping_sub(self.0) & ROUND_MASK;
        distance != 0 && distance < 1 << (ROUND_BITS - 1)
    }

    /// Returns the number of rounds from `first` to this round, modulo 2^24.
    #[inline]
    pub const fn distance_from(self, first: Self) -> u32 {
        self.0.wrapping_sub(first.0) & ROUND_MASK
    }

    /// Returns which of the two generations of slots the round uses: 0 or 1.
    #[inline]
    pub const fn parity(self) -> usize {
        (self.0 & 1) as usize
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Seg, the 8-byte field at the start of each data packet (requirement D-1).
///
/// ```text
///  63        48 47            24 23             0
/// +------------+----------------+----------------+
/// |contributions|     round     |     index      |   little-endian on the wire
/// +------------+----------------+----------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seg {
    /// Index of the segment in the vector.
    pub index: SegmentIndex,
    /// Round that the segment belongs to.
    pub round: Round,
    /// Number of worker gradients in the packet, at most [`MAX_CONTRIBUTIONS`]. Only a switch whose members have all
    /// left the round sends zero (H-8).
    pub contributions: u16,
}

/// Value of `contributions` on the wire that stands for zero contributions. Zero itself cannot be used, because on the
/// wire it means one contribution.
const NO_CONTRIBUTIONS: u16 = MAX_CONTRIBUTIONS + 1;

impl Seg {
    /// Decodes the field. A packet whose number of contributions is zero holds one contribution, because some senders
    /// set only the index; 65,535 means no contributions (D-3).
    pub const fn from_bytes(bytes: [u8; SEG_LEN_BYTES]) -> Self {
        let bits = u64::from_le_bytes(bytes);
        let contributions = (bits >> (INDEX_BITS + ROUND_BITS)) as u16;
        Self {
            index: SegmentIndex((bits & INDEX_MASK) as u32),
            round: Round::new((bits >> INDEX_BITS) as u32),
            contributions: match contributions {
                0 => 1,
                NO_CONTRIBUTIONS => 0,
                _ => contributions,
            },
        }
    }

    /// Encodes the field.
    pub const fn to_bytes(self) -> [u8; SEG_LEN_BYTES] {
        let contributions = if self.contributions == 0 { NO_CONTRIBUTIONS } else { self.contributions };
        let bits = self.index.0 as u64
            | (self.round.0 as u64) << INDEX_BITS
            | (contributions as u64) << (u64::BITS - CONTRIBUTIONS_BITS);
        bits.to_le_bytes()
    }
}

/// Division of a gradient vector into segments of equal size; only the last segment may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorLayout {
    gradient_len: u32,
    segment_floats: u16,
    elements: ElementTypes,
    /// Number of segments. It is stored because every packet is checked against it, and recomputing it would require a
    /// division, which costs as much as 40 additions.
    segment_count: u32,
}

/// Reason why a layout is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The vector is empty; it needs at least one float.
    EmptyVector,
    /// The segment size is zero, or is so large that a segment does not fit in a packet of maximum length.
    SegmentSize {
        /// Number of floats in a segment.
        floats: u16,
        /// Maximum number of floats in a segment with the given element types.
        max: u16,
    },
    /// The vector has more segments than a 24-bit index can number.
    TooManySegments(u32),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyVector => f.write_str("gradient length is 0, expected at least 1 float"),
            Self::SegmentSize { floats, max } => {
                write!(f, "segment size is {floats} floats, expected 1 to {max}")
            }
            Self::TooManySegments(count) => {
                write!(f, "the vector has {count} segments, expected at most {MAX_SEGMENTS}")
            }
        }
    }
}

impl core::error::Error for LayoutError {}

impl VectorLayout {
    /// Returns the layout of a vector of `gradient_len` floats in segments of `segment_floats` binary32 elements.
    pub const fn new(gradient_len: u32, segment_floats: u16) -> Result<Self, LayoutError> {
        Self::with_elements(gradient_len, segment_floats, ElementTypes::F32)
    }

    /// Works like [`Self::new`], but for the given element types.
    pub const fn with_elements(
        gradient_len: u32,
        segment_floats: u16,
        elements: ElementTypes,
    ) -> Result<Self, LayoutError> {
        if gradient_len == 0 {
            return Err(LayoutError::EmptyVector);
        }
        let max = max_segment_floats(elements);
        if segment_floats == 0 || segment_floats > max {
            return Err(LayoutError::SegmentSize { floats: segment_floats, max });
        }
        let segment_count = gradient_len.div_ceil(segment_floats as u32);
        if segment_count > MAX_SEGMENTS {
            return Err(LayoutError::TooManySegments(segment_count));
        }
        Ok(Self { gradient_len, segment_floats, elements, segment_count })
    }

    /// Returns the number of floats in the vector.
    #[inline]
    pub const fn gradient_len(&self) -> u32 {
        self.gradient_len
    }

    /// Returns the number of floats in each segment; the last segment may have fewer.
    #[inline]
    pub const fn segment_floats(&self) -> u16 {
        self.segment_floats
    }

    /// Returns the element types of data packets.
    #[inline]
    pub const fn elements(&self) -> ElementTypes {
        self.elements
    }

    /// Returns the number of segments in the vector.
    #[inline]
    pub const fn segment_count(&self) -> u32 {
        self.segment_count
    }

    /// Returns whether the vector has a segment with this index.
    #[inline]
    pub const fn contains(&self, index: SegmentIndex) -> bool {
        index.0 < self.segment_count()
    }

    /// Returns the number of floats in a segment, or zero if the vector has no segment with this index.
    pub const fn float_count(&self, index: SegmentIndex) -> usize {
        let after = self.segment_count.saturating_sub(index.0);
        match after {
            0 => 0,
            1 => self.gradient_len as usize - index.0 as usize * self.segment_floats as usize,
            _ => self.segment_floats as usize,
        }
    }

    /// Returns the range of a segment's floats in the vector. The range is empty if the vector has no segment with this
    /// index.
    #[inline]
    pub fn range(&self, index: SegmentIndex) -> Range<usize> {
        let size = u64::from(self.segment_floats);
        let end = u64::from(self.gradient_len);
        let start = (u64::from(index.0) * size).min(end);
        start as usize..(start + size).min(end) as usize
    }

    /// Returns the length of the data packet that carries a segment as elements of the given type. The length is in
    /// bytes and includes Seg.
    #[inline]
    pub const fn packet_len(&self, index: SegmentIndex, element: ElementType) -> usize {
        SEG_LEN_BYTES + self.float_count(index) * element.len_bytes()
    }

    /// Returns the length of the data packet that carries a full segment as elements of the given type. The length is
    /// in bytes and includes Seg.
    #[inline]
    pub const fn full_packet_len(&self, element: ElementType) -> usize {
        SEG_LEN_BYTES + self.segment_floats as usize * element.len_bytes()
    }

    /// Returns the length of the longest data packet that a worker sends or receives, in bytes.
    #[inline]
    pub const fn longest_packet_len(&self) -> usize {
        SEG_LEN_BYTES + self.segment_floats as usize * self.elements.longest_len_bytes()
    }
}

/// Returns the maximum number of floats for which a segment fits in the packets of both directions.
const fn max_segment_floats(elements: ElementTypes) -> u16 {
    MAX_SEGMENT_FLOATS * (FLOAT_LEN_BYTES / elements.longest_len_bytes()) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paper_style_seg_is_round_zero_weight_one() {
        let seg = Seg::from_bytes(5u64.to_le_bytes());
        assert_eq!(seg, Seg { index: SegmentIndex(5), round: Round(0), contributions: 1 });
    }

    #[test]
    fn rounds_compare_across_the_wrap() {
        let last = Round::new(ROUND_MASK);
        assert_eq!(last.next(), Round::new(0));
        assert_eq!(Round::new(0).previous(), last);
        assert!(last.is_before(last.next()));
        assert!(!last.next().is_before(last));
        assert!(!last.is_before(last));
        assert_ne!(last.parity(), last.next().parity());
    }

    #[test]
    fn layouts_out_of_range_are_refused() {
        assert_eq!(VectorLayout::new(0, 366), Err(LayoutError::EmptyVector));
        assert_eq!(
            VectorLayout::new(10, 0),
            Err(LayoutError::SegmentSize { floats: 0, max: MAX_SEGMENT_FLOATS })
        );
        let error = VectorLayout::new(u32::MAX, 1).unwrap_err();
        assert_eq!(error, LayoutError::TooManySegments(u32::MAX));
    }

    proptest! {
        #[test]
        fn seg_round_trips(index in 0..MAX_SEGMENTS, round in 0..=ROUND_MASK, contributions in 0..=MAX_CONTRIBUTIONS) {
            let seg = Seg { index: SegmentIndex(index), round: Round(round), contributions };
            prop_assert_eq!(Seg::from_bytes(seg.to_bytes()), seg);
        }

        #[test]
        fn segments_tile_the_vector(len in 1u32..100_000, size in 1u16..=MAX_SEGMENT_FLOATS) {
            let layout = VectorLayout::new(len, size).unwrap();
            let mut next = 0;
            for index in 0..layout.segment_count() {
                let range = layout.range(SegmentIndex(index));
                prop_assert_eq!(range.start, next);
                prop_assert!(!range.is_empty());
                next = range.end;
            }
            prop_assert_eq!(next, len as usize);
            prop_assert!(layout.range(SegmentIndex(layout.segment_count())).is_empty());
        }

        #[test]
        fn exactly_one_of_two_rounds_is_earlier(a in 0..=ROUND_MASK, distance in 1u32..1 << 23) {
            let (a, b) = (Round(a), Round(a).plus(distance));
            prop_assert!(a.is_before(b) && !b.is_before(a));
            prop_assert_eq!(b.distance_from(a), distance);
        }
    }
}
