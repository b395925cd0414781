//! The sums of an asynchronous job, put in the order of their numbers.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::FLOAT_LEN_BYTES;
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{AckRepr, Class, DataPacket};
use iswitch_protocol::{Instant, Round, Seg, VectorLayout, history};

use super::{AsyncCounters, Sum};
use crate::worker::bitmap::Bitmap;
use crate::worker::requests::{MAX_HELPS_AT_ONCE, Question, Requests, range_of};
use crate::worker::timer::RetryTimer;

/// Maximum number of incomplete aggregates: the next aggregate, and later ones whose results arrive early.
const INCOMING_AGGREGATES: usize = 4;
/// Memory for sums that wait for the caller, in bytes. With this memory, a caller can pause, for example to write a
/// checkpoint, for longer than the switch keeps the sums.
const READY_LEN_BYTES: usize = 64 << 20;
/// Minimum and maximum capacity for sums that wait for the caller, in number of sums.
const READY_SUMS: RangeInclusive<usize> = 4..=4096;

#[derive(Debug)]
pub(super) struct Receiver {
    layout: VectorLayout,
    boot: u64,
    /// Key that tags results; `None` if they are not tagged.
    tag_key: Option<TagKey>,
    /// The first aggregate that is not complete.
    next: Round,
    /// History of the sums before `next` (see [`iswitch_protocol::history`]); zero if unknown.
    history: u64,
    /// The latest aggregate for which any result was received.
    latest: Round,
    /// Latest aggregate that the switch is known to have finished.
    finished: Round,
    /// Value of `latest` at the time of the last request for the next aggregate.
    asked_at: Round,
    /// Aggregates that are incomplete, beginning with `next`. `place_of` returns the index of each.
    incoming: Vec<Incoming>,
    ready: VecDeque<Sum>,
    ready_max: usize,
    spare: Vec<Vec<f32>>,
    helps: VecDeque<RangeRepr>,
    timer: RetryTimer,
    /// Whether complete sums are held back instead of being offered to the caller.
    held: bool,
}

#[derive(Debug)]
struct Incoming {
    received: Bitmap,
    remaining: u32,
    contributions: u16,
    /// The sum as far as it has been received, `[gradient_len]`.
    sum: Vec<f32>,
}

impl Incoming {
    fn new(layout: &VectorLayout) -> Self {
        let segments = layout.segment_count();
        Self {
            received: Bitmap::new(segments as usize),
            remaining: segments,
            contributions: 0,
            sum: vec![0.0; layout.gradient_len() as usize],
        }
    }

    fn clear(&mut self, segments: u32) {
        self.received.clear();
        self.remaining = segments;
    }
}

impl Receiver {
    pub(super) fn new(layout: VectorLayout) -> Self {
        Self {
            layout,
            boot: 0,
            tag_key: None,
            next: Round::default(),
            history: 0,
            latest: Round::default(),
            finished: Round::default(),
            asked_at: Round::default(),
            incoming: (0..INCOMING_AGGREGATES).map(|_| Incoming::new(&layout)).collect(),
            ready: VecDeque::new(),
            ready_max: (READY_LEN_BYTES / (layout.gradient_len() as usize * FLOAT_LEN_BYTES).max(1))
                .clamp(*READY_SUMS.start(), *READY_SUMS.end()),
            spare: Vec::new(),
            helps: VecDeque::new(),
            timer: RetryTimer::default(),
            held: false,
        }
    }

    /// Sets the key with which results must be tagged from now on. With `None`, results without tags are accepted.
    pub(super) fn set_tag_key(&mut self, key: Option<TagKey>) {
        self.tag_key = key;
    }

    /// Continues at the aggregate `next`. Complete sums that wait for the caller are kept; incomplete ones are
    /// discarded.
    pub(super) fn restart(&mut self, now: Instant, next: Round, history: u64, boot: u64) {
        (self.next, self.latest, self.asked_at) = (next, next, next);
        self.finished = next;
        (self.history, self.boot) = (history, boot);
        let segments = self.layout.segment_count();
        self.incoming.iter_mut().for_each(|incoming| incoming.clear(segments));
        self.helps.clear();
        self.timer.forget_silences();
        self.timer.restart(now);
    }

    /// Returns the first aggregate that is not complete.
    pub(super) fn next(&self) -> Round {
        self.next
    }

    /// Returns the history of the sums before the first incomplete aggregate; zero if unknown.
    pub(super) fn history(&self) -> u64 {
        self.history
    }

    /// Returns the number of sums that wait to be taken.
    pub(super) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// Sets whether sums that become complete from now on are held back.
    pub(super) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Returns whether there is room for the results that would arrive next in order.
    pub(super) fn has_room(&self) -> bool {
        self.ready.len() < self.ready_max
    }

    /// Records that the switch has begun an aggregate, which means that it has finished all earlier ones. For a member
    /// that receives no results, this is the only sign that it lags behind.
    pub(super) fn note_begun(&mut self, aggregate: Round) {
        if self.finished.is_before(aggregate.previous()) {
            self.finished = aggregate.previous();
        }
    }

    /// Returns whether the switch is several aggregates ahead of this member.
    pub(super) fn lags(&self) -> bool {
        let is_far = |latest: Round| {
            self.next.is_before(latest) && latest.distance_from(self.next) >= INCOMING_AGGREGATES as u32
        };
        is_far(self.latest) || is_far(self.finished)
    }

    /// Returns the next sum in order, or `None` if it is not complete.
    pub(super) fn take(&mut self) -> Option<Sum> {
        let sum = self.ready.pop_front()?;
        self.collect();
        Some(sum)
    }

