//! When silence means loss.

use core::time::Duration;

use iswitch_protocol::Instant;

/// Shortest silence that is taken for a loss. A Help costs 24 bytes, so an unnecessary one does no harm.
const MIN_TIMEOUT: Duration = Duration::from_millis(2);
/// Longest pause between two Helps: bounds how long a round stays stuck after the network has healed.
const MAX_TIMEOUT: Duration = Duration::from_millis(250);

/// A retransmission timer: three round trips, doubled while nothing happens.
///
/// Round trips are those of a Help and its Ack, which do not wait for other workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryTimer {
    smoothed_round_trip: Duration,
    timeout: Duration,
    deadline: Instant,
}

impl Default for RetryTimer {
    fn default() -> Self {
        Self { smoothed_round_trip: Duration::ZERO, timeout: MIN_TIMEOUT, deadline: Instant::default() }
    }
}

impl RetryTimer {
    /// A round begins, or a result arrived.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.timeout = (self.smoothed_round_trip * 3).clamp(MIN_TIMEOUT, MAX_TIMEOUT);
        self.deadline = now.plus(self.timeout);
    }

    /// Whether the timer has run out; the next time it takes twice as long.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        if now < self.deadline {
            return false;
        }
        self.timeout = (self.timeout * 2).min(MAX_TIMEOUT);
        self.deadline = now.plus(self.timeout);
        true
    }

    /// A round trip took so long: an exponential average with the weight of RFC 6298.
    pub(crate) fn measure(&mut self, round_trip: Duration) {
        self.smoothed_round_trip = match self.smoothed_round_trip {
            Duration::ZERO => round_trip,
            smoothed => (smoothed * 7 + round_trip) / 8,
        };
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fruitless_waits_double_up_to_a_limit() {
        let mut timer = RetryTimer::default();
        let mut now = Instant::default();
        timer.restart(now);
        let mut waits = Vec::new();
        for _ in 0..10 {
            assert!(!timer.expire(now));
            waits.push(timer.deadline().since(now));
            now = timer.deadline();
            assert!(timer.expire(now));
        }
        assert_eq!(waits[..3], [2, 4, 8].map(Duration::from_millis));
        assert_eq!(waits[9], MAX_TIMEOUT);
        timer.restart(now);
        assert_eq!(timer.deadline().since(now), MIN_TIMEOUT);
    }

    #[test]
    fn a_slow_path_waits_three_round_trips() {
        let mut timer = RetryTimer::default();
        (0..50).for_each(|_| timer.measure(Duration::from_millis(20)));
        timer.restart(Instant::default());
        assert_eq!(timer.deadline().since(Instant::default()), Duration::from_millis(60));
    }
}
