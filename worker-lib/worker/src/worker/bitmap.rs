//! A bitmap with one bit for each segment.

use core::ops::Range;

use iswitch_protocol::limits::{MAX_BITMAP_LEN_BYTES, MAX_RANGE_SEGMENTS};

/// A set of segment indices below a fixed length.
#[derive(Debug)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// Creates an empty set of indices below `len`.
    pub(crate) fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(crate) fn get(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, index: u32) {
        self.words[index as usize / 64] |= 1 << (index % 64);
    }

    pub(crate) fn unset(&mut self, index: u32) {
        self.words[index as usize / 64] &= !(1 << (index % 64));
    }

    /// Returns the first index in `from..end` that is in the set, or `None` if there is none.
    pub(crate) fn next_one(&self, from: u32, end: u32) -> Option<u32> {
        self.next(from, end, |word| word)
    }

    /// Returns the first index in `from..end` that is not in the set, or `None` if there is none.
    pub(crate) fn next_zero(&self, from: u32, end: u32) -> Option<u32> {
        self.next(from, end, |word| !word)
    }

    /// Returns ranges that together cover all indices below `end` that are not in the set, each of them short enough
    /// for a single Help.
    pub(crate) fn zero_ranges(&self, end: u32) -> impl Iterator<Item = Range<u32>> {
        let mut next = 0;
        core::iter::from_fn(move || {
            let first = self.next_zero(next, end)?;
            next = (first + MAX_RANGE_SEGMENTS).min(end);
            Some(first..next)
        })
    }

    /// Returns a bitmap of those indices of a range that are not in the set, lowest index first. The range must be
    /// short enough for a single Help.
    pub(crate) fn zeros(&self, range: Range<u32>) -> [u8; MAX_BITMAP_LEN_BYTES] {
        let mut bits = [0; MAX_BITMAP_LEN_BYTES];
        let mut from = range.start;
        while let Some(index) = self.next_zero(from, range.end) {
            let bit = index - range.start;
            bits[bit as usize / 8] |= 1 << (bit % 8);
            from = index + 1;
        }
        bits
    }

    fn next(&self, from: u32, end: u32, view: impl Fn(u64) -> u64) -> Option<u32> {
        let mut at = from;
        while at < end {
            let rest = view(self.words[at as usize / 64]) >> (at % 64);
            if rest != 0 {
                let found = at + rest.trailing_zeros();
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_bitmap_behaves_like_a_set(
            changes in proptest::collection::vec((0u32..200, any::<bool>()), 0..300),
            from in 0u32..200, end in 0u32..=200,
        ) {
            let (mut bitmap, mut model) = (Bitmap::new(200), BTreeSet::new());
            for (index, add) in changes {
                if add { bitmap.set(index); model.insert(index); } else { bitmap.unset(index); model.remove(&index); }
                prop_assert_eq!(bitmap.get(index), model.contains(&index));
            }
            let one = (from..end).find(|index| model.contains(index));
            let zero = (from..end).find(|index| !model.contains(index));
            prop_assert_eq!(bitmap.next_one(from, end), one);
            prop_assert_eq!(bitmap.next_zero(from, end), zero);
        }
    }
}
