//! The membership of one job at the parent of this switch.
//!
//! Each job has an uplink of its own, because a parent identifies a member by the address it sends from. An [`Uplink`]
//! is the state machine of that membership: which parent is asked, whether it has admitted this switch, and whether it
//! still answers. It sends nothing itself.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use iswitch_protocol::auth::{Conversation, TagKey};
use iswitch_protocol::limits::{MAX_BITMAP_LEN_BYTES, MAX_PARENTS};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{AckRepr, Action, ControlPacket, Status};
use iswitch_protocol::{Instant, Key, Round};

use crate::endpoint::{Endpoint, PortId};
use crate::job::{Granted, Start};
use crate::keys::{Keys, Seal};
use crate::questions::Questions;

const FIRST_JOIN_RETRY: Duration = Duration::from_millis(20);
const LAST_JOIN_RETRY: Duration = Duration::from_millis(500);
/// Heartbeats in a lease; the parent is lost if several of them are not answered.
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
        for (entry, parent) in sorted.iter_mut().zip(parents) {
            *entry = Some(*parent);
        }
        sorted[..parents.len()].sort_unstable();
        Some(Self { parents: sorted, first_port, ports })
    }

    fn count(&self) -> usize {
        self.parents.iter().flatten().count()
    }

    fn parent(&self, choice: usize) -> Option<SocketAddrV4> {
        self.parents[choice % self.count().max(1)]
    }

    /// Whether there are several parents.
    pub(crate) fn has_choice(&self) -> bool {
        self.count() > 1
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

/// What is due on an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Join,
    Heartbeat,
}

/// What the answer to a Join means for the job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JoinAnswer {
    /// Nothing, or nothing yet.
    Nothing,
    /// The Join is to be repeated with the nonce of the parent.
    Challenged,
    /// The parent refuses this switch: the reason, and what it expected.
    Refused(Status, u32),
    /// The parent does not know this switch any more.
    Forgotten,
    /// The job may start.
    Granted(Granted),
}

/// What another Ack of the parent means for the job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParentState {
    /// The Ack is not of this membership, or changes nothing.
    Nothing,
    /// The parent serves another incarnation of the job, or does not know this switch.
    Forgotten,
    Halted,
    /// The parent has granted the request.
    Granted,
}

/// The membership of one job at the parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uplink {
    parent: Endpoint,
    /// Index of that parent among the candidates.
    choice: usize,
    /// The job that used this uplink last: a job that comes back gets the same port.
    job: Option<u32>,
    phase: Phase,
    join_request: u32,
    next_request: u32,
    /// Distinguishes a membership from the one before it.
    instance: u32,
    /// Epoch of the topmost switch.
    epoch: u64,
    /// The epoch before that, whose packets may still arrive and are ignored.
    past_epoch: u64,
    window: u16,
    /// Number of workers in the whole job.
    weight: u16,
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
    is_lost: bool,
    /// Why the parent refuses this switch, and what it expected, if it does.
    refusal: Option<(Status, u32)>,
    /// With which this switch proves to its parent that it has the job's key, and the parent to it.
    conversation: Conversation,
    /// Key of the tags of the partial sums, if data is tagged.
    tag_key: Option<TagKey>,
}

