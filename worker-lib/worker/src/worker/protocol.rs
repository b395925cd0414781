//! The rounds of a member, as a sans-I/O state machine: its inputs are bytes and the time, and its outputs are bytes, a
//! deadline and an outcome.
//!
//! The protocol sends the segments of a vector in order, with at most a window of them in flight; each result makes
//! room in the window for further segments. The worker is responsible for the recovery of lost packets: if it detects a
//! gap in the results, or receives none for some time, it sends a Help. The switch answers with the results that it has
//! and names the contributions that it lacks. Only these contributions are retransmitted.
//!
//! The buffers for contributions and sums belong to the caller. A contribution must not change until its round has
//! ended.

use core::ops::Range;

use iswitch_protocol::history::{self, Chain};
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, MAX_RANGE_SEGMENTS, MAX_SUPERFRAME_DATAGRAMS, SEG_LEN_BYTES, superframe_datagrams,
};
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlRepr, DataPacket, ResumeRepr, Standing, Status,
};
use iswitch_protocol::{ElementType, Instant, Round, Seg, SegmentIndex, VectorLayout};

use super::auth::DataKeys;
use super::bitmap::Bitmap;
use super::membership::{MembershipState, Position, Run, max_window};
use super::requests::{MAX_HELPS_AT_ONCE, Question, Requests, range_of};
use super::superframe::Frame;
use super::timer::RetryTimer;
use super::window::{Arrivals, Window};

pub use super::membership::Membership;

/// Number of segments by which results may arrive out of order before a gap counts as a loss: the size of a
/// super-frame.
const REORDER_SEGMENTS: u32 = MAX_SUPERFRAME_DATAGRAMS as u32;

/// Reason why a round did not end with a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The switch does not know this member: its lease expired, or the switch was restarted.
    Forgotten,
    /// The switch does not readmit this member. The values are the reason and the expected value (see [`Status`]).
    JoinRefused(Status, u32),
    /// The other members continued without this one, which has rejoined and may continue at the given round. It lacks
    /// sums before that round.
    Missed(Round),
    /// The job is halted.
    Halted,
    /// The round has ended without this member's contribution, because the other contributions reached the threshold.
    /// The worker may continue at the given round.
    StaleRound(Round),
    /// The switch refused a contribution.
    Refused(Status),
}

impl Failure {
    /// Returns the failure for a refusal with [`Status::Halted`] and this value of `expected`.
    pub(super) fn of_halt(expected: u32) -> Self {
        match expected {
            Status::MEMBER_EXPELLED | Status::JOB_REMOVED => Self::JoinRefused(Status::Halted, expected),
            _ => Self::Halted,
        }
    }
}

/// Role of a member in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The member contributes its own vector.
    Contributes,
    /// The member sends a finished sum, with the number of gradients in each of its segments, to the members that lack
    /// it.
    Supplies,
    /// The member waits for a sum that other members supply.
    Awaits,
}

/// Result of a round: its number, and the smallest and largest number of gradients in any segment of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Round number.
    pub round: Round,
    /// Number of gradients in the segment that has the fewest.
    pub fewest: u16,
    /// Number of gradients in the segment that has the most.
    pub most: u16,
}

/// Counters of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Number of finished rounds.
    pub rounds: u64,
    /// Number of segments sent for the first time.
    pub segments: u64,
    /// Number of segments retransmitted because the switch lacked them.
    pub retransmitted: u64,
    /// Number of Helps sent.
    pub helps: u64,
    /// Number of datagrams that had no effect: duplicate or late results, and unrecognised packets.
    pub ignored: u64,
}

