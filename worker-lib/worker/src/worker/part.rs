//! One part of a worker's vector: the connection to the switch that sums it, and the session on it.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::wire::ControlBody;

use super::attempt::{FIRST_RETRY, LAST_RETRY};
use super::failover::{Patience, Visit};
use super::heartbeat::Heartbeat;
use super::join::JoinOptions;
use super::link::Link;
use super::outcome::accept;
use super::protocol::{Failure, Finished, WorkerCounters};
use super::session::{JoinProgress, Session};
use super::superframe::{Frame, warm};
use crate::aggregate::{Absent, AggregateError};

const CONTROL_RETRIES: u32 = 10;
/// Number of times that a stalled worker asks which members the round is waiting for, and the time limit per answer.
const ABSENT_TRIES: u32 = 2;
const ABSENT_PATIENCE: Duration = Duration::from_millis(100);

/// A part of the vector, with the membership at the switch that sums it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) link: Link,
    pub(super) session: Session,
    switch: SocketAddrV4,
    /// Floats of the vector that form this part.
    range: Range<usize>,
    /// Result of the round in progress; `None` if this part has not finished it.
    done: Option<Finished>,
    /// Counters of the memberships before the current one.
    past: WorkerCounters,
    /// Number of readmissions before the current session.
    past_rejoins: u64,
    send_buffer: Vec<u8>,
    frame: Frame,
    /// Number of segments that lacked a result when the destinations of the next results were last loaded into the
    /// cache.
    warmed: usize,
    /// Time at which the round stalled, if the next call must repeat it; otherwise `None`.
    stalled_at: Option<Instant>,
    /// Visit to the current switch, if the worker has several switches.
    visit: Visit,
    /// Whether the heartbeats of the membership at the current switch have been started.
    has_heartbeats: bool,
}

