//! The blocking worker, which drives the protocol over a UDP socket.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{ControlBody, Mode};
use iswitch_protocol::{Instant, Round as WireRound};
use iswitch_socket::Spin;

use super::attempt::{FIRST_RETRY, LAST_RETRY};
use super::heartbeat::Heartbeat;
use super::join::{JoinError, JoinOptions};
use super::joining::join;
use super::link::Link;
use super::outcome::{accept, forgotten_is_done, round_error};
use super::protocol::{Finished, Membership, WorkerCounters};
use super::query::Query;
use super::session::Session;
use super::state::{ReadyPeer, StateServer};
use super::superframe::{Frame, warm};
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, Round, check_finite, check_len};

const CONTROL_RETRIES: u32 = 10;
/// Time that exceeds every wait within a round: if more time has passed since the last wait, the process was suspended.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A worker that has joined a job.
///
/// A separate thread keeps the lease alive while the worker computes. Dropping the worker leaves the job.
///
/// ```no_run
/// use iswitch::{GradientAggregator, JoinOptions, Worker};
///
/// let mut worker = Worker::join(JoinOptions::new("10.9.0.254:7711".parse()?, 4, 10_119))?;
/// let mut gradient = vec![0.0; 10_119];
/// let round = worker.all_reduce(&mut gradient)?;
/// println!("round {}: sum of {} gradients", round.number, round.contributors);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Worker {
    link: Link,
    session: Session,
    options: JoinOptions,
    send_buffer: Vec<u8>,
    frame: Frame,
    spin: Spin,
    /// Time at which the round in progress last waited.
    looked: Instant,
    /// Number of segments without a result when the destinations of the next results were last brought into the cache.
    warmed: usize,
    /// Server from which newcomers fetch the learner's state, if this worker shares it.
    state: Option<StateServer>,
    leaves_on_drop: bool,
    _heartbeat: Heartbeat,
}

impl Worker {
    /// Joins a job and waits until all its workers have joined.
    pub fn join(options: JoinOptions) -> Result<Self, JoinError> {
        Self::join_while(options, &mut || true)
    }

