//! The retransmission timer, which determines how long a silence must last to count as a loss.

use core::time::Duration;

use iswitch_protocol::Instant;

/// Shortest silence that counts as a loss. A Help costs 24 bytes, so an unnecessary one does no harm.
pub const MIN_TIMEOUT: Duration = Duration::from_millis(2);
/// Longest pause between two Helps. It limits the time for which a round remains blocked after the network has
/// recovered.
const MAX_TIMEOUT: Duration = Duration::from_millis(250);
/// Longest pause between two Helps to a switch that has only just become silent. A switch that restarts is back within
/// a fraction of a second, and the round continues when the next Help reaches it.
const MAX_TIMEOUT_OF_PROBE: Duration = Duration::from_millis(32);
/// Number of consecutive expiries of the timer without an answer after which the switch no longer counts as having
/// only just become silent.
const PROBES: u32 = 32;
/// Maximum number of times that [`RetryTimer::restart`] doubles the timeout that it derives from the measured round
/// trips.
const MAX_DOUBLINGS: u32 = 3;

/// A retransmission timer similar to RFC 6298: the timeout is the mean round trip plus four times its deviation, and is
/// doubled each time it expires.
///
/// The round trip is measured between a Help and its Ack, because that Ack does not depend on other workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryTimer {
    smoothed_round_trip: Duration,
    deviation: Duration,
    timeout: Duration,
    /// Number of silences since the last measurement of a round trip. Each of them ended before its Help was
    /// acknowledged.
    unmeasured: u32,
    /// Number of times that the timer has expired since the last measurement of a round trip.
    unanswered: u32,
    /// Id of the latest question, whose round trip is being measured, and the time at which it was sent.
    question: Option<(u32, Instant)>,
    deadline: Instant,
}

impl Default for RetryTimer {
    fn default() -> Self {
        Self {
            smoothed_round_trip: Duration::ZERO,
            deviation: Duration::ZERO,
            timeout: MIN_TIMEOUT,
            unmeasured: 0,
            unanswered: 0,
            question: None,
            deadline: Instant::default(),
        }
    }
}

