//! The worker library as seen by the simulation. Its inputs are bytes and a clock; its outputs are bytes, a deadline
//! and outcomes.
//!
//! This module contains everything in the simulation that depends on the worker's interface: the real [`Session`] and
//! the requests that its driver repeats until they are acknowledged.

use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch::worker::Path;
use iswitch::worker::auth::Authenticator;
use iswitch::worker::protocol::{Failure, Finished};
use iswitch::worker::session::{JoinProgress, Session, SessionConfig};
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, NameRepr, Standing, Status};
use iswitch_protocol::{Instant, Round, VectorLayout};

use super::job_key;
use super::roaming::{Move, Roaming};
use super::swarm::Protection;

const FIRST_RETRY: Duration = Duration::from_millis(5);
const LAST_RETRY: Duration = Duration::from_millis(100);
/// Number of tries after which a request is abandoned.
const MAX_TRIES: u32 = 12;

/// Parameters that a worker declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) job: u32,
    pub(super) layout: VectorLayout,
    /// Number of workers that the job starts with; zero if not declared.
    pub(super) workers: u16,
    pub(super) recv_buffer_bytes: usize,
    /// Identifier that distinguishes worker processes.
    pub(super) instance: u32,
    pub(super) protection: Protection,
    /// Whether the worker declares that it can receive from a group.
    pub(super) groups: bool,
    /// Names that the worker states.
    pub(super) name: NameRepr,
    /// Time for which a switch may be silent, if there is a standby switch.
    pub(super) standby: Option<Duration>,
}

/// Outcome reported to the training loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// The worker was admitted for the first time and the job is complete; a round may begin.
    Joined,
    /// The sum has arrived.
    Finished(Finished),
    /// The round failed.
    Failed(Failure),
    /// The first Join was refused.
    Refused(Status),
    /// The switch has confirmed the Leave or did not answer it.
    Left,
}

/// Requests, other than Joins, that a worker can send to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Leave,
    Reset,
    Halt,
    SetThreshold(u16),
    /// Closes all segments of the vector in the current round or, if none is open, in the next one.
    ForceBroadcast,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    id: u32,
    request: Request,
    round: Round,
    /// Epoch of the job when the request was made.
    boot: u64,
    deadline: Instant,
    pause: Duration,
    is_due: bool,
    tries: u32,
}

/// A worker process, starting with its first Join.
#[derive(Debug)]
pub(super) struct Worker {
    session: Session,
    /// Gradient, which does not change until its round has ended.
    contribution: Vec<f32>,
    outcome: Option<Outcome>,
    /// Whether the outcome of the first Join was reported to the training loop.
    has_reported: bool,
    pending: Option<Pending>,
    /// Whether a round is in progress.
    is_in_round: bool,
    roaming: Option<Roaming>,
    /// Leave for the previous switch.
    farewell: Option<(Class, Vec<u8>)>,
}

impl Worker {
    pub(super) fn new(options: Options, now: Instant) -> Self {
        let Options { job, layout, workers, recv_buffer_bytes, instance, protection, groups, name, standby } =
            options;
        let (has_key, tagged) = (protection != Protection::Nothing, protection == Protection::All);
        let join = JoinRepr {
            instance,
            tagged,
            groups,
            roams: standby.is_some(),
            elements: layout.elements(),
            padding_len: JoinRepr::padding_to(layout.longest_packet_len(), tagged, has_key),
            ..JoinRepr::worker(layout.gradient_len(), layout.segment_floats(), workers)
        };
        let config = SessionConfig { job, layout, parts: 1, join, recv_buffer_bytes, heartbeats: true, name };
        let session = Session::new(config, now);
        // The counter starts at a pseudo-random number.
        let authenticator = || Authenticator::new(job_key(), u64::from(instance) << 24);
        Self {
            session: if has_key { session.with_key(authenticator()) } else { session },
            contribution: vec![0.0; layout.gradient_len() as usize],
            outcome: None,
            has_reported: false,
            pending: None,
            is_in_round: false,
            roaming: standby.map(|silence| Roaming::new(silence, instance, now)),
            farewell: None,
        }
    }

    /// Returns the index of the switch that the worker uses, if it can move to another one.
    pub(super) fn switch(&self) -> Option<usize> {
        self.roaming.as_ref().map(Roaming::switch)
    }

    /// Returns the Leave for the previous switch, if the worker has left it.
    pub(super) fn take_farewell(&mut self) -> Option<(Class, Vec<u8>)> {
        self.farewell.take()
    }

