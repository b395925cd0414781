//! A member of an asynchronous job: bytes and a clock in; bytes, a deadline, sums and outcomes out.
//!
//! It sends one vector at a time, whenever the caller has one, and learns by a Confirm which aggregate took it.
//! Independently of that it receives the sums, in the order of their numbers and without a gap, so that all members
//! that apply them have the same weights. If the switch forgets the member it joins again and says which sums it
//! has; a vector that was under way is then lost, because nobody can tell whether it was summed.

mod receiver;
mod sender;
mod udp;

use std::collections::VecDeque;
use std::time::Duration;

use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DigestRepr, JoinRepr, ResumeRepr,
    Standing, Status,
};
use iswitch_protocol::{Instant, Round, VectorLayout, history};

use super::attempt::{Answer, Attempt, heartbeat_interval};
use super::auth::Authenticator;
use super::protocol::{Failure, Membership, max_window};
use super::session::{JoinProgress, SessionConfig};
use super::timer::RetryTimer;
use receiver::Receiver;
use sender::Sender;

pub use udp::{Admission, AsyncWorker};

/// Digests that wait to be sent: the network is faster than whoever makes them.
const MAX_PENDING_DIGESTS: usize = 8;
/// Distance between the instances of two memberships of a process, so that the numbers of their vectors are apart.
const INSTANCE_STEP: u32 = 0x9E37_79B9;

/// One aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// Its number.
    pub aggregate: Round,
    /// Worker gradients inside it.
    pub contributions: u16,
    /// `[gradient_len]`
    pub vector: Vec<f32>,
}

/// What became of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// It is part of this aggregate.
    Admitted(Round),
    /// It is in no aggregate, or nobody can tell: the job was reset or halted, or the switch has forgotten this member.
    Lost,
}

/// The weights of two members differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// After which aggregate.
    pub aggregate: Round,
    /// Id of the member whose digest was the first of that aggregate.
    pub member: u16,
}

/// Counters of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncCounters {
    /// Vectors that aggregates have taken.
    pub admitted: u64,
    /// Vectors that are lost.
    pub lost: u64,
    /// Sums that the caller has taken.
    pub sums: u64,
    /// Segments sent for the first time.
    pub segments: u64,
    /// Segments sent again because the switch missed them.
    pub retransmitted: u64,
    /// Confirms sent.
    pub confirms: u64,
    /// Helps sent.
    pub helps: u64,
    /// Datagrams that were of no use: repeated or late results, unknown packets.
    pub ignored: u64,
    /// How often the switch has forgotten this member and taken it back.
    pub rejoins: u64,
}

/// Ids of requests, and what is the same in all of them.
#[derive(Debug)]
struct Requests {
    job: u32,
    next: u32,
    /// If the job has a key.
    authenticator: Option<Authenticator>,
}

impl Requests {
    /// An id that no request of this member has had; never zero.
    fn take_id(&mut self) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1).max(1);
        id
    }

    fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        let repr = ControlRepr { job: self.job, request, body };
        buffer.resize(repr.buffer_len(), 0);
        repr.emit(buffer);
        if let Some(authenticator) = &self.authenticator {
            authenticator.sign(repr.action(), buffer);
        }
        (Class::Control, buffer.len())
    }
}

/// A request of the caller that is repeated until the switch answers.
#[derive(Debug)]
struct Order {
    id: u32,
    body: ControlBody<'static>,
    timer: RetryTimer,
    due: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Joining(Attempt),
    Member,
    Refused(Status, u32),
}

