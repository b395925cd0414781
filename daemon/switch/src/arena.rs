//! Memory of the jobs: one block that is allocated at start-up and handed out in regions.

use core::ops::Range;

use alloc::vec;
use alloc::vec::Vec;

use iswitch_protocol::limits::MAX_JOBS;

/// A block of items of type `T`. Each job gets one contiguous region, which is allocated first-fit.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    items: Vec<T>,
    /// Regions in use, sorted by position.
    used: Vec<Range<usize>>,
}

impl<T: Copy> Arena<T> {
    /// Creates a block of `len` items. The memory is allocated now, but the operating system provides pages only when
    /// they are first used.
    pub(crate) fn new(len: usize, empty: T) -> Self {
        Self { items: vec![empty; len], used: Vec::with_capacity(MAX_JOBS) }
    }

    /// Returns the number of items in the block.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Takes a region of `len` items that begins at or after `from`, or returns `None` if there is no such region. The
    /// items keep the values that the region's previous user left in them.
    pub(crate) fn take(&mut self, len: usize, from: usize) -> Option<Range<usize>> {
        if self.used.len() == MAX_JOBS {
            return None;
        }
        let (position, gap) = self.gaps(from).enumerate().find(|(_, gap)| gap.len() >= len)?;
        let region = gap.start..gap.start + len;
        self.used.insert(position, region.clone());
        Some(region)
    }

    /// Returns a region to the block, so that another job can take it.
    pub(crate) fn give_back(&mut self, region: &Range<usize>) {
        self.used.retain(|used| used != region);
    }

    /// Returns the number of items in the largest region that [`Self::take`] would grant for this `from`.
    pub(crate) fn largest_gap(&self, from: usize) -> usize {
        self.gaps(from).map(|gap| gap.len()).max().unwrap_or(0)
    }

    pub(crate) fn region(&self, region: &Range<usize>) -> &[T] {
        &self.items[region.clone()]
    }

    pub(crate) fn region_mut(&mut self, region: &Range<usize>) -> &mut [T] {
        &mut self.items[region.clone()]
    }

    /// Returns the gap before each used region and the gap after the last one, excluding any part before `from`.
    fn gaps(&self, from: usize) -> impl Iterator<Item = Range<usize>> {
        let starts = core::iter::once(0).chain(self.used.iter().map(|region| region.end));
        let ends = self.used.iter().map(|region| region.start).chain(core::iter::once(self.items.len()));
        starts.zip(ends).map(move |(start, end)| start.max(from)..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn freed_regions_are_reused() {
        let mut arena = Arena::new(100, 0u8);
        let regions: Vec<_> = [40, 30, 30].map(|len| arena.take(len, 0).unwrap()).into();
        assert_eq!((arena.largest_gap(0), arena.take(1, 0)), (0, None));
        arena.give_back(&regions[1]);
        assert_eq!((arena.largest_gap(0), arena.take(31, 0)), (30, None));
        assert_eq!((arena.largest_gap(50), arena.take(21, 50)), (20, None));
        assert_eq!(arena.take(20, 50), Some(50..70));
        assert_eq!(arena.take(10, 0), Some(40..50));
    }

    proptest! {
        #[test]
        fn regions_never_overlap(steps in proptest::collection::vec((1usize..50, 0usize..320, any::<bool>()), 1..200)) {
            let mut arena = Arena::new(300, 0u8);
            let mut held: Vec<Range<usize>> = Vec::new();
            for (len, from, give_back) in steps {
                if give_back && !held.is_empty() {
                    arena.give_back(&held.swap_remove(len % held.len()));
                } else if let Some(region) = arena.take(len, from) {
                    prop_assert!(region.len() == len && region.start >= from && region.end <= 300);
                    let is_apart =
                        |other: &Range<usize>| other.end <= region.start || region.end <= other.start;
                    prop_assert!(held.iter().all(is_apart));
                    held.push(region);
                } else {
                    prop_assert!(arena.largest_gap(from) < len || held.len() == MAX_JOBS);
                }
            }
        }
    }
}
