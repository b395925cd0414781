//! Memory of the jobs: one block taken at start, handed out in regions.

use core::ops::Range;

use alloc::vec;
use alloc::vec::Vec;

use iswitch_protocol::limits::MAX_JOBS;

/// A block of `T` from which each job gets one contiguous region, first fit.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    items: Vec<T>,
    /// Regions in use, sorted by position.
    used: Vec<Range<usize>>,
}

impl<T: Copy> Arena<T> {
    /// A block of `len` items. The memory is taken now, but pages are touched only when used.
    pub(crate) fn new(len: usize, empty: T) -> Self {
        Self { items: vec![empty; len], used: Vec::with_capacity(MAX_JOBS) }
    }

    /// A region of `len` items with the content that they were given back with.
    pub(crate) fn take(&mut self, len: usize) -> Option<Range<usize>> {
        if self.used.len() == MAX_JOBS {
            return None;
        }
        let (position, gap) = self.gaps().enumerate().find(|(_, gap)| gap.len() >= len)?;
        let region = gap.start..gap.start + len;
        self.used.insert(position, region.clone());
        Some(region)
    }

    /// Gives a region back.
    pub(crate) fn give_back(&mut self, region: &Range<usize>) {
        self.used.retain(|used| used != region);
    }

    /// Items of the largest region that [`Self::take`] would grant.
    pub(crate) fn largest_gap(&self) -> usize {
        self.gaps().map(|gap| gap.len()).max().unwrap_or(0)
    }

    pub(crate) fn region(&self, region: &Range<usize>) -> &[T] {
        &self.items[region.clone()]
    }

    pub(crate) fn region_mut(&mut self, region: &Range<usize>) -> &mut [T] {
        &mut self.items[region.clone()]
    }

    /// The gap before each used region, and the one after the last.
    fn gaps(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = core::iter::once(0).chain(self.used.iter().map(|region| region.end));
        let ends = self.used.iter().map(|region| region.start).chain(core::iter::once(self.items.len()));
        starts.zip(ends).map(|(start, end)| start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn freed_regions_are_used_again() {
        let mut arena = Arena::new(100, 0u8);
        let regions: Vec<_> = [40, 30, 30].map(|len| arena.take(len).unwrap()).into();
        assert_eq!((arena.largest_gap(), arena.take(1)), (0, None));
        arena.give_back(&regions[1]);
        assert_eq!((arena.largest_gap(), arena.take(31)), (30, None));
        assert_eq!(arena.take(30), Some(40..70));
    }

    proptest! {
        #[test]
        fn regions_never_overlap(steps in proptest::collection::vec((1usize..50, any::<bool>()), 1..200)) {
            let mut arena = Arena::new(300, 0u8);
            let mut held: Vec<Range<usize>> = Vec::new();
            for (len, give_back) in steps {
                if give_back && !held.is_empty() {
                    arena.give_back(&held.swap_remove(len % held.len()));
                } else if let Some(region) = arena.take(len) {
                    prop_assert!(region.len() == len && region.end <= 300);
                    let is_apart =
                        |other: &Range<usize>| other.end <= region.start || region.end <= other.start;
                    prop_assert!(held.iter().all(is_apart));
                    held.push(region);
                } else {
                    prop_assert!(arena.largest_gap() < len || held.len() == MAX_JOBS);
                }
            }
        }
    }
}