/// The protocol of a member of an asynchronous job.
#[derive(Debug)]
pub struct AsyncProtocol {
    config: SessionConfig,
    phase: Phase,
    attempts: u32,
    /// Once the switch has admitted the member.
    membership: Option<Membership>,
    /// Boot ids that were valid before: what still arrives from those runs is of no interest.
    past_boots: [u64; 2],
    /// The threshold H if a member has pinned it, otherwise zero.
    pinned_threshold: u16,
    requests: Requests,
    /// Whether somebody has said that the job has a key; whoever it was cannot prove that he is the switch.
    key_refused: Option<bool>,
    sender: Sender,
    receiver: Receiver,
    digests: VecDeque<DigestRepr>,
    order: Option<Order>,
    order_outcome: Option<Status>,
    submission: Option<Submission>,
    divergence: Option<Divergence>,
    /// Later sums are held back until the caller knows it.
    failure: Option<Failure>,
    /// Whether the caller has missed sums and has taken none since: it may not have the state of a peer yet.
    lacks_state: bool,
    heartbeat_at: Instant,
    counters: AsyncCounters,
}

impl AsyncProtocol {
    /// A member that begins to join. `config.join` must ask for the asynchronous mode.
    pub fn new(config: SessionConfig, now: Instant) -> Self {
        let mut protocol = Self {
            config,
            phase: Phase::Member,
            attempts: 0,
            membership: None,
            past_boots: [0; 2],
            pinned_threshold: 0,
            requests: Requests { job: config.job, next: 1, authenticator: None },
            key_refused: None,
            sender: Sender::new(config.layout),
            receiver: Receiver::new(config.layout),
            digests: VecDeque::new(),
            order: None,
            order_outcome: None,
            submission: None,
            divergence: None,
            failure: None,
            lacks_state: false,
            heartbeat_at: now,
            counters: AsyncCounters::default(),
        };
        protocol.join(now);
        protocol
    }

    /// The same with a key: nothing is believed that was not made with it.
    #[must_use]
    pub fn with_key(mut self, authenticator: Authenticator) -> Self {
        self.requests.authenticator = Some(authenticator);
        self
    }

    /// Whether the job has a key, in the words of somebody who refused this member's and may not be the switch.
    pub fn key_refused(&self) -> Option<bool> {
        self.key_refused
    }

    /// How far joining is.
    pub fn join_progress(&self) -> JoinProgress {
        match self.phase {
            Phase::Joining(attempt) => attempt.progress(),
            Phase::Member => JoinProgress::Joined,
            Phase::Refused(status, expected) => JoinProgress::Refused(status, expected),
        }
    }

    /// What the switch told when it last admitted the member.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }

    /// How the vector is cut up.
    pub fn layout(&self) -> &VectorLayout {
        &self.config.layout
    }

    /// What was counted so far.
    pub fn counters(&self) -> AsyncCounters {
        self.counters
    }

    /// Whether a vector may be submitted: none is under way, and the sums come in and are taken as they are made. A
    /// member that lags behind would only add to what it, and perhaps all, have to catch up with.
    pub fn is_ready(&self) -> bool {
        let keeps_up = self.receiver.ready_len() <= 1 && !self.receiver.lags();
        self.is_member() && self.sender.is_idle() && self.submission.is_none() && keeps_up
    }

    /// Whether there is room for results. If not, datagrams had better stay in the receive buffer until
    /// [`Self::take_sum`].
    pub fn has_room(&self) -> bool {
        self.receiver.has_room()
    }

    /// Begins to send a vector (`[gradient_len]`). [`Self::is_ready`] must hold.
    pub fn submit(&mut self, now: Instant, vector: &[f32]) {
        debug_assert!(self.is_ready());
        self.sender.begin(now, vector, &self.requests);
    }

    /// What became of the vector, once.
    pub fn take_submission(&mut self) -> Option<Submission> {
        self.submission.take()
    }

    /// The next sum in order.
    pub fn take_sum(&mut self) -> Option<Sum> {
        let sum = self.receiver.take()?;
        self.counters.sums += 1;
        // What is taken while a failure waits comes before it.
        self.lacks_state &= self.failure.is_some();
        Some(sum)
    }

    /// Gives the memory of a sum back.
    pub fn recycle(&mut self, vector: Vec<f32>) {
        self.receiver.recycle(vector);
    }

