//! An attempt to join: the Join repeated until the switch answers, and until the job is complete.

use core::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::wire::{Action, ControlBody, ControlRepr, Status};

use super::auth::Authenticator;
use super::enrolment::JoinProgress;
use super::membership::Membership;

/// Time until a request without an answer is repeated; it doubles each time.
pub(super) const FIRST_RETRY: Duration = Duration::from_millis(20);
/// The longest that it becomes.
pub(super) const LAST_RETRY: Duration = Duration::from_millis(500);

/// Several heartbeats may be lost before a lease ends.
const HEARTBEATS_PER_LEASE: u32 = 4;

/// Time between two signs of life.
pub(crate) fn heartbeat_interval(lease: Duration) -> Duration {
    (lease / HEARTBEATS_PER_LEASE).max(Duration::from_millis(1))
}

/// A Join that has not been granted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// The Join's id, which its Ack repeats.
    request: u32,
    retry: Duration,
    longest_retry: Duration,
    deadline: Instant,
    /// Whether the Join is to be sent now.
    due: bool,
    /// Members that have joined, once the switch has answered.
    present: Option<u16>,
    /// The nonce of the last challenge in a job without a key: repeating it proves the return path.
    nonce: u64,
}

/// What the switch answers to a Join.
pub(crate) enum Answer {
    /// The worker is a member of a complete job.
    Admitted(Membership),
    /// The reason, and what was expected.
    Refused(Status, u32),
}

impl Attempt {
    /// The attempt of that number of the process with that instance. Its id is one that no other process which has
    /// joined from the same address has used, whose Acks may still be on their way.
    pub(crate) fn new(instance: u32, number: u32, now: Instant) -> Self {
        Self {
            request: Self::request_of(instance, number),
            retry: FIRST_RETRY,
            longest_retry: LAST_RETRY,
            deadline: now.plus(FIRST_RETRY),
            due: true,
            present: None,
            nonce: 0,
        }
    }

    /// The id of the Joins of that attempt.
    pub(crate) fn request_of(instance: u32, number: u32) -> u32 {
        instance.wrapping_add(number).max(1)
    }

    /// How far it is.
    pub(crate) fn progress(&self) -> JoinProgress {
        self.present.map_or(JoinProgress::Unanswered, JoinProgress::Waiting)
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The Join is to be repeated if its time has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.deadline <= now {
            self.retry = (self.retry * 2).min(self.longest_retry);
            self.deadline = now.plus(self.retry);
            self.due = true;
        }
    }

    /// The id of the Join if it is to be sent now.
    pub(crate) fn take_due(&mut self) -> Option<u32> {
        core::mem::take(&mut self.due).then_some(self.request)
    }

    /// The nonce that the Join repeats.
    pub(crate) fn nonce(&self, authenticator: Option<&Authenticator>) -> u64 {
        authenticator.map_or(self.nonce, Authenticator::session)
    }

    /// Takes in a control packet that is authentic if the job has a key; `None` if it decides nothing.
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
        if ack.status == Status::Challenge {
            match authenticator {
                Some(authenticator) => authenticator.open_session(ack.history),
                None => self.nonce = ack.history,
            }
            self.due = true;
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

    /// Repeats the Join often enough to renew the lease while the job waits for others or an answer is lost.
    fn keep_alive(&mut self, now: Instant, lease_ms: u32) {
        let heartbeat = heartbeat_interval(Duration::from_millis(u64::from(lease_ms)));
        self.longest_retry = heartbeat.min(LAST_RETRY);
        self.retry = self.retry.min(self.longest_retry);
        self.deadline = self.deadline.min(now.plus(self.longest_retry));
    }

    /// Whether the job has a key, if the packet refuses this worker's. It proves nothing, and is no reason to give up,
    /// but may explain why no other answer comes.
    pub(crate) fn key_refused(&self, repr: &ControlRepr<'_>) -> Option<bool> {
        let ControlBody::Ack(ack) = repr.body else { return None };
        let is_refusal = (ack.action, ack.status) == (Action::Join, Status::NotAuthentic);
        (is_refusal && repr.request == self.request).then_some(ack.expected != 0)
    }
}
