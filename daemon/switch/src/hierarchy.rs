//! A switch below another: for its parent it is a member that stands for all of its own.
//!
//! Each job has an uplink of its own, because a member is told by the port it sends from. When the members of
//! a segment are complete, what they have summed goes up as one contribution; the parent's result comes
//! down and goes to all of them. The partial sum is kept until then. Lost packets are found by the workers: the
//! Help of one makes the switch ask its parent, if it has no result itself.
//!
//! A job is complete when the parent says so. If the parent forgets this switch, the switch forgets its own
//! members: they come back with their histories, and the topmost switch decides where the job goes on.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::auth::{Conversation, TagKey};
use iswitch_protocol::limits::{
    MAX_BITMAP_LEN_BYTES, MAX_MEMBERS, MAX_PARENTS, MAX_RANGE_SEGMENTS, MAX_WORK_COST, WORK_COST_PER_SEGMENT,
};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Kind, Status,
    WireError,
};
use iswitch_protocol::{Instant, Round, SegmentIndex};

use super::Switch;
use super::authentication::Seal;
use super::control::bitmap_of;
use super::event::{Departure, Event};
use super::formation::Granted;
use super::job::Job;
use super::membership::MemberAt;
use super::output::{Endpoint, PortId};
use super::questions::Questions;
use super::reason::DropReason;
use super::work::{Meter, Purpose, Work};

const FIRST_JOIN_RETRY: Duration = Duration::from_millis(20);
const LAST_JOIN_RETRY: Duration = Duration::from_millis(500);
/// Signs of life in a lease; the parent is lost when several of them are not answered.
const HEARTBEATS_PER_LEASE: u32 = 8;
const MISSED_HEARTBEATS: u32 = 3;

/// The parents that a switch may have, and the ports that lead to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplinks {
    parents: [Option<SocketAddrV4>; MAX_PARENTS],
    /// The first of the ports. Each has an address that is the same after a restart.
    pub first_port: PortId,
    /// Number of ports, and so of jobs.
    pub ports: u8,
}

impl Uplinks {
    /// Up to [`MAX_PARENTS`] parents; the one with the lowest address is tried first, as in the paper. `None` if
    /// there are too many of them, or none, or no ports.
    pub fn new(parents: &[SocketAddrV4], first_port: PortId, ports: u8) -> Option<Self> {
        if parents.is_empty() || parents.len() > MAX_PARENTS || ports == 0 {
            return None;
        }
        let mut sorted = [None; MAX_PARENTS];
        for (place, parent) in sorted.iter_mut().zip(parents) {
            *place = Some(*parent);
        }
        sorted[..parents.len()].sort_unstable();
        Some(Self { parents: sorted, first_port, ports })
    }

    fn parent(&self, at: usize) -> Option<SocketAddrV4> {
        let count = self.parents.iter().flatten().count();
        self.parents[at % count.max(1)]
    }

    fn has_choice(&self) -> bool {
        self.parents.iter().flatten().count() > 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no job, or it waits for its own members.
    Idle,
    Joining {
        retry: Duration,
    },
    Member,
}

/// The way to the parent of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uplink {
    parent: Endpoint,
    /// Which of the parents that is.
    choice: usize,
    /// The job that used it last: one that comes back gets the same port.
    job: Option<u32>,
    phase: Phase,
    join_request: u32,
    next_request: u32,
    /// Tells the parent that this switch has started anew.
    instance: u32,
    /// The run of the topmost switch.
    pub(super) boot: u64,
    /// The one before: what still comes from it is of no interest.
    past_boot: u64,
    pub(super) window: u16,
    /// Workers in the whole job.
    pub(super) weight: u16,
    /// Members of the parent in the job; zero if that is not known.
    members: u16,
    lease: Duration,
    /// When the next Join or heartbeat is due.
    due: Instant,
    /// When this parent was tried first.
    since: Instant,
    last_heard: Instant,
    questions: Questions,
    /// The round that was granted when the parent no longer had the sum before it.
    refused_past: Option<Round>,
    pub(super) is_lost: bool,
    /// Why the parent does not let this switch join, and what was expected, if it does not.
    pub(super) refusal: Option<(Status, u32)>,
    /// With which this switch proves to its parent that it has the job's key, and the parent to it.
    conversation: Conversation,
    /// Of the partial sums, if data is tagged.
    pub(super) tag_key: Option<TagKey>,
}