impl Uplink {
    /// The uplink of port number `at`. `lease` counts until a parent states its own.
    pub(crate) fn new(uplinks: &Uplinks, at: u8, boot: u64, lease: Duration) -> Self {
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
            epoch: 0,
            past_epoch: 0,
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

    pub(crate) fn parent(&self) -> Endpoint {
        self.parent
    }

    /// Whether the job `id` used this uplink last.
    pub(crate) fn served(&self, id: u32) -> bool {
        self.job == Some(id)
    }

    /// The job and the parent, for reports.
    pub(crate) fn job_and_parent(&self) -> (u32, SocketAddrV4) {
        (self.job.unwrap_or(0), self.parent.peer)
    }

    /// Whether a parent is being asked.
    pub(crate) fn is_in_use(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether the parent has admitted this switch.
    pub(crate) fn is_member(&self) -> bool {
        self.phase == Phase::Member
    }

    /// Whether the parent does not answer: without it there are no sums.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Why the parent refuses this switch, and what it expected, if it does.
    pub(crate) fn refusal(&self) -> Option<(Status, u32)> {
        self.refusal
    }

    /// Segments that this switch may have in flight to the parent.
    pub(crate) fn window(&self) -> u16 {
        self.window
    }

    /// Number of workers in the whole job.
    pub(crate) fn weight(&self) -> u16 {
        self.weight
    }

    /// Members of the parent in the job; zero if that is not known.
    pub(crate) fn members(&self) -> u16 {
        self.members
    }

    pub(crate) fn instance(&self) -> u32 {
        self.instance
    }

    pub(crate) fn join_request(&self) -> u32 {
        self.join_request
    }

    /// Key of the tags of the partial sums, if data is tagged.
    pub(crate) fn partials_key(&self) -> Option<&TagKey> {
        self.tag_key.as_ref()
    }

    /// The nonce of the session with the parent.
    pub(crate) fn session(&self) -> u64 {
        self.conversation.session()
    }

    /// The id of another request.
    pub(crate) fn take_request(&mut self) -> u32 {
        let request = self.next_request;
        self.next_request = request.wrapping_add(1).max(1);
        request
    }

    /// Authenticates the next packet to the parent.
    pub(crate) fn seal(&mut self, keys: &Keys, job: u32, action: Action) -> Seal {
        if keys.of(job).is_none() {
            return Seal::Bare;
        }
        let (context, counter) = self.conversation.next(action);
        Seal::Upward { job, context, counter }
    }

    /// Whether a packet proves that it is from the parent, and new.
    pub(crate) fn accept(&mut self, key: &Key, packet: &ControlPacket<'_>) -> bool {
        self.conversation.accept(key, packet)
    }

    /// Longest time between two Joins: members of the parent that wait for others must be heard within the lease.
    fn last_join_retry(&self) -> Duration {
        LAST_JOIN_RETRY.min(self.heartbeat_interval())
    }

    fn heartbeat_interval(&self) -> Duration {
        (self.lease / HEARTBEATS_PER_LEASE).max(Duration::from_millis(1))
    }

    /// Time since the parent was heard.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.since(self.last_heard)
    }

    /// Silence after which the parent is lost: several packets were not answered.
    fn timeout(&self) -> Duration {
        let interval = match self.phase {
            Phase::Joining { .. } => self.heartbeat_interval().max(LAST_JOIN_RETRY),
            Phase::Idle | Phase::Member => self.heartbeat_interval(),
        };
        interval * MISSED_HEARTBEATS
    }

    /// Accounts for a pause of the switch itself, in which it could not hear the parent.
    pub(crate) fn oversleep(&mut self, slept: Duration) {
        // Awake, it asks the parent more often than that.
        if slept > self.timeout() / 2 {
            self.last_heard = self.last_heard.plus(slept);
            self.since = self.since.plus(slept);
        }
    }

    /// When the next packet is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.is_in_use().then_some(self.due)
    }

    /// Asks another parent from now on.
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

    /// Asks the next of the parents from now on.
    pub(crate) fn choose_next(&mut self, uplinks: &Uplinks, now: Instant) {
        self.choose(uplinks, self.choice + 1, now);
    }

    /// Begins to join on behalf of a job.
    pub(crate) fn begin(&mut self, uplinks: &Uplinks, job: u32, is_resumed: bool, now: Instant) {
        // Members of a new job meet at the first parent; members of a resumed one, at that of the others.
        let choice = if is_resumed { self.choice } else { 0 };
        self.choose(uplinks, choice, now);
        self.job = Some(job);
        self.join_request = self.take_request();
    }

    /// Sends Joins at short intervals again, unless the parent has admitted this switch.
    pub(crate) fn hasten(&mut self, now: Instant) {
        if self.phase != Phase::Member {
            self.phase = Phase::Joining { retry: FIRST_JOIN_RETRY };
            self.due = now.plus(FIRST_JOIN_RETRY);
        }
    }

