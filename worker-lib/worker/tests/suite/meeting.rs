//! Steps that the workers of a test take together, with time limits: a worker that fails ends its test instead of
//! leaving the others waiting.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use iswitch::AggregateError;

/// Time limit of each step.
const SOON: Duration = Duration::from_secs(30);

/// Barrier with a time limit.
pub(crate) struct Meeting {
    size: usize,
    /// Number of arrivals so far, over all uses of the barrier.
    arrivals: Mutex<usize>,
    changed: Condvar,
}

impl Meeting {
    /// Creates a barrier for `size` threads.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, arrivals: Mutex::new(0), changed: Condvar::new() }
    }

    /// Waits until all threads have arrived.
    ///
    /// # Panics
    /// Panics if they do not arrive in time.
    pub(crate) fn wait(&self) {
        let mut arrivals = self.arrivals.lock().expect("no thread panics while it holds the lock");
        let all = (*arrivals / self.size + 1) * self.size;
        *arrivals += 1;
        self.changed.notify_all();
        let waiting = self.changed.wait_timeout_while(arrivals, SOON, |arrivals| *arrivals < all);
        let (arrivals, timeout) = waiting.expect("no thread panics while it holds the lock");
        let count = *arrivals;
        drop(arrivals);
        assert!(!timeout.timed_out(), "{count} arrivals after {SOON:?}, expected {all}");
    }
}

/// Repeats a call whose worker has a short time limit for rounds until the round does not stall. On a busy machine,
/// the other workers may run late.
pub(crate) fn repeat_stalled<T>(mut call: impl FnMut() -> Result<T, AggregateError>) -> T {
    let begin = Instant::now();
    loop {
        match call() {
            Err(AggregateError::Stalled { .. }) if begin.elapsed() < SOON => {}
            result => return result.unwrap(),
        }
    }
}
