//! The blocking worker: drives the protocol over a UDP socket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use iswitch_protocol::limits::MAX_SUPERFRAME_LEN_BYTES;
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, Classifier, ControlBody, ControlPacket, ControlRepr, JoinRepr, Status,
};
use iswitch_protocol::{Instant, Round as WireRound, VectorLayout};
use iswitch_socket::{Options, UdpSocket};

use super::join::{JoinError, JoinOptions};
use super::protocol::{Failure, Finished, Membership, WorkerProtocol};
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, Round, check_vector};

const FIRST_JOIN_RETRY: Duration = Duration::from_millis(20);
const LAST_JOIN_RETRY: Duration = Duration::from_millis(500);
/// Several heartbeats may be lost before a lease ends.
const HEARTBEATS_PER_LEASE: u32 = 4;
const CONTROL_RETRIES: u32 = 10;

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
    protocol: WorkerProtocol,
    options: JoinOptions,
    send_buffer: Vec<u8>,
    leaves_on_drop: bool,
    _heartbeat: Heartbeat,
}

/// The socket, the clock and the buffer that datagrams come into.
#[derive(Debug)]
struct Link {
    socket: Arc<UdpSocket>,
    classifier: Classifier,
    epoch: std::time::Instant,
    recv_buffer: Vec<u8>,
    last_heard: Instant,
}

