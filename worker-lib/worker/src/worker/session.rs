//! A worker's membership from the first Join to the last round: bytes and a clock in; bytes, a deadline and
//! outcomes out.
//!
//! It joins, waits until the job is complete, and takes part in rounds. If the switch forgets it, because the
//! switch was restarted or the lease ran out, it joins again and says what it has summed. Mostly the round under
//! way is then done again, and the caller notices nothing but the time. If others have gone on meanwhile, the round
//! ends with [`Failure::Missed`].

use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::wire::{
    Action, Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Standing, Status,
};
use iswitch_protocol::{Instant, Round, VectorLayout};

use super::attempt::{Answer, Attempt, heartbeat_interval};
use super::auth::Authenticator;
use super::landing::Landed;
use super::protocol::{Failure, Finished, Membership, WorkerCounters, WorkerProtocol};
use super::superframe::Frame;

/// What a session needs to know.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// The job.
    pub job: u32,
    /// How the vector is cut up: must agree with `join`.
    pub layout: VectorLayout,
    /// What the member declares.
    pub join: JoinRepr,
    /// Receive buffer that the worker really has, in bytes: results that do not fit in it would be lost.
    pub recv_buffer_bytes: usize,
    /// Whether to keep the lease alive. Otherwise the caller does, see [`ControlBody::HEARTBEAT`].
    pub heartbeats: bool,
}

/// How far an attempt to join is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinProgress {
    /// The switch has not answered.
    Unanswered,
    /// The job waits for others: so many members have joined.
    Waiting(u16),
    /// The job is complete.
    Joined,
    /// The switch has refused: the reason, and what was expected.
    Refused(Status, u32),
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Joining(Attempt),
    /// Sends the last sum to those who lack it; the caller's round waits.
    Supplying,
    Member,
    Refused(Status, u32),
}

/// The whole protocol of a worker.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    /// If the job has a key.
    authenticator: Option<Authenticator>,
    phase: Phase,
    attempts: u32,
    /// Once the switch has admitted the worker.
    protocol: Option<WorkerProtocol>,
    /// Sum of the last round, and results of the one under way: `[gradient_len]`.
    sums: Vec<f32>,
    /// Whether the caller waits for a round.
    is_wanted: bool,
    /// Where the worker goes on after it has missed rounds that the caller does not know of yet.
    missed: Option<Round>,
    outcome: Option<Result<Finished, Failure>>,
    heartbeat_at: Instant,
    rejoins: u64,
    /// The request of the caller's that waits for its Ack, and that.
    request: Option<(u32, Option<Status>)>,
    /// Whether somebody has said that the job has a key; whoever it was cannot prove that he is the switch.
    key_refused: Option<bool>,
    /// Control packets that did not come from the switch.
    forged: u64,
    /// What [`Self::poll_transmit`] puts together.
    frame: Frame,
}

impl Session {
    /// A worker that begins to join.
    pub fn new(config: SessionConfig, now: Instant) -> Self {
        let mut session = Self {
            config,
            authenticator: None,
            phase: Phase::Member,
            attempts: 0,
            protocol: None,
            sums: vec![0.0; config.layout.gradient_len() as usize],
            is_wanted: false,
            missed: None,
            outcome: None,
            heartbeat_at: now,
            rejoins: 0,
            request: None,
            key_refused: None,
            forged: 0,
            frame: Frame::default(),
        };
        session.join(now);
        session
    }

    /// The same with a key: nothing is believed that was not made with it.
    #[must_use]
    pub fn with_key(mut self, authenticator: Authenticator) -> Self {
        self.authenticator = Some(authenticator);
        self
    }

    /// Whether the job has a key, in the words of somebody who refused this worker's and may not be the switch.
    pub fn key_refused(&self) -> Option<bool> {
        self.key_refused
    }

    /// How far joining is.
    pub fn join_progress(&self) -> JoinProgress {
        match self.phase {
            Phase::Joining(attempt) => attempt.progress(),
            Phase::Supplying | Phase::Member => JoinProgress::Joined,
            Phase::Refused(status, expected) => JoinProgress::Refused(status, expected),
        }
    }

    /// What the switch told when it last admitted the worker.
    pub fn membership(&self) -> Option<&Membership> {
        self.protocol.as_ref().map(WorkerProtocol::membership)
    }

    /// How the vector is cut up.
    pub fn layout(&self) -> &VectorLayout {
        &self.config.layout
    }

    /// Sum of the last round that was finished: `[gradient_len]`, until the next one begins.
    pub fn sum(&self) -> &[f32] {
        &self.sums
    }

