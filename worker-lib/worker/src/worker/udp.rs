//! The blocking worker: drives the protocol over a UDP socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use iswitch_protocol::limits::{MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES};
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{
    AckRepr, Action, Class, Classifier, ControlBody, ControlPacket, ControlRepr, JoinRepr, Mode, Status,
};
use iswitch_protocol::{Instant, Round as WireRound, VectorLayout};
use iswitch_socket::{Options, Received, Spin, UdpSocket};

use super::attempt::heartbeat_interval;
use super::auth::Authenticator;
use super::join::{JoinError, JoinOptions};
use super::landing::Landed;
use super::protocol::{Failure, Finished, Membership, WorkerCounters};
use super::session::{JoinProgress, Session, SessionConfig};
use super::state::{ReadyPeer, StateServer};
use super::superframe::{Frame, warm};
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, Round, check_finite, check_len};

const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_millis(500);
const CONTROL_RETRIES: u32 = 10;
/// Longer than any wait within a round: if more time has passed since the last one, the process did not run.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A worker that has joined a job.
///
/// A thread of its own keeps the lease alive while the worker computes. Dropping the worker leaves the job.
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
    /// When the round under way last waited.
    looked: Instant,
    /// Segments without a result when the places of the next ones were last brought into the cache.
    warmed: usize,
    /// Where newcomers fetch the learner's state, if this worker shares it.
    state: Option<StateServer>,
    leaves_on_drop: bool,
    _heartbeat: Heartbeat,
}

/// The socket, the clock and the buffer that datagrams come into.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: Arc<UdpSocket>,
    classifier: Classifier,
    epoch: std::time::Instant,
    pub(super) recv_buffer: Vec<u8>,
    pub(super) last_heard: Instant,
    /// If the job has a key.
    pub(super) authenticator: Option<Authenticator>,
}

impl Link {
    /// Opens a socket to the switch.
    pub(super) fn open(options: &JoinOptions) -> Result<Self, JoinError> {
        if options.tag_data && options.key.is_none() {
            return Err(JoinError::TagsWithoutKey);
        }
        let buffers = options.recv_buffer_bytes;
        let socket = UdpSocket::bind(
            options.local,
            &Options { recv_buffer_bytes: buffers, send_buffer_bytes: buffers, offload: options.offload },
        )?;
        socket.connect(options.switch)?;
        socket.set_nonblocking(true)?;
        let classifier =
            Classifier { control_tos: options.control_tos, data_tos: options.data_tos, udp_port: 0 };
        Ok(Self {
            socket: Arc::new(socket),
            classifier,
            epoch: std::time::Instant::now(),
            recv_buffer: vec![0; MAX_SUPERFRAME_LEN_BYTES],
            last_heard: Instant::default(),
            authenticator: options.key.clone().map(|key| Authenticator::new(key, wall_clock_nanos())),
        })
    }