    /// The first aggregate that is not complete here.
    pub fn next_aggregate(&self) -> Round {
        self.receiver.next()
    }

    /// Why the member cannot simply go on, once, when the sums before it are taken. After [`Failure::Missed`]
    /// the caller lacks sums and needs the state of a peer. Sums continue at the aggregate that it names.
    pub fn take_failure(&mut self) -> Option<Failure> {
        if self.receiver.ready_len() > 0 {
            return None;
        }
        self.receiver.hold(false);
        let failure = self.failure.take();
        self.receiver.follow();
        failure
    }

    /// Tells the switch a digest of the weights after an aggregate. If another member's differs, see
    /// [`Self::take_divergence`].
    pub fn tell_digest(&mut self, aggregate: Round, digest: u64) {
        if self.digests.len() == MAX_PENDING_DIGESTS {
            self.digests.pop_front();
        }
        self.digests.push_back(DigestRepr { round: aggregate, digest });
    }

    /// Whether the switch has found the weights of this member to differ from another's, once.
    pub fn take_divergence(&mut self) -> Option<Divergence> {
        self.divergence.take()
    }

    /// Sends SetH, Reset, Halt or FBcast until the switch answers, see [`Self::take_order_outcome`]. Replaces an
    /// earlier one that was not answered. A Reset concerns the present incarnation of the job, also if it is repeated
    /// in a later one.
    pub fn order(&mut self, now: Instant, body: ControlBody<'static>) {
        let body = match (body, &self.membership) {
            (ControlBody::Reset { .. }, Some(membership)) => ControlBody::Reset { boot: membership.boot },
            _ => body,
        };
        let mut timer = RetryTimer::default();
        timer.restart(now);
        self.order = Some(Order { id: self.requests.take_id(), body, timer, due: true });
        self.order_outcome = None;
    }

