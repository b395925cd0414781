//! Tracking of the inserts of an actor that are in flight.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::limits::SEQ_WINDOW;
use crate::lock;

/// Assigns sequence numbers to the items of an actor, and delays a request whose sequence number is too far ahead of
/// the oldest unanswered insert. A shard remembers only a window of sequence numbers, and this window must include
/// every number that is still being retried.
pub(super) struct Flight {
    requests_max: usize,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    next_seq: u64,
    /// First sequence number of each request that is in flight.
    requests: BTreeSet<u64>,
}

/// Slot of a request in flight, released when dropped.
pub(super) struct RequestSlot {
    flight: Arc<Flight>,
    pub(super) first_seq: u64,
}

impl Flight {
    pub(super) fn new(requests_max: usize) -> Self {
        Self { requests_max, state: Mutex::default(), left: Notify::new() }
    }

    /// Waits for a free slot for a request of up to [`SEQ_WINDOW`] items.
    pub(super) async fn enter(flight: &Arc<Self>, items: u64) -> RequestSlot {
        loop {
            let left = flight.left.notified();
            tokio::pin!(left);
            // Enable the notification before the check, so that no release of a slot is missed.
            left.as_mut().enable();
            if let Some(first_seq) = flight.try_enter(items) {
                return RequestSlot { flight: Arc::clone(flight), first_seq };
            }
            left.await;
        }
    }

    fn try_enter(&self, items: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let first_seq = state.next_seq;
        let oldest = state.requests.first().copied().unwrap_or(first_seq);
        if state.requests.len() >= self.requests_max || first_seq + items - oldest > SEQ_WINDOW {
            return None;
        }
        state.requests.insert(first_seq);
        state.next_seq += items;
        Some(first_seq)
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        lock(&self.flight.state).requests.remove(&self.first_seq);
        self.flight.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_writer_gets_further_ahead_than_the_window_of_a_shard() {
        let flight = Arc::new(Flight::new(8));
        let oldest = Flight::enter(&flight, 1).await;
        for turn in 0..SEQ_WINDOW - 1 {
            assert_eq!(Flight::enter(&flight, 1).await.first_seq, turn + 1);
        }
        assert_eq!(flight.try_enter(1), None);
        let waiting = tokio::spawn({
            let flight = Arc::clone(&flight);
            async move { Flight::enter(&flight, 1).await.first_seq }
        });
        tokio::task::yield_now().await;
        drop(oldest);
        assert_eq!(waiting.await.unwrap(), SEQ_WINDOW);
    }

    #[tokio::test]
    async fn concurrent_requests_are_bounded() {
        let flight = Arc::new(Flight::new(2));
        let _seats = [Flight::enter(&flight, 3).await, Flight::enter(&flight, 3).await];
        assert_eq!(flight.try_enter(1), None);
    }
}
