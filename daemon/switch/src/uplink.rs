//! The membership of one job at the parent of this switch.
//!
//! Each job has its own uplink, because a parent identifies a member by its source address. An [`Uplink`] is the state
//! machine of that membership: it tracks which parent is selected, whether the parent has admitted this switch, and
//! whether the parent still answers. It sends no packets itself.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use iswitch_protocol::auth::{Conversation, TagKey};
use iswitch_protocol::limits::{
    DEFAULT_SEGMENT_FLOATS, MAX_BITMAP_LEN_BYTES, MAX_HOST_LEN_BYTES, MAX_NAME_TRIES, MAX_PARENTS,
};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{AckRepr, Action, ControlPacket, NameRepr, Status};
use iswitch_protocol::{Instant, Key, Label, Round};

use crate::endpoint::{Endpoint, PortId};
use crate::ids::MemberId;
use crate::job::{Granted, Start};
use crate::keys::{Keys, Seal};
use crate::questions::Questions;
use crate::refused::Refused;
use crate::transfer::Transfer;

const FIRST_JOIN_RETRY: Duration = Duration::from_millis(20);
const LAST_JOIN_RETRY: Duration = Duration::from_millis(500);
/// Time for which the parent's refusal of a vector length is also returned to members. Members repeat their Joins at
/// shorter intervals.
const REFUSAL_MEMORY: Duration = Duration::from_secs(1);
/// Number of heartbeats per lease. If [`MISSED_HEARTBEATS`] consecutive heartbeats are not answered, the parent counts
/// as lost.
const HEARTBEATS_PER_LEASE: u32 = 8;
const MISSED_HEARTBEATS: u32 = 3;

/// Candidate parents of a switch, and the ports that lead to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplinks {
    parents: [Option<SocketAddrV4>; MAX_PARENTS],
    /// First of the ports. Each port must keep its address across restarts.
    pub first_port: PortId,
    /// Number of ports, which is also the maximum number of jobs.
    pub ports: u8,
    /// Maximum number of floats in a packet to a parent. It limits the segment length of jobs with 16-bit elements,
    /// whose partial sums are longer than their contributions (H-10).
    pub segment_floats: u16,
    /// Host name that this switch states to its parents; empty if it states none.
    pub(crate) host: Label<MAX_HOST_LEN_BYTES>,
}

impl Uplinks {
    /// Creates the list of up to [`MAX_PARENTS`] parents. The parent with the lowest address is tried first, as in
    /// the paper. Returns `None` if there are no parents, too many parents, or no ports.
    pub fn new(parents: &[SocketAddrV4], first_port: PortId, ports: u8) -> Option<Self> {
        if parents.is_empty() || parents.len() > MAX_PARENTS || ports == 0 {
            return None;
        }
        let mut sorted = [None; MAX_PARENTS];
        for (entry, parent) in sorted.iter_mut().zip(parents) {
            *entry = Some(*parent);
        }
        sorted[..parents.len()].sort_unstable();
        let (segment_floats, host) = (DEFAULT_SEGMENT_FLOATS, Label::EMPTY);
        Some(Self { parents: sorted, first_port, ports, segment_floats, host })
    }

    /// Sets the host name that this switch states to its parents.
    #[must_use]
    pub fn with_host(self, host: Label<MAX_HOST_LEN_BYTES>) -> Self {
        Self { host, ..self }
    }

    fn count(&self) -> usize {
        self.parents.iter().flatten().count()
    }

    fn parent(&self, choice: usize) -> Option<SocketAddrV4> {
        self.parents[choice % self.count().max(1)]
    }

    /// Returns whether there is more than one parent to choose from.
    pub(crate) fn has_choice(&self) -> bool {
        self.count() > 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no job, or the job still waits for members of this switch.
    Idle,
    Joining {
        retry: Duration,
    },
    Member,
}

/// Packet that is due on an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Join,
    Heartbeat,
}

/// Meaning of the parent's answer to a Join.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JoinAnswer {
    /// The answer has no effect, or no effect yet.
    Nothing,
    /// The Join must be repeated with the nonce that the parent has sent.
    Challenged,
    /// The parent refuses this switch.
    Refused(Refused),
    /// The parent no longer knows this switch, so the membership is over.
    Forgotten,
    /// The parent has admitted this switch, and the job may start.
    Granted(Granted),
}

/// A request from a member that the parent executes, and whose answer goes back to the member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand {
    /// Id of the request to the parent.
    pub(crate) upward: u32,
    pub(crate) member: MemberId,
    /// Id of the member's request.
    pub(crate) request: u32,
    pub(crate) action: Action,
}