    /// Gradients in each segment of the last sum: `[segment_count]`.
    pub fn contributions(&self) -> &[u16] {
        self.protocol.as_ref().map_or(&[], WorkerProtocol::contributions)
    }

    /// What was counted so far.
    pub fn counters(&self) -> WorkerCounters {
        let counters = self.protocol.as_ref().map(|protocol| *protocol.counters()).unwrap_or_default();
        WorkerCounters { ignored: counters.ignored + self.forged, ..counters }
    }

    /// How often the switch has forgotten this worker and taken it back.
    pub fn rejoins(&self) -> u64 {
        self.rejoins
    }

    /// Number of the round that comes next, or is under way; the job's numbers change when the switch is restarted.
    pub fn round(&self) -> Round {
        self.protocol.as_ref().map_or_else(Round::default, WorkerProtocol::next_round)
    }

    /// Whether the switch has lost its parent, without which there are no sums.
    pub fn is_orphaned(&self) -> bool {
        self.protocol.as_ref().is_some_and(WorkerProtocol::is_orphaned)
    }

    /// Segments without a result in the round under way.
    pub fn remaining(&self) -> usize {
        self.protocol.as_ref().map_or(0, WorkerProtocol::remaining)
    }

    /// Begins the next round. If the worker is not a member just now, it begins when it is again.
    pub fn begin_round(&mut self, now: Instant) {
        self.outcome = None;
        if let Some(round) = self.missed.take() {
            self.outcome = Some(Err(Failure::Missed(round)));
            return;
        }
        self.is_wanted = true;
        match self.phase {
            Phase::Member => self.start_round(now),
            Phase::Refused(..) => self.join(now),
            Phase::Joining(_) | Phase::Supplying => {}
        }
    }

    /// Gives up the round under way; the next call to [`Self::begin_round`] repeats it.
    pub fn abandon_round(&mut self) {
        self.is_wanted = false;
        if let (Phase::Member, Some(protocol)) = (self.phase, &mut self.protocol) {
            protocol.abandon_round();
        }
    }

