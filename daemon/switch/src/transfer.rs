//! Transfer of one partial sum of an asynchronous job to the parent (requirement V-11).
//!
//! Only a Confirm shows which segments the parent has staged, because the results that arrive may be sums of other
//! members' vectors. The segments are therefore sent in batches, each of which is followed by a Confirm. Several
//! batches are in flight at a time, so that the link is not idle while the switch waits for an answer.

use core::time::Duration;

use iswitch_protocol::limits::{MAX_BITMAP_LEN_BYTES, MAX_RANGE_SEGMENTS};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::{Instant, Round};

/// Number of batches into which a window is divided.
const BATCHES_PER_WINDOW: u32 = 4;
/// Minimum size of the window after losses, in segments.
const MIN_WINDOW: u32 = 8;
/// Maximum time between two Confirms while the parent confirms no further segments.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// Number of doublings after which every timeout has reached [`LONGEST_WAIT`].
const MAX_DOUBLINGS: u32 = 8;
const WORDS: usize = MAX_RANGE_SEGMENTS as usize / u64::BITS as usize;

/// A set of segments that lie within [`MAX_RANGE_SEGMENTS`] consecutive segments.
#[derive(Clone, Copy, Debug)]
struct Segments([u64; WORDS]);

impl Segments {
    const NONE: Self = Self([0; WORDS]);

    fn place_of(index: u32) -> (usize, u64) {
        let bit = index % MAX_RANGE_SEGMENTS;
        ((bit / u64::BITS) as usize, 1 << (bit % u64::BITS))
    }

    fn contains(&self, index: u32) -> bool {
        let (word, bit) = Self::place_of(index);
        self.0[word] & bit != 0
    }

    fn insert(&mut self, index: u32) {
        let (word, bit) = Self::place_of(index);
        self.0[word] |= bit;
    }

    fn remove(&mut self, index: u32) {
        let (word, bit) = Self::place_of(index);
        self.0[word] &= !bit;
    }
}

/// A partial sum that is being sent to the parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// Vector number of the partial sum. The parent counts partial sums as the vectors of this switch.
    number: Round,
    /// Number of segments in the vector.
    segments: u32,
    /// First segment that is not confirmed. The window begins here.
    base: u32,
    /// Index after the last segment that has been sent at least once.
    sent_to: u32,
    /// Segments, from `base` on, that have been sent and that the parent has not reported missing since then.
    sent: Segments,
    /// Segments, from `base` on, that the parent has staged.
    confirmed: Segments,
    /// Maximum number of segments, from `base` on, that may be in flight.
    window: u32,
    /// Whether losses have narrowed the window since the last confirmation.
    is_narrowed: bool,
    /// Whether a batch is queued for which the Confirm has not been sent yet.
    is_batch_queued: bool,
    /// Id of the first request that can belong to this transfer.
    first_request: u32,
    /// Number of timeouts since the last confirmation.
    silences: u32,
    due: Instant,
}

impl Transfer {
    /// Creates the transfer of a vector of `segments` segments. `first_request` is the id of the next request to the
    /// parent, and `wait` the time within which the parent is expected to answer.
    pub(crate) fn new(
        number: Round,
        segments: u32,
        first_request: u32,
        now: Instant,
        wait: Duration,
    ) -> Self {
        Self {
            number,
            segments,
            base: 0,
            sent_to: 0,
            sent: Segments::NONE,
            confirmed: Segments::NONE,
            window: MAX_RANGE_SEGMENTS,
            is_narrowed: false,
            is_batch_queued: false,
            first_request,
            silences: 0,
            due: now.plus(wait),
        }
    }

    /// Returns the vector number of the partial sum. The parent counts partial sums as the vectors of this switch.
    pub(crate) fn number(&self) -> Round {
        self.number
    }

    /// Returns whether a request may belong to this transfer rather than to an earlier one.
    pub(crate) fn may_concern(&self, request: u32) -> bool {
        request.wrapping_sub(self.first_request) <= u32::MAX / 2
    }

