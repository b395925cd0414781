//! Event queue ordered by virtual time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use iswitch_protocol::Instant;

/// A priority queue of events; events of the same instant are ordered by insertion.
#[derive(Debug)]
pub struct Queue<T, At: Ord = Instant> {
    heap: BinaryHeap<Reverse<Entry<T, At>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<T, At> {
    at: At,
    sequence: u64,
    what: T,
}

impl<T, At: Ord> Default for Queue<T, At> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<T, At: Ord + Copy> Queue<T, At> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Schedules an event, after all events scheduled earlier for the same time.
    pub fn push(&mut self, at: At, what: T) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, what }));
    }

    /// Removes and returns the next event and its time.
    pub fn pop(&mut self) -> Option<(At, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T, At: Copy> Entry<T, At> {
    fn key(&self) -> (At, u64) {
        (self.at, self.sequence)
    }
}

impl<T, At: Ord + Copy> PartialEq for Entry<T, At> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T, At: Ord + Copy> Eq for Entry<T, At> {}

impl<T, At: Ord + Copy> PartialOrd for Entry<T, At> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T, At: Ord + Copy> Ord for Entry<T, At> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