/// Protocol of one member after its admission.
#[derive(Debug)]
pub(super) struct WorkerProtocol {
    job: u32,
    /// Rule by which the histories of the job are computed.
    chain: Chain,
    layout: VectorLayout,
    membership: MembershipState,
    next_round: Round,
    /// Whether other members supply the sum of the next round.
    awaits: bool,
    /// History of the sums that this member has (see [`iswitch_protocol::history`]); zero if it is not known.
    history: u64,
    /// Whether the member has received these sums, rather than merely knowing their history. When a member joins
    /// late, it learns the history before a round that other members might not have finished yet. It has no learner
    /// state to share until it has finished a round itself.
    has_history: bool,
    /// History before the most recent sum, if the caller's `sums` still contain that sum; otherwise zero.
    previous: u64,
    current: Option<Progress>,
    outcome: Option<Result<Finished, Failure>>,
    window: Window,
    recv_buffer_bytes: usize,
    timer: RetryTimer,
    helps: Vec<RangeRepr>,
    received: Bitmap,
    resend: Bitmap,
    contributions: Vec<u16>,
    /// Keys that tag data packets; `None` if data is not tagged.
    data_keys: Option<DataKeys>,
    counters: WorkerCounters,
}

/// Progress of a round.
#[derive(Clone, Copy, Debug)]
struct Progress {
    round: Round,
    part: Part,
    /// Number of segments without a result.
    remaining: u32,
    /// First segment that has never been sent.
    unsent: u32,
    /// Number of segments that were sent and have no result yet.
    in_flight: u32,
    /// Number of segments that wait to be retransmitted.
    resend: u32,
    /// One more than the highest index of a segment with a result.
    frontier: u32,
    /// Index below which all gaps have been requested.
    asked: u32,
    /// Whether the window has already been narrowed during the current silence.
    narrowed: bool,
    /// Number of consecutive timeouts without a result.
    silences: u32,
    /// Value of `remaining` when the probe in progress was sent; `None` if there is no probe. A probe requests a single
    /// segment. If no result arrives before the Ack of the probe, all segments in flight are requested.
    probed: Option<u32>,
}

impl WorkerProtocol {
    /// Creates the protocol of a member that has just been admitted. `parts` is the number of parts of the whole
    /// vector. `recv_buffer_bytes` is the actual size of the worker's receive buffer: results that do not fit in it
    /// would be lost.
    pub(super) fn new(
        job: u32,
        chain: Chain,
        layout: VectorLayout,
        parts: usize,
        membership: Membership,
        recv_buffer_bytes: usize,
    ) -> Self {
        let max_window = max_window(&layout, &membership, recv_buffer_bytes);
        let segments = layout.segment_count() as usize;
        let mut protocol = Self {
            job,
            chain,
            layout,
            membership: MembershipState::new(membership),
            next_round: membership.start,
            awaits: false,
            history: 0,
            has_history: false,
            previous: 0,
            current: None,
            outcome: None,
            window: Window::new(max_window, parts),
            recv_buffer_bytes,
            timer: RetryTimer::default(),
            helps: Vec::with_capacity(MAX_HELPS_AT_ONCE),
            received: Bitmap::new(segments),
            resend: Bitmap::new(segments),
            contributions: vec![0; segments],
            data_keys: None,
            counters: WorkerCounters::default(),
        };
        protocol.adopt(membership.history);
        protocol
    }

    /// Sets the keys that tag data packets from now on; `None` disables tags.
    pub(super) fn set_data_keys(&mut self, keys: Option<DataKeys>) {
        self.data_keys = keys;
    }

    /// Returns the results of the most recent round; `None` before its end.
    pub(super) fn arrivals(&self) -> Option<Arrivals> {
        self.window.arrivals()
    }

    /// Returns the length of the data packet that this member sends for a full segment, including its tag, in bytes.
    fn full_packet_len(&self, part: Part) -> usize {
        self.layout.full_packet_len(self.element_of(part)) + self.tag_len()
    }

    /// Returns the element type of the packets that the member sends in a round.
    fn element_of(&self, part: Part) -> ElementType {
        let elements = self.layout.elements();
        if part == Part::Supplies { elements.results() } else { elements.contributions() }
    }

