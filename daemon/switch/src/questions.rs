//! Recent requests for results from a switch to its parent. If many workers lack the same results, each of them
//! requests these results. Workers also repeat requests too early, because they measure only the path to their own
//! switch, not the response time of the parent. This module therefore suppresses repeated requests.

use core::time::Duration;

use iswitch_protocol::limits::MAX_BITMAP_LEN_BYTES;
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::{Instant, Round};

/// Number of questions that are remembered. Forgetting a question too early only causes redundant packets.
const REMEMBERED: usize = 32;
/// Minimum time between two questions for the same segment.
const SHORTEST_WAIT: Duration = Duration::from_millis(2);
/// Maximum time between two questions for the same segment. After that time, a question is repeated even if the path is
/// slower than this.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// A request for segments that was sent to the parent.
#[derive(Clone, Copy, Debug)]
struct Question {
    range: RangeRepr,
    bitmap: [u8; MAX_BITMAP_LEN_BYTES],
    asked: Instant,
}

impl Question {
    const NONE: Self = Self {
        range: RangeRepr { round: Round::new(0), first: 0, count: 0 },
        bitmap: [0; MAX_BITMAP_LEN_BYTES],
        asked: Instant::from_nanos(0),
    };

    fn has(&self, round: Round, index: u32) -> bool {
        let Some(bit) = index.checked_sub(self.range.first).filter(|bit| *bit < self.range.count) else {
            return false;
        };
        self.range.round == round && self.bitmap[bit as usize / 8] >> (bit % 8) & 1 == 1
    }
}

/// The recent questions, and an estimate of the parent's response time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Questions {
    recent: [Question; REMEMBERED],
    oldest: usize,
    /// Question whose answer is being timed: its request id, and the instant at which it was asked.
    timed: Option<(u32, Instant)>,
    smoothed_round_trip: Duration,
    deviation: Duration,
}

impl Questions {
    pub(crate) const fn new() -> Self {
        Self {
            recent: [Question::NONE; REMEMBERED],
            oldest: 0,
            timed: None,
            smoothed_round_trip: Duration::ZERO,
            deviation: Duration::ZERO,
        }
    }

    /// Returns the time within which an answer is expected, computed as in RFC 6298.
    pub(crate) fn wait(&self) -> Duration {
        let margin = (self.deviation * 4).max(self.smoothed_round_trip / 4);
        (self.smoothed_round_trip + margin).clamp(SHORTEST_WAIT, LONGEST_WAIT)
    }

    /// Removes from a set of segments those for which the answer to an earlier question may still arrive.
    pub(crate) fn retain_new(&self, now: Instant, range: RangeRepr, bitmap: &mut [u8; MAX_BITMAP_LEN_BYTES]) {
        let wait = self.wait();
        let is_young = |question: &&Question| question.range.count > 0 && now.since(question.asked) < wait;
        for question in self.recent.iter().filter(is_young) {
            for bit in 0..range.count {
                if question.has(range.round, range.first + bit) {
                    bitmap[bit as usize / 8] &= !(1 << (bit % 8));
                }
            }
        }
    }

    /// Records a question that is about to be sent.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        request: u32,
        range: RangeRepr,
        bitmap: [u8; MAX_BITMAP_LEN_BYTES],
    ) {
        self.recent[self.oldest] = Question { range, bitmap, asked: now };
        self.oldest = (self.oldest + 1) % REMEMBERED;
        self.time(now, request);
    }

    /// Begins to time the answer to a request, unless another answer is being timed.
    pub(crate) fn time(&mut self, now: Instant, request: u32) {
        // Stop timing a question whose answer seems lost.
        if self.timed.is_none_or(|(_, asked)| now.since(asked) > LONGEST_WAIT * 2) {
            self.timed = Some((request, now));
        }
    }

    /// Records that the parent has answered a request. The response time is averaged exponentially with the weights of
    /// RFC 6298.
    pub(crate) fn answered(&mut self, now: Instant, request: u32) {
        let Some((_, asked)) = self.timed.take_if(|(timed, _)| *timed == request) else { return };
        let round_trip = now.since(asked);
        if self.smoothed_round_trip == Duration::ZERO {
            (self.smoothed_round_trip, self.deviation) = (round_trip, round_trip / 2);
            return;
        }
        let error = self.smoothed_round_trip.abs_diff(round_trip);
        self.deviation = (self.deviation * 3 + error) / 4;
        self.smoothed_round_trip = (self.smoothed_round_trip * 7 + round_trip) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [u8; MAX_BITMAP_LEN_BYTES] = [0xff; MAX_BITMAP_LEN_BYTES];

    fn range(first: u32, count: u32) -> RangeRepr {
        RangeRepr { round: Round::new(1), first, count }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Returns a bitmap of eight segments that marks those for which a question would be sent.
    fn new_ones(questions: &Questions, now: Instant, first: u32) -> u8 {
        let mut bitmap = ALL;
        questions.retain_new(now, range(first, 8), &mut bitmap);
        bitmap[0]
    }

    #[test]
    fn recently_requested_segments_are_not_requested_again() {
        let mut questions = Questions::new();
        let mut asked = ALL;
        asked[0] = 0b1111_0101;
        questions.note(at(1), 1, range(4, 8), asked);
        assert_eq!(new_ones(&questions, at(2), 4), 0b0000_1010);
        assert_eq!(new_ones(&questions, at(2), 0), 0b1010_1111, "an overlapping range should be recognized");
        assert_eq!(new_ones(&questions, at(2), 8), 0b1111_0000);
        let mut other_round = ALL;
        questions.retain_new(at(2), RangeRepr { round: Round::new(2), ..range(4, 8) }, &mut other_round);
        assert_eq!(other_round, ALL);
        assert_eq!(new_ones(&questions, at(3), 4), 0xff, "the request may have been lost");
    }

    #[test]
    fn the_request_timeout_adapts_to_a_slow_parent() {
        let mut questions = Questions::new();
        questions.note(at(0), 1, range(0, 8), ALL);
        questions.note(at(2), 2, range(0, 8), ALL);
        questions.answered(at(5), 9);
        questions.answered(at(40), 1);
        questions.note(at(100), 3, range(0, 8), ALL);
        assert_eq!(
            new_ones(&questions, at(219), 0),
            0,
            "the timeout should be the round trip plus four times its deviation"
        );
        assert_eq!(new_ones(&questions, at(220), 0), 0xff);
    }
}