    /// Discards the sums that wait to be taken.
    pub(super) fn discard_ready(&mut self) {
        for sum in std::mem::take(&mut self.ready) {
            self.recycle(sum.vector);
        }
    }

    /// Reclaims the memory of a sum that the caller no longer needs, for reuse.
    pub(super) fn recycle(&mut self, vector: Vec<f32>) {
        if vector.len() == self.layout.gradient_len() as usize && self.spare.len() < *READY_SUMS.start() {
            self.spare.push(vector);
        }
    }

    /// Handles a result; returns false if it had no effect.
    pub(super) fn handle_result(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let content = match &self.tag_key {
            None => Some(bytes),
            Some(key) => key.verify(bytes),
        };
        let Some(Ok(packet)) = content.map(DataPacket::new_checked) else { return false };
        let Seg { index, round, contributions } = packet.seg();
        let (range, element) = (self.layout.range(index), self.layout.elements().results());
        let is_whole = packet.element_bytes().len() == range.len() * element.len_bytes();
        if round.is_before(self.next) || range.is_empty() || !is_whole {
            return false;
        }
        if self.latest.is_before(round) {
            self.latest = round;
        }
        if round.distance_from(self.next) >= INCOMING_AGGREGATES as u32 {
            return false;
        }
        let incoming = self.incoming_mut(round);
        if incoming.received.get(index.get()) {
            return false;
        }
        iswitch_element::widen(element, packet.element_bytes(), &mut incoming.sum[range]);
        incoming.received.set(index.get());
        incoming.contributions = contributions;
        incoming.remaining -= 1;
        if round == self.next {
            self.timer.restart(now);
        }
        true
    }

    /// Processes newly received results: makes complete sums available to the caller, and requests the next aggregate
    /// if results of later ones have overtaken it.
    pub(super) fn follow(&mut self) {
        self.collect();
        let is_overtaken = self.next.is_before(self.latest) && self.incoming_mut(self.next).remaining > 0;
        // The request is repeated with each later aggregate, because the switch keeps the missing aggregate only for a
        // short time.
        if is_overtaken && self.asked_at != self.latest {
            self.asked_at = self.latest;
            self.helps.clear();
            self.ask();
        }
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.timer.deadline()
    }

    /// After a silence, requests the next aggregate, because its results may have been lost. It is also possible that
    /// the switch has not finished that aggregate yet.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.timer.expire(now) {
            self.helps.clear();
            self.ask();
        }
    }

    /// Writes the next Help into `buffer`, which must be empty. Returns its class and length, or `None` if no Help is
    /// due.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        requests: &mut Requests,
        counters: &mut AsyncCounters,
        buffer: &mut Vec<u8>,
    ) -> Option<(Class, usize)> {
        let range = self.helps.pop_front()?;
        counters.helps += 1;
        let incoming = &self.incoming[place_of(range.round)];
        let wanted = (range, &incoming.received);
        Some(requests.emit_question(now, &mut self.timer, wanted, Question::Help, buffer))
    }

    /// Handles the answer to a Help. If the answer concerns the next aggregate, and this member does not know the
    /// history before that aggregate, adopts the history in the answer.
    pub(super) fn handle_help_answer(&mut self, now: Instant, request: u32, ack: &AckRepr<'_>) {
        if self.history == 0 && ack.missing.is_some_and(|asked| asked.range.round == self.next) {
            self.history = ack.history;
        }
        self.timer.note_answer(now, request);
    }

    /// Returns whether this member lacks an aggregate that the switch no longer keeps.
    pub(super) fn lacks_before(&self, oldest_kept: Round) -> bool {
        self.next.is_before(oldest_kept)
    }

    /// Returns the aggregate at which to continue if the switch no longer keeps those before `oldest_kept`. It is the
    /// latest one for which any result was received, because the oldest one could have been discarded by the time it
    /// is requested.
    pub(super) fn latest_from(&self, oldest_kept: Round) -> Round {
        if self.latest.is_before(oldest_kept) { oldest_kept } else { self.latest }
    }

    /// Makes complete sums available to the caller, in order, as long as there is room.
    fn collect(&mut self) {
        let segments = self.layout.segment_count();
        while !self.held && self.has_room() && self.incoming_mut(self.next).remaining == 0 {
            let aggregate = self.next;
            let fresh = self.spare.pop().unwrap_or_else(|| vec![0.0; self.layout.gradient_len() as usize]);
            let incoming = self.incoming_mut(aggregate);
            let vector = std::mem::replace(&mut incoming.sum, fresh);
            let contributions = incoming.contributions;
            incoming.clear(segments);
            self.ready.push_back(Sum { aggregate, contributions, vector });
            self.next = aggregate.next();
            // A member that does not know the history before an aggregate cannot know the history after it.
            if self.history != 0 {
                self.history = history::after(self.history, self.boot, aggregate);
            }
        }
        if self.latest.is_before(self.next) {
            self.latest = self.next;
        }
    }

    /// Requests the missing segments of the next aggregate.
    pub(super) fn ask(&mut self) {
        let round = self.next;
        let missing = self.incoming[place_of(round)].received.zero_ranges(self.layout.segment_count());
        self.helps.extend(missing.take(MAX_HELPS_AT_ONCE).map(|range| range_of(round, range)));
    }

    fn incoming_mut(&mut self, round: Round) -> &mut Incoming {
        &mut self.incoming[place_of(round)]
    }
}

/// Returns the index of an aggregate in `incoming`.
fn place_of(round: Round) -> usize {
    round.get() as usize % INCOMING_AGGREGATES
}
