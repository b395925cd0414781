//! A member of an asynchronous job, as a sans-I/O state machine: its inputs are bytes and the time, and its outputs are
//! bytes, a deadline, sums and outcomes.
//!
//! The member sends one vector at a time, whenever the caller submits one, and learns from the answer to a Confirm
//! which aggregate contains it. Independently of sending, it receives the sums in the order of their numbers and
//! without gaps, so all members that apply them have the same weights. If the switch forgets the member, the member
//! rejoins and reports which sums it has; a vector in progress then counts as lost, because the member cannot know
//! whether it was summed.

mod receiver;
mod sender;
mod udp;

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlRepr, DigestRepr, ResumeRepr, Standing, Status,
};
use iswitch_protocol::{Instant, Round, VectorLayout, history};

use super::attempt::Answer;
use super::auth::Authenticator;
use super::enrolment::{Enrolment, Joins};
use super::group::Path;
use super::membership::{MembershipState, Position, Run, max_window};
use super::protocol::{Failure, Membership};
use super::session::{JoinProgress, SessionConfig};
use super::timer::RetryTimer;
use receiver::Receiver;
use sender::Sender;

pub use udp::{Admission, AsyncWorker};

/// Maximum number of digests that wait to be sent. In practice, the limit is not reached, because digests are sent
/// faster than they are computed.
const MAX_PENDING_DIGESTS: usize = 8;

/// The sum of one aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// Aggregate number.
    pub aggregate: Round,
    /// Number of worker gradients in the sum.
    pub contributions: u16,
    /// The sum itself, `[gradient_len]`.
    pub vector: Vec<f32>,
}

/// Outcome of a submitted vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// The vector is part of this aggregate.
    Admitted(Round),
    /// The vector is in no aggregate, or its outcome is unknown: the job was reset or halted, or the switch no longer
    /// knew this member.
    Lost,
}

/// A difference between the weights of two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Number of the aggregate after which the weights differ.
    pub aggregate: Round,
    /// Id of the member that sent the first digest for that aggregate.
    pub member: u16,
}

/// Counters of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncCounters {
    /// Number of vectors that became part of an aggregate.
    pub admitted: u64,
    /// Number of lost vectors.
    pub lost: u64,
    /// Number of sums that the caller has taken.
    pub sums: u64,
    /// Number of segments sent for the first time.
    pub segments: u64,
    /// Number of segments retransmitted because the switch lacked them.
    pub retransmitted: u64,
    /// Number of Confirms sent.
    pub confirms: u64,
    /// Number of Helps sent.
    pub helps: u64,
    /// Number of datagrams that had no effect: duplicate or late results, and unrecognised packets.
    pub ignored: u64,
    /// Number of times that the switch has forgotten this member and readmitted it.
    pub rejoins: u64,
}

/// A request from the caller that is retransmitted until the switch answers.
#[derive(Debug)]
struct Order {
    id: u32,
    body: ControlBody<'static>,
    timer: RetryTimer,
    due: bool,
}

/// Protocol of a member of an asynchronous job.
#[derive(Debug)]
pub struct AsyncProtocol {
    enrolment: Enrolment,
    /// Membership; `None` until the switch has admitted the member.
    membership: Option<MembershipState>,
    sender: Sender,
    receiver: Receiver,
    digests: VecDeque<DigestRepr>,
    order: Option<Order>,
    order_outcome: Option<Status>,
    submission: Option<Submission>,
    divergence: Option<Divergence>,
    /// Failure that has yet to be returned to the caller. Until then, later sums are held back.
    failure: Option<Failure>,
    /// Whether the caller has missed sums and has not taken a sum since. In this case, it may not yet have fetched
    /// the state from a peer.
    lacks_state: bool,
    counters: AsyncCounters,
}

