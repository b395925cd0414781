//! The rounds of a member: bytes and a clock in; bytes, a deadline and an outcome out.
//!
//! It sends the segments of a vector in order, with at most a window of them in flight; each result lets the
//! next ones go. Lost packets are the worker's business: it notices a gap in the results, or silence, and sends
//! a Help. The switch answers with the results that it has and names the contributions that it misses; only
//! those are sent again.
//!
//! Contributions and sums belong to the caller. A contribution must stay as it is until its round has ended.

use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, MAX_RANGE_SEGMENTS, MAX_SUPERFRAME_DATAGRAMS, SEG_LEN_BYTES, datagram_truesize,
    recv_room, superframe_datagrams,
};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, ResumeRepr, Standing, Status,
};
use iswitch_protocol::{Instant, Round, Seg, SegmentIndex, VectorLayout, history};

use super::auth::DataKeys;
use super::bitmap::Bitmap;
use super::superframe::Frame;
use super::timer::RetryTimer;
use super::window::Window;

/// Results may overtake each other by this many segments before a gap counts as a loss: a super-frame.
const REORDER_SEGMENTS: u32 = MAX_SUPERFRAME_DATAGRAMS as u32;
/// Ranges that one expired timer asks for; the rest waits for the next.
pub(super) const MAX_HELPS_AT_ONCE: usize = 8;

/// What the Ack of a Join told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Id of this member.
    pub member: u16,
    /// The first round to take part in.
    pub start: Round,
    /// Segments that may be in flight.
    pub window: u16,
    /// Identifies the run of the switch.
    pub boot: u64,
    /// Silence after which the switch expels a member.
    pub lease: Duration,
    /// Members of the switch in the job.
    pub members: u16,
    /// Workers in the whole job.
    pub weight: u16,
    /// Where the member stands.
    pub standing: Standing,
    /// What has been summed before `start`, or with it where the member supplies or awaits that sum.
    pub history: u64,
}

impl Membership {
    /// Reads the Ack of a Join that was granted.
    pub fn from_ack(ack: &AckRepr<'_>) -> Self {
        Self {
            member: ack.member,
            start: ack.round,
            window: ack.window,
            boot: ack.boot,
            lease: Duration::from_millis(u64::from(ack.lease_ms)),
            members: ack.members,
            weight: ack.weight,
            standing: ack.standing,
            history: ack.history,
        }
    }
}

/// Why a round did not end with a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The switch does not know this member: its lease ran out, or the switch was restarted.
    Forgotten,
    /// The switch does not take this member back; the reason, and what was expected (see [`Status`]).
    JoinRefused(Status, u32),
    /// The others went on without this member, which has joined again and may go on at this round. It lacks the
    /// sums before that.
    Missed(Round),
    /// The job is halted.
    Halted,
    /// The round is over, because others were enough; the worker may continue at this one.
    StaleRound(Round),
    /// The switch refused a contribution.
    Refused(Status),
}

/// A member's part in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It contributes its own vector.
    Contributes,
    /// It sends a finished sum, with the gradients in each of its segments, for those who lack it.
    Supplies,
    /// It waits for a sum that others supply.
    Awaits,
}

/// Result of a round: its number, and the fewest and most gradients that any segment of the sum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The round.
    pub round: Round,
    /// Gradients in the segment with the fewest.
    pub fewest: u16,
    /// Gradients in the segment with the most.
    pub most: u16,
}

/// Counters of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Rounds finished.
    pub rounds: u64,
    /// Segments sent for the first time.
    pub segments: u64,
    /// Segments sent again because the switch missed them.
    pub retransmitted: u64,
    /// Helps sent.
    pub helps: u64,
    /// Datagrams that were of no use: repeated or late results, unknown packets.
    pub ignored: u64,
}