impl Part {
    /// Creates the part of a worker that has joined at `switch`.
    pub(super) fn new(
        link: Link,
        (session, send_buffer): (Session, Vec<u8>),
        switch: SocketAddrV4,
        range: Range<usize>,
    ) -> Self {
        Self {
            link,
            session,
            switch,
            range,
            done: None,
            past: WorkerCounters::default(),
            past_rejoins: 0,
            send_buffer,
            frame: Frame::default(),
            stalled_at: None,
            warmed: 0,
            visit: Visit::of_newcomer(Instant::default()),
            has_heartbeats: false,
        }
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the result of the round in progress, or `None` if this part has not finished it.
    pub(super) fn done(&self) -> Option<Finished> {
        self.done
    }

    /// Discards this part's result of a round that was given up because other parts did not finish it.
    pub(super) fn give_up_round(&mut self) {
        self.done = None;
    }

    /// Replaces the session with that of a new membership.
    pub(super) fn replace(&mut self, (session, send_buffer): (Session, Vec<u8>)) {
        self.past = self.counters();
        self.past_rejoins = self.rejoins() + 1;
        (self.session, self.send_buffer, self.done) = (session, send_buffer, None);
    }

    /// Returns the counters of all memberships of this part, including earlier ones.
    pub(super) fn counters(&self) -> WorkerCounters {
        add(self.past, self.session.counters())
    }

    /// Returns how many times the switch has readmitted the worker.
    pub(super) fn rejoins(&self) -> u64 {
        self.past_rejoins + self.session.rejoins()
    }

    /// Moves to the switch of `options`, where the worker joins as the instance `instance`.
    pub(super) fn move_to(&mut self, options: &JoinOptions, instance: u32) -> io::Result<()> {
        if self.visit.ends_with_leave(self.session.join_progress(), self.rejoins()) {
            self.leave_silently();
        }
        self.link.move_to(options)?;
        self.switch = options.switch;
        self.session.move_to(self.link.now(), instance);
        self.visit = Visit::begin(self.link.now(), self.rejoins());
        self.stalled_at = None;
        self.has_heartbeats = false;
        Ok(())
    }

    /// Stays at the current switch although the visit is over.
    pub(super) fn stay(&mut self) {
        self.visit.extend(self.link.now());
    }

    /// Starts the heartbeats of the membership, unless they have been started.
    pub(super) fn keep_alive(&mut self, heartbeat: &Heartbeat, job: u32) {
        let membership = self.session.membership().filter(|_| !self.has_heartbeats);
        if let Some(membership) = membership.filter(|_| self.session.join_progress() == JoinProgress::Joined)
        {
            heartbeat.add(&self.link, job, membership.lease);
            self.has_heartbeats = true;
        }
    }

    /// Returns whether the worker moves to the next of its switches: this one is silent, or the job does not become
    /// complete here.
    pub(super) fn is_in_vain(&mut self, now: Instant, patience: Patience) -> bool {
        self.visit.is_over(now, self.session.join_progress(), self.link.last_heard, patience)
    }

    /// Begins the round, or continues it after an error, unless this part has finished it.
    pub(super) fn begin_round(&mut self, now: Instant) {
        match self.stalled_at.take() {
            // The silence of the switch spans all calls that repeat the round, but not the time between them.
            Some(stalled_at) => self.excuse_silence(now.since(stalled_at)),
            None => self.link.last_heard = now,
        }
        self.begin_round_again(now);
    }

    /// Begins the round without changing how long the switches have been silent, unless this part has finished it.
    pub(super) fn begin_round_again(&mut self, now: Instant) {
        if self.done.is_none() {
            self.session.begin_round(now);
        }
    }

    /// Subscribes to the group of the job, if the switch has offered a new one.
    pub(super) fn follow_group(&mut self) {
        if let Some(group) = self.link.follow(self.session.group()) {
            self.session.subscribed(group);
        }
    }

    /// Sends the session's next frame, taken from the whole `contribution`; returns whether there was one.
    pub(super) fn send(&mut self, now: Instant, contribution: &[f32]) -> io::Result<bool> {
        let contribution = &contribution[self.range.clone()];
        let Some((class, stride)) = self.session.poll_frame(now, contribution, &mut self.frame) else {
            return Ok(false);
        };
        self.link.send_frame(class, &self.frame, self.session.source(contribution), stride)?;
        Ok(true)
    }

    /// If the session has ended the round, records its outcome.
    ///
    /// # Errors
    /// Fails if the round has failed.
    pub(super) fn note_outcome(&mut self) -> Result<(), Failure> {
        if self.done.is_none()
            && let Some(outcome) = self.session.take_outcome()
        {
            self.done = Some(outcome?);
        }
        Ok(())
    }

    /// Handles the packets that have arrived; returns whether any packet has arrived.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        let segment_floats = usize::from(self.session.layout().segment_floats());
        let remaining = self.session.remaining();
        let Some(places) = self.session.receive_buffer() else {
            let Some((class, len, stride)) = self.link.receive()? else { return Ok(false) };
            let payload = &self.link.recv_buffer[..len];
            self.session.handle_arrival(self.link.last_heard, self.link.path, class, payload, stride);
            return Ok(true);
        };
        if self.warmed != remaining {
            self.warmed = remaining;
            warm(places);
        }
        let Some((class, scattered)) = self.link.receive_into(places, segment_floats)? else {
            return Ok(false);
        };
        let Link { last_heard, path, recv_buffer, .. } = &self.link;
        self.session.handle_received(*last_heard, *path, class, &scattered, recv_buffer);
        Ok(true)
    }

    /// Records that the round has stalled, so that the next call repeats it.
    pub(super) fn stall(&mut self, now: Instant) {
        self.stalled_at = Some(now);
    }

    /// Returns the error for a switch that has not answered within the timeout.
    pub(super) fn silence(&self) -> AggregateError {
        let silent = self.link.now().since(self.link.last_heard);
        AggregateError::SwitchLost { switch: SocketAddr::V4(self.switch), silent }
    }