    fn tag_len(&self) -> usize {
        if self.data_keys.is_some() { DATA_TAG_LEN_BYTES } else { 0 }
    }

    /// Returns whether the member is already at the position at which `membership` begins. If so, the caller needs no
    /// further notice of the sums that the member lacks, and may already have contributed to the round.
    pub(super) fn stands_at(&self, membership: &Membership) -> bool {
        self.history != 0 && (self.history, self.next_round) == (membership.history, membership.start)
    }

    /// Adopts a new membership after the member was admitted again, perhaps by another run of the switch.
    pub(super) fn readmit(&mut self, membership: Membership) {
        self.membership.readmit(membership);
        self.window.grant(max_window(&self.layout, &membership, self.recv_buffer_bytes));
        self.next_round = membership.start;
        self.awaits = membership.standing == Standing::Awaits;
        self.current = None;
        self.outcome = None;
        self.timer.forget_silences();
        match membership.standing {
            // Until it has received the sum, the member keeps the history of the members that lack it.
            Standing::Awaits => {}
            Standing::Supplies => self.history = membership.history,
            // The member may still hold its most recent sum: `previous` remains valid.
            Standing::Fresh | Standing::Resumed if self.history == membership.history => {}
            Standing::Fresh | Standing::Resumed => self.adopt(membership.history),
        }
    }

    /// Continues at the next round, although the member lacks sums before it.
    fn adopt(&mut self, history: u64) {
        let beginning = self.chain.begin(self.membership.get().boot, self.job, self.next_round);
        self.history = history;
        self.has_history = history == beginning;
        self.previous = 0;
    }

    /// Returns the position to report in a Join to a switch that no longer knows this member; `None` if the member does
    /// not know its position.
    pub(super) fn resume(&self) -> Option<ResumeRepr> {
        self.membership.resume(Position {
            next: self.next_round,
            history: self.history,
            previous: self.previous,
            has_sums: self.has_history,
        })
    }

    /// Returns the next round, or the round in progress.
    pub(super) fn next_round(&self) -> Round {
        self.next_round
    }

    /// If the vector is a part of a longer one, returns the number of sums that the job had before the next round,
    /// modulo 2^24. Returns `None` if the vector is not such a part, or if the number is unknown.
    pub(super) fn turn(&self) -> Option<u32> {
        (self.chain == Chain::Part && self.history != 0).then(|| history::turn(self.history))
    }

    /// Returns whether the switch has lost its parent, according to its last Ack.
    pub(super) fn is_orphaned(&self) -> bool {
        self.membership.is_orphaned()
    }

    /// Returns the membership that the switch granted.
    pub(super) fn membership(&self) -> &Membership {
        self.membership.get()
    }

    /// Returns the counters since the worker joined.
    pub(super) fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// Returns the number of gradients in each segment of the most recent sum, `[segment_count]`.
    pub(super) fn contributions(&self) -> &[u16] {
        &self.contributions
    }

    /// Returns the number of segments without a result in the round in progress.
    pub(super) fn remaining(&self) -> usize {
        self.current.map_or(0, |progress| progress.remaining as usize)
    }

    /// Starts the next round and returns its number.
    pub(super) fn begin_round(&mut self, now: Instant) -> Round {
        self.begin(now, if self.awaits { Part::Awaits } else { Part::Contributes })
    }

    /// Begins to send the most recent sum to the members that lack it. This takes one round, which precedes the
    /// caller's next round.
    pub(super) fn begin_supplying(&mut self, now: Instant) {
        self.begin(now, Part::Supplies);
    }

    fn begin(&mut self, now: Instant, part: Part) -> Round {
        let round = self.next_round;
        let remaining = self.layout.segment_count();
        // A member that awaits a sum has nothing to send: all segments count as sent and in flight.
        let sent = if part == Part::Awaits { remaining } else { 0 };
        self.received.clear();
        self.resend.clear();
        self.helps.clear();
        self.outcome = None;
        self.timer.restart(now);
        self.window.begin_round();
        self.current = Some(Progress {
            round,
            part,
            remaining,
            unsent: sent,
            in_flight: sent,
            resend: 0,
            frontier: 0,
            asked: 0,
            narrowed: false,
            silences: 0,
            probed: None,
        });
        round
    }

