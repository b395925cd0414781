//! Enrolment in a job, common to both modes: joining, rejoining if the switch no longer knows the member, heartbeats,
//! the member's Name, and the authentication of control packets.

use core::net::SocketAddrV4;
use core::time::Duration;

use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, Exceeded, JoinRepr, Mode, NameRepr, ResumeRepr, Status,
};
use iswitch_protocol::{Instant, VectorLayout};

use super::attempt::{Answer, Attempt, heartbeat_interval};
use super::auth::{Authenticator, DataKeys};
use super::group::GroupState;
use super::naming::Naming;
use super::requests::Requests;

/// Difference between the instance numbers of two consecutive memberships of a process. It is large enough that the
/// vector numbers of the two memberships do not overlap.
const INSTANCE_STEP: u32 = 0x9E37_79B9;

/// Configuration of a member before it joins.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// Job number.
    pub job: u32,
    /// Layout of the vector; must be consistent with `join`.
    pub layout: VectorLayout,
    /// Number of parts into which the whole vector is divided, at least 1; the member has one of them. The parts
    /// share the link to the switch.
    pub parts: usize,
    /// The Join that the member sends.
    pub join: JoinRepr,
    /// Actual size of the worker's receive buffer, in bytes: results that do not fit in it would be lost.
    pub recv_buffer_bytes: usize,
    /// Whether to send heartbeats. If false, the caller must send them; see [`ControlBody::HEARTBEAT`].
    pub heartbeats: bool,
    /// Names of the job and of the member that the switch shows to operators; [`NameRepr::UNKNOWN`] sends none.
    pub name: NameRepr,
}

/// Progress of an attempt to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinProgress {
    /// The switch has not answered.
    Unanswered,
    /// The job waits for other members. The value is the number of members that have joined.
    Waiting(u16),
    /// The job is complete.
    Joined,
    /// The switch refused the Join; the values are the reason and the expected value.
    Refused(Status, u32),
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Joining(Attempt),
    Member,
    Refused(Status, u32),
}

/// Protocol whose first step is to join a job.
pub(super) trait Joins {
    /// Begins to join.
    fn begin(config: SessionConfig, now: Instant) -> Self;

    fn enrolment(&mut self) -> &mut Enrolment;

    fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize);
}

/// State of a process's membership in a job: its attempts to join, and its heartbeats.
#[derive(Debug)]
pub(super) struct Enrolment {
    config: SessionConfig,
    phase: Phase,
    attempts: u32,
    /// Number of parts that the switch has announced; zero before its first answer.
    parts: u8,
    /// Number of times that the switch has admitted the member, including readmissions.
    admissions: u64,
    requests: Requests,
    /// Whether the job has a key, according to a refusal; the refusal is not authenticated, so it may be forged.
    key_refused: Option<bool>,
    /// Limit that the switch named when it refused the Join.
    exceeded: Option<Exceeded>,
    heartbeat_interval: Duration,
    heartbeat_at: Instant,
    /// Group of the job, and the epoch of the membership.
    group: GroupState,
    epoch: u64,
    naming: Naming,
}

impl Enrolment {
    /// Begins to join.
    pub(super) fn new(config: SessionConfig, now: Instant) -> Self {
        let mut enrolment = Self {
            config,
            phase: Phase::Member,
            attempts: 0,
            parts: 0,
            admissions: 0,
            requests: Requests::new(config.job),
            key_refused: None,
            exceeded: None,
            heartbeat_interval: Duration::ZERO,
            heartbeat_at: now,
            group: GroupState::default(),
            epoch: 0,
            naming: Naming::new(config.name),
        };
        enrolment.join(now);
        enrolment
    }

    /// Sets the key of the job: from now on, only packets that were authenticated with it are accepted.
    pub(super) fn set_key(&mut self, authenticator: Authenticator) {
        self.requests.set_key(authenticator);
    }