    /// Sends a request and retransmits it until it is acknowledged.
    pub(super) fn request(&mut self, body: ControlBody<'_>) -> Result<(), AggregateError> {
        let id = self.session.begin_request();
        let mut retry = FIRST_RETRY;
        for _ in 0..CONTROL_RETRIES {
            if let Some(status) = self.ask(id, body, retry, Session::take_acknowledgement)? {
                return accept(status);
            }
            retry = (retry * 2).min(LAST_RETRY);
        }
        Err(self.silence())
    }

    /// Asks the switch which members the oldest open round is waiting for. Returns `None` if the switch does not know
    /// this request or does not answer soon.
    pub(super) fn ask_absent(&mut self) -> Option<Absent> {
        let id = self.session.begin_request();
        let answer = |session: &mut Session| {
            let absent = session.take_absent().map(Some);
            absent.or_else(|| session.take_acknowledgement().map(|_| None))
        };
        let mut ask = |_| self.ask(id, ControlBody::Waiting, ABSENT_PATIENCE, answer).ok().flatten();
        (0..ABSENT_TRIES).find_map(&mut ask).flatten()
    }

    /// Sends a request and handles the packets that arrive, until `answer` returns the answer or `patience` has passed.
    fn ask<T>(
        &mut self,
        id: u32,
        body: ControlBody<'_>,
        patience: Duration,
        answer: impl Fn(&mut Session) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let (class, stride) = self.session.emit(id, body, &mut self.send_buffer);
        self.link.send(class, &self.send_buffer, stride)?;
        let deadline = self.link.now().plus(patience);
        while self.link.wait(deadline)? {
            while let Some((class, len, stride)) = self.link.receive()? {
                let (now, path) = (self.link.now(), self.link.path);
                let payload = &self.link.recv_buffer[..len];
                self.session.handle_arrival(now, path, class, payload, stride);
                if let Some(answer) = answer(&mut self.session) {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }

    /// Leaves the job without waiting for an answer. If the packet is lost, the membership ends when the lease expires.
    pub(super) fn leave_silently(&mut self) {
        let (class, stride) = self.session.emit(0, ControlBody::Leave, &mut self.send_buffer);
        let _ = self.link.send(class, &self.send_buffer, stride);
    }

    /// Copies this part of the most recent sum to the beginning of `to`, as far as it fits; returns the rest of `to`.
    pub(super) fn copy_sum<'a>(&self, to: &'a mut [f32]) -> &'a mut [f32] {
        let (own, rest) = to.split_at_mut(self.range.len().min(to.len()));
        own.copy_from_slice(&self.session.sum()[..own.len()]);
        rest
    }

    /// Divides each segment of this part of the most recent sum by the number of gradients that the segment contains.
    /// `vector` is the sum or a prefix of it.
    pub(super) fn scale_segments(&self, vector: &mut [f32]) {
        let size = usize::from(self.session.layout().segment_floats());
        let end = self.range.end.min(vector.len());
        let Some(part) = vector.get_mut(self.range.start..end) else { return };
        for (segment, contributions) in part.chunks_mut(size).zip(self.session.contributions()) {
            let scale = 1.0 / f32::from((*contributions).max(1));
            segment.iter_mut().for_each(|x| *x *= scale);
        }
    }

    /// Moves the time of the last packet forward by `paused`, so that a pause of this process does not count as silence
    /// of the switch.
    pub(super) fn excuse_silence(&mut self, paused: Duration) {
        self.link.last_heard = self.link.last_heard.plus(paused);
    }
}

/// Adds the counters of two memberships.
pub(super) fn add(one: WorkerCounters, other: WorkerCounters) -> WorkerCounters {
    WorkerCounters {
        rounds: one.rounds + other.rounds,
        segments: one.segments + other.segments,
        retransmitted: one.retransmitted + other.retransmitted,
        helps: one.helps + other.helps,
        ignored: one.ignored + other.ignored,
    }
}
