//! Events that are to come, by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What happens at a time; of what happens at the same time, what stands first here comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A job's run of this number is complete, if it still runs.
    Complete { job: usize, run: u32 },
    /// A GPU is repaired.
    Repair(usize),
    /// A GPU fails until then (seconds, as bits).
    Failure { gpu: usize, until: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    time: f64,
    due: Due,
}

impl Eq for Entry {}

impl Ord for Entry {
    /// The heap gives the greatest first: the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.total_cmp(&self.time).then_with(|| other.due.cmp(&self.due))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Events by time.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    entries: BinaryHeap<Entry>,
}

impl Calendar {
    pub(super) fn insert(&mut self, time: f64, due: Due) {
        self.entries.push(Entry { time, due });
    }

    /// When the next event is; infinite if there is none.
    pub(super) fn next_time(&self) -> f64 {
        self.entries.peek().map_or(f64::INFINITY, |entry| entry.time)
    }

    /// The next event, if it is at that time or before.
    pub(super) fn pop_until(&mut self, time: f64) -> Option<Due> {
        self.entries.peek().filter(|entry| entry.time <= time)?;
        self.entries.pop().map(|entry| entry.due)
    }
}
