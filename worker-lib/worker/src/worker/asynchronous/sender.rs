//! The vector that a member of an asynchronous job is sending.
//!
//! Only the answer to a Confirm shows whether a segment has arrived, because a sum does not reveal which members'
//! vectors it contains. The sender therefore follows each super-frame with a Confirm of its segments. Segments that the
//! switch lacks are retransmitted; segments that the switch has received make room in the window for the next ones.

use std::collections::VecDeque;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, MAX_RANGE_SEGMENTS};
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{AckRepr, Class};
use iswitch_protocol::{Instant, Round, Seg, SegmentIndex, VectorLayout};

use super::AsyncCounters;
use crate::worker::auth::DataKeys;
use crate::worker::bitmap::Bitmap;
use crate::worker::requests::{MAX_HELPS_AT_ONCE, Question, Requests, range_of};
use crate::worker::superframe::push_segment;
use crate::worker::timer::RetryTimer;
use crate::worker::window::MIN_WINDOW;

#[derive(Debug)]
pub(super) struct Sender {
    layout: VectorLayout,
    /// Vector in progress, `[gradient_len]`; valid only while a vector is being sent.
    vector: Vec<f32>,
    /// Sequence number of the vector in progress or, if there is none, of the next vector.
    number: Round,
    current: Option<Progress>,
    /// Id of the first request that can refer to the current vector.
    first_request: u32,
    window: u32,
    max_window: u32,
    /// Key that tags data packets; `None` if data is not tagged.
    tag_key: Option<TagKey>,
    /// Segments that the switch has received, according to its answers.
    confirmed: Bitmap,
    /// Segments that the switch lacks and that must be retransmitted.
    resend: Bitmap,
    /// Ranges of segments for which a Confirm is due.
    confirms: VecDeque<RangeRepr>,
    timer: RetryTimer,
}

/// Progress of the vector.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// First segment that has never been sent.
    unsent: u32,
    /// Number of segments that were sent and are neither confirmed nor reported missing.
    in_flight: u32,
    /// Number of segments that wait to be retransmitted.
    resend: u32,
    /// Whether the window has been narrowed because of losses since the last confirmation.
    narrowed: bool,
}

impl Sender {
    pub(super) fn new(layout: VectorLayout) -> Self {
        let segments = layout.segment_count() as usize;
        Self {
            layout,
            vector: vec![0.0; layout.gradient_len() as usize],
            number: Round::default(),
            current: None,
            first_request: 0,
            window: MIN_WINDOW,
            max_window: MIN_WINDOW,
            tag_key: None,
            confirmed: Bitmap::new(segments),
            resend: Bitmap::new(segments),
            confirms: VecDeque::new(),
            timer: RetryTimer::default(),
        }
    }

    /// Resets the sender after the member was admitted: its vectors are numbered starting from `first` (requirement
    /// V-2).
    pub(super) fn admitted(&mut self, first: Round, max_window: u32, keys: Option<DataKeys>) {
        self.tag_key = keys.map(|keys| keys.contribution);
        self.current = None;
        self.number = first;
        (self.window, self.max_window) = (max_window, max_window);
        self.timer.forget_silences();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Begins to send a vector (`[gradient_len]`).
    pub(super) fn begin(&mut self, now: Instant, vector: &[f32], requests: &Requests) {
        self.first_request = requests.next_id();
        self.vector.copy_from_slice(vector);
        self.confirmed.clear();
        self.resend.clear();
        self.confirms.clear();
        self.timer.restart(now);
        self.current = Some(Progress { unsent: 0, in_flight: 0, resend: 0, narrowed: false });
    }

    /// Returns whether a request refers to the vector in progress rather than to an earlier vector.
    pub(super) fn is_about_current(&self, request: u32) -> bool {
        self.current.is_some() && request.wrapping_sub(self.first_request) <= u32::MAX / 2
    }

    /// Abandons the vector in progress; its number is not used again. Returns whether there was one.
    pub(super) fn give_up(&mut self) -> bool {
        let was_sending = self.current.take().is_some();
        if was_sending {
            self.number = self.number.next();
        }
        was_sending
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.current.map(|_| self.timer.deadline())
    }

    /// After a silence, sends Confirms for all segments that were sent but not confirmed.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let Some(progress) = self.current else { return };
        if !self.timer.expire(now) {
            return;
        }
        self.confirms.clear();
        let (number, unconfirmed) = (self.number, self.confirmed.zero_ranges(progress.unsent));
        self.confirms.extend(unconfirmed.take(MAX_HELPS_AT_ONCE).map(|range| range_of(number, range)));
        if self.confirms.is_empty() {
            // All segments have arrived; only the aggregate that took the vector is still unknown.
            self.push_confirm(0, 0);
        }
    }