/// Meaning of an Ack from the parent that does not answer a Join.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParentState {
    /// The Ack does not belong to this membership, or has no effect.
    Nothing,
    /// The parent serves another incarnation of the job, or does not know this switch.
    Forgotten,
    Halted,
    /// The parent has granted the request.
    Granted,
    /// The parent has refused the request.
    Refused,
}

/// State of the Name that this switch sends to the parent: the names that were stated last, the id of the request, and
/// the number of attempts that are left.
#[derive(Clone, Copy, Debug, Default)]
struct Stated {
    name: NameRepr,
    request: u32,
    tries: u8,
}

/// The membership of one job at the parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uplink {
    parent: Endpoint,
    /// Index of the parent among the candidates.
    choice: usize,
    /// Job that used this uplink last. If the job returns, it gets the same port.
    job: Option<u32>,
    phase: Phase,
    join_request: u32,
    next_request: u32,
    /// Instance number, which distinguishes a membership from the preceding one.
    instance: u32,
    /// Epoch of the topmost switch.
    epoch: u64,
    /// Preceding epoch, whose packets may still arrive and are ignored.
    past_epoch: u64,
    window: u16,
    /// Number of workers in the whole job, as the parent has stated it.
    weight: u16,
    /// Number of members of the job at the parent; zero if it is not known.
    members: u16,
    /// Number of parts that the parent has announced, if any.
    parts: Option<u8>,
    lease: Duration,
    /// Instant at which the next Join or heartbeat is due.
    due: Instant,
    /// Instant at which this parent was selected.
    since: Instant,
    last_heard: Instant,
    questions: Questions,
    /// Round that the parent granted when it no longer had the sum of the preceding round.
    refused_past: Option<Round>,
    is_lost: bool,
    /// Reason why the parent refuses this switch, if it does.
    refusal: Option<Refused>,
    /// Last refusal of a vector length: the number of the job, the length that the parent expected, and the time of the
    /// refusal.
    refused_len: Option<(u32, u32, Instant)>,
    /// Authenticated session with the parent, in which this switch and the parent prove that they have the job's key.
    conversation: Conversation,
    /// Key for the tags of the partial sums, if data is tagged.
    tag_key: Option<TagKey>,
    /// Transfer of a partial sum of an asynchronous job to the parent, if one is in progress.
    transfer: Option<Transfer>,
    /// Latest request from a member of an asynchronous job that was passed on to the parent and is not answered yet.
    errand: Option<Errand>,
    stated: Stated,
}