    /// The address that the switch knows this worker by, but for address translation on the way.
    fn address(&self) -> io::Result<SocketAddrV4> {
        self.socket.local_addr()
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// A full send buffer is a loss like any other: the protocol repairs it.
    pub(super) fn send(&self, class: Class, payload: &[u8], stride: usize) -> io::Result<()> {
        let tos = self.classifier.tos_of(class);
        match self.socket.send(tos, None, None, payload, stride) {
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    /// A full send buffer is a loss like any other: the protocol repairs it.
    fn send_frame(&self, class: Class, frame: &Frame, vector: &[f32], stride: usize) -> io::Result<()> {
        if let Some(bytes) = frame.complete_bytes() {
            return self.send(class, bytes, stride);
        }
        frame.warm(vector);
        let mut packets = [[IoSlice::new(&[]); 2]; MAX_SUPERFRAME_DATAGRAMS];
        let count = packets.iter_mut().zip(frame.packets(vector)).map(|(to, packet)| *to = packet).count();
        match self.socket.send_gathered(self.classifier.tos_of(class), &packets[..count]) {
            Err(error) if !is_transient(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// What is there, if anything: class, bytes in the buffer, and bytes of each datagram.
    pub(super) fn receive(&mut self) -> io::Result<Option<(Class, usize, usize)>> {
        let outcome = self.socket.recv(&mut self.recv_buffer);
        Ok(self
            .heard(outcome, |received| *received)?
            .map(|(class, received)| (class, received.len, received.stride)))
    }

    /// The same with floats of results in their places, see [`Landed::receive`].
    fn receive_into(
        &mut self,
        places: &mut [f32],
        segment_floats: usize,
    ) -> io::Result<Option<(Class, Landed)>> {
        let receive = |parts: &mut [IoSliceMut<'_>]| self.socket.recv_scattered(parts);
        let outcome = Landed::receive(places, segment_floats, &mut self.recv_buffer, receive);
        self.heard(outcome, |landed| landed.received)
    }

    /// Notes that something has come, and of which class it is; `None` if nothing of use has.
    fn heard<T>(
        &mut self,
        outcome: io::Result<T>,
        of: impl Fn(&T) -> Received,
    ) -> io::Result<Option<(Class, T)>> {
        match outcome {
            Ok(arrived) => {
                self.last_heard = self.now();
                let class = of(&arrived).tos.and_then(|tos| self.classifier.class_of(tos));
                Ok(class.map(|class| (class, arrived)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a control packet may be believed.
    fn is_authentic(&self, bytes: &[u8]) -> bool {
        let Some(authenticator) = &self.authenticator else { return true };
        ControlPacket::new_checked(bytes).is_ok_and(|packet| authenticator.accept(&packet))
    }

    /// Waits for a datagram until `deadline` at most.
    pub(super) fn wait(&self, deadline: Instant) -> io::Result<bool> {
        self.socket.wait_readable(Some(deadline.since(self.now())))
    }
}

/// Errors that ICMP or a busy device leave on the socket and that pass.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
    )
}

impl Worker {
    /// Joins a job and waits until all its workers have.
    pub fn join(options: JoinOptions) -> Result<Self, JoinError> {
        Self::join_while(options, &mut || true)
    }

    /// Joins a job like [`Self::join`], as long as `keep_waiting` says so: it is asked every half second at least, and
    /// when a signal arrives.
    ///
    /// # Errors
    /// Those of [`Self::join`]; [`JoinError::Interrupted`] where the caller has given up.
    pub fn join_while(
        options: JoinOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, JoinError> {
        let link = Link::open(&options)?;
        Self::join_by(options, link, keep_waiting)
    }

    /// Joins a job like [`Self::join`]. If the job has already begun, the state of another worker's learner comes
    /// with it: what that worker gave to [`Self::publish_state`] before the round that this one starts with.
    ///
    /// To be used as well by a worker that has missed rounds: it drops the old [`Worker`] first.
    pub fn join_with_state(mut options: JoinOptions) -> Result<(Self, Option<Vec<u8>>), JoinError> {
        options.shares_state = true;
        let mut link = Link::open(&options)?;
        let query = Query { link: &mut link, options: &options, key_refused: None }.run()?;
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
        let layout = VectorLayout::new(options.gradient_len, options.segment_floats)?;
        let config = SessionConfig {
            job: options.job,
            layout,
            join: options.repr(instance()),
            recv_buffer_bytes: link.socket.recv_buffer_bytes()?,
            // A thread does that, because the caller computes for long between rounds.
            heartbeats: false,
        };
        // Others may ask for the state as soon as the switch names this worker.
        let state =
            options.shares_state.then(|| StateServer::start(link.address()?, options.job)).transpose()?;
        let mut session = Session::new(config, link.now());
        if let Some(authenticator) = link.authenticator.clone() {
            session = session.with_key(authenticator);
        }
        let mut send_buffer = Vec::with_capacity(MAX_SUPERFRAME_LEN_BYTES);
        let mut joining =
            Joining { link: &mut link, options: &options, buffer: &mut send_buffer, keep_waiting };
        if let Err(error) = joining.run(&mut session) {
            // Best effort: its place is somebody else's at once, not only when the lease ends.
            let (class, stride) = session.emit(0, ControlBody::Leave, &mut send_buffer);
            let _ = link.send(class, &send_buffer, stride);
            return Err(error);
        }
        let membership = session.membership().copied().expect("who has joined is a member");
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

    /// To be called before each round by a worker that shares its state: if somebody is about to join, `state` is
    /// asked for all that a replica of the learner needs before that round. It must not be empty.
    ///
    /// Costs nothing as long as nobody joins.
    pub fn publish_state(&self, state: impl FnOnce() -> Vec<u8>) {
        if let Some(server) = &self.state {
            server.publish(self.session.round().get(), state);
        }
    }

    /// What the switch told when it last admitted the worker.
    pub fn membership(&self) -> &Membership {
        self.session.membership().expect("a worker is made when it has joined")
    }

    /// The protocol's counters.
    pub fn counters(&self) -> WorkerCounters {
        self.session.counters()
    }

    /// How often the switch has forgotten this worker and taken it back.
    pub fn rejoins(&self) -> u64 {
        self.session.rejoins()
    }

    /// Pins the threshold H of the job from the next round on; zero lets it follow the members again.
    pub fn set_threshold(&mut self, threshold: u16) -> Result<(), AggregateError> {
        self.request(ControlBody::SetH { threshold })
    }

    /// Clears the job at the switch and ends a halt. All workers join again, with their next call: rounds in progress
    /// start again from the contributions, and a sum that only some workers have received is sent to the others.
    ///
    /// # Errors
    /// [`AggregateError::SwitchLost`] if the switch does not answer.
    pub fn reset(&mut self) -> Result<(), AggregateError> {
        let reset = ControlBody::Reset { boot: self.membership().boot };
        forgotten_is_done(self.request(reset))
    }

    /// Suspends the job: contributions are refused until a [`Self::reset`].
    pub fn halt(&mut self) -> Result<(), AggregateError> {
        self.request(ControlBody::Halt)
    }

    /// Closes `count` segments from `first` on of a round that is open, with the contributions they have.
    pub fn force_broadcast(&mut self, round: u32, first: u32, count: u32) -> Result<(), AggregateError> {
        self.request(ControlBody::FBcast(RangeRepr { round: WireRound::new(round), first, count }))
    }

    /// Leaves the job and waits for the switch to confirm it.
    pub fn leave(mut self) -> Result<(), AggregateError> {
        forgotten_is_done(self.request(ControlBody::Leave))
    }

    /// Ends the worker without a word, as if its process were killed: the switch expels it when its lease ends.
    pub fn abandon(mut self) {
        self.leaves_on_drop = false;
    }

    /// Sends a request until it is acknowledged.
    fn request(&mut self, body: ControlBody<'_>) -> Result<(), AggregateError> {
        let id = self.session.begin_request();
        let mut retry = FIRST_RETRY;
        for _ in 0..CONTROL_RETRIES {
            let (class, stride) = self.session.emit(id, body, &mut self.send_buffer);
            self.link.send(class, &self.send_buffer, stride)?;
            let deadline = self.link.now().plus(retry);
            while self.link.wait(deadline)? {
                while let Some((class, len, stride)) = self.link.receive()? {
                    let now = self.link.now();
                    self.session.handle_datagrams(now, class, &self.link.recv_buffer[..len], stride);
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

    /// Like [`GradientAggregator::reduce`], as long as `keep_waiting` says so: it is asked every quarter of a second at
    /// least, and when a signal arrives.
    ///
    /// # Errors
    /// Those of [`GradientAggregator::reduce`]; [`AggregateError::Interrupted`] where the caller has given up.
    pub fn reduce_while(
        &mut self,
        contribution: &[f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(Round, &[f32]), AggregateError> {
        check_len(contribution, self.gradient_len())?;
        if !self.options.sends_non_finite {
            check_finite(contribution)?;
        }
        self.reduce_checked(contribution, keep_waiting)
    }

    /// As [`Self::reduce_while`] of a vector that the caller has looked at: it has the right length, and no NaN or
    /// infinity that may not be there.
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
                // Those whose contributions it waits for may wait for this core.
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
        let now = self.link.now();
        while let Some((class, stride)) = self.session.poll_frame(now, contribution, &mut self.frame) {
            self.link.send_frame(class, &self.frame, self.session.source(contribution), stride)?;
        }
        Ok(())
    }

    /// Takes in what has arrived, and tells whether anything has.
    fn receive(&mut self) -> io::Result<bool> {
        let segment_floats = usize::from(self.session.layout().segment_floats());
        let remaining = self.session.remaining();
        let Some(places) = self.session.landing() else {
            let Some((class, len, stride)) = self.link.receive()? else { return Ok(false) };
            let payload = &self.link.recv_buffer[..len];
            self.session.handle_datagrams(self.link.last_heard, class, payload, stride);
            return Ok(true);
        };
        if self.warmed != remaining {
            self.warmed = remaining;
            warm(places);
        }
        let Some((class, landed)) = self.link.receive_into(places, segment_floats)? else { return Ok(false) };
        self.session.handle_landed(self.link.last_heard, class, &landed, &self.link.recv_buffer);
        Ok(true)
    }

    /// Sleeps until a datagram arrives or the protocol wants to be called, within the caller's patience.
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

    /// Divides each segment of the last sum, or of its beginning, by the number of gradients that it holds.
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
        // Best effort: if it is lost, the lease ends the membership.
        let (class, stride) = self.session.emit(0, ControlBody::Leave, &mut self.send_buffer);
        let _ = self.link.send(class, &self.send_buffer, stride);
    }
}

pub(super) fn round_error(round: WireRound, failure: Failure) -> AggregateError {
    match failure {
        // A session joins again; only the round it cannot resume is reported.
        Failure::Forgotten => AggregateError::Expelled { reason: "unknown member" },
        Failure::JoinRefused(status, _) => AggregateError::Expelled { reason: status.name() },
        Failure::Missed(next) => AggregateError::MissedRounds { next: next.get() },
        Failure::Halted => AggregateError::Halted,
        Failure::StaleRound(current) => {
            AggregateError::StaleRound { round: round.get(), current: current.get() }
        }
        Failure::Refused(status) => AggregateError::Refused { reason: status.name() },
    }
}

/// Outcome of a Leave or a Reset. If its Ack is lost, the next answer is that the switch does not know the member.
pub(super) fn forgotten_is_done(outcome: Result<(), AggregateError>) -> Result<(), AggregateError> {
    match outcome {
        Err(AggregateError::Expelled { .. }) => Ok(()),
        outcome => outcome,
    }
}

pub(super) fn accept(status: Status) -> Result<(), AggregateError> {
    match status {
        Status::Success => Ok(()),
        Status::UnknownMember => Err(AggregateError::Expelled { reason: status.name() }),
        Status::Halted => Err(AggregateError::Halted),
        status => Err(AggregateError::Refused { reason: status.name() }),
    }
}

fn encode(job: u32, request: u32, body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job, request, body };
    let mut packet = vec![0; repr.buffer_len()];
    repr.emit(&mut packet);
    packet
}

fn parse_ack(class: Class, bytes: &[u8]) -> Option<(u32, AckRepr<'_>)> {
    if class != Class::Control {
        return None;
    }
    let packet = ControlPacket::new_checked(bytes).ok()?;
    match ControlRepr::parse(&packet).ok()? {
        ControlRepr { request, body: ControlBody::Ack(ack), .. } => Some((request, ack)),
        _ => None,
    }
}

/// Id of Joins that only ask: they are answered like others, but by themselves.
const PROBE_REQUEST: u32 = u32::MAX;

/// Asks the switch about a job without joining it.
struct Query<'a> {
    link: &'a mut Link,
    options: &'a JoinOptions,
    /// See [`Session::key_refused`].
    key_refused: Option<bool>,
}

/// What the switch tells of a job.
struct JobAnswer {
    status: Status,
    expected: u32,
    /// A worker of the job, if the job has begun.
    peer: Option<SocketAddrV4>,
}

impl Query<'_> {
    /// A worker of the job, if the job has begun.
    fn run(&mut self) -> Result<Option<SocketAddrV4>, JoinError> {
        let query = JoinRepr { query: true, padding_len: 0, ..self.options.repr(instance()) };
        let begin = self.link.now();
        let mut retry = FIRST_RETRY;
        while self.link.now().since(begin) < self.options.connect_timeout {
            let mut packet = encode(self.options.job, PROBE_REQUEST, ControlBody::Join(query));
            if let Some(authenticator) = &self.link.authenticator {
                authenticator.sign(Action::Join, &mut packet);
            }
            self.link.send(Class::Control, &packet, packet.len())?;
            match self.await_answer(retry)? {
                Some(JobAnswer { status: Status::Success, peer, .. }) => return Ok(peer),
                Some(JobAnswer { status: Status::UnknownJob, .. }) => return Ok(None),
                Some(JobAnswer { status, expected, .. }) => {
                    let reason = self.options.refusal(Mode::Synchronous, status, expected);
                    return Err(JoinError::Refused { status, reason });
                }
                None => retry = (retry * 2).min(LAST_RETRY),
            }
        }
        let JoinOptions { switch, job, connect_timeout: waited, .. } = *self.options;
        if let Some(has_key) = self.key_refused {
            return Err(JoinError::KeyRefused { switch, job, waited, has_key });
        }
        Err(JoinError::NoAnswer { switch, waited, detail: String::new() })
    }

    fn await_answer(&mut self, patience: Duration) -> io::Result<Option<JobAnswer>> {
        let deadline = self.link.now().plus(patience);
        while self.link.wait(deadline)? {
            let Some((class, len, stride)) = self.link.receive()? else { continue };
            for bytes in self.link.recv_buffer[..len].chunks(stride.max(1)) {
                let Some((PROBE_REQUEST, ack)) = parse_ack(class, bytes) else { continue };
                if self.link.is_authentic(bytes) {
                    let peer = ack.peer.filter(|_| ack.formed);
                    return Ok(Some(JobAnswer { status: ack.status, expected: ack.expected, peer }));
                }
                if ack.status == Status::NotAuthentic {
                    self.key_refused = Some(ack.expected != 0);
                }
            }
        }
        Ok(None)
    }
}

/// The first part of a worker's life: until the switch has answered, and until all workers are there.
pub(super) struct Joining<'a> {
    pub(super) link: &'a mut Link,
    pub(super) options: &'a JoinOptions,
    pub(super) buffer: &'a mut Vec<u8>,
    pub(super) keep_waiting: &'a mut dyn FnMut() -> bool,
}

/// A protocol that begins with joining.
pub(super) trait Joins {
    /// What it asks for.
    const MODE: Mode;

    fn join_progress(&self) -> JoinProgress;
    fn poll_join(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<(Class, usize)>;
    fn poll_timeout(&self) -> Option<Instant>;
    fn handle_timeout(&mut self, now: Instant);
    fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize);
    /// Whether the job has a key, in the words of somebody who refused this worker's and may not be the switch.
    fn key_refused(&self) -> Option<bool>;
    fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize);
}

impl Joins for Session {
    const MODE: Mode = Mode::Synchronous;

    fn join_progress(&self) -> JoinProgress {
        self.join_progress()
    }

    fn poll_join(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<(Class, usize)> {
        self.poll_transmit(now, &[], buffer)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        self.handle_datagrams(now, class, payload, stride);
    }

    fn key_refused(&self) -> Option<bool> {
        self.key_refused()
    }

    fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        self.emit(request, body, buffer)
    }
}

impl Joining<'_> {
    pub(super) fn run<P: Joins>(&mut self, session: &mut P) -> Result<(), JoinError> {
        let begin = self.link.now();
        let mut last_error = None;
        loop {
            let now = self.link.now();
            while let Some((_, len)) = session.poll_join(now, self.buffer) {
                last_error = self.send(len)?;
            }
            let waited = now.since(begin);
            match session.join_progress() {
                JoinProgress::Joined => return Ok(()),
                JoinProgress::Refused(status, expected) => {
                    let reason = self.options.refusal(P::MODE, status, expected);
                    return Err(JoinError::Refused { status, reason });
                }
                JoinProgress::Unanswered if waited > self.options.connect_timeout => {
                    return Err(self.explain_silence(session, waited, last_error));
                }
                JoinProgress::Unanswered => {}
                JoinProgress::Waiting(present) => {
                    self.check_patience(waited, present)?;
                    let silent = now.since(self.link.last_heard);
                    if silent > self.options.switch_timeout {
                        return Err(self.explain_silence(session, silent, last_error));
                    }
                }
            }
            let deadline = session.poll_timeout().unwrap_or(now);
            let is_readable = self.link.wait(deadline)?;
            if !(self.keep_waiting)() {
                return Err(JoinError::Interrupted);
            }
            if !is_readable {
                session.handle_timeout(self.link.now());
            } else if let Some((class, len, stride)) = self.link.receive()? {
                let now = self.link.now();
                session.handle_datagrams(now, class, &self.link.recv_buffer[..len], stride);
            }
        }
    }

    /// Nobody has answered a Join as long as a data packet. If a short one is answered, the path is too narrow.
    fn explain_silence<P: Joins>(
        &mut self,
        session: &P,
        waited: Duration,
        error: Option<io::Error>,
    ) -> JoinError {
        let JoinOptions { switch, job, .. } = *self.options;
        if let Some(has_key) = session.key_refused() {
            return JoinError::KeyRefused { switch, job, waited, has_key };
        }
        let join = self.options.repr(instance());
        session.emit(PROBE_REQUEST, ControlBody::Join(join), self.buffer);
        let padded_len = self.buffer.len();
        let probe = JoinRepr { padding_len: 0, query: true, ..join };
        session.emit(PROBE_REQUEST, ControlBody::Join(probe), self.buffer);
        match self.send(self.buffer.len()).and_then(|_| self.is_answered()) {
            Ok(true) => self.path_mtu(padded_len),
            Ok(false) => JoinError::NoAnswer {
                switch,
                waited,
                detail: error.map_or_else(String::new, |error| format!(": {error}")),
            },
            Err(error) => error,
        }
    }

    fn path_mtu(&self, len: usize) -> JoinError {
        let JoinOptions { switch, segment_floats, .. } = *self.options;
        JoinError::PathMtu { switch, len, segment_floats }
    }

    /// Sends what is in the buffer; an error that may pass is returned as a value.
    fn send(&self, len: usize) -> Result<Option<io::Error>, JoinError> {
        let tos = self.options.control_tos;
        match self.link.socket.send(tos, None, None, &self.buffer[..len], len) {
            Ok(_) => Ok(None),
            Err(error) if error.raw_os_error() == Some(EMSGSIZE) => Err(self.path_mtu(len)),
            Err(error) if is_transient(&error) => Ok(Some(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the switch says anything, be it a refusal.
    fn is_answered(&mut self) -> Result<bool, JoinError> {
        let deadline = self.link.now().plus(LAST_RETRY);
        while self.link.wait(deadline)? {
            let Some((class, len, stride)) = self.link.receive()? else { continue };
            let mut datagrams = self.link.recv_buffer[..len].chunks(stride.max(1));
            if datagrams.any(|bytes| parse_ack(class, bytes).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn check_patience(&self, waited: Duration, present: u16) -> Result<(), JoinError> {
        let workers = self.options.workers;
        match self.options.workers_timeout {
            Some(limit) if waited > limit => Err(JoinError::WorkersMissing { present, workers, waited }),
            _ => Ok(()),
        }
    }
}

/// The path's MTU was exceeded (errno of Linux).
const EMSGSIZE: i32 = 90;

/// A number that another process at the same address is unlikely to have.
pub(super) fn instance() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}

/// The wall clock in nanoseconds: above all counters of processes before this one.
fn wall_clock_nanos() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(1, |time| time.as_nanos() as u64)
}

/// Keeps the lease alive while the worker computes: sends an empty Help that wants no answer.
#[derive(Debug)]
struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    fn start(link: &Link, job: u32, lease: Duration) -> io::Result<Self> {
        let authenticator = link.authenticator.clone();
        let bare = encode(job, 0, ControlBody::HEARTBEAT);
        let (socket, tos) = (Arc::clone(&link.socket), link.classifier.control_tos);
        let interval = heartbeat_interval(lease);
        let (stop, stopped) = channel::<()>();
        let beat = move || {
            let mut packet = bare.clone();
            if let Some(authenticator) = &authenticator {
                authenticator.sign(Action::Help, &mut packet);
            }
            // If the switch is away, the next call to all_reduce finds out.
            let _ = socket.send(tos, None, None, &packet, packet.len());
        };
        // The first one at once: a switch may give away the place of a job that it hears only one Join of (M-12).
        beat();
        let thread = std::thread::Builder::new().name("iswitch-heartbeat".into()).spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                beat();
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