impl Uplink {
    /// `lease` counts until a parent tells its own.
    pub(super) fn new(uplinks: &Uplinks, at: u8, boot: u64, lease: Duration) -> Self {
        let unspecified = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let port = PortId(uplinks.first_port.0 + at);
        let peer = uplinks.parent(0).unwrap_or(unspecified);
        let parent = Endpoint { port, peer, local: unspecified, peer_mac: [0; 6], local_mac: [0; 6] };
        Self {
            parent,
            choice: 0,
            job: None,
            phase: Phase::Idle,
            join_request: 0,
            // Not one that the answers to an earlier run of this switch may still repeat.
            next_request: ((boot >> 32) as u32).max(1),
            instance: boot as u32,
            boot: 0,
            past_boot: 0,
            window: 0,
            weight: 0,
            members: 0,
            lease,
            due: Instant::default(),
            since: Instant::default(),
            last_heard: Instant::default(),
            questions: Questions::new(),
            refused_past: None,
            is_lost: false,
            refusal: None,
            // Drawn at random for each run, and far from the end.
            conversation: Conversation::new(boot >> 1),
            tag_key: None,
        }
    }

    pub(super) fn parent(&self) -> Endpoint {
        self.parent
    }

    fn take_request(&mut self) -> u32 {
        let request = self.next_request;
        self.next_request = request.wrapping_add(1).max(1);
        request
    }

    /// Whoever waits for others at its parent must be heard of within the lease.
    fn last_join_retry(&self) -> Duration {
        LAST_JOIN_RETRY.min(self.heartbeat_interval())
    }

    fn heartbeat_interval(&self) -> Duration {
        (self.lease / HEARTBEATS_PER_LEASE).max(Duration::from_millis(1))
    }

    /// How long the parent has not been heard.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.since(self.last_heard)
    }

    /// Silence after which the parent is lost: several questions were not answered.
    fn patience(&self) -> Duration {
        let interval = match self.phase {
            Phase::Joining { .. } => self.heartbeat_interval().max(LAST_JOIN_RETRY),
            Phase::Idle | Phase::Member => self.heartbeat_interval(),
        };
        interval * MISSED_HEARTBEATS
    }

    /// The switch itself slept and could hear nobody: that is not the parent's silence.
    pub(super) fn oversleep(&mut self, slept: Duration) {
        // Awake, it asks the parent more often than that.
        if slept > self.patience() / 2 {
            self.last_heard = self.last_heard.plus(slept);
            self.since = self.since.plus(slept);
        }
    }

    /// From now on that parent is asked.
    fn choose(&mut self, uplinks: &Uplinks, choice: usize, now: Instant) {
        self.choice = choice;
        if let Some(peer) = uplinks.parent(choice)
            && peer != self.parent.peer
        {
            (self.parent.peer, self.members) = (peer, 0);
        }
        (self.since, self.last_heard) = (now, now);
        (self.is_lost, self.refusal) = (false, None);
    }

    /// Whether a parent is being asked.
    pub(super) fn is_in_use(&self) -> bool {
        self.phase != Phase::Idle
    }

    fn deadline(&self) -> Option<Instant> {
        self.is_in_use().then_some(self.due)
    }
}

impl Switch {
    /// A place for a new job: with a parent, the one that it had before.
    pub(super) fn free_place(&self, id: u32) -> Option<usize> {
        let places = if self.uplinks.is_empty() { self.jobs.len() } else { self.uplinks.len() };
        let is_free = |at: &usize| self.jobs[*at].is_none();
        let had = (0..self.uplinks.len()).find(|at| is_free(at) && self.uplinks[*at].job == Some(id));
        had.or_else(|| (0..places).find(is_free))
    }

    /// The job whose uplink a packet came in by.
    pub(super) fn uplink_at(&self, from: &Endpoint) -> Option<usize> {
        let first = self.config.uplinks.as_ref()?.first_port.0;
        let at = usize::from(from.port.0.checked_sub(first)?);
        (at < self.uplinks.len()).then_some(at)
    }