impl AsyncProtocol {
    /// Creates a member and begins to join. `config.join` must request asynchronous mode.
    pub fn new(config: SessionConfig, now: Instant) -> Self {
        Self {
            enrolment: Enrolment::new(config, now),
            membership: None,
            sender: Sender::new(config.layout),
            receiver: Receiver::new(config.layout),
            digests: VecDeque::new(),
            order: None,
            order_outcome: None,
            submission: None,
            divergence: None,
            failure: None,
            lacks_state: false,
            counters: AsyncCounters::default(),
        }
    }

    /// Sets the key of the job. From then on, only packets that were authenticated with this key are accepted.
    #[must_use]
    pub fn with_key(mut self, authenticator: Authenticator) -> Self {
        self.enrolment.set_key(authenticator);
        self
    }

    /// Returns whether the job has a key, according to a refusal of this member's key. The refusal is not authenticated
    /// and may be forged. Returns `None` if there was no such refusal.
    pub fn key_refused(&self) -> Option<bool> {
        self.enrolment.key_refused()
    }

    /// Returns the progress of the attempt to join.
    pub fn join_progress(&self) -> JoinProgress {
        self.enrolment.progress()
    }

    /// Returns the membership that the switch granted when it last admitted the member, or `None` if it has not
    /// admitted the member yet.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref().map(MembershipState::get)
    }

    /// Returns the layout of the vector: its division into segments.
    pub fn layout(&self) -> &VectorLayout {
        &self.enrolment.config().layout
    }

    /// Returns the current counters.
    pub fn counters(&self) -> AsyncCounters {
        AsyncCounters { rejoins: self.enrolment.rejoins(), ..self.counters }
    }

    /// Returns whether a vector may be submitted: no vector is in progress, and sums are received and taken as fast as
    /// the job completes them. If the member lags behind, a further vector would only increase its backlog, and perhaps
    /// that of other members.
    pub fn is_ready(&self) -> bool {
        let keeps_up = self.receiver.ready_len() <= 1 && !self.receiver.lags();
        self.enrolment.is_member() && self.sender.is_idle() && self.submission.is_none() && keeps_up
    }

    /// Returns whether there is room for results. If there is none, leave datagrams in the receive buffer until
    /// [`Self::take_sum`] makes room.
    pub fn has_room(&self) -> bool {
        self.receiver.has_room()
    }

    /// Begins to send a vector (`[gradient_len]`). [`Self::is_ready`] must hold.
    pub fn submit(&mut self, now: Instant, vector: &[f32]) {
        debug_assert!(self.is_ready());
        self.sender.begin(now, vector, self.enrolment.requests());
    }

    /// Returns the outcome of the submitted vector, or `None` if it is not known yet. Each outcome is returned only
    /// once.
    pub fn take_submission(&mut self) -> Option<Submission> {
        self.submission.take()
    }

    /// Returns the next sum in order, or `None` if it is not complete yet.
    pub fn take_sum(&mut self) -> Option<Sum> {
        let sum = self.receiver.take()?;
        self.counters.sums += 1;
        // Sums that are taken while a failure is pending precede the failure.
        self.lacks_state &= self.failure.is_some();
        Some(sum)
    }

    /// Reclaims the memory of a sum that the caller no longer needs, for reuse.
    pub fn recycle(&mut self, vector: Vec<f32>) {
        self.receiver.recycle(vector);
    }

    /// Returns the first aggregate whose sum this member has not received completely.
    pub fn next_aggregate(&self) -> Round {
        self.receiver.next()
    }

    /// Returns the reason why the member cannot continue as before, or `None` if there is no failure. Each failure is
    /// returned only once, and only after all preceding sums have been taken. After [`Failure::Missed`], the caller
    /// lacks sums and needs the state of a peer; the next sum is that of the aggregate named in the failure.
    pub fn take_failure(&mut self) -> Option<Failure> {
        if self.receiver.ready_len() > 0 {
            return None;
        }
        self.receiver.hold(false);
        let failure = self.failure.take();
        self.receiver.follow();
        failure
    }

    /// Sends the switch a digest of the weights after an aggregate has been applied. If this digest differs from
    /// another member's, [`Self::take_divergence`] reports the difference.
    pub fn send_digest(&mut self, aggregate: Round, digest: u64) {
        if self.digests.len() == MAX_PENDING_DIGESTS {
            self.digests.pop_front();
        }
        self.digests.push_back(DigestRepr { round: aggregate, digest });
    }

    /// Returns a difference that the switch has found between the weights of this member and those of another one. Each
    /// difference is returned only once.
    pub fn take_divergence(&mut self) -> Option<Divergence> {
        self.divergence.take()
    }

    /// Sends an order (SetH, Reset, Halt or FBcast) and retransmits it until the switch answers; see
    /// [`Self::take_order_outcome`]. If an earlier order is still unanswered, the new one replaces it. A Reset applies
    /// only to the incarnation of the job that is current at the time of this call, even if the Reset is retransmitted
    /// during a later one.
    pub fn order(&mut self, now: Instant, body: ControlBody<'static>) {
        let body = match (body, &self.membership) {
            (ControlBody::Reset { .. }, Some(membership)) => {
                ControlBody::Reset { boot: membership.get().boot }
            }
            _ => body,
        };
        let mut timer = RetryTimer::default();
        timer.restart(now);
        self.order = Some(Order { id: self.enrolment.requests().take_id(), body, timer, due: true });
        self.order_outcome = None;
    }

    /// Returns the switch's answer to [`Self::order`]; the answer is returned only once.
    pub fn take_order_outcome(&mut self) -> Option<Status> {
        self.order_outcome.take()
    }

    /// Returns the time at which [`Self::handle_timeout`] is due, or `None` if no timer is running.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = self.enrolment.poll_timeout();
        if !self.enrolment.is_member() {
            return own;
        }
        let order = self.order.as_ref().map(|order| order.timer.deadline());
        let exchange = [self.sender.poll_timeout(), Some(self.receiver.poll_timeout())];
        exchange.into_iter().chain([own, order]).flatten().min()
    }

    /// Handles the timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.enrolment.handle_timeout(now);
        if self.enrolment.is_member() {
            self.sender.handle_timeout(now);
            self.receiver.handle_timeout(now);
            if let Some(order) = &mut self.order {
                order.due |= order.timer.expire(now);
            }
        }
    }

    /// Returns the group that the switch has offered. The driver subscribes to this group and then calls
    /// [`Self::subscribed`]. If the result is `None`, the driver leaves its current group.
    pub fn group(&self) -> Option<SocketAddrV4> {
        self.enrolment.wanted_group()
    }

    /// Records that the driver receives packets of a group from now on. It must pass these packets to
    /// [`Self::handle_arrival`] with [`Path::Group`].
    pub fn subscribed(&mut self, group: SocketAddrV4) {
        self.enrolment.group().subscribed(group);
    }

    /// Handles a datagram that the switch sent to this member, or a super-frame of datagrams of `stride` bytes.
    pub fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        self.handle_arrival(now, Path::Unicast, class, payload, stride);
    }

    /// Works like [`Self::handle_datagrams`], but for packets that arrived on `path`.
    pub fn handle_arrival(&mut self, now: Instant, path: Path, class: Class, payload: &[u8], stride: usize) {
        for bytes in payload.chunks(stride.max(1)) {
            let is_usable = path == Path::Unicast || self.enrolment.group().is_subscribed();
            let used = match class {
                Class::Control if path == Path::Group => self.enrolment.handle_probe(bytes),
                Class::Control => self.handle_control(now, bytes),
                Class::Data => {
                    is_usable && self.enrolment.is_member() && self.receiver.handle_result(now, bytes)
                }
            };
            self.counters.ignored += u64::from(!used);
        }
        if self.enrolment.is_member() {
            self.receiver.follow();
        }
    }

    /// Writes the next packets into `buffer`. Returns their class and the length of each packet in bytes, or `None` if
    /// there is nothing to send.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<(Class, usize)> {
        buffer.clear();
        let resume = self.resume();
        let packet = self.enrolment.poll_transmit(now, || resume, buffer);
        if packet.is_some() || !self.enrolment.is_member() {
            return packet;
        }
        if let Some(order) = self.order.as_mut().filter(|order| order.due) {
            order.due = false;
            let (id, body) = (order.id, order.body);
            return Some(self.enrolment.emit(id, body, buffer));
        }
        if let Some(digest) = self.digests.pop_front() {
            return Some(self.enrolment.emit(0, ControlBody::Digest(digest), buffer));
        }
        let Self { sender, receiver, enrolment, counters, .. } = self;
        let requests = enrolment.requests();
        receiver
            .poll_transmit(now, requests, counters, buffer)
            .or_else(|| sender.poll_transmit(now, requests, counters, buffer))
    }

    /// Moves to another switch: ends the membership without notice, and begins to join as a new instance derived from
    /// `instance`. The new instance must differ from those of all earlier memberships. A vector in progress is lost.
    /// The caller must not pass further packets from the previous switch to this member.
    pub fn move_to(&mut self, now: Instant, instance: u32) {
        self.enrolment.set_instance(instance);
        if self.order.take().is_some() {
            // The next switch does not know the request.
            self.order_outcome = Some(Status::UnknownMember);
        }
        self.forgotten(now);
    }

    /// Writes a control packet into `buffer`. If `request` is zero, the packet requests no answer.
    pub fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        self.enrolment.emit(request, body, buffer)
    }

    /// Returns the position to report in a Join to a switch that no longer knows this member. Returns `None` if the
    /// member has no position to resume from.
    fn resume(&self) -> Option<ResumeRepr> {
        self.membership.as_ref()?.resume(Position {
            next: self.receiver.next(),
            history: self.receiver.history(),
            previous: 0,
            has_sums: !self.lacks_state,
        })
    }

    fn handle_join_answer(&mut self, now: Instant, repr: &ControlRepr<'_>) -> bool {
        let Some(answer) = self.enrolment.handle_answer(now, repr) else { return false };
        match answer {
            Answer::Admitted(membership) => self.admitted(now, membership),
            Answer::Refused(status, expected) if self.membership.is_some() => {
                self.fail(Failure::JoinRefused(status, expected));
            }
            Answer::Refused(..) => {}
        }
        true
    }

    fn admitted(&mut self, now: Instant, membership: Membership) {
        let SessionConfig { job, layout, recv_buffer_bytes, .. } = *self.enrolment.config();
        let begins = membership.history == history::begin(membership.boot, job, membership.start);
        let has_initial_state = self.has_initial_state();
        if let Some(known) = &mut self.membership {
            known.readmit(membership);
            // A caller that has not fetched the learner's state yet must be notified: it now needs the state before
            // the aggregate `membership.start`.
            let has_state = membership.standing == Standing::Resumed || begins && has_initial_state;
            if !has_state || self.lacks_state {
                self.miss(membership.start);
            }
        } else {
            // The caller reads the first aggregate from the membership.
            self.membership = Some(MembershipState::new(membership));
            self.lacks_state = !begins;
        }
        let window = max_window(&layout, &membership, recv_buffer_bytes);
        let keys = self.enrolment.data_keys(membership.boot);
        let first = Round::first_vector(self.enrolment.instance(), membership.boot);
        self.sender.admitted(first, window, keys);
        self.receiver.set_tag_key(keys.map(|keys| keys.result));
        self.receiver.restart(now, membership.start, membership.history, membership.boot);
    }

    /// Returns whether the job began with the state of the caller and no sum has been received since. If the job then
    /// starts over in another incarnation, all of its members have this initial state.
    fn has_initial_state(&self) -> bool {
        let Some(known) = &self.membership else { return false };
        let SessionConfig { job, .. } = *self.enrolment.config();
        let (receiver, boot) = (&self.receiver, known.get().boot);
        !self.lacks_state && receiver.history() == history::begin(boot, job, receiver.next())
    }

    /// Gives up the vector in progress, if there is one: as far as this member knows, no aggregate contains it.
    fn lose_vector(&mut self) {
        if self.sender.give_up() {
            self.counters.lost += 1;
            self.submission = Some(Submission::Lost);
        }
    }

    fn forgotten(&mut self, now: Instant) {
        self.lose_vector();
        self.enrolment.join(now);
    }

    /// Records that the caller lacks the sums before the aggregate `next`.
    fn miss(&mut self, next: Round) {
        if self.lacks_state {
            // The sums that wait for the caller build on an older state, which perhaps no peer still has.
            self.receiver.discard_ready();
        }
        self.lacks_state = true;
        self.fail(Failure::Missed(next));
    }

    /// Reports a failure to the caller. The vector in progress is not affected; see [`Self::lose_vector`].
    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.receiver.hold(true);
    }

    /// Handles the switch's refusal of the vector in progress, or of all contributions.
    fn refused(&mut self, failure: Failure) {
        self.lose_vector();
        self.fail(failure);
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let Some(repr) = self.enrolment.open(bytes) else { return false };
        if self.enrolment.take_offer(&repr) || self.enrolment.take_name_answer(&repr) {
            return true;
        }
        if !self.enrolment.is_member() {
            return self.handle_join_answer(now, &repr);
        }
        match repr.body {
            ControlBody::Ack(ack) => self.handle_ack(now, repr.request, &ack),
            ControlBody::Halt if repr.job == self.enrolment.config().job => self.refused(Failure::Halted),
            _ => return false,
        }
        true
    }

    fn handle_ack(&mut self, now: Instant, request: u32, ack: &AckRepr<'_>) {
        let Some(membership) = &mut self.membership else { return };
        // This is a late answer to a Join: the worker is already a member. The answer may carry the epoch of a rack,
        // from before the topmost switch completed the job.
        let is_granted_early = ack.action == Action::Join && ack.status == Status::Success && !ack.formed;
        if ack.status == Status::Challenge || is_granted_early {
            return;
        }
        match membership.hear(ack) {
            Run::Present => {}
            Run::Past => return,
            Run::New => return self.forgotten(now),
        }
        // Joins have their own sequence of request ids.
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
                    self.receiver.note_begun(aggregate);
                    self.submission = Some(Submission::Admitted(aggregate));
                }
            }
            (Status::Success, _) => {}
            (Status::StaleRound, Action::Help) => {
                if self.receiver.lacks_before(ack.round) {
                    let next = self.receiver.latest_from(ack.round);
                    // This member does not know the history before the aggregate `next`.
                    let boot = ack.boot;
                    self.receiver.restart(now, next, 0, boot);
                    self.receiver.ask();
                    self.miss(next);
                }
            }
            (Status::Halted, _) => self.refused(Failure::of_halt(ack.expected)),
            (Status::Diverged, _) => {
                self.divergence = Some(Divergence { aggregate: ack.round, member: ack.expected as u16 });
            }
            (_, Action::Confirm) if !self.sender.is_about_current(request) => {}
            // A late refusal of a Join that has been admitted since, such as a JobFull that the switch sent before
            // the lease of another member expired.
            (_, Action::Join) => {}
            (status, _) => self.refused(Failure::Refused(status)),
        }
    }
}

impl Joins for AsyncProtocol {
    fn begin(config: SessionConfig, now: Instant) -> Self {
        Self::new(config, now)
    }

    fn enrolment(&mut self) -> &mut Enrolment {
        &mut self.enrolment
    }

    fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        self.handle_datagrams(now, class, payload, stride);
    }
}