    /// Moves to the next switch if the current one is silent or the job does not become complete there.
    fn move_if_in_vain(&mut self, now: Instant) {
        let (progress, rejoins) = (self.session.join_progress(), self.session.rejoins());
        if self.is_leaving() {
            return;
        }
        let Self { session, roaming: Some(roaming), is_in_round, .. } = self else { return };
        if progress == JoinProgress::Joined && !*is_in_round {
            // The driver does not listen between rounds.
            return roaming.hear(now);
        }
        let Some(Move { leaves, instance }) = roaming.move_if_in_vain(now, progress, rejoins) else { return };
        if leaves {
            let mut bytes = Vec::new();
            let (class, _) = session.emit(0, ControlBody::Leave, &mut bytes);
            self.farewell = Some((class, bytes));
        }
        session.move_to(now, instance);
    }

    pub(super) fn is_member(&self) -> bool {
        self.session.join_progress() == JoinProgress::Joined
    }

    /// Returns the run of the switch that last admitted the worker.
    pub(super) fn boot(&self) -> u64 {
        self.session.membership().map_or(0, |membership| membership.boot)
    }

    /// Returns whether the worker's contribution to a round is a sum that other members lack.
    pub(super) fn supplies(&self, round: Round) -> bool {
        let membership = self.session.membership();
        membership.is_some_and(|member| member.standing == Standing::Supplies && member.start == round)
    }

    /// Returns the number of times that the worker rejoined after the switch had lost its membership.
    pub(super) fn rejoins(&self) -> u64 {
        self.session.rejoins()
    }

    /// Returns the sum after [`Outcome::Finished`], and the number of gradients in each of its segments.
    pub(super) fn sum(&self) -> (&[f32], &[u16]) {
        (self.session.sum(), self.session.contributions())
    }

    /// Returns the buffer into which the training loop writes its gradient before a round.
    pub(super) fn contribution_mut(&mut self) -> &mut [f32] {
        &mut self.contribution
    }

    pub(super) fn begin_round(&mut self, now: Instant) {
        self.has_reported = true;
        self.is_in_round = true;
        if let Some(roaming) = &mut self.roaming {
            roaming.hear(now);
        }
        self.session.begin_round(now);
    }

    /// Sends a request to the switch. Does nothing if another request is pending, unless this one is a Leave.
    pub(super) fn request(&mut self, now: Instant, request: Request) {
        if self.is_member() && (self.pending.is_none() || request == Request::Leave) {
            let (id, round, boot) = (self.session.begin_request(), self.session.round(), self.boot());
            let (deadline, pause) = (now, FIRST_RETRY);
            self.pending =
                Some(Pending { id, request, round, boot, deadline, pause, is_due: true, tries: 0 });
        }
    }

    /// Cancels the pending request unless it is a Leave.
    pub(super) fn cancel_requests(&mut self) {
        self.pending.take_if(|pending| pending.request != Request::Leave);
    }

    pub(super) fn poll_outcome(&mut self) -> Option<Outcome> {
        if let Some(outcome) = self.outcome.take() {
            return Some(outcome);
        }
        if let Some(outcome) = self.session.take_outcome() {
            self.is_in_round = false;
            if let (Ok(_), Some(roaming)) = (&outcome, &mut self.roaming) {
                roaming.arrived();
            }
            return Some(outcome.map_or_else(Outcome::Failed, Outcome::Finished));
        }
        let reported = match self.session.join_progress() {
            JoinProgress::Joined => Outcome::Joined,
            JoinProgress::Refused(status, _) => Outcome::Refused(status),
            JoinProgress::Unanswered | JoinProgress::Waiting(_) => return None,
        };
        (!std::mem::replace(&mut self.has_reported, true)).then_some(reported)
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
        self.move_if_in_vain(now);
    }

    /// Returns the group that the worker is subscribed to, if any.
    pub(super) fn group(&self) -> Option<SocketAddrV4> {
        self.session.group()
    }

    pub(super) fn handle_datagrams(
        &mut self,
        now: Instant,
        path: Path,
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        if let Some(roaming) = &mut self.roaming {
            roaming.hear(now);
        }
        self.session.handle_scattered(now, path, class, payload, stride);
        if let Some(group) = self.session.group() {
            self.session.subscribed(group);
        }
        if self.session.take_acknowledgement().is_some() {
            self.end_request();
        }
    }

    fn is_leaving(&self) -> bool {
        self.pending.is_some_and(|pending| pending.request == Request::Leave)
    }

    /// Ends the pending request after an answer or the last try.
    fn end_request(&mut self) {
        if self.is_leaving() {
            self.outcome = Some(Outcome::Left);
        }
        self.pending = None;
    }

    /// Writes the next packets into `buffer`. Returns their class and the length of each packet, in bytes.
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