    /// Returns the instant at which the timeout expires.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Returns the next batch to send and records it as sent: it consists of the first segments in the window that are
    /// neither confirmed nor in flight. Returns `None` if there are no such segments, or if the preceding batch is
    /// still queued.
    pub(crate) fn next_batch(&mut self, max_window: u16) -> Option<(RangeRepr, [u8; MAX_BITMAP_LEN_BYTES])> {
        if self.is_batch_queued {
            return None;
        }
        let window = self.window.min(u32::from(max_window)).max(1);
        let end = self.segments.min(self.base + window);
        let most = window.div_ceil(BATCHES_PER_WINDOW);
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        let mut batch: Option<(u32, u32)> = None;
        let mut taken = 0;
        for index in self.base..end {
            if self.sent.contains(index) || self.confirmed.contains(index) {
                continue;
            }
            let first = batch.map_or(index, |(first, _)| first);
            let bit = index - first;
            bitmap[bit as usize / 8] |= 1 << (bit % 8);
            self.sent.insert(index);
            batch = Some((first, index + 1));
            taken += 1;
            if taken == most {
                break;
            }
        }
        let (first, end) = batch?;
        self.sent_to = self.sent_to.max(end);
        self.is_batch_queued = true;
        Some((RangeRepr { round: self.number, first, count: end - first }, bitmap))
    }

    /// Records that the Confirm of the queued batch is being sent.
    pub(crate) fn end_batch(&mut self) {
        self.is_batch_queued = false;
    }

    /// Returns the segments of a range that are not confirmed.
    pub(crate) fn unconfirmed(&self, range: RangeRepr) -> [u8; MAX_BITMAP_LEN_BYTES] {
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        for bit in 0..range.count {
            let index = range.first + bit;
            if index >= self.base && !self.confirmed.contains(index) {
                bitmap[bit as usize / 8] |= 1 << (bit % 8);
            }
        }
        bitmap
    }

    /// Returns the range of the segments that have been sent and may be unconfirmed. It is empty if the parent has
    /// staged all of them; a Confirm of this range then only requests the number of the aggregate.
    pub(crate) fn open_range(&self) -> RangeRepr {
        let count = self.sent_to - self.base;
        RangeRepr { round: self.number, first: if count > 0 { self.base } else { 0 }, count }
    }

    /// Handles the answer to a Confirm: `missing` contains the segments of its range that the parent has not staged.
    pub(crate) fn note_answer(&mut self, missing: SegmentSetRepr<'_>, now: Instant, wait: Duration) {
        let range = missing.range;
        let (mut has_news, mut has_losses) = (false, false);
        for (bit, index) in (0..range.count).zip(range.first..self.sent_to) {
            // A confirmation is final: a reordered older answer must not revoke it.
            if index < self.base || self.confirmed.contains(index) {
                continue;
            }
            if missing.bitmap[bit as usize / 8] >> (bit % 8) & 1 == 0 {
                self.confirmed.insert(index);
                has_news = true;
            } else if self.sent.contains(index) {
                self.sent.remove(index);
                has_losses = true;
            }
        }
        while self.base < self.sent_to && self.confirmed.contains(self.base) {
            self.sent.remove(self.base);
            self.confirmed.remove(self.base);
            self.base += 1;
        }
        self.adapt(has_news, has_losses);
        if has_news {
            (self.silences, self.due) = (0, now.plus(wait));
        }
    }

    /// Widens the window if segments were confirmed (`has_news`), and narrows it if segments were lost (`has_losses`).
    fn adapt(&mut self, has_news: bool, has_losses: bool) {
        if has_news {
            self.is_narrowed = false;
            self.window = (self.window + self.window.div_ceil(8)).min(MAX_RANGE_SEGMENTS);
        }
        if has_losses && !self.is_narrowed {
            self.is_narrowed = true;
            self.window = (self.window / 2).max(MIN_WINDOW);
        }
    }

