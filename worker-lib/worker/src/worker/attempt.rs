//! One attempt to join: the Join is repeated until the switch answers and the job is complete.

use core::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::wire::{Action, ControlBody, ControlRepr, Status};

use super::auth::Authenticator;
use super::enrolment::JoinProgress;
use super::membership::Membership;

/// Initial time after which an unanswered request is repeated; the interval doubles with each repetition.
pub(super) const FIRST_RETRY: Duration = Duration::from_millis(20);
/// Maximum time after which an unanswered request is repeated.
pub(super) const LAST_RETRY: Duration = Duration::from_millis(500);

/// Number of heartbeats per lease: several heartbeats can be lost without the lease expiring.
const HEARTBEATS_PER_LEASE: u32 = 4;

/// Returns the interval between two heartbeats.
pub(crate) fn heartbeat_interval(lease: Duration) -> Duration {
    (lease / HEARTBEATS_PER_LEASE).max(Duration::from_millis(1))
}

/// A Join that has not been granted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Id of the Join; the Ack contains the same id.
    request: u32,
    retry: Duration,
    longest_retry: Duration,
    deadline: Instant,
    /// Whether to send the Join now.
    due: bool,
    /// Number of members that have joined, once the switch has answered.
    present: Option<u16>,
    /// Number of parts that the switch has announced; zero before its first answer.
    parts: u8,
    /// Nonce of the last challenge in a job without a key; by repeating it, the worker proves that it receives packets
    /// sent to its address.
    nonce: u64,
}

/// Answer of the switch to a Join.
pub(crate) enum Answer {
    /// The worker is a member of a complete job.
    Admitted(Membership),
    /// The switch refused the Join; the values are the reason and the expected value.
    Refused(Status, u32),
}

impl Attempt {
    /// Creates attempt `number` of the process with the instance `instance`. The attempt's request id differs from
    /// those of other processes that joined from the same address, because Acks to those processes may still be in
    /// flight.
    pub(crate) fn new(instance: u32, number: u32, now: Instant) -> Self {
        Self {
            request: Self::request_of(instance, number),
            retry: FIRST_RETRY,
            longest_retry: LAST_RETRY,
            deadline: now.plus(FIRST_RETRY),
            due: true,
            present: None,
            parts: 0,
            nonce: 0,
        }
    }

    /// Returns the request id of all Joins of the attempt `number`.
    pub(crate) fn request_of(instance: u32, number: u32) -> u32 {
        instance.wrapping_add(number).max(1)
    }

    /// Returns the progress of the attempt.
    pub(crate) fn progress(&self) -> JoinProgress {
        self.present.map_or(JoinProgress::Unanswered, JoinProgress::Waiting)
    }

    /// Returns the number of parts that the switch has announced; zero before its first answer.
    pub(crate) fn parts(&self) -> u8 {
        self.parts
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Marks the Join as due if its deadline has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.deadline <= now {
            self.retry = (self.retry * 2).min(self.longest_retry);
            self.deadline = now.plus(self.retry);
            self.due = true;
        }
    }

    /// Returns the id of the Join if it is due to be sent, and marks it as no longer due.
    pub(crate) fn take_due(&mut self) -> Option<u32> {
        core::mem::take(&mut self.due).then_some(self.request)
    }

    /// Returns the nonce that the Join repeats.
    pub(crate) fn nonce(&self, authenticator: Option<&Authenticator>) -> u64 {
        authenticator.map_or(self.nonce, Authenticator::session)
    }

    /// Handles a control packet, which must be authentic if the job has a key. Returns `None` if the packet neither
    /// admits nor refuses the member.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        repr: &ControlRepr<'_>,
        authenticator: Option<&Authenticator>,
    ) -> Option<Answer> {
        let ControlBody::Ack(ack) = repr.body else { return None };
        if repr.request != self.request || ack.action != Action::Join {
            return None;
        }
        self.parts = ack.parts;
        if ack.status == Status::Challenge {
            match authenticator {
                Some(authenticator) => authenticator.open_session(ack.history),
                None => self.nonce = ack.history,
            }
            self.due = true;
            // The switch may also challenge a member; the number of members is then at least 1.
            self.present = Some(ack.members).filter(|members| *members > 0).or(self.present);
            self.keep_alive(now, ack.lease_ms);
            return None;
        }
        if ack.status != Status::Success {
            return Some(Answer::Refused(ack.status, ack.expected));
        }
        self.present = Some(ack.members);
        self.keep_alive(now, ack.lease_ms);
        ack.formed.then(|| Answer::Admitted(Membership::from_ack(&ack)))
    }

    /// If the packet grants the Join, returns the epoch of the job and the lease, even if the job is not complete.
    pub(crate) fn granted(&self, repr: &ControlRepr<'_>) -> Option<(u64, Duration)> {
        let ControlBody::Ack(ack) = repr.body else { return None };
        let is_granted =
            (repr.request, ack.action, ack.status) == (self.request, Action::Join, Status::Success);
        is_granted.then(|| (ack.boot, Duration::from_millis(u64::from(ack.lease_ms))))
    }

    /// Ensures that the Join is repeated often enough to renew the lease while the job waits for other workers, even if
    /// an answer is lost.
    fn keep_alive(&mut self, now: Instant, lease_ms: u32) {
        let heartbeat = heartbeat_interval(Duration::from_millis(u64::from(lease_ms)));
        self.longest_retry = heartbeat.min(LAST_RETRY);
        self.retry = self.retry.min(self.longest_retry);
        self.deadline = self.deadline.min(now.plus(self.longest_retry));
    }

    /// If the packet refuses this worker's key, returns whether the job has a key. Otherwise returns `None`. The packet
    /// is not authenticated, so the worker does not give up because of it. However, it may explain why no other answer
    /// arrives.
    pub(crate) fn key_refused(&self, repr: &ControlRepr<'_>) -> Option<bool> {
        let ControlBody::Ack(ack) = repr.body else { return None };
        let is_refusal = (ack.action, ack.status) == (Action::Join, Status::NotAuthentic);
        (is_refusal && repr.request == self.request).then_some(ack.expected != 0)
    }
}