impl Uplink {
    /// Creates the uplink of the port at index `at` among the ports that lead to parents. `lease` applies until a
    /// parent states its own lease.
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
            // Avoid the request ids of an earlier run of this switch, whose answers may still arrive.
            next_request: ((boot >> 32) as u32).max(1),
            instance: boot as u32,
            epoch: 0,
            past_epoch: 0,
            window: 0,
            weight: 0,
            members: 0,
            parts: None,
            lease,
            due: Instant::default(),
            since: Instant::default(),
            last_heard: Instant::default(),
            questions: Questions::new(),
            refused_past: None,
            is_lost: false,
            refusal: None,
            refused_len: None,
            // The boot id is random for each run; halving it leaves room for the counter to rise.
            conversation: Conversation::new(boot >> 1),
            tag_key: None,
            transfer: None,
            errand: None,
            stated: Stated::default(),
        }
    }

    pub(crate) fn parent(&self) -> Endpoint {
        self.parent
    }

    /// Returns whether the job `id` was the last to use this uplink.
    pub(crate) fn served(&self, id: u32) -> bool {
        self.job == Some(id)
    }

    /// Returns the job and the parent's address, for events.
    pub(crate) fn job_and_parent(&self) -> (u32, SocketAddrV4) {
        (self.job.unwrap_or(0), self.parent.peer)
    }

    /// Returns whether the uplink is in use: this switch is joining a parent or is its member.
    pub(crate) fn is_in_use(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Returns whether the parent has admitted this switch.
    pub(crate) fn is_member(&self) -> bool {
        self.phase == Phase::Member
    }

    /// Returns whether the parent is lost, that is, has stopped answering. While it is lost, no sums are delivered.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns the reason why the parent refuses this switch, if it does.
    pub(crate) fn refusal(&self) -> Option<Refused> {
        self.refusal
    }

    /// Returns the length that the parent expected if it has recently refused the vector length of the job `id`, and
    /// `None` otherwise. The refusal expires after [`REFUSAL_MEMORY`], so that the next Join is passed on to the parent
    /// again.
    pub(crate) fn expected_len(&self, id: u32, now: Instant) -> Option<u32> {
        let recent = self.refused_len.filter(|(_, _, at)| now.since(*at) < REFUSAL_MEMORY);
        recent.filter(|(job, ..)| *job == id).map(|(_, expected, _)| expected)
    }

    /// Returns the number of segments that this switch may have in flight to the parent.
    pub(crate) fn window(&self) -> u16 {
        self.window
    }

    /// Returns the number of workers in the whole job.
    pub(crate) fn weight(&self) -> u16 {
        self.weight
    }

    /// Returns the number of members of the job at the parent; zero if it is not known.
    pub(crate) fn members(&self) -> u16 {
        self.members
    }

    /// Returns the number of parts that the parent has announced in its answers to Joins of a part, if any.
    pub(crate) fn parts(&self) -> Option<u8> {
        self.parts
    }

    pub(crate) fn instance(&self) -> u32 {
        self.instance
    }

    pub(crate) fn join_request(&self) -> u32 {
        self.join_request
    }

    /// Returns the key for the tags of the partial sums, if data is tagged.
    pub(crate) fn partials_key(&self) -> Option<&TagKey> {
        self.tag_key.as_ref()
    }

    /// Returns the nonce that identifies the session with the parent.
    pub(crate) fn session(&self) -> u64 {
        self.conversation.session()
    }

    /// Returns a new request id.
    pub(crate) fn take_request(&mut self) -> u32 {
        let request = self.next_request;
        self.next_request = request.wrapping_add(1).max(1);
        request
    }

    /// Returns how the next packet to the parent is authenticated.
    pub(crate) fn seal(&mut self, keys: &Keys, job: u32, action: Action) -> Seal {
        if keys.of(job).is_none() {
            return Seal::Bare;
        }
        let (context, counter) = self.conversation.next(action);
        Seal::Upward { job, context, counter }
    }

    /// Returns whether a packet is authentic, that is, from the parent and not replayed.
    pub(crate) fn accept(&mut self, key: &Key, packet: &ControlPacket<'_>) -> bool {
        self.conversation.accept(key, packet)
    }

    /// Returns the maximum interval between two Joins. Joins renew the lease at the parent while the switch waits for
    /// other members, so the interval must be shorter than the lease.
    fn last_join_retry(&self) -> Duration {
        LAST_JOIN_RETRY.min(self.heartbeat_interval())
    }

    fn heartbeat_interval(&self) -> Duration {
        (self.lease / HEARTBEATS_PER_LEASE).max(Duration::from_millis(1))
    }

    /// Returns the time since the last packet from the parent arrived.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.since(self.last_heard)
    }

    /// Returns the duration of silence after which the parent counts as lost. By then, the parent has left several
    /// packets unanswered.
    fn timeout(&self) -> Duration {
        let interval = match self.phase {
            Phase::Joining { .. } => self.heartbeat_interval().max(LAST_JOIN_RETRY),
            Phase::Idle | Phase::Member => self.heartbeat_interval(),
        };
        interval * MISSED_HEARTBEATS
    }

    /// Accounts for a pause of duration `slept`, during which this switch could not hear the parent.
    pub(crate) fn oversleep(&mut self, slept: Duration) {
        // The intervals at which a running switch sends packets to the parent are shorter than half of the timeout.
        if slept > self.timeout() / 2 {
            self.last_heard = self.last_heard.plus(slept);
            self.since = self.since.plus(slept);
        }
    }

    /// Returns the instant at which the next packet is due, if the uplink is in use.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let transfer = self.transfer.as_ref().map(Transfer::due);
        self.is_in_use().then(|| transfer.map_or(self.due, |due| due.min(self.due)))
    }

    /// Selects the parent at index `choice`.
    fn choose(&mut self, uplinks: &Uplinks, choice: usize, now: Instant) {
        self.choice = choice;
        if let Some(peer) = uplinks.parent(choice)
            && peer != self.parent.peer
        {
            (self.parent.peer, self.members, self.parts) = (peer, 0, None);
        }
        (self.since, self.last_heard) = (now, now);
        (self.is_lost, self.refusal) = (false, None);
    }

    /// Selects the next candidate parent.
    pub(crate) fn choose_next(&mut self, uplinks: &Uplinks, now: Instant) {
        self.choose(uplinks, self.choice + 1, now);
    }

    /// Starts joining a parent on behalf of a job.
    pub(crate) fn begin(&mut self, uplinks: &Uplinks, job: u32, is_resumed: bool, now: Instant) {
        // All switches of a new job start with the first parent. A switch of a resumed job keeps its current choice,
        // which the other switches share.
        let choice = if is_resumed { self.choice } else { 0 };
        self.choose(uplinks, choice, now);
        self.job = Some(job);
        self.join_request = self.take_request();
    }

    /// Resets the interval between Joins to its minimum, unless the parent has admitted this switch.
    pub(crate) fn hasten(&mut self, now: Instant) {
        if self.phase != Phase::Member {
            self.phase = Phase::Joining { retry: FIRST_JOIN_RETRY };
            self.due = now.plus(FIRST_JOIN_RETRY);
        }
    }

    /// Returns the packet that is due now, if any, and sets the next deadline.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Due> {
        if now < self.due {
            return None;
        }
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

    /// Returns whether the other members of the job may have another parent. This is assumed if this parent has been
    /// silent for longer than a lease, or has not admitted this switch to a resumed job within a lease. `lease` is this
    /// switch's lease.
    pub(crate) fn is_doubtful(&self, is_resumed: bool, now: Instant, lease: Duration) -> bool {
        let is_silent = self.silence(now) > lease;
        now.since(self.since) > lease && (is_silent || is_resumed)
    }

    /// Returns whether the parent has been silent for longer than its lease.
    pub(crate) fn is_gone(&self, now: Instant) -> bool {
        self.silence(now) > self.lease
    }

    /// Marks the parent as lost if its timeout has passed. Returns true if it was not lost before.
    pub(crate) fn check_lost(&mut self, now: Instant) -> bool {
        let is_lost = self.silence(now) > self.timeout();
        is_lost && !core::mem::replace(&mut self.is_lost, true)
    }

    /// Records that a packet has arrived from the parent. Returns true if the parent was considered lost before this
    /// packet.
    pub(crate) fn hear(&mut self, now: Instant) -> bool {
        self.last_heard = now;
        core::mem::take(&mut self.is_lost)
    }

    /// Returns whether an Ack refuses the pending Join for lack of authentication. Such a refusal is not authenticated
    /// itself.
    pub(crate) fn is_refused_unproven(&self, request: u32, status: Status) -> bool {
        let is_joining = matches!(self.phase, Phase::Joining { .. });
        is_joining && (request, status) == (self.join_request, Status::NotAuthentic)
    }

    /// Processes the answer to a Join. `tag_key` is the key for the tags of partial sums in this session.
    pub(crate) fn answer_join(
        &mut self,
        now: Instant,
        request: u32,
        ack: &AckRepr<'_>,
        is_part: bool,
        tag_key: Option<TagKey>,
    ) -> JoinAnswer {
        if request != self.join_request {
            return JoinAnswer::Nothing;
        }
        if is_part {
            self.parts = Some(ack.parts);
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
        self.stated = Stated::default();
        // Send the first heartbeat immediately (M-12).
        self.due = now;
        let start = Start { standing: ack.standing, round: ack.round, history: ack.history };
        let keeps_last = self.refused_past != Some(ack.round);
        let first_vector = Round::first_vector(self.instance, ack.boot);
        JoinAnswer::Granted(Granted { epoch: ack.boot, start, keeps_last, first_vector })
    }

    fn refuse_join(&mut self, now: Instant, ack: &AckRepr<'_>) -> JoinAnswer {
        if self.phase == Phase::Member && ack.status == Status::UnknownMember {
            return JoinAnswer::Forgotten;
        }
        let Phase::Joining { .. } = self.phase else { return JoinAnswer::Nothing };
        self.due = now.plus(LAST_JOIN_RETRY);
        let refused = Refused::in_ack(ack);
        self.refusal = Some(refused);
        if ack.status == Status::GradientLenMismatch {
            self.refused_len = self.job.map(|job| (job, ack.expected, now));
        }
        JoinAnswer::Refused(refused)
    }

    /// Processes the Ack of a request other than a Join. `at` is the earliest unfinished round of a synchronous job; in
    /// an asynchronous job, aggregates may finish without a contribution from this switch. `taken_up` is the last round
    /// for which the parent may already have had results when it resumed the job.
    pub(crate) fn answer_request(
        &mut self,
        ack: &AckRepr<'_>,
        at: Option<Round>,
        taken_up: Option<Round>,
        is_halted: bool,
    ) -> ParentState {
        if self.phase != Phase::Member || ack.boot == self.past_epoch {
            return ParentState::Nothing;
        }
        let is_stale = ack.status == Status::StaleRound && ack.formed;
        let is_behind = is_stale && at.is_some_and(|at| at.is_before(ack.round));
        // A halted job refuses Helps, so a granted Help shows that the parent has lifted the Halt.
        let was_resumed = is_halted && (ack.status, ack.action) == (Status::Success, Action::Help);
        if ack.boot != self.epoch || ack.status == Status::UnknownMember || is_behind || was_resumed {
            if is_behind && at.zip(taken_up).is_some_and(|(at, last)| at.is_before(last)) {
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
            _ => ParentState::Refused,
        }
    }

    /// Returns the transfer of a partial sum to the parent, if one is in progress.
    pub(crate) fn transfer(&self) -> Option<&Transfer> {
        self.transfer.as_ref()
    }

    pub(crate) fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        self.transfer.as_mut()
    }

    /// Begins the transfer of a partial sum of `segments` segments.
    pub(crate) fn begin_transfer(&mut self, number: Round, segments: u32, now: Instant) {
        let wait = self.questions.wait();
        self.transfer = Some(Transfer::new(number, segments, self.next_request, now, wait));
    }

    /// Ends the transfer.
    pub(crate) fn end_transfer(&mut self) {
        self.transfer = None;
    }

    /// Returns the time within which the parent is expected to answer.
    pub(crate) fn wait(&self) -> Duration {
        self.questions.wait()
    }

    /// Returns the id for a new Confirm, whose answer is timed.
    pub(crate) fn take_timed_request(&mut self, now: Instant) -> u32 {
        let request = self.take_request();
        self.questions.time(now, request);
        request
    }

    /// Records that a request from a member is passed on. Returns the id of the request to the parent, which is the
    /// same as before if the member has repeated its request.
    pub(crate) fn pass_on(&mut self, member: MemberId, request: u32, action: Action) -> u32 {
        let known = self
            .errand
            .filter(|errand| (errand.member, errand.request, errand.action) == (member, request, action));
        let upward = known.map_or_else(|| self.take_request(), |errand| errand.upward);
        self.errand = Some(Errand { upward, member, request, action });
        upward
    }

    /// Removes and returns the member's request that the parent has answered, if `request` is the id with which it was
    /// passed on.
    pub(crate) fn take_errand(&mut self, request: u32) -> Option<Errand> {
        self.errand.take_if(|errand| errand.upward == request)
    }

    /// Returns the id of the request with which this switch states its name to the parent. Returns `None` if the parent
    /// has already answered, or has left too many attempts unanswered.
    pub(crate) fn take_name(&mut self, name: &NameRepr) -> Option<u32> {
        if self.stated.name != *name {
            self.stated = Stated { name: *name, request: self.take_request(), tries: MAX_NAME_TRIES };
        }
        self.stated.tries = self.stated.tries.checked_sub(1)?;
        Some(self.stated.request)
    }

    /// Records that the parent has answered a request.
    pub(crate) fn note_answer(&mut self, now: Instant, request: u32) {
        if request == self.stated.request {
            self.stated.tries = 0;
        }
        self.questions.answered(now, request);
    }

    /// Removes from a set of segments those for which an answer from the parent may still arrive.
    pub(crate) fn retain_new(&self, now: Instant, range: RangeRepr, bits: &mut [u8; MAX_BITMAP_LEN_BYTES]) {
        self.questions.retain_new(now, range, bits);
    }

    /// Records a question for the segments of a range whose bits are set. Returns its request id. If no bit is set,
    /// records nothing and returns `None`.
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

    /// Ends the membership because the job has ended. Returns whether the parent must be informed. The parent need not
    /// be informed if `comes_back` indicates that the same members are about to rejoin.
    pub(crate) fn release(&mut self, comes_back: bool) -> bool {
        let phase = core::mem::replace(&mut self.phase, Phase::Idle);
        (self.is_lost, self.refusal) = (false, None);
        (self.transfer, self.errand) = (None, None);
        self.instance = next_instance(self.instance);
        if comes_back {
            return false;
        }
        (self.job, self.members) = (None, 0);
        phase != Phase::Idle
    }
}

/// Returns the instance of the next membership. The vectors of an asynchronous job are numbered from the instance, so
/// consecutive memberships must not have adjacent instances: otherwise, packets in flight could name vectors of the new
/// membership (V-2).
fn next_instance(instance: u32) -> u32 {
    // A linear congruential generator with the full period of 2^32 (Numerical Recipes).
    instance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}