    /// How the round ended, once.
    pub fn take_outcome(&mut self) -> Option<Result<Finished, Failure>> {
        self.outcome.take()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = match self.phase {
            Phase::Joining(attempt) => Some(attempt.deadline()),
            Phase::Supplying | Phase::Member => self.protocol.as_ref().and_then(WorkerProtocol::poll_timeout),
            Phase::Refused(..) => None,
        };
        let heartbeat = self.sends_heartbeats().then_some(self.heartbeat_at);
        own.into_iter().chain(heartbeat).min()
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Joining(attempt) => attempt.handle_timeout(now),
            Phase::Supplying | Phase::Member => {
                if let Some(protocol) = &mut self.protocol {
                    protocol.handle_timeout(now);
                }
            }
            Phase::Refused(..) => {}
        }
    }

    /// Takes in a datagram of the switch, or a super-frame of datagrams of `stride` bytes.
    pub fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        match class {
            Class::Control => {
                payload.chunks(stride.max(1)).for_each(|bytes| self.handle_control(now, bytes));
            }
            Class::Data => self.pass_on(now, class, payload, stride),
        }
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) {
        let Ok(packet) = ControlPacket::new_checked(bytes) else { return self.forged += 1 };
        let Ok(repr) = ControlRepr::parse(&packet) else { return self.forged += 1 };
        if self.authenticator.as_ref().is_some_and(|own| !own.accept(&packet)) {
            self.forged += 1;
            return self.note_refused_key(&repr);
        }
        if let (ControlBody::Ack(ack), Some((request, outcome))) = (&repr.body, &mut self.request)
            && (repr.request == *request && ack.action != Action::Join)
        {
            *outcome = Some(ack.status);
            return;
        }
        match self.phase {
            Phase::Joining(_) => self.handle_join_answer(now, &repr),
            _ if self.is_contradicted(&repr) => self.join(now),
            _ => self.pass_on(now, Class::Control, bytes, bytes.len()),
        }
    }

    /// Whether the last Join was granted once more, and otherwise: one of the two answers is of an earlier run of a
    /// switch whose parent has been the same all along, and only another Join tells which.
    fn is_contradicted(&self, repr: &ControlRepr<'_>) -> bool {
        let (ControlBody::Ack(ack), Some(membership)) = (&repr.body, self.membership()) else { return false };
        let is_granted = (ack.action, ack.status, ack.formed) == (Action::Join, Status::Success, true);
        let is_last = repr.request == Attempt::request_of(self.config.join.instance, self.attempts);
        is_granted && is_last && (ack.round, ack.standing) != (membership.start, membership.standing)
    }

    fn pass_on(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        if let (Phase::Supplying | Phase::Member, Some(protocol)) = (self.phase, &mut self.protocol) {
            protocol.handle_datagrams(now, class, payload, stride, &mut self.sums);
            self.follow(now);
        }
    }

    fn note_refused_key(&mut self, repr: &ControlRepr<'_>) {
        if let Phase::Joining(attempt) = self.phase {
            self.key_refused = attempt.key_refused(repr).or(self.key_refused);
        }
    }

    /// Where the floats of the next results are likely to belong: in the sums, segment after segment. Whoever receives
    /// into them calls [`Self::handle_landed`] next.
    pub(super) fn landing(&mut self) -> Option<&mut [f32]> {
        let places = self.landing_places()?;
        self.sums.get_mut(places)
    }

    fn landing_places(&self) -> Option<Range<usize>> {
        let Phase::Member = self.phase else { return None };
        let landing = self.protocol.as_ref().and_then(WorkerProtocol::landing)?;
        let size = usize::from(self.config.layout.segment_floats());
        Some(landing.start as usize * size..(landing.end as usize * size).min(self.sums.len()))
    }

    /// As [`Self::handle_datagrams`], on the way that the driver's datagrams take: the same comes of it.
    pub fn handle_scattered(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        let segment_floats = usize::from(self.config.layout.segment_floats());
        let Some(places) = self.landing() else { return self.handle_datagrams(now, class, payload, stride) };
        let mut rest = vec![0; payload.len()];
        let landed = Landed::scatter(places, segment_floats, &mut rest, payload, stride);
        self.handle_landed(now, class, &landed, &rest);
    }

    /// Takes in what was received into [`Self::landing`], and into `rest` what did not fit there.
    pub(super) fn handle_landed(&mut self, now: Instant, class: Class, landed: &Landed, rest: &[u8]) {
        let (Some(places), Some(protocol)) = (self.landing_places(), &mut self.protocol) else { return };
        let (layout, stride) = (self.config.layout, landed.received.stride);
        let segs = if class == Class::Data { landed.segs(layout.full_packet_len()) } else { &[] };
        let taken = protocol.handle_landed(now, segs, stride, landed.last_len());
        self.follow(now);
        if taken * stride < landed.received.len {
            let size = usize::from(layout.segment_floats());
            let bytes = landed.gather(taken, &self.sums[places], size, rest);
            self.handle_datagrams(now, class, &bytes, stride);
        }
    }

    /// Writes the next packets into `buffer` and returns their class and the bytes of each. `contribution`
    /// (`[gradient_len]`) must be the same until the round has ended.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        contribution: &[f32],
        buffer: &mut Vec<u8>,
    ) -> Option<(Class, usize)> {
        let mut frame = core::mem::take(&mut self.frame);
        let transmit = self.poll_frame(now, contribution, &mut frame);
        if transmit.is_some() {
            frame.assemble(self.source(contribution), buffer);
        }
        self.frame = frame;
        transmit
    }

    /// The vector that the segments of a frame are of.
    pub(super) fn source<'a>(&'a self, contribution: &'a [f32]) -> &'a [f32] {
        if matches!(self.phase, Phase::Supplying) { &self.sums } else { contribution }
    }

    /// As [`Self::poll_transmit`]; the floats may stay where they are: see [`Self::source`].
    pub(super) fn poll_frame(
        &mut self,
        now: Instant,
        contribution: &[f32],
        frame: &mut Frame,
    ) -> Option<(Class, usize)> {
        frame.clear();
        if let Phase::Joining(attempt) = &mut self.phase {
            let nonce = attempt.nonce(self.authenticator.as_ref());
            return attempt.take_due().map(|request| {
                let join = JoinRepr { resume: self.resume(), nonce, ..self.config.join };
                self.emit(request, ControlBody::Join(join), frame.control())
            });
        }
        if self.sends_heartbeats() && self.heartbeat_at <= now {
            self.heartbeat_at = now.plus(self.heartbeat_interval());
            return Some(self.emit(0, ControlBody::HEARTBEAT, frame.control()));
        }
        let protocol = self.protocol.as_mut()?;
        let (class, stride) = match self.phase {
            Phase::Supplying => protocol.poll_frame(now, &self.sums, frame),
            Phase::Member => protocol.poll_frame(now, contribution, frame),
            Phase::Joining(_) | Phase::Refused(..) => None,
        }?;
        if class == Class::Control {
            // In rounds it asks for help and nothing else.
            self.sign(Action::Help, frame.control());
            return Some((class, frame.len()));
        }
        Some((class, stride))
    }

    /// Writes a control packet into `buffer`.
    pub fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        let repr = ControlRepr { job: self.config.job, request, body };
        buffer.resize(repr.buffer_len(), 0);
        repr.emit(buffer);
        self.sign(repr.action(), buffer);
        (Class::Control, buffer.len())
    }

    fn sign(&self, action: Action, packet: &mut Vec<u8>) {
        if let Some(authenticator) = &self.authenticator {
            authenticator.sign(action, packet);
        }
    }

    /// Begins to wait for the Ack of a request of the caller's, and returns the id to send it with.
    pub fn begin_request(&mut self) -> u32 {
        let id = self.protocol.as_mut().map_or(1, WorkerProtocol::take_request_id);
        self.request = Some((id, None));
        id
    }

    /// The status in the Ack of that request, once it has come.
    pub fn take_acknowledgement(&mut self) -> Option<Status> {
        let status = self.request?.1?;
        self.request = None;
        Some(status)
    }

    fn resume(&self) -> Option<iswitch_protocol::wire::ResumeRepr> {
        self.protocol.as_ref().and_then(WorkerProtocol::resume)
    }

    fn sends_heartbeats(&self) -> bool {
        self.config.heartbeats && matches!(self.phase, Phase::Member | Phase::Supplying)
    }

    fn heartbeat_interval(&self) -> Duration {
        heartbeat_interval(self.membership().map_or(Duration::ZERO, |membership| membership.lease))
    }

    fn join(&mut self, now: Instant) {
        self.attempts += 1;
        self.phase = Phase::Joining(Attempt::new(self.config.join.instance, self.attempts, now));
        if let Some((_, outcome)) = &mut self.request {
            // The switch does not answer the request of a membership that is over.
            outcome.get_or_insert(Status::UnknownMember);
        }
    }

    fn handle_join_answer(&mut self, now: Instant, repr: &ControlRepr<'_>) {
        let Phase::Joining(attempt) = &mut self.phase else { return };
        match attempt.handle_answer(now, repr, self.authenticator.as_ref()) {
            Some(Answer::Refused(status, expected)) => self.refused(status, expected),
            Some(Answer::Admitted(membership)) => self.admitted(now, membership),
            None => {}
        }
    }

    fn refused(&mut self, status: Status, expected: u32) {
        self.phase = Phase::Refused(status, expected);
        if core::mem::take(&mut self.is_wanted) {
            self.outcome = Some(Err(Failure::JoinRefused(status, expected)));
        }
    }

    fn admitted(&mut self, now: Instant, membership: Membership) {
        self.phase = Phase::Member;
        let is_news = self.protocol.as_ref().is_none_or(|protocol| !protocol.stands_at(&membership));
        if let Some(protocol) = &mut self.protocol {
            self.rejoins += 1;
            protocol.readmit(membership);
        } else {
            let SessionConfig { job, layout, recv_buffer_bytes, .. } = self.config;
            self.protocol = Some(WorkerProtocol::new(job, layout, membership, recv_buffer_bytes));
        }
        let keys = self.authenticator.as_ref().filter(|_| self.config.join.tagged);
        let keys = keys.map(|own| own.data_keys(membership.boot, self.config.job));
        if let Some(protocol) = &mut self.protocol {
            protocol.set_data_keys(keys);
        }
        self.heartbeat_at = now.plus(self.heartbeat_interval());
        match membership.standing {
            Standing::Fresh if self.rejoins > 0 && is_news => self.has_missed(membership.start),
            Standing::Fresh | Standing::Resumed | Standing::Awaits => self.start_round(now),
            Standing::Supplies => {
                self.phase = Phase::Supplying;
                if let Some(protocol) = &mut self.protocol {
                    protocol.begin_supplying(now);
                }
            }
        }
    }

    fn has_missed(&mut self, next: Round) {
        if core::mem::take(&mut self.is_wanted) {
            self.outcome = Some(Err(Failure::Missed(next)));
        } else {
            self.missed = Some(next);
        }
    }

    /// Starts the round that the caller waits for, if it does.
    fn start_round(&mut self, now: Instant) {
        if let Some(protocol) = self.protocol.as_mut().filter(|_| self.is_wanted) {
            protocol.begin_round(now);
        }
    }

    /// Draws the consequences of what the protocol has come to.
    fn follow(&mut self, now: Instant) {
        let Some(outcome) = self.protocol.as_mut().and_then(WorkerProtocol::take_outcome) else { return };
        match (outcome, self.phase) {
            (Err(Failure::Forgotten), _) => self.join(now),
            (Ok(_), Phase::Supplying) => {
                self.phase = Phase::Member;
                self.start_round(now);
            }
            (outcome, _) => {
                self.phase = Phase::Member;
                if core::mem::take(&mut self.is_wanted) {
                    self.outcome = Some(outcome);
                }
            }
        }
    }
}
