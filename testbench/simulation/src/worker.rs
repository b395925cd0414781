//! The worker library as the simulation sees it: bytes and a clock in; bytes, a deadline and outcomes out.
//!
//! Everything that the simulation knows of the worker's interface is here: the real [`Session`], and the
//! requests that its driver repeats until they are acknowledged.

use std::time::Duration;

use iswitch::worker::auth::Authenticator;
use iswitch::worker::protocol::{Failure, Finished};
use iswitch::worker::session::{JoinProgress, Session, SessionConfig};
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Standing, Status};
use iswitch_protocol::{Instant, Round, VectorLayout};

use super::job_key;
use super::swarm::Protection;

const FIRST_RETRY: Duration = Duration::from_millis(5);
const LAST_RETRY: Duration = Duration::from_millis(100);
/// After so many a request is given up.
const MAX_TRIES: u32 = 12;

/// What a worker declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) job: u32,
    pub(super) layout: VectorLayout,
    /// Workers that the job starts with, or zero.
    pub(super) workers: u16,
    pub(super) recv_buffer_bytes: usize,
    /// Tells the processes apart.
    pub(super) instance: u32,
    pub(super) protection: Protection,
}

/// What the training loop has to know.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// Admitted for the first time, and the job is complete: a round may begin.
    Joined,
    /// The sum is there.
    Finished(Finished),
    /// The round failed.
    Failed(Failure),
    /// The first Join was refused.
    Refused(Status),
    /// The switch has let it go, or did not answer.
    Left,
}

/// What a worker may ask of the switch besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Leave,
    Reset,
    Halt,
    SetThreshold(u16),
    /// Of the whole vector, in the round under way or else the next.
    ForceBroadcast,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    id: u32,
    request: Request,
    round: Round,
    /// Epoch of the job when it was asked.
    boot: u64,
    deadline: Instant,
    pause: Duration,
    is_due: bool,
    tries: u32,
}

/// A worker process, from its first Join on.
#[derive(Debug)]
pub(super) struct Worker {
    session: Session,
    /// The gradient, the same until its round has ended.
    contribution: Vec<f32>,
    outcome: Option<Outcome>,
    /// Whether the training loop knows how the first Join ended.
    has_told: bool,
    pending: Option<Pending>,
}

impl Worker {
    pub(super) fn new(options: Options, now: Instant) -> Self {
        let Options { job, layout, workers, recv_buffer_bytes, instance, protection } = options;
        let (has_key, tagged) = (protection != Protection::Nothing, protection == Protection::All);
        let join = JoinRepr {
            instance,
            tagged,
            padding_len: JoinRepr::padding_to(layout.full_packet_len(), tagged, has_key),
            ..JoinRepr::worker(layout.gradient_len(), layout.segment_floats(), workers)
        };
        let config = SessionConfig { job, layout, join, recv_buffer_bytes, heartbeats: true };
        let session = Session::new(config, now);
        // The counter begins with a number that looks random.
        let authenticator = || Authenticator::new(job_key(), u64::from(instance) << 24);
        Self {
            session: if has_key { session.with_key(authenticator()) } else { session },
            contribution: vec![0.0; layout.gradient_len() as usize],
            outcome: None,
            has_told: false,
            pending: None,
        }
    }

    pub(super) fn is_member(&self) -> bool {
        self.session.join_progress() == JoinProgress::Joined
    }

    /// The run of the switch that has last admitted it.
    pub(super) fn boot(&self) -> u64 {
        self.session.membership().map_or(0, |membership| membership.boot)
    }

    /// Whether what it sends in a round is a sum that others lack.
    pub(super) fn supplies(&self, round: Round) -> bool {
        let membership = self.session.membership();
        membership.is_some_and(|member| member.standing == Standing::Supplies && member.start == round)
    }

    /// How often the switch has forgotten it and taken it back.
    pub(super) fn rejoins(&self) -> u64 {
        self.session.rejoins()
    }

    /// The sum, after [`Outcome::Finished`], and the gradients in each of its segments.
    pub(super) fn sum(&self) -> (&[f32], &[u16]) {
        (self.session.sum(), self.session.contributions())
    }

    /// Where the training loop writes its gradient before a round.
    pub(super) fn contribution_mut(&mut self) -> &mut [f32] {
        &mut self.contribution
    }

    pub(super) fn begin_round(&mut self, now: Instant) {
        self.has_told = true;
        self.session.begin_round(now);
    }

    /// Asks the switch for something, unless another request is still under way.
    pub(super) fn request(&mut self, now: Instant, request: Request) {
        if self.is_member() && (self.pending.is_none() || request == Request::Leave) {
            let (id, round, boot) = (self.session.begin_request(), self.session.round(), self.boot());
            let (deadline, pause) = (now, FIRST_RETRY);
            self.pending =
                Some(Pending { id, request, round, boot, deadline, pause, is_due: true, tries: 0 });
        }
    }

    /// Gives up what it asked for, except to leave.
    pub(super) fn cancel_requests(&mut self) {
        self.pending.take_if(|pending| pending.request != Request::Leave);
    }

    pub(super) fn poll_outcome(&mut self) -> Option<Outcome> {
        if let Some(outcome) = self.outcome.take() {
            return Some(outcome);
        }
        if let Some(outcome) = self.session.take_outcome() {
            return Some(outcome.map_or_else(Outcome::Failed, Outcome::Finished));
        }
        let told = match self.session.join_progress() {
            JoinProgress::Joined => Outcome::Joined,
            JoinProgress::Refused(status, _) => Outcome::Refused(status),
            JoinProgress::Unanswered | JoinProgress::Waiting(_) => return None,
        };
        (!std::mem::replace(&mut self.has_told, true)).then_some(told)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.poll_timeout().filter(|_| !self.is_leaving());
        session.into_iter().chain(self.pending.map(|pending| pending.deadline)).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
        if let Some(pending) = &mut self.pending {
            pending.is_due |= pending.deadline <= now;
            if pending.is_due && pending.tries == MAX_TRIES {
                self.end_request();
            }
        }
    }

    pub(super) fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        self.session.handle_scattered(now, class, payload, stride);
        if self.session.take_acknowledgement().is_some() {
            self.end_request();
        }
    }

    fn is_leaving(&self) -> bool {
        self.pending.is_some_and(|pending| pending.request == Request::Leave)
    }

    /// The request under way was answered, or nobody answers it.
    fn end_request(&mut self) {
        if self.is_leaving() {
            self.outcome = Some(Outcome::Left);
        }
        self.pending = None;
    }

    /// Writes the next packets into `buffer` and returns their class and the bytes of each.
    pub(super) fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<(Class, usize)> {
        if let Some(pending) = &mut self.pending
            && std::mem::take(&mut pending.is_due)
        {
            pending.tries += 1;
            pending.deadline = now.plus(pending.pause);
            pending.pause = (pending.pause * 2).min(LAST_RETRY);
            let body = pending.body(self.session.layout().segment_count());
            return Some(self.session.emit(pending.id, body, buffer));
        }
        if self.is_leaving() {
            return None;
        }
        self.session.poll_transmit(now, &self.contribution, buffer)
    }
}

impl Pending {
    fn body(&self, segments: u32) -> ControlBody<'static> {
        let Self { round, boot, .. } = *self;
        match self.request {
            Request::Leave => ControlBody::Leave,
            Request::Reset => ControlBody::Reset { boot },
            Request::Halt => ControlBody::Halt,
            Request::SetThreshold(threshold) => ControlBody::SetH { threshold },
            Request::ForceBroadcast => ControlBody::FBcast(RangeRepr { round, first: 0, count: segments }),
        }
    }
}
