//! Waiting for a condition, with a time limit.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Waits until a condition holds; `what` identifies it in the panic message.
///
/// # Panics
/// Panics if the condition does not hold in time.
pub fn until(what: &str, timeout: Duration, mut condition: impl FnMut() -> bool) {
    until_some(what, timeout, || condition().then_some(()));
}

/// Waits until `find` returns a value; `what` identifies it in the panic message.
///
/// # Panics
/// Panics if `find` does not return a value in time.
pub fn until_some<T>(what: &str, timeout: Duration, mut find: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begin.elapsed() < timeout, "timed out after waiting {timeout:?} for {what}");
        sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_returns_the_first_value() {
        let mut looks = 0;
        let found = until_some("the third attempt", Duration::from_secs(60), || {
            looks += 1;
            (looks >= 3).then_some(looks)
        });
        assert_eq!((found, looks), (3, 3));
    }

    #[test]
    #[should_panic(expected = "timed out after waiting 20ms for rain")]
    fn waiting_fails_after_the_timeout() {
        until("rain", Duration::from_millis(20), || false);
    }
}