    pub(super) fn uplink_deadline(&self) -> Option<Instant> {
        self.uplinks.iter().filter_map(Uplink::deadline).min()
    }

    /// Members have come or gone: as soon as they are all there, the parent is told.
    pub(super) fn declare_to_parent(&mut self, job_at: usize) {
        let now = self.now;
        let Some(job) = self.jobs[job_at].as_ref() else { return };
        let is_ready = job.is_gathered() || self.is_overdue(job);
        let (id, is_resumed) = (job.id, job.is_resumed());
        let (Some(uplink), Some(uplinks)) = (self.uplinks.get_mut(job_at), self.config.uplinks) else {
            return;
        };
        if uplink.phase == Phase::Idle {
            if !is_ready {
                return;
            }
            // Those who begin a job meet at the first parent; those who resume one, at that of the others.
            let choice = if is_resumed { uplink.choice } else { 0 };
            uplink.choose(&uplinks, choice, now);
            uplink.job = Some(id);
            uplink.join_request = uplink.take_request();
        }
        if uplink.phase != Phase::Member {
            uplink.phase = Phase::Joining { retry: FIRST_JOIN_RETRY };
            uplink.due = now.plus(FIRST_JOIN_RETRY);
        }
        self.join_parent(job_at);
    }

    /// Some of those that the members have known do not come back: the parent is told even so.
    pub(super) fn declare_overdue_job(&mut self, job_at: usize) {
        if !self.uplinks.get(job_at).is_some_and(Uplink::is_in_use) {
            self.declare_to_parent(job_at);
        }
    }

    /// The parent knows of how many workers its sums can hold.
    pub(super) fn declare_weight(&mut self, job_at: usize) {
        if self.uplinks.get(job_at).is_some_and(Uplink::is_in_use) {
            self.join_parent(job_at);
        }
    }

    fn join_parent(&mut self, job_at: usize) {
        let (Some(job), Some(uplink)) = (self.jobs[job_at].as_ref(), self.uplinks.get(job_at)) else {
            return;
        };
        let is_tagged = job.tag_key.is_some();
        let is_member = uplink.phase == Phase::Member;
        let join = JoinRepr {
            gradient_len: job.layout.gradient_len(),
            segment_floats: job.layout.segment_floats(),
            workers: job.workers,
            mode: job.mode,
            kind: Kind::Switch,
            weight: job.weight().min(u32::from(u16::MAX)) as u16,
            instance: uplink.instance,
            rank: 0,
            height: job.height(),
            query: false,
            tagged: is_tagged,
            roams: job.roams() || self.config.uplinks.is_some_and(|uplinks| uplinks.has_choice()),
            nonce: uplink.conversation.session(),
            updates: is_member,
            // What the members have told when they came is long past.
            resume: job.resume_of_all(uplink.members).filter(|_| !is_member),
            padding_len: 0,
        };
        let packet = ControlRepr { job: job.id, request: uplink.join_request, body: ControlBody::Join(join) };
        let padding_len = JoinRepr::padding_to(job.layout.full_packet_len(), is_tagged, job.has_key);
        self.send_to_parent(job_at, &packet, padding_len);
    }

    fn send_to_parent(&mut self, job_at: usize, packet: &ControlRepr<'_>, padding_len: u16) {
        let job = packet.job;
        let uplink = &mut self.uplinks[job_at];
        let seal = match self.keys.of(job) {
            Some(_) => {
                let (context, counter) = uplink.conversation.next(packet.action());
                Seal::Upward { job, context, counter }
            }
            None => Seal::Bare,
        };
        let to = uplink.parent;
        self.send_control(&to, packet, padding_len, seal);
    }

    /// Lets time pass on the uplinks.
    pub(super) fn tend_uplinks(&mut self) {
        for job_at in 0..self.uplinks.len() {
            let now = self.now;
            let uplink = &mut self.uplinks[job_at];
            if uplink.deadline().is_none_or(|due| due > now) {
                continue;
            }
            match uplink.phase {
                Phase::Idle => {}
                Phase::Joining { retry } => {
                    let retry = (retry * 2).min(uplink.last_join_retry());
                    uplink.phase = Phase::Joining { retry };
                    uplink.due = now.plus(retry);
                    self.watch_parent(job_at);
                    self.reconsider_parent(job_at);
                    self.join_parent(job_at);
                }
                Phase::Member => {
                    uplink.due = now.plus(uplink.heartbeat_interval());
                    self.ask_for_life(job_at);
                }
            }
        }
    }