impl RetryTimer {
    /// Restarts the timer when a round begins or a result arrives.
    ///
    /// If silences repeatedly end before the Acks of their last Helps arrive, the timeout is too short for the queues
    /// on the path. If the timeout were not increased, the latest Help would never be the one that an Ack answers, and
    /// no round trip would be measured. A single such silence may be due to a lost Ack and changes nothing.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.unmeasured += u32::from(core::mem::take(&mut self.unanswered) > 0);
        let doublings = self.unmeasured.saturating_sub(1).min(MAX_DOUBLINGS);
        self.timeout = (self.initial_timeout() * (1 << doublings)).min(MAX_TIMEOUT);
        self.deadline = now.plus(self.timeout);
    }

    /// Forgets the silences so far: they were caused by a restart of the switch, and do not show that the timeout is
    /// too short.
    pub(crate) fn forget_silences(&mut self) {
        (self.unmeasured, self.unanswered) = (0, 0);
    }

    /// Returns the timeout that is derived from the measured round trips.
    fn initial_timeout(&self) -> Duration {
        // Round trips always vary, even if the measured deviation is close to zero.
        let margin = (self.deviation * 4).max(self.smoothed_round_trip / 4);
        (self.smoothed_round_trip + margin).max(MIN_TIMEOUT)
    }

    /// Returns whether the timer has expired. If it has, doubles the timeout, up to a limit. The limit is lower for a
    /// switch that has answered recently, even if it has not answered the last Help.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        if now < self.deadline {
            return false;
        }
        self.unanswered += 1;
        let is_probe = (2..PROBES).contains(&self.unanswered);
        let longest = if is_probe { MAX_TIMEOUT_OF_PROBE.max(self.initial_timeout()) } else { MAX_TIMEOUT };
        self.timeout = (self.timeout * 2).min(longest);
        self.deadline = now.plus(self.timeout);
        true
    }

    /// Records that the question `id` is sent now. Its round trip is measured unless another question is sent before
    /// the answer.
    pub(crate) fn note_question(&mut self, now: Instant, id: u32) {
        self.question = Some((id, now));
    }

    /// Processes the answer to question `id`. Returns whether this is the latest question.
    pub(crate) fn note_answer(&mut self, now: Instant, id: u32) -> bool {
        let sent = self.question.take_if(|(asked, _)| *asked == id);
        if let Some((_, sent)) = sent {
            self.measure(now.since(sent));
        }
        sent.is_some()
    }

    /// Processes a measured round trip: updates the exponential moving averages with the weights of RFC 6298.
    fn measure(&mut self, round_trip: Duration) {
        self.unanswered = 0;
        self.unmeasured = 0;
        if self.smoothed_round_trip == Duration::ZERO {
            self.smoothed_round_trip = round_trip;
            self.deviation = round_trip / 2;
            return;
        }
        let error = self.smoothed_round_trip.abs_diff(round_trip);
        self.deviation = (self.deviation * 3 + error) / 4;
        self.smoothed_round_trip = (self.smoothed_round_trip * 7 + round_trip) / 8;
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a timer expire `N` times and returns each timeout.
    fn fruitless_waits<const N: usize>(timer: &mut RetryTimer, now: &mut Instant) -> [Duration; N] {
        std::array::from_fn(|_| {
            assert!(!timer.expire(*now));
            let wait = timer.deadline().since(*now);
            *now = timer.deadline();
            assert!(timer.expire(*now));
            wait
        })
    }

    #[test]
    fn timeouts_without_an_answer_double_up_to_a_limit() {
        let mut timer = RetryTimer::default();
        let mut now = Instant::default();
        timer.restart(now);
        let waits: [Duration; 40] = fruitless_waits(&mut timer, &mut now);
        assert_eq!(waits[..5], [2, 4, 8, 16, 32].map(Duration::from_millis));
        assert!(waits[5..32].iter().all(|wait| *wait == MAX_TIMEOUT_OF_PROBE), "{waits:?}");
        assert_eq!(waits[39], MAX_TIMEOUT);
    }

    #[test]
    fn timeouts_of_an_answering_switch_double_up_to_a_limit() {
        let mut timer = RetryTimer::default();
        let mut now = Instant::default();
        timer.restart(now);
        let waits: [Duration; 10] = std::array::from_fn(|_| {
            let [wait] = fruitless_waits(&mut timer, &mut now);
            timer.measure(Duration::from_millis(1));
            wait
        });
        assert_eq!(waits[..3], [2, 4, 8].map(Duration::from_millis));
        assert_eq!(waits[9], MAX_TIMEOUT);
    }

    #[test]
    fn unmeasured_timeouts_increase_the_next_initial_timeout() {
        let mut timer = RetryTimer::default();
        let mut now = Instant::default();
        let first_waits: [Duration; 6] = std::array::from_fn(|_| {
            // The second result changes nothing.
            timer.restart(now);
            timer.restart(now);
            let [first, _] = fruitless_waits(&mut timer, &mut now);
            first
        });
        assert_eq!(first_waits, [2, 2, 4, 8, 16, 16].map(Duration::from_millis));
        timer.forget_silences();
        timer.restart(now);
        assert_eq!(timer.deadline().since(now), MIN_TIMEOUT);
        timer.measure(Duration::from_millis(1));
        timer.restart(now);
        // The deviation after the first round trip is half of that round trip.
        assert_eq!(timer.deadline().since(now), Duration::from_millis(1 + 4 / 2));
    }

    #[test]
    fn the_timeout_of_a_slow_path_is_slightly_above_its_round_trip() {
        let mut timer = RetryTimer::default();
        (0..50).for_each(|_| timer.measure(Duration::from_millis(20)));
        timer.restart(Instant::default());
        assert_eq!(timer.deadline().since(Instant::default()), Duration::from_millis(25));
    }

    #[test]
    fn the_timeout_of_a_varying_path_exceeds_its_slowest_round_trip() {
        let mut timer = RetryTimer::default();
        (0..50).for_each(|turn| timer.measure(Duration::from_millis(if turn % 5 == 0 { 30 } else { 5 })));
        timer.restart(Instant::default());
        assert!(timer.deadline().since(Instant::default()) > Duration::from_millis(30));
    }
}