    /// What is due now, if anything, and sets the next deadline.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Due> {
        self.deadline().filter(|due| *due <= now)?;
        match self.phase {
            Phase::Idle => None,
            Phase::Joining { retry } => {
                let retry = (retry * 2).min(self.last_join_retry());
                self.phase = Phase::Joining { retry };
                self.due = now.plus(retry);
                Some(Due::Join)
            }
            Phase::Member => {
                self.due = now.plus(self.heartbeat_interval());
                Some(Due::Heartbeat)
            }
        }
    }

    /// Whether a parent that does not answer, or to which no other member has come for a lease, may not be the one that
    /// the others have. `lease` is that of this switch.
    pub(crate) fn is_doubtful(&self, is_resumed: bool, now: Instant, lease: Duration) -> bool {
        let is_silent = self.silence(now) > lease;
        now.since(self.since) > lease && (is_silent || is_resumed)
    }

    /// Whether the parent has been silent for longer than its lease.
    pub(crate) fn is_gone(&self, now: Instant) -> bool {
        self.silence(now) > self.lease
    }

    /// Notices that the parent does not answer. Returns true if that is new.
    pub(crate) fn check_lost(&mut self, now: Instant) -> bool {
        let is_lost = self.silence(now) > self.timeout();
        is_lost && !core::mem::replace(&mut self.is_lost, true)
    }

    /// Records a packet of the parent. Returns true if the parent was lost until now.
    pub(crate) fn hear(&mut self, now: Instant) -> bool {
        self.last_heard = now;
        core::mem::take(&mut self.is_lost)
    }

    /// Whether an Ack refuses the present Join for its lack of authentication. Such a refusal is not authentic itself.
    pub(crate) fn is_refused_unproven(&self, request: u32, status: Status) -> bool {
        let is_joining = matches!(self.phase, Phase::Joining { .. });
        is_joining && (request, status) == (self.join_request, Status::NotAuthentic)
    }

    /// Takes in the answer to a Join. `tag_key` is the key of the tags of partial sums in this session.
    pub(crate) fn answer_join(
        &mut self,
        now: Instant,
        request: u32,
        ack: &AckRepr<'_>,
        tag_key: Option<TagKey>,
    ) -> JoinAnswer {
        if request != self.join_request {
            return JoinAnswer::Nothing;
        }
        if ack.status == Status::Challenge && self.phase != Phase::Member {
            self.conversation.open_session(ack.history);
            return JoinAnswer::Challenged;
        }
        if ack.status != Status::Success {
            return self.refuse_join(now, ack);
        }
        self.refusal = None;
        self.tag_key = tag_key;
        (self.window, self.weight) = (ack.window, ack.weight);
        self.members = if ack.formed { ack.members } else { self.members };
        self.lease = Duration::from_millis(u64::from(ack.lease_ms));
        if !ack.formed || self.phase == Phase::Member {
            return JoinAnswer::Nothing;
        }
        if self.epoch != ack.boot {
            (self.past_epoch, self.epoch) = (self.epoch, ack.boot);
        }
        self.phase = Phase::Member;
        // The first heartbeat at once (M-12).
        self.due = now;
        let start = Start { standing: ack.standing, round: ack.round, history: ack.history };
        let keeps_last = self.refused_past != Some(ack.round);
        JoinAnswer::Granted(Granted { epoch: ack.boot, start, keeps_last })
    }

    fn refuse_join(&mut self, now: Instant, ack: &AckRepr<'_>) -> JoinAnswer {
        if self.phase == Phase::Member && ack.status == Status::UnknownMember {
            return JoinAnswer::Forgotten;
        }
        let Phase::Joining { .. } = self.phase else { return JoinAnswer::Nothing };
        self.due = now.plus(LAST_JOIN_RETRY);
        self.refusal = Some((ack.status, ack.expected));
        JoinAnswer::Refused(ack.status, ack.expected)
    }

    /// Takes in an Ack of another request. `at` is the earliest unfinished round of the job, `taken_up` the last one of
    /// which the parent perhaps had results when the job was resumed below it.
    pub(crate) fn answer_request(
        &mut self,
        ack: &AckRepr<'_>,
        at: Round,
        taken_up: Option<Round>,
        is_halted: bool,
    ) -> ParentState {
        if self.phase != Phase::Member || ack.boot == self.past_epoch {
            return ParentState::Nothing;
        }
        let is_stale = ack.status == Status::StaleRound && ack.formed;
        let is_behind = is_stale && at.is_before(ack.round);
        // A halted job refuses Helps: the parent has ended the Halt since.
        let was_resumed = is_halted && (ack.status, ack.action) == (Status::Success, Action::Help);
        if ack.boot != self.epoch || ack.status == Status::UnknownMember || is_behind || was_resumed {
            if is_behind && taken_up.is_some_and(|last| at.is_before(last)) {
                self.refused_past = taken_up;
            }
            return ParentState::Forgotten;
        }
        match ack.status {
            Status::Halted => ParentState::Halted,
            Status::Success => {
                (self.window, self.weight, self.members) = (ack.window, ack.weight, ack.members);
                ParentState::Granted
            }
            _ => ParentState::Nothing,
        }
    }

    /// Records that the parent has answered a request.
    pub(crate) fn note_answer(&mut self, now: Instant, request: u32) {
        self.questions.answered(now, request);
    }

    /// Removes the segments from a set for which an answer of the parent may still arrive.
    pub(crate) fn retain_new(&self, now: Instant, range: RangeRepr, bits: &mut [u8; MAX_BITMAP_LEN_BYTES]) {
        self.questions.retain_new(now, range, bits);
    }

    /// Records a question for the segments of a range whose bit is set. Returns its request id; none, and records
    /// nothing, if no bit is set.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        range: RangeRepr,
        bits: [u8; MAX_BITMAP_LEN_BYTES],
    ) -> Option<u32> {
        SegmentSetRepr::of(range, &bits).indices().next()?;
        let request = self.take_request();
        self.questions.note(now, request, range, bits);
        Some(request)
    }

    /// Ends the membership, because the job has ended. Returns true if the parent is to be informed: not if the
    /// same members are about to come back.
    pub(crate) fn release(&mut self, comes_back: bool) -> bool {
        let phase = core::mem::replace(&mut self.phase, Phase::Idle);
        (self.is_lost, self.refusal) = (false, None);
        self.instance = self.instance.wrapping_add(1);
        if comes_back {
            return false;
        }
        (self.job, self.members) = (None, 0);
        phase != Phase::Idle
    }
}