    /// Who does not answer, or has nothing to go on with for a lease, may not be the parent that others have.
    fn reconsider_parent(&mut self, job_at: usize) {
        let (now, lease) = (self.now, self.lease());
        let is_resumed = self.job(job_at).is_some_and(Job::is_resumed);
        let Some(uplinks) = self.config.uplinks else { return };
        let uplink = &mut self.uplinks[job_at];
        let is_silent = now.since(uplink.last_heard) > lease;
        if uplinks.has_choice() && now.since(uplink.since) > lease && (is_silent || is_resumed) {
            self.change_parent(job_at);
        }
    }

    fn change_parent(&mut self, job_at: usize) {
        let Some(uplinks) = self.config.uplinks else { return };
        let now = self.now;
        let uplink = &mut self.uplinks[job_at];
        uplink.choose(&uplinks, uplink.choice + 1, now);
        let (job, parent) = (uplink.job.unwrap_or(0), uplink.parent.peer);
        self.report(Event::ParentChosen { job, parent });
    }

    /// Notices that the parent does not answer; members are told in every Ack from then on.
    fn watch_parent(&mut self, job_at: usize) {
        let uplink = &mut self.uplinks[job_at];
        let is_lost = uplink.silence(self.now) > uplink.patience();
        if is_lost && !core::mem::replace(&mut uplink.is_lost, true) {
            let (job, parent) = (uplink.job.unwrap_or(0), uplink.parent.peer);
            self.report(Event::ParentLost { job, parent });
        }
    }

    /// Keeps the lease at the parent, and sees whether the parent is there.
    fn ask_for_life(&mut self, job_at: usize) {
        let Some(id) = self.job(job_at).map(|job| job.id) else { return };
        self.watch_parent(job_at);
        let uplink = &mut self.uplinks[job_at];
        let is_gone = uplink.silence(self.now) > uplink.lease;
        let request = uplink.take_request();
        if is_gone && self.config.uplinks.is_some_and(|uplinks| uplinks.has_choice()) {
            self.change_parent(job_at);
            return self.forget_members(job_at);
        }
        let body = ControlBody::HEARTBEAT;
        self.send_to_parent(job_at, &ControlRepr { job: id, request, body }, 0);
        self.tend_deserted_round(job_at);
    }

    /// Nobody is left who would ask for what is missing of such a round.
    fn tend_deserted_round(&mut self, job_at: usize) {
        let Some(job) = self.job(job_at) else { return };
        if job.deserted_round().or(job.vacant_round()).is_none() {
            return;
        }
        self.close_finished(job_at);
        let Some(job) = self.job(job_at) else { return };
        let segments = job.layout.segment_count();
        if let Some(round) = job.deserted_round() {
            self.backlog.sweep(job_at, Purpose::Ask, round, segments);
        }
    }

    /// Looks in a deserted round for the first result that only the parent can have, and asks for it and those behind
    /// it. Returns where it stopped; none if that is done.
    pub(super) fn ask_for_results(
        &mut self,
        job_at: usize,
        round: Round,
        range: Range<u32>,
        meter: &mut Meter,
    ) -> Option<u32> {
        let aggregation = self.aggregation(job_at)?;
        if aggregation.job.deserted_round() != Some(round) {
            return None;
        }
        let segments = aggregation.job.layout.segment_count();
        let end = range.end.min(range.start.saturating_add(MAX_WORK_COST / WORK_COST_PER_SEGMENT));
        let is_awaited = |index: &SegmentIndex| aggregation.awaits_parent(round, *index);
        let first = (range.start..end).filter_map(SegmentIndex::new).find(is_awaited).map(SegmentIndex::get);
        meter.examine(first.unwrap_or(end) - range.start);
        let Some(first) = first else { return Some(end) };
        let range = RangeRepr { round, first, count: MAX_RANGE_SEGMENTS.min(segments - first) };
        meter.examine(range.count);
        self.ask_parent(job_at, SegmentSetRepr::of(range, &[u8::MAX; MAX_BITMAP_LEN_BYTES]));
        None
    }

