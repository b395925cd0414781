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

use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlRepr, DigestRepr, ResumeRepr, Standing, Status,
};
use iswitch_protocol::{Instant, Round, VectorLayout, history};

use super::attempt::Answer;
use super::auth::Authenticator;
use super::enrolment::{Enrolment, Joins};
use super::membership::{MembershipState, Position, Run, max_window};
use super::protocol::{Failure, Membership};
use super::session::{JoinProgress, SessionConfig};
use super::timer::RetryTimer;
use receiver::Receiver;
use sender::Sender;

pub use udp::{Admission, AsyncWorker};

/// Digests that wait to be sent: the network is faster than whoever makes them.
const MAX_PENDING_DIGESTS: usize = 8;

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

/// A request of the caller that is repeated until the switch answers.
#[derive(Debug)]
struct Order {
    id: u32,
    body: ControlBody<'static>,
    timer: RetryTimer,
    due: bool,
}

/// The protocol of a member of an asynchronous job.
#[derive(Debug)]
pub struct AsyncProtocol {
    enrolment: Enrolment,
    /// Once the switch has admitted the member.
    membership: Option<MembershipState>,
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
    counters: AsyncCounters,
}

impl AsyncProtocol {
    /// A member that begins to join. `config.join` must ask for the asynchronous mode.
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

    /// The same with a key: nothing is believed that was not made with it.
    #[must_use]
    pub fn with_key(mut self, authenticator: Authenticator) -> Self {
        self.enrolment.set_key(authenticator);
        self
    }

    /// Whether the job has a key, in the words of somebody who refused this member's and may not be the switch.
    pub fn key_refused(&self) -> Option<bool> {
        self.enrolment.key_refused()
    }

    /// How far joining is.
    pub fn join_progress(&self) -> JoinProgress {
        self.enrolment.progress()
    }

    /// What the switch told when it last admitted the member.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref().map(MembershipState::get)
    }

    /// How the vector is cut up.
    pub fn layout(&self) -> &VectorLayout {
        &self.enrolment.config().layout
    }

    /// What was counted so far.
    pub fn counters(&self) -> AsyncCounters {
        AsyncCounters { rejoins: self.enrolment.rejoins(), ..self.counters }
    }

    /// Whether a vector may be submitted: none is under way, and the sums come in and are taken as they are made. A
    /// member that lags behind would only add to what it, and perhaps all, have to catch up with.
    pub fn is_ready(&self) -> bool {
        let keeps_up = self.receiver.ready_len() <= 1 && !self.receiver.lags();
        self.enrolment.is_member() && self.sender.is_idle() && self.submission.is_none() && keeps_up
    }

    /// Whether there is room for results. If not, datagrams had better stay in the receive buffer until
    /// [`Self::take_sum`].
    pub fn has_room(&self) -> bool {
        self.receiver.has_room()
    }

    /// Begins to send a vector (`[gradient_len]`). [`Self::is_ready`] must hold.
    pub fn submit(&mut self, now: Instant, vector: &[f32]) {
        debug_assert!(self.is_ready());
        self.sender.begin(now, vector, self.enrolment.requests());
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

    /// The switch's answer to [`Self::order`], once.
    pub fn take_order_outcome(&mut self) -> Option<Status> {
        self.order_outcome.take()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = self.enrolment.poll_timeout();
        if !self.enrolment.is_member() {
            return own;
        }
        let order = self.order.as_ref().map(|order| order.timer.deadline());
        let exchange = [self.sender.poll_timeout(), Some(self.receiver.poll_timeout())];
        exchange.into_iter().chain([own, order]).flatten().min()
    }

    /// Lets time pass.
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

    /// Takes in a datagram of the switch, or a super-frame of datagrams of `stride` bytes.
    pub fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        for bytes in payload.chunks(stride.max(1)) {
            let used = match class {
                Class::Control => self.handle_control(now, bytes),
                Class::Data => self.enrolment.is_member() && self.receiver.handle_result(now, bytes),
            };
            self.counters.ignored += u64::from(!used);
        }
        if self.enrolment.is_member() {
            self.receiver.follow();
        }
    }

    /// Writes the next packets into `buffer` and returns their class and the bytes of each.
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

    /// Writes a control packet into `buffer`. A request of zero wants no answer.
    pub fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        self.enrolment.emit(request, body, buffer)
    }

    /// What to tell a switch that has forgotten this member.
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
        if let Some(known) = &mut self.membership {
            known.readmit(membership);
            // Who still lacks the state has to know at which aggregate it is needed now.
            if membership.standing != Standing::Resumed || self.lacks_state {
                self.miss(membership.start);
            }
        } else {
            // The caller learns it from the membership.
            self.membership = Some(MembershipState::new(membership));
            let beginning = history::begin(membership.boot, job, membership.start);
            self.lacks_state = membership.history != beginning;
        }
        let window = max_window(&layout, &membership, recv_buffer_bytes);
        let keys = self.enrolment.data_keys(membership.boot);
        let first = Round::first_vector(self.enrolment.instance(), membership.boot);
        self.sender.admitted(first, window, keys);
        self.receiver.set_tag_key(keys.map(|keys| keys.result));
        self.receiver.restart(now, membership.start, membership.history, membership.boot);
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
        self.enrolment.join(now);
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
        let Some(repr) = self.enrolment.open(bytes) else { return false };
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
        if ack.status == Status::Challenge {
            // The answer to a Join that was late: this is a member by now.
            return;
        }
        match membership.hear(ack) {
            Run::Present => {}
            Run::Past => return,
            Run::New => return self.forgotten(now),
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