impl Link {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// A full send buffer is a loss like any other: the protocol repairs it.
    fn send(&self, class: Class, payload: &[u8], stride: usize) -> io::Result<()> {
        let tos = self.classifier.tos_of(class);
        match self.socket.send(tos, None, None, payload, stride) {
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    /// What is there, if anything: class, bytes in the buffer, and bytes of each datagram.
    fn receive(&mut self) -> io::Result<Option<(Class, usize, usize)>> {
        match self.socket.recv(&mut self.recv_buffer) {
            Ok(received) => {
                self.last_heard = self.now();
                let class = received.tos.and_then(|tos| self.classifier.class_of(tos));
                Ok(class.map(|class| (class, received.len, received.stride)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for a datagram until `deadline` at most.
    fn wait(&self, deadline: Instant) -> io::Result<bool> {
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
        let layout = VectorLayout::new(options.gradient_len, options.segment_floats)?;
        let buffers = options.recv_buffer_bytes;
        let socket = UdpSocket::bind(
            options.local,
            &Options { recv_buffer_bytes: buffers, send_buffer_bytes: buffers, offload: options.offload },
        )?;
        socket.connect(options.switch)?;
        socket.set_nonblocking(true)?;
        let classifier =
            Classifier { control_tos: options.control_tos, data_tos: options.data_tos, udp_port: 0 };
        let mut link = Link {
            socket: Arc::new(socket),
            classifier,
            epoch: std::time::Instant::now(),
            recv_buffer: vec![0; MAX_SUPERFRAME_LEN_BYTES],
            last_heard: Instant::default(),
        };
        let membership = Joining { link: &mut link, options: &options }.run()?;
        tracing::debug!(member = membership.member, window = membership.window, "joined");
        let recv_buffer_bytes = link.socket.recv_buffer_bytes()?;
        let protocol = WorkerProtocol::new(options.job, layout, membership, recv_buffer_bytes);
        let heartbeat = Heartbeat::start(&link, options.job, membership.lease)?;
        Ok(Self {
            link,
            protocol,
            options,
            send_buffer: Vec::with_capacity(MAX_SUPERFRAME_LEN_BYTES),
            leaves_on_drop: true,
            _heartbeat: heartbeat,
        })
    }

    /// What the switch told when the worker joined.
    pub fn membership(&self) -> &Membership {
        self.protocol.membership()
    }

    /// The protocol's counters.
    pub fn counters(&self) -> &super::protocol::WorkerCounters {
        self.protocol.counters()
    }

    /// Pins the threshold H of the job from the next round on; zero lets it follow the members again.
    pub fn set_threshold(&mut self, threshold: u16) -> Result<(), AggregateError> {
        self.request(ControlBody::SetH { threshold })
    }

    /// Clears the job: every worker's round in progress fails with [`AggregateError::StaleRound`], a halted job
    /// goes on.
    pub fn reset(&mut self) -> Result<(), AggregateError> {
        self.request(ControlBody::Reset { round: WireRound::default() })
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
        match self.request(ControlBody::Leave) {
            // An Ack that was lost: the switch has already forgotten this member.
            Ok(()) | Err(AggregateError::Expelled { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends the worker without a word, as if its process were killed: the switch expels it when its lease ends.
    pub fn abandon(mut self) {
        self.leaves_on_drop = false;
    }

    /// Sends a request until it is acknowledged.
    fn request(&mut self, body: ControlBody<'_>) -> Result<(), AggregateError> {
        let id = self.protocol.take_request_id();
        let mut retry = FIRST_JOIN_RETRY;
        for _ in 0..CONTROL_RETRIES {
            let (class, stride) = self.protocol.emit_control(id, body, &mut self.send_buffer);
            self.link.send(class, &self.send_buffer, stride)?;
            let deadline = self.link.now().plus(retry);
            while self.link.wait(deadline)? {
                while let Some((class, len, stride)) = self.link.receive()? {
                    let payload = &self.link.recv_buffer[..len];
                    let mut packets = payload.chunks(stride.max(1));
                    if let Some(status) = packets.find_map(|bytes| acknowledged(class, bytes, id)) {
                        return accept(status);
                    }
                    let now = self.link.now();
                    self.protocol.handle_datagrams(now, class, payload, stride, &mut []);
                }
            }
            retry = (retry * 2).min(LAST_JOIN_RETRY);
        }
        Err(self.silence())
    }

    fn silence(&self) -> AggregateError {
        let silent = self.link.now().since(self.link.last_heard);
        AggregateError::SwitchLost { switch: SocketAddr::V4(self.options.switch), silent }
    }

    fn run_round(&mut self, vector: &mut [f32]) -> Result<Finished, AggregateError> {
        let begin = self.link.now();
        self.link.last_heard = begin;
        let round = self.protocol.begin_round(begin);
        loop {
            self.flush(vector)?;
            if let Some(outcome) = self.protocol.take_outcome() {
                return outcome.map_err(|failure| round_error(round, failure));
            }
            match self.link.receive()? {
                Some((class, len, stride)) => {
                    let now = self.link.now();
                    let payload = &self.link.recv_buffer[..len];
                    self.protocol.handle_datagrams(now, class, payload, stride, vector);
                }
                None => self.wait(round, begin)?,
            }
        }
    }

    fn flush(&mut self, vector: &[f32]) -> Result<(), AggregateError> {
        let now = self.link.now();
        while let Some((class, stride)) = self.protocol.poll_transmit(now, vector, &mut self.send_buffer) {
            self.link.send(class, &self.send_buffer, stride)?;
        }
        Ok(())
    }

    /// Sleeps until a datagram arrives or the protocol wants to be called, within the caller's patience.
    fn wait(&mut self, round: WireRound, begin: Instant) -> Result<(), AggregateError> {
        let now = self.link.now();
        if now.since(self.link.last_heard) > self.options.switch_timeout {
            self.protocol.abandon_round();
            return Err(self.silence());
        }
        let waited = now.since(begin);
        if self.options.round_timeout.is_some_and(|timeout| waited > timeout) {
            let missing = self.protocol.remaining();
            self.protocol.abandon_round();
            return Err(AggregateError::Stalled { round: round.get(), waited, missing });
        }
        let deadline = self.protocol.poll_timeout().unwrap_or(now);
        if !self.link.wait(deadline)? {
            self.protocol.handle_timeout(self.link.now());
        }
        Ok(())
    }

    /// Divides each segment by the number of gradients that it holds.
    fn scale_segments(&self, vector: &mut [f32]) {
        let size = usize::from(self.protocol.layout().segment_floats());
        for (segment, contributions) in vector.chunks_mut(size).zip(self.protocol.contributions()) {
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
        self.protocol.layout().gradient_len() as usize
    }

    fn all_reduce(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        check_vector(vector, self.gradient_len())?;
        let Finished { round, fewest, most } = self.run_round(vector)?;
        Ok(Round { number: round.get(), contributors: fewest, uniform: fewest == most })
    }

    fn all_reduce_mean(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let round = self.all_reduce(vector)?;
        self.scale_segments(vector);
        Ok(round)
    }

    fn stats(&self) -> AggregatorStats {
        let counters = self.protocol.counters();
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
        let (class, stride) = self.protocol.emit_control(0, ControlBody::Leave, &mut self.send_buffer);
        let _ = self.link.send(class, &self.send_buffer, stride);
    }
}

fn round_error(round: WireRound, failure: Failure) -> AggregateError {
    match failure {
        Failure::Expelled(reason) => AggregateError::Expelled { reason },
        Failure::Halted => AggregateError::Halted,
        Failure::StaleRound(current) => {
            AggregateError::StaleRound { round: round.get(), current: current.get() }
        }
        Failure::Refused(status) => AggregateError::Refused { reason: status.name() },
    }
}

fn accept(status: Status) -> Result<(), AggregateError> {
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

fn acknowledged(class: Class, bytes: &[u8], id: u32) -> Option<Status> {
    parse_ack(class, bytes).filter(|(request, _)| *request == id).map(|(_, ack)| ack.status)
}

/// Id of the Join, which its Ack repeats.
const JOIN_REQUEST: u32 = 1;
/// Id of what the switch sends unasked: the Ack once more, when the last worker has joined.
const NOTICE: u32 = 0;

/// The first part of a worker's life: Join until the switch answers, then until all workers are there.
struct Joining<'a> {
    link: &'a mut Link,
    options: &'a JoinOptions,
}

impl Joining<'_> {
    fn run(&mut self) -> Result<Membership, JoinError> {
        let join = self.options.repr(instance());
        let packet = self.packet(join);
        let begin = self.link.now();
        let mut retry = FIRST_JOIN_RETRY;
        let mut answer: Option<(Membership, u16)> = None;
        loop {
            let error = self.send(&packet)?;
            match self.await_ack(retry)? {
                Some((membership, _, true)) => return Ok(membership),
                Some((membership, present, false)) => answer = Some((membership, present)),
                None => {}
            }
            let waited = self.link.now().since(begin);
            if answer.is_none() && waited > self.options.connect_timeout {
                return Err(self.explain_silence(join, waited, error));
            }
            self.check_patience(waited, answer)?;
            retry = (retry * 2).min(LAST_JOIN_RETRY);
        }
    }

    fn packet(&self, join: JoinRepr) -> Vec<u8> {
        encode(self.options.job, JOIN_REQUEST, ControlBody::Join(join))
    }

    /// Nobody has answered a Join as long as a data packet. If a short one is answered, the path is too narrow.
    fn explain_silence(&mut self, join: JoinRepr, waited: Duration, error: Option<io::Error>) -> JoinError {
        let short = self.packet(JoinRepr { padding_len: 0, ..join });
        let is_answered =
            self.send(&short).and_then(|_| self.await_ack(LAST_JOIN_RETRY)).map(|ack| ack.is_some());
        match is_answered {
            Ok(true) => {
                let _ = self.send(&encode(self.options.job, 0, ControlBody::Leave));
                self.path_mtu(self.packet(join).len())
            }
            Ok(false) => JoinError::NoAnswer {
                switch: self.options.switch,
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

    /// Sends the Join; an error that may pass is returned as text.
    fn send(&self, packet: &[u8]) -> Result<Option<io::Error>, JoinError> {
        let tos = self.options.control_tos;
        match self.link.socket.send(tos, None, None, packet, packet.len()) {
            Ok(_) => Ok(None),
            Err(error) if error.raw_os_error() == Some(EMSGSIZE) => Err(self.path_mtu(packet.len())),
            Err(error) if is_transient(&error) => Ok(Some(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// The membership, the number of members, and whether the job is complete.
    fn await_ack(&mut self, patience: Duration) -> Result<Option<(Membership, u16, bool)>, JoinError> {
        let deadline = self.link.now().plus(patience);
        let mut latest = None;
        while self.link.wait(deadline)? {
            let Some((class, len, stride)) = self.link.receive()? else { continue };
            for bytes in self.link.recv_buffer[..len].chunks(stride.max(1)) {
                if let Some((JOIN_REQUEST | NOTICE, ack)) = parse_ack(class, bytes)
                    && ack.action == Action::Join
                {
                    let admitted = self.admitted(&ack)?;
                    if admitted.2 {
                        return Ok(Some(admitted));
                    }
                    latest = Some(admitted);
                }
            }
        }
        Ok(latest)
    }

    fn admitted(&self, ack: &AckRepr<'_>) -> Result<(Membership, u16, bool), JoinError> {
        if ack.status != Status::Success {
            let reason = self.options.refusal(ack.status, ack.expected);
            return Err(JoinError::Refused { status: ack.status, reason });
        }
        let membership = Membership::from_ack(ack);
        // H is held at the declared number of workers until they have all joined.
        let is_complete = ack.members >= self.options.workers || ack.threshold <= ack.members;
        Ok((membership, ack.members, is_complete))
    }

    fn check_patience(&self, waited: Duration, answer: Option<(Membership, u16)>) -> Result<(), JoinError> {
        let is_over = self.options.workers_timeout.is_some_and(|limit| waited > limit);
        match answer {
            Some((_, present)) if is_over => {
                Err(JoinError::WorkersMissing { present, workers: self.options.workers, waited })
            }
            _ => Ok(()),
        }
    }
}

/// The path's MTU was exceeded (errno of Linux).
const EMSGSIZE: i32 = 90;

/// A number that another process at the same address is unlikely to have.
fn instance() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}

/// Keeps the lease alive while the worker computes: sends an empty Help that wants no answer.
#[derive(Debug)]
struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    fn start(link: &Link, job: u32, lease: Duration) -> io::Result<Self> {
        let empty = RangeRepr { round: WireRound::default(), first: 0, count: 0 };
        let body = ControlBody::Help(SegmentSetRepr { range: empty, bitmap: &[] });
        let packet = encode(job, 0, body);
        let (socket, tos) = (Arc::clone(&link.socket), link.classifier.control_tos);
        let interval = (lease / HEARTBEATS_PER_LEASE).max(Duration::from_millis(1));
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new().name("iswitch-heartbeat".into()).spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                // If the switch is away, the next call to all_reduce finds out.
                let _ = socket.send(tos, None, None, &packet, packet.len());
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