/// The protocol of one member, from the moment it has joined.
#[derive(Debug)]
pub struct WorkerProtocol {
    job: u32,
    layout: VectorLayout,
    membership: Membership,
    /// Boot ids that were valid before: what still arrives from those runs is of no interest.
    past_boots: [u64; 2],
    /// Whether the switch has lost its parent.
    is_orphaned: bool,
    /// The threshold H if a member has pinned it, otherwise zero.
    pinned_threshold: u16,
    next_round: Round,
    /// Whether the next round is one whose sum others supply.
    awaits: bool,
    /// Stands for the sums that this member has, see [`iswitch_protocol::history`]; zero if that is not known.
    history: u64,
    /// Whether it does have them. Who joins late is told the history of a round that others have yet to finish, and
    /// has no state of the learner that could be shared before it has finished one of its own.
    has_history: bool,
    /// The same before the last sum, while the caller's `sums` still hold that; otherwise zero.
    previous: u64,
    current: Option<Progress>,
    outcome: Option<Result<Finished, Failure>>,
    window: Window,
    recv_buffer_bytes: usize,
    next_request: u32,
    timer: RetryTimer,
    helps: Vec<RangeRepr>,
    /// When the latest Help was sent and which it was, to measure the round trip.
    help_sent: Option<(u32, Instant)>,
    received: Bitmap,
    resend: Bitmap,
    contributions: Vec<u16>,
    /// With which data packets are tagged, if they are.
    data_keys: Option<DataKeys>,
    counters: WorkerCounters,
}

/// Segments that may be in flight: what the switch grants and this member's own receive buffer holds.
pub(super) fn max_window(layout: &VectorLayout, membership: &Membership, recv_buffer_bytes: usize) -> u32 {
    let datagram = datagram_truesize(layout.full_packet_len() + DATA_TAG_LEN_BYTES);
    let own = (recv_room(recv_buffer_bytes) / datagram).clamp(1, usize::from(u16::MAX)) as u32;
    u32::from(membership.window).min(own).max(1)
}

/// How far a round is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    round: Round,
    part: Part,
    /// Segments without a result.
    remaining: u32,
    /// The first segment that was never sent.
    unsent: u32,
    /// Segments sent and without a result.
    in_flight: u32,
    /// Segments that wait to be sent again.
    resend: u32,
    /// One more than the highest segment with a result.
    frontier: u32,
    /// Gaps below this segment have been asked for.
    asked: u32,
    /// Whether this silence has already narrowed the window.
    narrowed: bool,
    /// Timers that ran out since the last result.
    silences: u32,
    /// Segments without a result when one of them was asked for, to learn what has become of all.
    probed: Option<u32>,
}

impl WorkerProtocol {
    /// The protocol of a member that was just admitted. `recv_buffer_bytes` is the receive buffer that the
    /// worker really has: results that do not fit in it would be lost.
    pub fn new(job: u32, layout: VectorLayout, membership: Membership, recv_buffer_bytes: usize) -> Self {
        let max_window = max_window(&layout, &membership, recv_buffer_bytes);
        let segments = layout.segment_count() as usize;
        let mut protocol = Self {
            job,
            layout,
            membership,
            past_boots: [membership.boot; 2],
            is_orphaned: false,
            pinned_threshold: 0,
            next_round: membership.start,
            awaits: false,
            history: 0,
            has_history: false,
            previous: 0,
            current: None,
            outcome: None,
            window: Window::new(max_window),
            recv_buffer_bytes,
            next_request: 1,
            timer: RetryTimer::default(),
            helps: Vec::with_capacity(MAX_HELPS_AT_ONCE),
            help_sent: None,
            received: Bitmap::new(segments),
            resend: Bitmap::new(segments),
            contributions: vec![0; segments],
            data_keys: None,
            counters: WorkerCounters::default(),
        };
        protocol.adopt(membership.history);
        protocol
    }

    /// Tags data packets from now on, or does not.
    pub(crate) fn set_data_keys(&mut self, keys: Option<DataKeys>) {
        self.data_keys = keys;
    }

    /// Bytes of the data packet of a full segment, and of its tag.
    fn full_packet_len(&self) -> usize {
        self.layout.full_packet_len() + self.tag_len()
    }

    fn tag_len(&self) -> usize {
        if self.data_keys.is_some() { DATA_TAG_LEN_BYTES } else { 0 }
    }

    /// Whether the member is already where that membership begins: it has been told what it lacks, and may have
    /// contributed to the round.
    pub(crate) fn stands_at(&self, membership: &Membership) -> bool {
        self.history != 0 && (self.history, self.next_round) == (membership.history, membership.start)
    }

