//! Queue of future events, ordered by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Future event. The order of the variants is the order of events at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The job completes. The event is ignored if the run numbered `run` has already ended.
    Complete { job: usize, run: u32 },
    /// A component is repaired.
    Repair(usize),
    /// A component fails, and is repaired at the time `until` (in seconds, stored as the bits of an f64).
    Failure { component: usize, until: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    time: f64,
    due: Due,
}

impl Eq for Entry {}

impl Ord for Entry {
    /// Orders earlier entries as greater, because the heap returns the greatest entry first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.total_cmp(&self.time).then_with(|| other.due.cmp(&self.due))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Queue of future events.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    entries: BinaryHeap<Entry>,
}

impl Calendar {
    pub(super) fn insert(&mut self, time: f64, due: Due) {
        self.entries.push(Entry { time, due });
    }

    /// Returns the time of the next event; infinite if there is none.
    pub(super) fn next_time(&self) -> f64 {
        self.entries.peek().map_or(f64::INFINITY, |entry| entry.time)
    }

    /// Removes and returns the next event if it is not later than `time`.
    pub(super) fn pop_until(&mut self, time: f64) -> Option<Due> {
        self.entries.peek().filter(|entry| entry.time <= time)?;
        self.entries.pop().map(|entry| entry.due)
    }
}