    /// Writes the next packets into `buffer`, which must be empty. Returns their class and the length of each packet in
    /// bytes, or `None` if there is nothing to send.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        requests: &mut Requests,
        counters: &mut AsyncCounters,
        buffer: &mut Vec<u8>,
    ) -> Option<(Class, usize)> {
        let progress = self.current?;
        if let Some(range) = self.confirms.pop_front() {
            counters.confirms += 1;
            let unconfirmed = (range, &self.confirmed);
            let confirm =
                requests.emit_question(now, &mut self.timer, unconfirmed, Question::Confirm, buffer);
            return Some(confirm);
        }
        if progress.resend > 0 {
            self.emit_resends(counters, buffer);
        } else {
            self.emit_fresh(counters, buffer);
        }
        let tag_len = if self.tag_key.is_some() { DATA_TAG_LEN_BYTES } else { 0 };
        let full_len = self.layout.full_packet_len(self.layout.elements().contributions()) + tag_len;
        (!buffer.is_empty()).then(|| (Class::Data, full_len.min(buffer.len())))
    }

    /// Handles the Ack of a Confirm; returns the aggregate that contains the vector as soon as the switch reports it.
    pub(super) fn handle_confirmed(
        &mut self,
        now: Instant,
        request: u32,
        ack: &AckRepr<'_>,
    ) -> Option<Round> {
        self.timer.note_answer(now, request);
        let missing = ack.missing.filter(|missing| missing.range.round == self.number)?;
        let mut progress = self.current?;
        if ack.expected == 1 {
            self.give_up();
            return Some(ack.round);
        }
        let (mut news, mut lost) = (0, 0);
        for (bit, index) in (0..missing.range.count).zip(missing.range.first..progress.unsent) {
            let is_missing = missing.bitmap[bit as usize / 8] >> (bit % 8) & 1 == 1;
            // A confirmation is final: a reordered older Ack must not revoke it.
            if self.confirmed.get(index) || is_missing && self.resend.get(index) {
                continue;
            }
            if is_missing {
                self.resend.set(index);
                (progress.resend, progress.in_flight) = (progress.resend + 1, progress.in_flight - 1);
                lost += 1;
                continue;
            }
            self.confirmed.set(index);
            news += 1;
            if self.resend.get(index) {
                self.resend.unset(index);
                progress.resend -= 1;
            } else {
                progress.in_flight -= 1;
            }
        }
        if news > 0 {
            self.timer.restart(now);
            progress.narrowed = false;
            self.window = (self.window + self.window.div_ceil(8)).min(self.max_window);
        }
        if lost > 0 && !progress.narrowed {
            progress.narrowed = true;
            self.window = (self.window / 2).max(MIN_WINDOW).min(self.max_window);
        }
        self.current = Some(progress);
        None
    }

    fn push_confirm(&mut self, first: u32, end: u32) {
        self.confirms.push_back(range_of(self.number, first..end));
    }

    /// Writes segments that the switch lacks.
    fn emit_resends(&mut self, counters: &mut AsyncCounters, buffer: &mut Vec<u8>) {
        let Some(mut progress) = self.current else { return };
        let (mut first, mut from) = (None, 0);
        while let Some(index) = self.resend.next_one(from, progress.unsent) {
            let start = *first.get_or_insert(index);
            if index - start >= MAX_RANGE_SEGMENTS || !self.push(index, buffer) {
                break;
            }
            self.resend.unset(index);
            (progress.resend, progress.in_flight) = (progress.resend - 1, progress.in_flight + 1);
            counters.retransmitted += 1;
            from = index + 1;
        }
        self.current = Some(progress);
        if let Some(first) = first {
            self.push_confirm(first, from);
        }
    }

    /// Writes segments that have never been sent, as many as the window allows.
    fn emit_fresh(&mut self, counters: &mut AsyncCounters, buffer: &mut Vec<u8>) {
        let Some(mut progress) = self.current else { return };
        let first = progress.unsent;
        while progress.in_flight < self.window
            && progress.unsent < self.layout.segment_count()
            && self.push(progress.unsent, buffer)
        {
            progress.unsent += 1;
            progress.in_flight += 1;
            counters.segments += 1;
        }
        self.current = Some(progress);
        if progress.unsent > first {
            self.push_confirm(first, progress.unsent);
        }
    }

    fn push(&self, index: u32, buffer: &mut Vec<u8>) -> bool {
        let index = SegmentIndex::new(index).expect("the layout has a segment with this index");
        let seg = Seg { index, round: self.number, contributions: 1 };
        let element = self.layout.elements().contributions();
        push_segment(&self.layout, seg, &self.vector, element, self.tag_key.as_ref(), buffer)
    }
}
