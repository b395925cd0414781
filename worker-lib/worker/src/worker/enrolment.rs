//! Enrolment in a job, the same for both modes: joining, joining again when the switch has forgotten the member,
//! heartbeats, and which control packets to believe.

use core::time::Duration;

use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Mode, ResumeRepr, Status,
};
use iswitch_protocol::{Instant, VectorLayout};

use super::attempt::{Answer, Attempt, heartbeat_interval};
use super::auth::{Authenticator, DataKeys};
use super::requests::Requests;

/// Distance between the instances of two memberships of a process, so that the numbers of their vectors are apart.
const INSTANCE_STEP: u32 = 0x9E37_79B9;

/// What a member needs to know before it joins.
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
    Member,
    Refused(Status, u32),
}

/// A protocol that begins with joining.
pub(super) trait Joins {
    /// Begins to join.
    fn begin(config: SessionConfig, now: Instant) -> Self;

    fn enrolment(&mut self) -> &mut Enrolment;

    fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize);
}

/// A process's attempts to be a member of a job, and its signs of life.
#[derive(Debug)]
pub(super) struct Enrolment {
    config: SessionConfig,
    phase: Phase,
    attempts: u32,
    /// How often the switch has admitted the member.
    admissions: u64,
    requests: Requests,
    /// Whether somebody has said that the job has a key; it may not have been the switch.
    key_refused: Option<bool>,
    heartbeat_interval: Duration,
    heartbeat_at: Instant,
}

impl Enrolment {
    /// Begins to join.
    pub(super) fn new(config: SessionConfig, now: Instant) -> Self {
        let mut enrolment = Self {
            config,
            phase: Phase::Member,
            attempts: 0,
            admissions: 0,
            requests: Requests::new(config.job),
            key_refused: None,
            heartbeat_interval: Duration::ZERO,
            heartbeat_at: now,
        };
        enrolment.join(now);
        enrolment
    }

    /// Believes from now on only what was made with the key.
    pub(super) fn set_key(&mut self, authenticator: Authenticator) {
        self.requests.set_key(authenticator);
    }

    pub(super) fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// The requests of the member.
    pub(super) fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Whether the job has a key, as told by a sender that refused this member's and may not be the switch.
    pub(super) fn key_refused(&self) -> Option<bool> {
        self.key_refused
    }

    /// How far joining is.
    pub(super) fn progress(&self) -> JoinProgress {
        match self.phase {
            Phase::Joining(attempt) => attempt.progress(),
            Phase::Member => JoinProgress::Joined,
            Phase::Refused(status, expected) => JoinProgress::Refused(status, expected),
        }
    }

    pub(super) fn is_member(&self) -> bool {
        matches!(self.phase, Phase::Member)
    }

    pub(super) fn is_joining(&self) -> bool {
        matches!(self.phase, Phase::Joining(_))
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self.phase, Phase::Refused(..))
    }

    /// How often the switch has forgotten the member and taken it back.
    pub(super) fn rejoins(&self) -> u64 {
        self.admissions.saturating_sub(1)
    }

    /// Joins, perhaps again.
    pub(super) fn join(&mut self, now: Instant) {
        self.attempts += 1;
        self.phase = Phase::Joining(Attempt::new(self.config.join.instance, self.attempts, now));
    }

    /// What the member declares as its instance. An asynchronous member has another one for each membership, because
    /// its vectors are numbered from there.
    pub(super) fn instance(&self) -> u32 {
        let instance = self.config.join.instance;
        match self.config.join.mode {
            Mode::Synchronous => instance,
            Mode::Asynchronous => instance.wrapping_add(INSTANCE_STEP.wrapping_mul(self.attempts - 1)),
        }
    }

    /// Whether a request is the Join of the last attempt.
    pub(super) fn is_last_join(&self, request: u32) -> bool {
        request == Attempt::request_of(self.config.join.instance, self.attempts)
    }

    /// With which data packets are tagged under a run of the switch, if they are.
    pub(super) fn data_keys(&self, boot: u64) -> Option<DataKeys> {
        let authenticator = self.requests.authenticator().filter(|_| self.config.join.tagged)?;
        Some(authenticator.data_keys(boot, self.config.job))
    }

    /// When [`Self::handle_timeout`] or [`Self::poll_transmit`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Joining(attempt) => Some(attempt.deadline()),
            Phase::Member => self.config.heartbeats.then_some(self.heartbeat_at),
            Phase::Refused(..) => None,
        }
    }

    /// Lets time pass.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Phase::Joining(attempt) = &mut self.phase {
            attempt.handle_timeout(now);
        }
    }

    /// Writes a Join or a heartbeat that is due into `buffer`. `resume` says where the member stands.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        resume: impl FnOnce() -> Option<ResumeRepr>,
        buffer: &mut Vec<u8>,
    ) -> Option<(Class, usize)> {
        match &mut self.phase {
            Phase::Joining(attempt) => {
                let request = attempt.take_due()?;
                let nonce = attempt.nonce(self.requests.authenticator());
                let join =
                    JoinRepr { resume: resume(), instance: self.instance(), nonce, ..self.config.join };
                Some(self.requests.emit(request, ControlBody::Join(join), buffer))
            }
            Phase::Member if self.config.heartbeats && self.heartbeat_at <= now => {
                self.heartbeat_at = now.plus(self.heartbeat_interval);
                Some(self.requests.emit(0, ControlBody::HEARTBEAT, buffer))
            }
            Phase::Member | Phase::Refused(..) => None,
        }
    }

    /// A control packet, if it is sound and, in a job with a key, comes from the switch.
    pub(super) fn open<'a>(&mut self, bytes: &'a [u8]) -> Option<ControlRepr<'a>> {
        let packet = ControlPacket::new_checked(bytes).ok()?;
        let repr = ControlRepr::parse(&packet).ok()?;
        if self.requests.authenticator().is_some_and(|own| !own.accept(&packet)) {
            if let Phase::Joining(attempt) = self.phase {
                self.key_refused = attempt.key_refused(&repr).or(self.key_refused);
            }
            return None;
        }
        Some(repr)
    }

    /// Takes in the answer to the Join of a member that joins; `None` if the packet decides nothing.
    pub(super) fn handle_answer(&mut self, now: Instant, repr: &ControlRepr<'_>) -> Option<Answer> {
        let Phase::Joining(attempt) = &mut self.phase else { return None };
        let answer = attempt.handle_answer(now, repr, self.requests.authenticator())?;
        match &answer {
            Answer::Refused(status, expected) => self.phase = Phase::Refused(*status, *expected),
            Answer::Admitted(membership) => {
                self.phase = Phase::Member;
                self.admissions += 1;
                self.heartbeat_interval = heartbeat_interval(membership.lease);
                // The switch hears of the member at once (requirement M-12), by its contribution or by a heartbeat.
                self.heartbeat_at = match self.config.join.mode {
                    Mode::Synchronous => now.plus(self.heartbeat_interval),
                    Mode::Asynchronous => now,
                };
            }
        }
        Some(answer)
    }

    /// Writes a control packet into `buffer`. A request of zero wants no answer.
    pub(super) fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        self.requests.emit(request, body, buffer)
    }
}