    /// Returns whether the timeout has expired, and, if so, starts the next timeout, which is twice as long.
    pub(crate) fn expire(&mut self, now: Instant, wait: Duration) -> bool {
        if now < self.due {
            return false;
        }
        self.silences = (self.silences + 1).min(MAX_DOUBLINGS);
        self.due = now.plus((wait * (1 << self.silences)).min(LONGEST_WAIT));
        true
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const WAIT: Duration = Duration::from_millis(2);
    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn transfer(segments: u32) -> Transfer {
        Transfer::new(Round::new(7), segments, 1, NOW, WAIT)
    }

    /// Returns the indices of the segments in the next batch. The Confirm of the batch is sent immediately.
    fn next(transfer: &mut Transfer, window: u16) -> Option<Vec<u32>> {
        let (range, bitmap) = transfer.next_batch(window)?;
        transfer.end_batch();
        Some(SegmentSetRepr::of(range, &bitmap).indices().collect())
    }

    fn answer(transfer: &mut Transfer, first: u32, count: u32, missing: &[u32]) {
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        missing.iter().map(|index| index - first).for_each(|bit| bitmap[bit as usize / 8] |= 1 << (bit % 8));
        let range = RangeRepr { round: Round::new(7), first, count };
        transfer.note_answer(SegmentSetRepr::of(range, &bitmap), NOW, WAIT);
    }

    #[test]
    fn a_window_is_sent_in_batches_and_advances_with_confirmations() {
        let mut transfer = transfer(10);
        assert_eq!(next(&mut transfer, 4), Some(vec![0]));
        for index in 1..4 {
            assert_eq!(next(&mut transfer, 4), Some(vec![index]));
        }
        assert_eq!(next(&mut transfer, 4), None, "the window is full");
        answer(&mut transfer, 1, 1, &[]);
        assert_eq!(next(&mut transfer, 4), None, "the first segment is not confirmed yet");
        answer(&mut transfer, 0, 1, &[]);
        assert_eq!(next(&mut transfer, 4), Some(vec![4]));
    }

    #[test]
    fn a_batch_waits_for_the_preceding_one() {
        let mut transfer = transfer(10);
        assert!(transfer.next_batch(8).is_some());
        assert!(transfer.next_batch(8).is_none());
        transfer.end_batch();
        assert_eq!(next(&mut transfer, 8), Some(vec![2, 3]));
    }

    #[test]
    fn only_missing_segments_are_retransmitted() {
        let mut transfer = transfer(8);
        while next(&mut transfer, 8).is_some() {}
        answer(&mut transfer, 0, 8, &[2, 5]);
        assert_eq!(next(&mut transfer, 64), Some(vec![2, 5]));
        // A late answer to an earlier Confirm reports a confirmed segment as missing.
        answer(&mut transfer, 0, 8, &[3]);
        assert_eq!(next(&mut transfer, 64), None, "a confirmation is final");
        assert_eq!(transfer.open_range().count, 0);
    }

    #[test]
    fn a_timeout_asks_for_all_segments_in_flight() {
        let mut transfer = transfer(4);
        while next(&mut transfer, 4).is_some() {}
        answer(&mut transfer, 0, 1, &[]);
        assert!(!transfer.expire(NOW, WAIT));
        assert!(transfer.expire(NOW.plus(WAIT), WAIT));
        let range = transfer.open_range();
        assert_eq!((range.first, range.count), (1, 3));
        let unconfirmed = transfer.unconfirmed(range);
        assert_eq!(unconfirmed[0], 0b111);
        assert_eq!(transfer.due(), NOW.plus(WAIT * 3), "the next timeout should be twice as long");
    }

    #[test]
    fn a_window_slides_over_a_long_vector() {
        let segments = 5 * MAX_RANGE_SEGMENTS + 3;
        let mut transfer = transfer(segments);
        let mut sent = 0;
        while let Some(batch) = next(&mut transfer, u16::MAX) {
            assert_eq!(batch[0], sent);
            sent += batch.len() as u32;
            answer(&mut transfer, batch[0], batch.len() as u32, &[]);
        }
        assert_eq!(sent, segments);
    }
}