    /// The member was admitted again, perhaps by another run of the switch.
    pub(crate) fn readmit(&mut self, membership: Membership) {
        if membership.boot != self.membership.boot {
            self.past_boots = [self.past_boots[1], self.membership.boot];
        }
        self.membership = membership;
        self.window.grant(max_window(&self.layout, &membership, self.recv_buffer_bytes));
        self.next_round = membership.start;
        self.awaits = membership.standing == Standing::Awaits;
        self.pinned_threshold = 0;
        self.current = None;
        self.outcome = None;
        match membership.standing {
            // It still has the history of those who lack the sum.
            Standing::Awaits => {}
            Standing::Supplies => self.history = membership.history,
            // It may still hold the last sum.
            Standing::Fresh | Standing::Resumed if self.history == membership.history => {}
            Standing::Fresh | Standing::Resumed => self.adopt(membership.history),
        }
    }

    /// Goes on at the next round without what was summed before.
    fn adopt(&mut self, history: u64) {
        let beginning = history::begin(self.membership.boot, self.job, self.next_round);
        self.history = history;
        self.has_history = history == beginning;
        self.previous = 0;
    }

    /// What to tell a switch that has forgotten this member; `None` if it does not know where it stands.
    pub(crate) fn resume(&self) -> Option<ResumeRepr> {
        (self.history != 0).then_some(ResumeRepr {
            round: self.next_round,
            members: self.membership.members,
            weight: self.membership.weight,
            threshold: self.pinned_threshold,
            history: self.history,
            previous: self.previous,
            behind: 0,
            fresh: !self.has_history,
        })
    }

    /// The round that comes next, or is under way.
    pub(crate) fn next_round(&self) -> Round {
        self.next_round
    }

    /// Whether the switch has lost its parent, as it said when it last answered.
    pub fn is_orphaned(&self) -> bool {
        self.is_orphaned
    }

    /// What the switch told when the worker joined.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// How the vector is cut up.
    pub fn layout(&self) -> &VectorLayout {
        &self.layout
    }

    /// What was counted since the worker joined.
    pub fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// Gradients in each segment of the last sum, `[segment_count]`.
    pub fn contributions(&self) -> &[u16] {
        &self.contributions
    }

    /// Segments without a result in the round under way.
    pub fn remaining(&self) -> usize {
        self.current.map_or(0, |progress| progress.remaining as usize)
    }

    /// Starts the next round and returns its number.
    pub fn begin_round(&mut self, now: Instant) -> Round {
        self.begin(now, if self.awaits { Part::Awaits } else { Part::Contributes })
    }

    /// Sends the last sum to those who lack it, in a round before the next one.
    pub(crate) fn begin_supplying(&mut self, now: Instant) {
        self.begin(now, Part::Supplies);
    }