    /// Gives up the round in progress; the next call to [`Self::begin_round`] repeats it.
    pub(super) fn abandon_round(&mut self) {
        self.current = None;
    }

    /// Returns the outcome of the round, or `None` if the round has not ended. Each outcome is returned only once.
    pub(super) fn take_outcome(&mut self) -> Option<Result<Finished, Failure>> {
        self.outcome.take()
    }

    /// Returns the time at which [`Self::handle_timeout`] is due, or `None` if no round is in progress.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.current.map(|_| self.timer.deadline())
    }

    /// Handles a series of results of `stride` bytes each, and stores their floats in `sums`.
    pub(super) fn handle_results(&mut self, now: Instant, payload: &[u8], stride: usize, sums: &mut [f32]) {
        let before = self.remaining();
        for bytes in payload.chunks(stride.max(1)) {
            let used = self.handle_result(bytes, sums);
            self.counters.ignored += u64::from(!used);
        }
        self.note_progress(now, before);
    }

    /// Handles a control packet from the switch.
    pub(super) fn handle_control(&mut self, now: Instant, repr: &ControlRepr<'_>) {
        let before = self.remaining();
        let used = match repr.body {
            ControlBody::Ack(ack) => self.handle_ack(now, repr.request, &ack),
            ControlBody::Halt if repr.job == self.job => {
                if self.current.is_some() {
                    self.fail(Failure::Halted);
                }
                true
            }
            _ => false,
        };
        self.counters.ignored += u64::from(!used);
        self.note_progress(now, before);
    }

    /// Returns the range of segments to which the next results are likely to belong, in order. None of these segments
    /// has a result yet, so the corresponding ranges of the sums may be overwritten. Returns `None` if there are no
    /// such segments.
    pub(super) fn expected_segments(&self) -> Option<Range<u32>> {
        let progress = self.current.filter(|progress| progress.part == Part::Contributes)?;
        let (first, end) = (progress.frontier, self.layout.segment_count());
        // Until the first result arrives, the sums are those of the previous round, which other members may still need.
        let is_free = first > 0 && first < end;
        // Only plain floats can land in place: a tag must be verified first, 16-bit elements must be widened, and
        // floats are little-endian on the wire.
        let is_wide = self.layout.elements().results() == ElementType::F32;
        let is_plain = is_wide && self.data_keys.is_none() && cfg!(target_endian = "little");
        let fitting = superframe_datagrams(self.layout.full_packet_len(ElementType::F32));
        (is_free && is_plain).then(|| first..end.min(first + fitting as u32))
    }

    /// Handles results whose floats were received directly into the sums. `segs` holds the Seg header of each packet,
    /// in the order of [`Self::expected_segments`]. Every packet is `stride` bytes long except the last, which is
    /// `last_len`. Returns the number of packets, counted from the first, that are the result expected in their place.
    pub(super) fn handle_scattered(
        &mut self,
        now: Instant,
        segs: &[[u8; SEG_LEN_BYTES]],
        stride: usize,
        last_len: usize,
    ) -> usize {
        let Some(expected_segments) = self.expected_segments() else { return 0 };
        let before = self.remaining();
        let mut taken = 0;
        for (index, bytes) in expected_segments.zip(segs) {
            let len = if taken + 1 == segs.len() { last_len } else { stride };
            let seg = Seg::from_bytes(*bytes);
            let is_expected =
                seg.index.get() == index && len == self.layout.packet_len(seg.index, ElementType::F32);
            if !is_expected || !self.accepts(seg) {
                break;
            }
            self.note_result(seg);
            taken += 1;
        }
        self.note_progress(now, before);
        taken
    }

    fn note_progress(&mut self, now: Instant, remaining_before: usize) {
        let remaining = self.remaining();
        if remaining >= remaining_before {
            return;
        }
        self.timer.restart(now);
        let segments = self.layout.segment_count();
        self.window.note_results(now, segments - remaining as u32);
        if matches!(self.outcome, Some(Ok(_))) {
            self.window.end_round(now, segments);
        }
        self.ask_for_gaps();
    }

    /// After a silence, requests the results of segments in flight.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let Some(progress) = &mut self.current else { return };
        if !self.timer.expire(now) || progress.in_flight == 0 {
            return;
        }
        progress.silences += 1;
        if progress.silences > 1 {
            return self.ask_for_all();
        }
        // Results may be waiting in a queue, and a request for all of them would double that queue. The Ack of a
        // request for one segment waits in the same queue. Once this Ack arrives, any result that the switch sent
        // earlier and that is still missing has been lost.
        let (round, unsent) = (progress.round, progress.unsent);
        progress.probed = Some(progress.remaining);
        self.helps.clear();
        if let Some(first) = self.received.next_zero(0, unsent) {
            self.push_help(round, first, first + 1);
        }
    }

    /// Requests the results of all segments in flight.
    fn ask_for_all(&mut self) {
        let Some(progress) = self.current else { return };
        self.helps.clear();
        let missing = self.received.zero_ranges(progress.unsent).take(MAX_HELPS_AT_ONCE);
        self.helps.extend(missing.map(|range| range_of(progress.round, range)));
    }

    /// Writes the next packets into `frame`. Returns their class and the length of each packet in bytes, or `None` if
    /// there is nothing to send.
    pub(super) fn poll_frame(
        &mut self,
        now: Instant,
        vector: &[f32],
        requests: &mut Requests,
        frame: &mut Frame,
    ) -> Option<(Class, usize)> {
        frame.clear();
        if let Some(range) = self.helps.pop() {
            self.counters.helps += 1;
            let wanted = (range, &self.received);
            let help = requests.emit_question(now, &mut self.timer, wanted, Question::Help, frame.control());
            return Some(help);
        }
        let Progress { part, resend, .. } = self.current?;
        if resend > 0 {
            self.emit_resends(vector, frame);
        } else {
            self.emit_fresh(now, vector, frame);
        }
        (!frame.is_empty()).then(|| (Class::Data, self.full_packet_len(part).min(frame.len())))
    }

    fn handle_result(&mut self, bytes: &[u8], sums: &mut [f32]) -> bool {
        let content = match &self.data_keys {
            None => bytes,
            Some(keys) => match keys.result.verify(bytes) {
                Some(content) => content,
                None => return false,
            },
        };
        let Ok(packet) = DataPacket::new_checked(content) else { return false };
        let seg = packet.seg();
        let (range, element) = (self.layout.range(seg.index), self.layout.elements().results());
        if content.len() != self.layout.packet_len(seg.index, element) || !self.accepts(seg) {
            return false;
        }
        iswitch_element::widen(element, packet.element_bytes(), &mut sums[range]);
        self.note_result(seg);
        true
    }

    /// Returns whether a result with this Seg is still expected.
    fn accepts(&self, seg: Seg) -> bool {
        self.current.is_some_and(|progress| progress.round == seg.round)
            && !self.received.get(seg.index.get())
    }

    /// Records that the result of a segment is in the sums.
    fn note_result(&mut self, seg: Seg) {
        let Some(progress) = &mut self.current else { return };
        if progress.part == Part::Contributes {
            // From here on, the caller's sums are those of this round.
            self.previous = 0;
        }
        let index = seg.index.get();
        self.received.set(index);
        self.contributions[index as usize] = seg.contributions;
        progress.remaining -= 1;
        progress.frontier = progress.frontier.max(index + 1);
        progress.narrowed = false;
        progress.silences = 0;
        // A segment that was never sent can have a result, because the other contributions reached the threshold.
        if index < progress.unsent {
            progress.in_flight -= 1;
        }
        if self.resend.get(index) {
            self.resend.unset(index);
            progress.resend -= 1;
        }
        if progress.remaining == 0 {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let Some(progress) = self.current.take() else { return };
        self.next_round = progress.round.next();
        self.awaits = false;
        let before = self.history;
        self.has_history = true;
        match progress.part {
            Part::Supplies => {}
            Part::Awaits => (self.history, self.previous) = (self.membership.get().history, before),
            Part::Contributes => {
                // A member that does not know the history before the round cannot know the history after it.
                let after = self.chain.after(before, self.membership.get().boot, progress.round);
                (self.history, self.previous) = if before == 0 { (0, 0) } else { (after, before) };
            }
        }
        self.counters.rounds += u64::from(progress.part != Part::Supplies);
        let fewest = self.contributions.iter().copied().min().unwrap_or(0);
        let most = self.contributions.iter().copied().max().unwrap_or(0);
        self.outcome = Some(Ok(Finished { round: progress.round, fewest, most }));
    }

    fn fail(&mut self, failure: Failure) {
        self.current = None;
        self.outcome = Some(Err(failure));
    }

    /// Continues at a later round after the switch reports that the job is no longer at the member's round. If no
    /// vector was summed in the meantime, the contribution is repeated under the new number; otherwise, the round
    /// fails.
    fn go_on_at(&mut self, now: Instant, round: Round, history: u64) {
        if round.is_before(self.next_round) {
            return;
        }
        let has_all = history != 0 && history == self.history;
        let outdated = self.current.filter(|progress| progress.round.is_before(round));
        if self.current.is_none() || self.next_round != round {
            self.next_round = round;
            self.awaits = false;
            if !has_all {
                self.adopt(history);
            }
        }
        match outdated {
            Some(Progress { part: Part::Contributes | Part::Awaits, .. }) if has_all => {
                self.begin(now, Part::Contributes);
            }
            Some(_) => self.fail(Failure::StaleRound(round)),
            None => {}
        }
    }

    fn handle_ack(&mut self, now: Instant, request: u32, ack: &AckRepr<'_>) -> bool {
        if ack.status == Status::Challenge {
            // A late answer to a Join; this worker is already a member.
            return false;
        }
        match self.membership.hear(ack) {
            Run::Present => {}
            Run::Past => return false,
            Run::New => {
                self.fail(Failure::Forgotten);
                return true;
            }
        }
        match (ack.status, ack.action) {
            (Status::Success, Action::Help) => self.handle_help_answer(now, request, ack),
            (Status::Success, _) | (Status::UnknownMember, Action::Leave) => {}
            (Status::UnknownMember, _) => self.fail(Failure::Forgotten),
            (Status::Halted, _) => self.fail(Failure::of_halt(ack.expected)),
            (Status::StaleRound, Action::Help | Action::Ack) => {
                // The answer may concern a late packet of an earlier round, or date from before the job was complete,
                // when its first round was not known.
                if ack.formed && self.current.is_some_and(|progress| progress.round.is_before(ack.round)) {
                    self.go_on_at(now, ack.round, ack.history);
                }
            }
            // The answer concerns a packet of an earlier round; the refusal of that round has already been reported.
            (Status::NonFinite, _) if self.current.is_some_and(|progress| progress.round != ack.round) => {}
            (status, Action::Help | Action::Ack) if self.current.is_some() => {
                self.fail(Failure::Refused(status));
            }
            _ => return false,
        }
        true
    }

    fn handle_help_answer(&mut self, now: Instant, request: u32, ack: &AckRepr<'_>) {
        if self.timer.note_answer(now, request) {
            self.end_probe();
        }
        let (Some(progress), Some(missing)) = (&mut self.current, &ack.missing) else { return };
        if missing.range.round != progress.round {
            return;
        }
        let mut lost = 0;
        for index in missing.indices().filter(|index| *index < progress.unsent) {
            if !self.received.get(index) && !self.resend.get(index) {
                self.resend.set(index);
                lost += 1;
            }
        }
        progress.resend += lost;
        if lost > 0 {
            self.narrow();
        }
    }

    /// Ends a probe after its Ack has arrived. If no result arrived before the Ack, either results were lost or other
    /// members have not contributed yet.
    fn end_probe(&mut self) {
        let Some(progress) = &mut self.current else { return };
        if progress.probed.take() == Some(progress.remaining) {
            self.ask_for_all();
        }
    }

    /// Narrows the window, at most once per silence or gap.
    fn narrow(&mut self) {
        if let Some(progress) = &mut self.current
            && !progress.narrowed
        {
            progress.narrowed = true;
            self.window.narrow();
        }
    }

    /// Requests the results that are missing in gaps. A gap that lies well below the highest result is treated as a
    /// loss, because results normally arrive in the order of the segments.
    fn ask_for_gaps(&mut self) {
        let Some(progress) = self.current else { return };
        let below = progress.frontier.saturating_sub(REORDER_SEGMENTS + 1).min(progress.unsent);
        if below <= progress.asked {
            return;
        }
        let first = self.received.next_zero(progress.asked, below);
        if let Some(first) = first
            && self.helps.len() < MAX_HELPS_AT_ONCE
        {
            self.push_help(progress.round, first, below.min(first + MAX_RANGE_SEGMENTS));
        }
        if let Some(progress) = &mut self.current {
            progress.asked = below;
        }
    }

    fn push_help(&mut self, round: Round, first: u32, end: u32) {
        self.helps.push(range_of(round, first..end));
    }

    /// Writes segments that the switch lacks.
    fn emit_resends(&mut self, vector: &[f32], frame: &mut Frame) {
        let Some(mut progress) = self.current else { return };
        let mut from = 0;
        while let Some(index) = self.resend.next_one(from, progress.unsent) {
            if !self.append(&progress, index, vector, frame) {
                break;
            }
            self.resend.unset(index);
            progress.resend -= 1;
            self.counters.retransmitted += 1;
            from = index + 1;
        }
        self.current = Some(progress);
    }

    /// Writes segments that have never been sent, as many as the window allows.
    fn emit_fresh(&mut self, now: Instant, vector: &[f32], frame: &mut Frame) {
        let Some(mut progress) = self.current else { return };
        let first = progress.unsent;
        let most = self.window.frame_segments(first, self.layout.segment_count() - first);
        let window = self.window.get().min(progress.in_flight.saturating_add(most));
        while progress.in_flight < window {
            let Some(index) = self.received.next_zero(progress.unsent, self.layout.segment_count()) else {
                progress.unsent = self.layout.segment_count();
                break;
            };
            if !self.append(&progress, index, vector, frame) {
                break;
            }
            progress.unsent = index + 1;
            progress.in_flight += 1;
            self.counters.segments += 1;
        }
        if progress.unsent > first {
            self.window.note_sent(now, progress.unsent);
        }
        self.current = Some(progress);
    }

    /// Appends a data packet. Returns false if the super-frame is full: it has reached its maximum number of bytes or
    /// packets, or its last packet is shorter than the others.
    fn append(&self, progress: &Progress, index: u32, vector: &[f32], frame: &mut Frame) -> bool {
        let contributions =
            if progress.part == Part::Supplies { self.contributions[index as usize] } else { 1 };
        let index = SegmentIndex::new(index).expect("the layout has a segment with this index");
        let seg = Seg { index, round: progress.round, contributions };
        let tag_key = self.data_keys.as_ref().map(|keys| &keys.contribution);
        frame.push(&self.layout, seg, vector, self.element_of(progress.part), tag_key)
    }
}