    /// Works like [`Self::join`], but only as long as `keep_waiting` returns true. `keep_waiting` is called at least
    /// every half second, and when a signal arrives.
    ///
    /// # Errors
    /// Those of [`Self::join`], and [`JoinError::Interrupted`] if `keep_waiting` returns false.
    pub fn join_while(
        options: JoinOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, JoinError> {
        let link = Link::open(&options)?;
        Self::join_by(options, link, keep_waiting)
    }

    /// Works like [`Self::join`]. If the job has already begun, also fetches the learner state of another worker: the
    /// state that the other worker passed to [`Self::publish_state`] before the round at which this worker starts.
    ///
    /// A worker that has missed rounds uses this function as well; it must drop its old [`Worker`] first.
    pub fn join_with_state(mut options: JoinOptions) -> Result<(Self, Option<Vec<u8>>), JoinError> {
        options.shares_state = true;
        let mut link = Link::open(&options)?;
        let mut query = Query::new(&mut link, &options).run();
        if let Err(error) = &query
            && let Some(adapted) = options.with_partial_segments(error)
        {
            options = adapted;
            query = Query::new(&mut link, &options).run();
        }
        let query = query?;
        let Some(peer) = options.peer.or(query) else {
            return Ok((Self::join_by(options, link, &mut || true)?, None));
        };
        let ready = ReadyPeer::prepare(peer, options.job)?;
        let worker = Self::join_by(options, link, &mut || true)?;
        let state = ready.fetch(worker.session.round().get())?;
        Ok((worker, Some(state)))
    }

    fn join_by(
        options: JoinOptions,
        mut link: Link,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, JoinError> {
        // Other workers may request the state as soon as the switch names this worker.
        let state =
            options.shares_state.then(|| StateServer::start(link.address()?, options.job)).transpose()?;
        // A separate thread sends the heartbeats, because the caller may compute for a long time between rounds.
        let (session, send_buffer) =
            join::<Session>(&mut link, &options, Mode::Synchronous, false, keep_waiting)?;
        let membership = session.membership().copied().expect("a worker that has joined is a member");
        tracing::debug!(member = membership.member, window = membership.window, "joined");
        let heartbeat = Heartbeat::start(&link, options.job, membership.lease)?;
        let spin = Spin::new(options.spin);
        Ok(Self {
            link,
            session,
            options,
            send_buffer,
            frame: Frame::default(),
            spin,
            looked: Instant::default(),
            warmed: 0,
            state,
            leaves_on_drop: true,
            _heartbeat: heartbeat,
        })
    }

    /// Publishes the learner's state before a round. A worker that shares its state must call this function before each
    /// round. If a worker is about to join, `state` is called; it must return everything that a replica of the learner
    /// needs before that round, and the result must not be empty.
    ///
    /// The call costs nothing unless a worker is about to join.
    pub fn publish_state(&self, state: impl FnOnce() -> Vec<u8>) {
        if let Some(server) = &self.state {
            server.publish(self.session.round().get(), state);
        }
    }

    /// Returns the membership that the switch granted when it last admitted the worker.
    pub fn membership(&self) -> &Membership {
        self.session.membership().expect("a worker is created only after it has joined")
    }

    /// Returns the number of floats in each packet. Below a switch with a parent, it may be smaller than the default of
    /// 16-bit elements.
    pub fn segment_floats(&self) -> u16 {
        self.session.layout().segment_floats()
    }

    /// Returns the protocol's counters.
    pub fn counters(&self) -> WorkerCounters {
        self.session.counters()
    }

    /// Returns how many times the switch has forgotten this worker and readmitted it.
    pub fn rejoins(&self) -> u64 {
        self.session.rejoins()
    }

    /// Pins the threshold H of the job from the next round on; zero lets H follow the number of members again.
    pub fn set_threshold(&mut self, threshold: u16) -> Result<(), AggregateError> {
        self.request(ControlBody::SetH { threshold })
    }

    /// Clears the job at the switch and ends a halt. Each worker rejoins with its next call: rounds in progress are
    /// repeated from the contributions, and a sum that only some workers have received is supplied to the others.
    ///
    /// # Errors
    /// [`AggregateError::SwitchLost`] if the switch does not answer.
    pub fn reset(&mut self) -> Result<(), AggregateError> {
        let reset = ControlBody::Reset { boot: self.membership().boot };
        forgotten_is_done(self.request(reset))
    }

    /// Suspends the job: the switch refuses contributions until a [`Self::reset`].
    pub fn halt(&mut self) -> Result<(), AggregateError> {
        self.request(ControlBody::Halt)
    }

    /// Closes `count` segments of an open round, beginning with segment `first`, with the contributions that they have.
    pub fn force_broadcast(&mut self, round: u32, first: u32, count: u32) -> Result<(), AggregateError> {
        self.request(ControlBody::FBcast(RangeRepr { round: WireRound::new(round), first, count }))
    }

    /// Leaves the job and waits for the switch to confirm.
    pub fn leave(mut self) -> Result<(), AggregateError> {
        forgotten_is_done(self.request(ControlBody::Leave))
    }

    /// Ends the worker without notice, as if its process were killed: the switch expels it when its lease expires.
    pub fn abandon(mut self) {
        self.leaves_on_drop = false;
    }

    /// Sends a request and retransmits it until it is acknowledged.
    fn request(&mut self, body: ControlBody<'_>) -> Result<(), AggregateError> {
        let id = self.session.begin_request();
        let mut retry = FIRST_RETRY;
        for _ in 0..CONTROL_RETRIES {
            let (class, stride) = self.session.emit(id, body, &mut self.send_buffer);
            self.link.send(class, &self.send_buffer, stride)?;
            let deadline = self.link.now().plus(retry);
            while self.link.wait(deadline)? {
                while let Some((class, len, stride)) = self.link.receive()? {
                    let (now, path) = (self.link.now(), self.link.path);
                    let payload = &self.link.recv_buffer[..len];
                    self.session.handle_arrival(now, path, class, payload, stride);
                    if let Some(status) = self.session.take_acknowledgement() {
                        return accept(status);
                    }
                }
            }
            retry = (retry * 2).min(LAST_RETRY);
        }
        Err(self.silence())
    }

    fn silence(&self) -> AggregateError {
        let silent = self.link.now().since(self.link.last_heard);
        AggregateError::SwitchLost { switch: SocketAddr::V4(self.options.switch), silent }
    }

    /// Works like [`GradientAggregator::reduce`], but only as long as `keep_waiting` returns true. `keep_waiting` is
    /// called at least every quarter of a second, and when a signal arrives.
    ///
    /// # Errors
    /// Those of [`GradientAggregator::reduce`], and [`AggregateError::Interrupted`] if `keep_waiting` returns false.
    pub fn reduce_while(
        &mut self,
        contribution: &[f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(Round, &[f32]), AggregateError> {
        check_len(contribution, self.gradient_len())?;
        if !self.options.sends_non_finite {
            check_finite(contribution, self.session.layout().elements().contributions())?;
        }
        self.reduce_checked(contribution, keep_waiting)
    }

    /// Works like [`Self::reduce_while`] for a vector that the caller has already checked: it has the right length, and
    /// contains no NaN or infinity unless those are allowed.
    pub(super) fn reduce_checked(
        &mut self,
        contribution: &[f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(Round, &[f32]), AggregateError> {
        let Finished { round, fewest, most } = self.run_round(contribution, keep_waiting)?;
        let round = Round { number: round.get(), contributors: fewest, uniform: fewest == most };
        Ok((round, self.session.sum()))
    }

    fn run_round(
        &mut self,
        contribution: &[f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Finished, AggregateError> {
        let begin = self.link.now();
        (self.link.last_heard, self.looked) = (begin, begin);
        self.session.begin_round(begin);
        let mut idle_since = begin;
        loop {
            self.flush(contribution)?;
            if let Some(outcome) = self.session.take_outcome() {
                return outcome.map_err(|failure| round_error(self.session.round(), failure));
            }
            if self.receive()? {
                self.spin.note(self.link.last_heard.since(idle_since));
                idle_since = self.link.now();
            } else if self.spin.goes_on(self.link.now().since(idle_since)) {
                // The workers whose contributions are awaited may need this core.
                std::thread::yield_now();
            } else {
                self.wait(begin)?;
                if !keep_waiting() {
                    self.session.abandon_round();
                    return Err(AggregateError::Interrupted);
                }
            }
        }
    }

    fn flush(&mut self, contribution: &[f32]) -> Result<(), AggregateError> {
        if let Some(group) = self.link.follow(self.session.group()) {
            self.session.subscribed(group);
        }
        let now = self.link.now();
        while let Some((class, stride)) = self.session.poll_frame(now, contribution, &mut self.frame) {
            self.link.send_frame(class, &self.frame, self.session.source(contribution), stride)?;
        }
        Ok(())
    }

    /// Handles what has arrived; returns whether anything has.
    fn receive(&mut self) -> io::Result<bool> {
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

    /// Sleeps until a datagram arrives or the protocol's deadline, within the caller's timeouts.
    fn wait(&mut self, begin: Instant) -> Result<(), AggregateError> {
        let now = self.link.now();
        let paused = now.since(self.looked.max(self.link.last_heard)).saturating_sub(LONGEST_WAIT);
        // A process that was suspended could not have heard the switch.
        self.link.last_heard = self.link.last_heard.plus(paused);
        if now.since(self.link.last_heard) > self.options.switch_timeout {
            self.session.abandon_round();
            return Err(self.silence());
        }
        let waited = now.since(begin);
        if self.options.round_timeout.is_some_and(|timeout| waited > timeout) {
            let (round, missing) = (self.session.round().get(), self.session.remaining());
            let parent_lost = self.session.is_orphaned();
            self.session.abandon_round();
            return Err(AggregateError::Stalled { round, waited, missing, parent_lost });
        }
        let deadline = self.session.poll_timeout().unwrap_or(now);
        let is_readable = self.link.wait(deadline)?;
        self.looked = self.link.now();
        if !is_readable {
            self.session.handle_timeout(self.looked);
        }
        Ok(())
    }

    /// Divides each segment of the last sum, or of a prefix of it, by the number of gradients that the segment holds.
    pub fn scale_segments(&self, vector: &mut [f32]) {
        let size = usize::from(self.session.layout().segment_floats());
        for (segment, contributions) in vector.chunks_mut(size).zip(self.session.contributions()) {
            let scale = 1.0 / f32::from((*contributions).max(1));
            segment.iter_mut().for_each(|x| *x *= scale);
        }
    }
}

impl GradientAggregator for Worker {
    fn name(&self) -> &'static str {
        "switch"
    }

    fn gradient_len(&self) -> usize {
        self.session.layout().gradient_len() as usize
    }

    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError> {
        self.reduce_while(contribution, &mut || true)
    }

    fn all_reduce_mean(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let round = self.all_reduce(vector)?;
        self.scale_segments(vector);
        Ok(round)
    }

    fn stats(&self) -> AggregatorStats {
        let counters = self.session.counters();
        AggregatorStats {
            rounds: counters.rounds,
            segments: counters.segments,
            retransmitted: counters.retransmitted,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.leaves_on_drop {
            return;
        }
        // Best effort: if the Leave is lost, the lease ends the membership.
        let (class, stride) = self.session.emit(0, ControlBody::Leave, &mut self.send_buffer);
        let _ = self.link.send(class, &self.send_buffer, stride);
    }
}