    /// The switch's answer to [`Self::order`], once.
    pub fn take_order_outcome(&mut self) -> Option<Status> {
        self.order_outcome.take()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Joining(attempt) => Some(attempt.deadline()),
            Phase::Refused(..) => None,
            Phase::Member => {
                let order = self.order.as_ref().map(|order| order.timer.deadline());
                let own = [self.receiver.poll_timeout(), self.heartbeat_at];
                own.into_iter().chain(self.sender.poll_timeout()).chain(order).min()
            }
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Joining(attempt) => attempt.handle_timeout(now),
            Phase::Refused(..) => {}
            Phase::Member => {
                self.sender.handle_timeout(now);
                self.receiver.handle_timeout(now);
                if let Some(order) = &mut self.order {
                    order.due |= order.timer.expire(now);
                }
            }
        }
    }

    /// Takes in a datagram of the switch, or a super-frame of datagrams of `stride` bytes.
    pub fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        for bytes in payload.chunks(stride.max(1)) {
            let used = match (self.phase, class) {
                (_, Class::Control) => self.handle_control(now, bytes),
                (Phase::Member, Class::Data) => self.receiver.handle_result(now, bytes),
                _ => false,
            };
            self.counters.ignored += u64::from(!used);
        }
        if self.is_member() {
            self.receiver.follow();
        }
    }

    /// Writes the next packets into `buffer` and returns their class and the bytes of each.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<(Class, usize)> {
        buffer.clear();
        if let Phase::Joining(attempt) = &mut self.phase {
            let request = attempt.take_due()?;
            let nonce = attempt.nonce(self.requests.authenticator.as_ref());
            let (resume, instance) = (self.resume(), self.instance());
            let join = JoinRepr { resume, instance, nonce, ..self.config.join };
            return Some(self.requests.emit(request, ControlBody::Join(join), buffer));
        }
        if !self.is_member() {
            return None;
        }
        if self.heartbeat_at <= now {
            self.expect_heartbeat(now);
            return Some(self.requests.emit(0, ControlBody::HEARTBEAT, buffer));
        }
        if let Some(order) = self.order.as_mut().filter(|order| order.due) {
            order.due = false;
            let (id, body) = (order.id, order.body);
            return Some(self.requests.emit(id, body, buffer));
        }
        if let Some(digest) = self.digests.pop_front() {
            return Some(self.requests.emit(0, ControlBody::Digest(digest), buffer));
        }
        let Self { sender, receiver, requests, counters, .. } = self;
        receiver
            .poll_transmit(now, requests, counters, buffer)
            .or_else(|| sender.poll_transmit(now, requests, counters, buffer))
    }

    /// Writes a control packet into `buffer`. A request of zero wants no answer.
    pub fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        self.requests.emit(request, body, buffer)
    }

    fn is_member(&self) -> bool {
        matches!(self.phase, Phase::Member)
    }

    /// Another one for each membership, as it numbers the vectors.
    fn instance(&self) -> u32 {
        self.config.join.instance.wrapping_add(INSTANCE_STEP.wrapping_mul(self.attempts - 1))
    }

    fn expect_heartbeat(&mut self, now: Instant) {
        let lease = self.membership.map_or(Duration::ZERO, |membership| membership.lease);
        self.heartbeat_at = now.plus(heartbeat_interval(lease));
    }

    fn join(&mut self, now: Instant) {
        self.attempts += 1;
        self.phase = Phase::Joining(Attempt::new(self.config.join.instance, self.attempts, now));
    }

    /// What to tell a switch that has forgotten this member.
    fn resume(&self) -> Option<ResumeRepr> {
        let membership = self.membership.as_ref()?;
        (self.receiver.history() != 0).then_some(ResumeRepr {
            round: self.receiver.next(),
            members: membership.members,
            weight: membership.weight,
            threshold: self.pinned_threshold,
            history: self.receiver.history(),
            previous: 0,
            behind: 0,
            fresh: self.lacks_state,
        })
    }

    fn handle_join_answer(&mut self, now: Instant, repr: &ControlRepr<'_>) -> bool {
        let Phase::Joining(attempt) = &mut self.phase else { return false };
        match attempt.handle_answer(now, repr, self.requests.authenticator.as_ref()) {
            Some(Answer::Admitted(membership)) => self.admitted(now, membership),
            Some(Answer::Refused(status, expected)) => {
                self.phase = Phase::Refused(status, expected);
                if self.membership.is_some() {
                    self.fail(Failure::JoinRefused(status, expected));
                }
            }
            None => return false,
        }
        true
    }

    fn admitted(&mut self, now: Instant, membership: Membership) {
        if let Some(before) = self.membership.replace(membership) {
            self.counters.rejoins += 1;
            if before.boot != membership.boot {
                self.past_boots = [self.past_boots[1], before.boot];
            }
            // Who still lacks the state has to know at which aggregate it is needed now.
            if membership.standing != Standing::Resumed || self.lacks_state {
                self.miss(membership.start);
            }
        } else {
            // The caller learns it from the membership.
            let beginning = history::begin(membership.boot, self.config.job, membership.start);
            self.lacks_state = membership.history != beginning;
        }
        self.phase = Phase::Member;
        self.pinned_threshold = 0;
        let window = max_window(&self.config.layout, &membership, self.config.recv_buffer_bytes);
        let keys = self.requests.authenticator.as_ref().filter(|_| self.config.join.tagged);
        let keys = keys.map(|own| own.data_keys(membership.boot, self.config.job));
        self.sender.admitted(Round::new(self.instance()), window, keys);
        self.receiver.set_tag_key(keys.map(|keys| keys.result));
        self.receiver.restart(now, membership.start, membership.history, membership.boot);
        // The first one at once (requirement M-12).
        self.heartbeat_at = now;
    }

    /// The vector under way, if there is one, is in no aggregate as far as anybody can tell.
    fn lose_vector(&mut self) {
        if self.sender.give_up() {
            self.counters.lost += 1;
            self.submission = Some(Submission::Lost);
        }
    }

    fn forgotten(&mut self, now: Instant) {
        self.lose_vector();
        self.join(now);
    }

    /// The caller lacks sums before that aggregate.
    fn miss(&mut self, next: Round) {
        if self.lacks_state {
            // They come after a state that perhaps no peer has any more.
            self.receiver.discard_ready();
        }
        self.lacks_state = true;
        self.fail(Failure::Missed(next));
    }

    /// The vector under way is not concerned: see [`Self::lose_vector`].
    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.receiver.hold(true);
    }

    /// The switch takes nothing, or not this vector.
    fn refused(&mut self, failure: Failure) {
        self.lose_vector();
        self.fail(failure);
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let Ok(packet) = ControlPacket::new_checked(bytes) else { return false };
        let Ok(repr) = ControlRepr::parse(&packet) else { return false };
        if self.requests.authenticator.as_ref().is_some_and(|own| !own.accept(&packet)) {
            if let Phase::Joining(attempt) = self.phase {
                self.key_refused = attempt.key_refused(&repr).or(self.key_refused);
            }
            return false;
        }
        match self.phase {
            Phase::Joining(_) => return self.handle_join_answer(now, &repr),
            Phase::Refused(..) => return false,
            Phase::Member => {}
        }
        match repr.body {
            ControlBody::Ack(ack) => self.handle_ack(now, repr.request, &ack),
            ControlBody::Halt if repr.job == self.config.job => self.refused(Failure::Halted),
            _ => return false,
        }
        true
    }

    fn handle_ack(&mut self, now: Instant, request: u32, ack: &AckRepr<'_>) {
        let Some(membership) = &mut self.membership else { return };
        if ack.status == Status::Challenge {
            // The answer to a Join that was late: this is a member by now.
            return;
        }
        if ack.boot != membership.boot {
            if !self.past_boots.contains(&ack.boot) {
                self.forgotten(now);
            }
            return;
        }
        // An Ack from before the job was complete comes late, and counts fewer workers than the job has.
        if ack.status == Status::Success && ack.formed {
            (membership.members, membership.weight) = (ack.members, ack.weight);
            self.pinned_threshold = if ack.pinned { ack.threshold } else { 0 };
        }
        // The ids of Joins are counted apart.
        let is_join = ack.action == Action::Join;
        if !is_join && self.order.as_ref().is_some_and(|order| order.id == request) {
            self.order = None;
            self.order_outcome = Some(ack.status);
            if ack.status == Status::UnknownMember {
                self.forgotten(now);
            }
            return;
        }
        match (ack.status, ack.action) {
            (Status::UnknownMember, Action::Leave) | (Status::StaleRound, Action::Digest) => {}
            (Status::UnknownMember, _) => self.forgotten(now),
            (Status::Success, Action::Help) => self.receiver.handle_help_answer(now, request, ack),
            (Status::Success, Action::Confirm) => {
                if let Some(aggregate) = self.sender.handle_confirmed(now, request, ack) {
                    self.counters.admitted += 1;
                    self.submission = Some(Submission::Admitted(aggregate));
                }
            }
            (Status::Success, _) => {}
            (Status::StaleRound, Action::Help) => {
                if self.receiver.lacks_before(ack.round) {
                    let next = self.receiver.latest_from(ack.round);
                    // What has been summed until then is not known here.
                    let boot = ack.boot;
                    self.receiver.restart(now, next, 0, boot);
                    self.receiver.ask();
                    self.miss(next);
                }
            }
            (Status::Halted, _) => self.refused(Failure::Halted),
            (Status::Diverged, _) => {
                self.divergence = Some(Divergence { aggregate: ack.round, member: ack.expected as u16 });
            }
            (_, Action::Confirm) if !self.sender.is_about_current(request) => {}
            (status, _) => self.refused(Failure::Refused(status)),
        }
    }
}
