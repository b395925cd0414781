//! Which of an actor's inserts are under way.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::limits::SEQ_WINDOW;
use crate::lock;

/// Hands out numbers, and holds back who would get too far ahead of the oldest insert that is not answered: a shard
/// remembers a window of numbers, and one that is still tried must be in it.
pub(super) struct Flight {
    requests_max: usize,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    next_seq: u64,
    /// First numbers.
    requests: BTreeSet<u64>,
}

/// A request's place; given up when dropped.
pub(super) struct Seat {
    flight: Arc<Flight>,
    pub(super) first_seq: u64,
}

impl Flight {
    pub(super) fn new(requests_max: usize) -> Self {
        Self { requests_max, state: Mutex::default(), left: Notify::new() }
    }

    /// Waits for a place for a request of up to [`SEQ_WINDOW`] items.
    pub(super) async fn enter(flight: &Arc<Self>, items: u64) -> Seat {
        loop {
            let left = flight.left.notified();
            tokio::pin!(left);
            // From here on no departure is missed.
            left.as_mut().enable();
            if let Some(first_seq) = flight.try_enter(items) {
                return Seat { flight: Arc::clone(flight), first_seq };
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

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.flight.state).requests.remove(&self.first_seq);
        self.flight.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_gets_further_ahead_than_a_shard_remembers() {
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
    async fn requests_are_bounded() {
        let flight = Arc::new(Flight::new(2));
        let _seats = [Flight::enter(&flight, 3).await, Flight::enter(&flight, 3).await];
        assert_eq!(flight.try_enter(1), None);
    }
}