    fn begin(&mut self, now: Instant, part: Part) -> Round {
        let round = self.next_round;
        let remaining = self.layout.segment_count();
        // Who waits has nothing to send: it is as if all had been sent and was on its way.
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

    /// Gives up the round under way; the next call to [`Self::begin_round`] repeats it.
    pub fn abandon_round(&mut self) {
        self.current = None;
    }

    /// How the round ended, once.
    pub fn take_outcome(&mut self) -> Option<Result<Finished, Failure>> {
        self.outcome.take()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.current.map(|_| self.timer.deadline())
    }

    /// Takes in a datagram of the switch, or a super-frame of datagrams of `stride` bytes. Results go into `sums`.
    pub fn handle_datagrams(
        &mut self,
        now: Instant,
        class: Class,
        payload: &[u8],
        stride: usize,
        sums: &mut [f32],
    ) {
        let before = self.remaining();
        for bytes in payload.chunks(stride.max(1)) {
            let used = match class {
                Class::Data => self.handle_result(bytes, sums),
                Class::Control => self.handle_control(now, bytes),
            };
            self.counters.ignored += u64::from(!used);
        }
        self.note_progress(now, before);
    }

    /// The segments that the next results are likely to be of, one after the other from the first on: none of them has
    /// a result, and nobody needs what is in the sums at their places. `None` if there are no such segments.
    pub(crate) fn landing(&self) -> Option<Range<u32>> {
        let progress = self.current.filter(|progress| progress.part == Part::Contributes)?;
        let (first, end) = (progress.frontier, self.layout.segment_count());
        // Until the first result has come, the sums are those of the round before, which others may ask for.
        let is_free = first > 0 && first < end;
        // A tag is checked before anything is believed, and floats are little-endian on the wire.
        let is_plain = self.data_keys.is_none() && cfg!(target_endian = "little");
        let fitting = superframe_datagrams(self.layout.full_packet_len());
        (is_free && is_plain).then(|| first..end.min(first + fitting as u32))
    }

    /// Takes in results whose floats are already in their places: the Segs of packets of `stride` bytes, the last of
    /// `last_len`, for the segments of [`Self::landing`]. Returns how many were what was expected.
    pub(crate) fn handle_landed(
        &mut self,
        now: Instant,
        segs: &[[u8; SEG_LEN_BYTES]],
        stride: usize,
        last_len: usize,
    ) -> usize {
        let Some(landing) = self.landing() else { return 0 };
        let before = self.remaining();
        let mut landed = 0;
        for (index, bytes) in landing.zip(segs) {
            let len = if landed + 1 == segs.len() { last_len } else { stride };
            let seg = Seg::from_bytes(*bytes);
            let is_expected = seg.index.get() == index && len == self.layout.packet_len(seg.index);
            if !is_expected || !self.accepts(seg) {
                break;
            }
            self.note_result(seg);
            landed += 1;
        }
        self.note_progress(now, before);
        landed
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

    /// Asks what has become of what is in flight after a silence.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(progress) = &mut self.current else { return };
        if !self.timer.expire(now) || progress.in_flight == 0 {
            return;
        }
        progress.silences += 1;
        if progress.silences > 1 {
            return self.ask_for_all();
        }
        // Perhaps results wait in a queue, and asking for all of them would double that. The Ack waits in the same
        // queue: what the switch has sent and what has not come before it was lost.
        let (round, unsent) = (progress.round, progress.unsent);
        progress.probed = Some(progress.remaining);
        self.helps.clear();
        if let Some(first) = self.received.next_zero(0, unsent) {
            self.push_help(round, first, first + 1);
        }
    }

    /// Asks for everything in flight.
    fn ask_for_all(&mut self) {
        let Some(progress) = self.current else { return };
        self.helps.clear();
        let mut next = 0;
        while self.helps.len() < MAX_HELPS_AT_ONCE
            && let Some(first) = self.received.next_zero(next, progress.unsent)
        {
            next = (first + MAX_RANGE_SEGMENTS).min(progress.unsent);
            self.push_help(progress.round, first, next);
        }
    }

    /// Puts the next packets into `frame` and returns their class and the bytes of each.
    pub(crate) fn poll_frame(
        &mut self,
        now: Instant,
        vector: &[f32],
        frame: &mut Frame,
    ) -> Option<(Class, usize)> {
        frame.clear();
        if let Some(range) = self.helps.pop() {
            let id = self.take_request_id();
            self.help_sent = Some((id, now));
            self.counters.helps += 1;
            let bitmap = self.received.zeros(range.first..range.first + range.count);
            let wanted = SegmentSetRepr::of(range, &bitmap);
            return Some(self.emit_control(id, ControlBody::Help(wanted), frame.control()));
        }
        if self.current?.resend > 0 {
            self.emit_resends(vector, frame);
        } else {
            self.emit_fresh(now, vector, frame);
        }
        (!frame.is_empty()).then(|| (Class::Data, self.full_packet_len().min(frame.len())))
    }

    /// Writes a control packet into `buffer`.
    pub fn emit_control(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        let repr = ControlRepr { job: self.job, request, body };
        buffer.resize(repr.buffer_len(), 0);
        let len = repr.emit(buffer);
        (Class::Control, len)
    }

    /// An id that no request of this member has had; never zero.
    pub fn take_request_id(&mut self) -> u32 {
        let id = self.next_request;
        self.next_request = id.wrapping_add(1).max(1);
        id
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
        let range = self.layout.range(seg.index);
        if range.len() != packet.float_count() || !self.accepts(seg) {
            return false;
        }
        for (x, sum) in sums[range].iter_mut().zip(packet.floats()) {
            *x = sum;
        }
        self.note_result(seg);
        true
    }

    /// Whether that is a result that is waited for.
    fn accepts(&self, seg: Seg) -> bool {
        self.current.is_some_and(|progress| progress.round == seg.round)
            && !self.received.get(seg.index.get())
    }

    /// The result is in the sums.
    fn note_result(&mut self, seg: Seg) {
        let Some(progress) = &mut self.current else { return };
        if progress.part == Part::Contributes {
            // From here on the caller's sums are those of this round.
            self.previous = 0;
        }
        let index = seg.index.get();
        self.received.set(index);
        self.contributions[index as usize] = seg.contributions;
        progress.remaining -= 1;
        progress.frontier = progress.frontier.max(index + 1);
        progress.narrowed = false;
        progress.silences = 0;
        // A result may come for a segment that was never sent: others were enough.
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
            Part::Awaits => (self.history, self.previous) = (self.membership.history, before),
            Part::Contributes => {
                // Who does not know what has been summed before cannot say what it has now.
                let after = history::after(before, self.membership.boot, progress.round);
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

    /// The job is at another round than this member thought, which does not come back. If nothing was summed in
    /// between, the round goes on under that number.
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

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let Ok(repr) = ControlPacket::new_checked(bytes).and_then(|packet| ControlRepr::parse(&packet))
        else {
            return false;
        };
        match repr.body {
            ControlBody::Ack(ack) => self.handle_ack(now, repr.request, &ack),
            ControlBody::Halt if repr.job == self.job => {
                if self.current.is_some() {
                    self.fail(Failure::Halted);
                }
                true
            }
            _ => false,
        }
    }

    fn handle_ack(&mut self, now: Instant, request: u32, ack: &AckRepr<'_>) -> bool {
        if ack.status == Status::Challenge {
            // The answer to a Join that was late: this is a member by now.
            return false;
        }
        if ack.boot != self.membership.boot {
            if self.past_boots.contains(&ack.boot) {
                return false;
            }
            self.fail(Failure::Forgotten);
            return true;
        }
        // An Ack from before the job was complete comes late, and counts fewer workers than the job has.
        if ack.status == Status::Success && ack.formed {
            self.membership.members = ack.members;
            self.membership.weight = ack.weight;
            self.is_orphaned = ack.orphaned;
            self.pinned_threshold = if ack.pinned { ack.threshold } else { 0 };
        }
        match (ack.status, ack.action) {
            (Status::Success, Action::Help) => self.handle_help_answer(now, request, ack),
            (Status::Success, _) | (Status::UnknownMember, Action::Leave) => {}
            (Status::UnknownMember, _) => self.fail(Failure::Forgotten),
            (Status::Halted, _) => self.fail(Failure::Halted),
            (Status::StaleRound, Action::Help | Action::Ack) => {
                // It may answer to a packet of an earlier round that was late itself, or come from the time before the
                // job was complete, when its first round was not known.
                if ack.formed && self.current.is_some_and(|progress| progress.round.is_before(ack.round)) {
                    self.go_on_at(now, ack.round, ack.history);
                }
            }
            // It is about a packet of an earlier round, of which that member has been told before.
            (Status::NonFinite, _) if self.current.is_some_and(|progress| progress.round != ack.round) => {}
            (status, Action::Help | Action::Ack) if self.current.is_some() => {
                self.fail(Failure::Refused(status));
            }
            _ => return false,
        }
        true
    }

    fn handle_help_answer(&mut self, now: Instant, request: u32, ack: &AckRepr<'_>) {
        if let Some((id, sent)) = self.help_sent
            && id == request
        {
            self.help_sent = None;
            self.timer.measure(now.since(sent));
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

    /// The switch has answered: nothing has come meanwhile, so something is lost or others are late.
    fn end_probe(&mut self) {
        let Some(progress) = &mut self.current else { return };
        if progress.probed.take() == Some(progress.remaining) {
            self.ask_for_all();
        }
    }

    /// Losses narrow the window once for each silence or gap.
    fn narrow(&mut self) {
        if let Some(progress) = &mut self.current
            && !progress.narrowed
        {
            progress.narrowed = true;
            self.window.narrow();
        }
    }

    /// A gap well below the highest result is a loss: results come in the order of the segments.
    fn ask_for_gaps(&mut self) {
        let Some(progress) = self.current else { return };
        let below = progress.frontier.saturating_sub(REORDER_SEGMENTS).min(progress.unsent);
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
        self.helps.push(RangeRepr { round, first, count: end - first });
    }

    /// Writes segments that the switch misses.
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

    /// Writes segments that were never sent, as many as the window allows.
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

    /// Appends a data packet. False if the super-frame is full: by bytes, by packets, or by a shorter packet.
    fn append(&self, progress: &Progress, index: u32, vector: &[f32], frame: &mut Frame) -> bool {
        let contributions =
            if progress.part == Part::Supplies { self.contributions[index as usize] } else { 1 };
        let index = SegmentIndex::new(index).expect("the layout has no more segments");
        let seg = Seg { index, round: progress.round, contributions };
        let tag_key = self.data_keys.as_ref().map(|keys| &keys.contribution);
        frame.push(&self.layout, seg, vector, tag_key)
    }
}