    /// Takes in what came from the parent.
    pub(super) fn handle_from_parent(
        &mut self,
        from: &Endpoint,
        job_at: usize,
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        let uplink = &mut self.uplinks[job_at];
        if !uplink.is_in_use() || from.peer != uplink.parent.peer || self.jobs[job_at].is_none() {
            return self.counters.count_drop(DropReason::UnknownMember);
        }
        match class {
            Class::Control => {
                payload.chunks(stride).for_each(|bytes| self.handle_parent_control(job_at, bytes));
            }
            Class::Data => {
                self.handle_parent_results(job_at, payload, stride);
                self.record_rounds(job_at);
            }
        }
    }

    fn hear_from_parent(&mut self, job_at: usize) {
        let uplink = &mut self.uplinks[job_at];
        uplink.last_heard = self.now;
        if core::mem::take(&mut uplink.is_lost) {
            let (job, parent) = (uplink.job.unwrap_or(0), uplink.parent.peer);
            self.report(Event::ParentFound { job, parent });
        }
    }

    /// A result without the tag that its job may ask for.
    fn verify_result<'a>(&mut self, job_at: usize, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let key = self.job(job_at)?.tag_key;
        let content = key.map_or(Some(bytes), |key| key.verify(bytes));
        match content {
            Some(_) => self.hear_from_parent(job_at),
            None => self.counters.count_drop(DropReason::NotAuthentic),
        }
        content
    }

    fn handle_parent_results(&mut self, job_at: usize, payload: &[u8], stride: usize) {
        if !self.outbox.is_drained() {
            return self.counters.count_drop(DropReason::Busy);
        }
        self.aim_results(job_at);
        for bytes in payload.chunks(stride) {
            let Some(bytes) = self.verify_result(job_at, bytes) else { continue };
            let packet = match DataPacket::new_checked(bytes) {
                Ok(packet) => packet,
                Err(error) => {
                    self.counters.count_drop(DropReason::Wire(error));
                    continue;
                }
            };
            let Some((mut aggregation, outbox)) = self.aggregation_and_outbox(job_at) else { return };
            if !aggregation.job.formed || !aggregation.finish(&packet) {
                self.counters.count_drop(DropReason::Late);
                continue;
            }
            if outbox.results.has_room(bytes.len()) {
                let seg = packet.seg();
                aggregation.push_result(seg.round, seg.index, &mut outbox.results);
            }
            self.counters.results += 1;
        }
        if self.job(job_at).is_some_and(|job| job.deserted_round().is_some()) {
            // Segments of the round after it can now be sent.
            self.close_finished(job_at);
        }
    }

    fn handle_parent_control(&mut self, job_at: usize, bytes: &[u8]) {
        let parsed = ControlPacket::new_checked(bytes)
            .and_then(|packet| ControlRepr::parse(&packet).map(|repr| (packet, repr)));
        let (packet, repr) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return self.counters.count_drop(DropReason::Wire(error)),
        };
        let key = self.job(job_at).and_then(|job| self.keys.of(job.id));
        if key.is_some_and(|key| !self.uplinks[job_at].conversation.accept(key, &packet)) {
            self.counters.count_drop(DropReason::NotAuthentic);
            return self.note_refused_key(job_at, &repr);
        }
        self.hear_from_parent(job_at);
        match repr.body {
            ControlBody::Ack(ack) if ack.action == Action::Join => {
                self.handle_join_answer(job_at, repr.request, &ack);
            }
            ControlBody::Ack(ack) => {
                let now = self.now;
                self.uplinks[job_at].questions.answered(now, repr.request);
                self.handle_parent_ack(job_at, &ack);
            }
            ControlBody::Halt => self.halt_job(job_at),
            _ => self.counters.count_drop(DropReason::Wire(WireError::UnknownAction)),
        }
    }

    /// A refusal that proves nothing changes nothing, but an operator may want to know of it.
    fn note_refused_key(&mut self, job_at: usize, repr: &ControlRepr<'_>) {
        let uplink = &self.uplinks[job_at];
        if let (Phase::Joining { .. }, ControlBody::Ack(ack)) = (uplink.phase, repr.body)
            && (repr.request, ack.status) == (uplink.join_request, Status::NotAuthentic)
        {
            let (job, parent) = (uplink.job.unwrap_or(0), uplink.parent.peer);
            self.report(Event::ParentRefused { job, parent, status: ack.status, expected: ack.expected });
        }
    }

    fn handle_join_answer(&mut self, job_at: usize, request: u32, ack: &AckRepr<'_>) {
        let now = self.now;
        let tag_key = self.partials_key(job_at);
        let uplink = &mut self.uplinks[job_at];
        if request != uplink.join_request {
            return;
        }
        if ack.status == Status::Challenge && uplink.phase != Phase::Member {
            uplink.conversation.open_session(ack.history);
            return self.join_parent(job_at);
        }
        if ack.status != Status::Success {
            let (job, parent) = (uplink.job.unwrap_or(0), uplink.parent.peer);
            if uplink.phase == Phase::Member && ack.status == Status::UnknownMember {
                return self.forget_members(job_at);
            }
            let Phase::Joining { .. } = uplink.phase else { return };
            uplink.due = now.plus(LAST_JOIN_RETRY);
            let (status, expected) = (ack.status, ack.expected);
            uplink.refusal = Some((status, expected));
            return self.report(Event::ParentRefused { job, parent, status, expected });
        }
        uplink.refusal = None;
        uplink.tag_key = tag_key;
        (uplink.window, uplink.weight) = (ack.window, ack.weight);
        uplink.members = if ack.formed { ack.members } else { uplink.members };
        uplink.lease = Duration::from_millis(u64::from(ack.lease_ms));
        if !ack.formed || uplink.phase == Phase::Member {
            return;
        }
        if uplink.boot != ack.boot {
            (uplink.past_boot, uplink.boot) = (uplink.boot, ack.boot);
        }
        uplink.phase = Phase::Member;
        // The first heartbeat at once (M-12).
        uplink.due = now;
        let AckRepr { boot, standing, round, history, .. } = *ack;
        let keeps_last = uplink.refused_past != Some(round);
        if self.job(job_at).is_some_and(|job| !job.formed) {
            let granted = Granted { boot, standing, round, history, keeps_last };
            self.form_job(job_at, None, Some(granted));
        }
    }

    /// Of what goes up in the present session, if the job's data is tagged.
    fn partials_key(&self, job_at: usize) -> Option<TagKey> {
        let job = self.job(job_at).filter(|job| job.tag_key.is_some())?;
        let session = self.uplinks[job_at].conversation.session();
        self.keys.of(job.id).map(|key| key.contribution_key(session))
    }

    fn handle_parent_ack(&mut self, job_at: usize, ack: &AckRepr<'_>) {
        let Some(job) = self.job(job_at) else { return };
        let uplink = &self.uplinks[job_at];
        if uplink.phase != Phase::Member || ack.boot == uplink.past_boot {
            return;
        }
        let is_stale = ack.status == Status::StaleRound && ack.formed;
        let at = job.earliest_unfinished();
        let is_behind = is_stale && at.is_before(ack.round);
        // A halted job refuses Helps: the parent has ended the Halt since.
        let was_resumed = job.halted && (ack.status, ack.action) == (Status::Success, Action::Help);
        let taken_up = job.taken_up;
        if ack.boot != uplink.boot || ack.status == Status::UnknownMember || is_behind || was_resumed {
            if is_behind && taken_up.is_some_and(|last| at.is_before(last)) {
                self.uplinks[job_at].refused_past = taken_up;
            }
            return self.forget_members(job_at);
        }
        if ack.status == Status::Halted {
            return self.halt_job(job_at);
        }
        if ack.status == Status::Success {
            let uplink = &mut self.uplinks[job_at];
            (uplink.window, uplink.weight, uplink.members) = (ack.window, ack.weight, ack.members);
            if let Some(missing) = ack.missing {
                self.resend_to_parent(job_at, missing);
            }
        }
    }

    /// The parent misses partial sums.
    fn resend_to_parent(&mut self, job_at: usize, missing: SegmentSetRepr<'_>) {
        if missing.indices().next().is_none() {
            return;
        }
        self.queue_work(Work::resend(job_at, missing));
    }

    /// A member asks for results that only the parent can have.
    pub(super) fn ask_parent(&mut self, job_at: usize, wanted: SegmentSetRepr<'_>) {
        let last = wanted.range.round.previous();
        if self.job(job_at).is_some_and(|job| job.is_taken_up(last)) {
            // What an earlier run of this switch has sent may reach a member now: nobody asks for that here any more.
            let range = RangeRepr { round: last, ..wanted.range };
            self.ask_parent_in_round(job_at, SegmentSetRepr { range, ..wanted });
        }
        self.ask_parent_in_round(job_at, wanted);
    }

    fn ask_parent_in_round(&mut self, job_at: usize, wanted: SegmentSetRepr<'_>) {
        let now = self.now;
        let range = wanted.range;
        if self.uplinks.get(job_at).is_none_or(|uplink| uplink.phase != Phase::Member) {
            return;
        }
        let Some(aggregation) = self.aggregation(job_at) else { return };
        let id = aggregation.job.id;
        let is_awaited = |index: &SegmentIndex| aggregation.awaits_parent(range.round, *index);
        let mut bits = bitmap_of(range, wanted.indices().filter_map(SegmentIndex::new).filter(is_awaited));
        let uplink = &mut self.uplinks[job_at];
        uplink.questions.retain_new(now, range, &mut bits);
        let set = SegmentSetRepr::of(range, &bits);
        if set.indices().next().is_none() {
            return;
        }
        let request = uplink.take_request();
        uplink.questions.note(now, request, range, bits);
        self.send_to_parent(job_at, &ControlRepr { job: id, request, body: ControlBody::Help(set) }, 0);
    }

    /// Passes a request for the whole job on to the parent, whose notice then carries it out.
    pub(super) fn pass_to_parent(&mut self, job_at: usize, body: ControlBody<'_>) {
        let Some(job) = self.job(job_at).map(|job| job.id) else { return };
        let Some(uplink) = self.uplinks.get_mut(job_at).filter(|uplink| uplink.phase == Phase::Member) else {
            return;
        };
        let request = uplink.take_request();
        self.send_to_parent(job_at, &ControlRepr { job, request, body }, 0);
    }

    /// The parent has forgotten this switch: so does this switch its members, and all join again.
    pub(super) fn forget_members(&mut self, job_at: usize) {
        let Some(id) = self.job(job_at).map(|job| job.id) else { return };
        self.report(Event::JobForgotten { job: id });
        self.dismiss_members(job_at);
    }

    /// Removes all members of a job and tells them, so that they join again.
    pub(super) fn dismiss_members(&mut self, job_at: usize) {
        for member in 0..MAX_MEMBERS {
            if let Some(endpoint) = self.job(job_at).and_then(|job| job.member(member)).map(|it| it.endpoint)
            {
                let at = MemberAt { job: job_at, member };
                self.refuse_data(&endpoint, at, Status::UnknownMember, Round::default(), 0);
                self.remove_member(at, Departure::Forgotten);
            }
        }
        // The last of them was a process whose successor begins anew.
        if self.job(job_at).is_some_and(|job| job.member_count() == 0) {
            self.end_job(job_at, Departure::Forgotten);
        }
    }

    /// A job has ended: the parent hears of it, unless the same members are about to come back.
    pub(super) fn release_uplink(&mut self, job_at: usize, id: u32, comes_back: bool) {
        let Some(uplink) = self.uplinks.get_mut(job_at) else { return };
        let phase = core::mem::replace(&mut uplink.phase, Phase::Idle);
        (uplink.is_lost, uplink.refusal) = (false, None);
        uplink.instance = uplink.instance.wrapping_add(1);
        if !comes_back {
            (uplink.job, uplink.members) = (None, 0);
            if phase != Phase::Idle {
                let leave = ControlRepr { job: id, request: 0, body: ControlBody::Leave };
                self.send_to_parent(job_at, &leave, 0);
            }
        }
    }
}