    pub(super) fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Returns the allocator of the member's request ids.
    pub(super) fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Returns whether the job has a key, according to a refusal of this member's key. The refusal is not authenticated
    /// and may be forged. Returns `None` if there was no such refusal.
    pub(super) fn key_refused(&self) -> Option<bool> {
        self.key_refused
    }

    /// If the switch refused the Join because a limit was exceeded, and named the limit, returns that limit;
    /// otherwise returns `None`.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded
    }

    /// Returns the progress of the attempt to join.
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

    /// Returns the number of parts that the switch has announced; zero before its first answer.
    pub(super) fn announced_parts(&self) -> u8 {
        self.parts
    }

    /// Returns the number of times that the switch has forgotten the member and readmitted it.
    pub(super) fn rejoins(&self) -> u64 {
        self.admissions.saturating_sub(1)
    }

    /// Begins a new attempt to join.
    pub(super) fn join(&mut self, now: Instant) {
        self.attempts += 1;
        self.group = GroupState::default();
        self.naming.end();
        self.phase = Phase::Joining(Attempt::new(self.config.join.instance, self.attempts, now));
    }

    /// Sets the instance number from which those of the next memberships are derived.
    pub(super) fn set_instance(&mut self, instance: u32) {
        self.config.join.instance = instance;
    }

    /// Returns the instance number that the member declares. An asynchronous member uses a new number for each
    /// membership, because the numbers of its vectors are derived from it.
    pub(super) fn instance(&self) -> u32 {
        let instance = self.config.join.instance;
        match self.config.join.mode {
            Mode::Synchronous => instance,
            Mode::Asynchronous => instance.wrapping_add(INSTANCE_STEP.wrapping_mul(self.attempts - 1)),
        }
    }

    /// Returns whether a request id belongs to the Join of the last attempt.
    pub(super) fn is_last_join(&self, request: u32) -> bool {
        request == Attempt::request_of(self.config.join.instance, self.attempts)
    }

    /// Returns the keys that tag data packets in the incarnation of the job with the epoch `boot`; `None` if data is
    /// not tagged.
    pub(super) fn data_keys(&self, boot: u64) -> Option<DataKeys> {
        let authenticator = self.requests.authenticator().filter(|_| self.config.join.tagged)?;
        Some(authenticator.data_keys(boot, self.config.job))
    }

    /// Returns the time at which [`Self::handle_timeout`] or [`Self::poll_transmit`] is due, or `None` if no timer is
    /// running.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Joining(attempt) => self.naming.deadline().into_iter().chain([attempt.deadline()]).min(),
            Phase::Member => {
                let heartbeat = self.config.heartbeats.then_some(self.heartbeat_at);
                self.naming.deadline().into_iter().chain(heartbeat).min()
            }
            Phase::Refused(..) => None,
        }
    }

    /// Handles the timers that have expired by `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Phase::Joining(attempt) = &mut self.phase {
            attempt.handle_timeout(now);
        }
    }

    /// Writes a Join, a Heard, a Name or a heartbeat that is due into `buffer`. `resume` is called to get the member's
    /// position for a Join. Returns the class of the packet and its length in bytes, or `None` if no packet is due.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        resume: impl FnOnce() -> Option<ResumeRepr>,
        buffer: &mut Vec<u8>,
    ) -> Option<(Class, usize)> {
        match &mut self.phase {
            Phase::Joining(attempt) => {
                let Some(request) = attempt.take_due() else { return self.poll_name(now, buffer) };
                let nonce = attempt.nonce(self.requests.authenticator());
                let join =
                    JoinRepr { resume: resume(), instance: self.instance(), nonce, ..self.config.join };
                Some(self.requests.emit(request, ControlBody::Join(join), buffer))
            }
            Phase::Member => {
                if let Some(nonce) = self.group.take_due() {
                    return Some(self.requests.emit(0, ControlBody::Heard { nonce }, buffer));
                }
                if !self.config.heartbeats || self.heartbeat_at > now {
                    return self.poll_name(now, buffer);
                }
                self.heartbeat_at = now.plus(self.heartbeat_interval);
                Some(self.requests.emit(0, ControlBody::HEARTBEAT, buffer))
            }
            Phase::Refused(..) => None,
        }
    }

    /// Writes the Name into `buffer` if it is due.
    fn poll_name(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<(Class, usize)> {
        let Self { naming, requests, .. } = self;
        let (request, name) = naming.take_due(now, || requests.take_id())?;
        Some(requests.emit(request, name, buffer))
    }

    /// Ends the attempts to send the Name if the packet answers it. Returns whether the packet needs no further
    /// processing.
    pub(super) fn take_name_answer(&mut self, repr: &ControlRepr<'_>) -> bool {
        self.naming.take_answer(repr)
    }

    /// Parses a control packet; returns it if it is well-formed and, in a job with a key, authentic.
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

    /// Handles the answer to a Join; returns `None` if the packet neither admits nor refuses the member.
    pub(super) fn handle_answer(&mut self, now: Instant, repr: &ControlRepr<'_>) -> Option<Answer> {
        let Phase::Joining(attempt) = &mut self.phase else { return None };
        let answer = attempt.handle_answer(now, repr, self.requests.authenticator());
        self.parts = attempt.parts();
        if let Some((epoch, lease)) = attempt.granted(repr) {
            // The Name is sent even before the job is complete, because operators want to see which members have
            // joined.
            self.naming.admitted(now, epoch, heartbeat_interval(lease));
        }
        let answer = answer?;
        match &answer {
            Answer::Refused(status, expected) => {
                self.phase = Phase::Refused(*status, *expected);
                self.exceeded = match &repr.body {
                    ControlBody::Ack(ack) => ack.exceeded(),
                    _ => None,
                };
            }
            Answer::Admitted(membership) => {
                self.phase = Phase::Member;
                self.admissions += 1;
                self.epoch = membership.boot;
                self.heartbeat_interval = heartbeat_interval(membership.lease);
                // The switch must hear from the member immediately (requirement M-12): by its contribution or by a
                // heartbeat.
                self.heartbeat_at = match self.config.join.mode {
                    Mode::Synchronous => now.plus(self.heartbeat_interval),
                    Mode::Asynchronous => now,
                };
            }
        }
        Some(answer)
    }

    /// Returns the state of the member's subscription to the group of its job.
    pub(super) fn group(&mut self) -> &mut GroupState {
        &mut self.group
    }

    /// Returns the group whose packets the driver should receive, or `None` if the switch has offered no group.
    pub(super) fn wanted_group(&self) -> Option<SocketAddrV4> {
        self.group.wanted()
    }

    /// Processes an offer of a group from the switch. Returns false if the packet is not an offer.
    pub(super) fn take_offer(&mut self, repr: &ControlRepr<'_>) -> bool {
        let ControlBody::Group(group) = repr.body else { return false };
        let is_ours = self.is_member() && repr.job == self.config.job && self.config.join.groups;
        if is_ours {
            self.group.offer(group);
        }
        is_ours
    }

    /// Handles a control packet that arrived through the group. Returns false unless it is an authentic Probe.
    pub(super) fn handle_probe(&mut self, bytes: &[u8]) -> bool {
        let Some(packet) = ControlPacket::new_checked(bytes).ok().filter(|_| self.group.is_subscribed())
        else {
            return false;
        };
        let Ok(ControlRepr { job, body: ControlBody::Probe { nonce }, .. }) = ControlRepr::parse(&packet)
        else {
            return false;
        };
        let authenticator = self.requests.authenticator();
        let is_authentic = authenticator.is_none_or(|own| own.accept_from_group(self.epoch, &packet));
        let is_ours = is_authentic && job == self.config.job && nonce != 0;
        if is_ours {
            self.group.probed(nonce);
        }
        is_ours
    }

    /// Writes a control packet into `buffer`. If `request` is zero, the packet requests no answer.
    pub(super) fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        self.requests.emit(request, body, buffer)
    }
}
