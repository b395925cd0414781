//! What is to happen, by virtual time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use iswitch_protocol::Instant;

/// A priority queue of things that happen; those of the same instant in the order that they were added.
#[derive(Debug)]
pub(super) struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    sequence: u64,
    what: T,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    pub(super) fn push(&mut self, at: Instant, what: T) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, what }));
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.sequence)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
