//! The real switch core and real workers on a simulated network, in virtual time.
//!
//! One seed decides everything. Worker i contributes integers, so every sum is exact in any order of arrival,
//! and any packet that was counted twice, or not at all, or in the wrong round, shows in the result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use iswitch::worker::protocol::{Failure, Finished, Membership, WorkerProtocol};
use iswitch_daemon::switch::{Config, Endpoint, Event, Instant, PortId, Switch};
use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Kind, Mode, Status,
};
use iswitch_protocol::{Round, VectorLayout};

use crate::network::{Channel, Network};

const JOB: u32 = 1;
const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711);

/// A job to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Workers of the job.
    pub workers: usize,
    /// Floats in the vector.
    pub gradient_len: u32,
    /// Floats in a packet.
    pub segment_floats: u16,
    /// Rounds that every worker takes part in.
    pub rounds: u32,
    /// The network.
    pub network: Network,
    /// Receive buffer of the switch and of each worker, in bytes: decides the window.
    pub recv_buffer_bytes: usize,
}

/// What a simulation has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rounds that were checked, over all workers.
    pub rounds: u64,
    /// Datagrams that were put on the wire.
    pub datagrams: u64,
    /// Data packets that a job without loss needs: each segment once up and once down for each worker.
    pub ideal: u64,
    /// Virtual time that it took.
    pub elapsed: Duration,
}

/// A packet on its way, or a deadline.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Happening {
    at: Instant,
    /// Keeps the order of packets that arrive at the same time.
    sequence: u64,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    ToSwitch { from: usize, data: bool, bytes: Vec<u8> },
    ToWorker { to: usize, data: bool, bytes: Vec<u8> },
}

/// Both directions between a worker and the switch.
struct Cable {
    up: Channel,
    down: Channel,
}

impl Cable {
    fn new(network: Network, seed: u64, worker: u64) -> Self {
        // A seed of its own for each channel.
        let channel = |number| Channel::new(network, seed.wrapping_mul(2 * MAX_MEMBERS as u64) + number);
        Self { up: channel(2 * worker), down: channel(2 * worker + 1) }
    }
}

struct SimulatedWorker {
    protocol: WorkerProtocol,
    vector: Vec<f32>,
    rounds_left: u32,
}

/// A running simulation.
pub struct Simulation {
    scenario: Scenario,
    cables: Vec<Cable>,
    now: Instant,
    sequence: u64,
    wire: BinaryHeap<Reverse<Happening>>,
    switch: Switch,
    workers: Vec<SimulatedWorker>,
    report: Report,
}

fn endpoint(worker: usize) -> Endpoint {
    let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, worker as u8), 5000);
    Endpoint { port: PortId(0), peer, local: SWITCH, peer_mac: [0; 6], local_mac: [0; 6] }
}

/// The integer that a worker contributes to an element of a round: sums stay exact for 64 workers.
fn contribution(worker: usize, round: Round, element: usize) -> f32 {
    ((worker * 31 + round.get() as usize * 17 + element * 7) % 4096) as f32
}

impl Simulation {
    /// Lets all workers of a scenario join; their Joins and Acks are not subject to faults.
    ///
    /// # Panics
    /// If the switch refuses one of them.
    pub fn new(scenario: Scenario, seed: u64) -> Self {
        assert!(scenario.workers <= MAX_MEMBERS);
        let config = Config {
            boot: seed,
            memory_bytes: 16 << 20,
            recv_buffer_bytes: scenario.recv_buffer_bytes,
            ..Config::default()
        };
        let mut simulation = Self {
            scenario,
            cables: (0..scenario.workers as u64)
                .map(|worker| Cable::new(scenario.network, seed, worker))
                .collect(),
            now: Instant::from_nanos(1),
            sequence: 0,
            wire: BinaryHeap::new(),
            switch: Switch::new(config),
            workers: Vec::new(),
            report: Report::default(),
        };
        for worker in 0..scenario.workers {
            let protocol = simulation.join(worker);
            let vector = vec![0.0; scenario.gradient_len as usize];
            simulation.workers.push(SimulatedWorker { protocol, vector, rounds_left: scenario.rounds });
        }
        simulation
    }

    fn join(&mut self, worker: usize) -> WorkerProtocol {
        let Scenario { gradient_len, segment_floats, workers, recv_buffer_bytes, .. } = self.scenario;
        let join = JoinRepr {
            gradient_len,
            segment_floats,
            workers: workers as u16,
            mode: Mode::Synchronous,
            kind: Kind::Worker,
            weight: 1,
            rank: 0,
            height: 0,
            query: false,
            tagged: false,
            nonce: 0,
            resume: None,
            instance: worker as u32,
            padding_len: 0,
        };
        let mut buffer = [0; 128];
        let len = ControlRepr { job: JOB, request: 1, body: ControlBody::Join(join) }.emit(&mut buffer);
        self.switch.handle_datagrams(self.now, &endpoint(worker), Class::Control, &buffer[..len], len);
        let mut answer = None;
        while let Some(transmit) = self.switch.poll_transmit() {
            // The last Join brings notices for the other members as well.
            if transmit.recipients().any(|recipient| *recipient == endpoint(worker)) {
                answer = Some(transmit.payload.to_vec());
            }
        }
        let answer = answer.expect("a Join is acknowledged");
        let packet = ControlPacket::new_checked(&answer).expect("the switch sends valid packets");
        let Ok(ControlRepr { body: ControlBody::Ack(ack), .. }) = ControlRepr::parse(&packet) else {
            panic!("the answer to a Join is an Ack");
        };
        assert_eq!(ack.status, Status::Success);
        let membership = Membership::from_ack(&ack);
        let layout = VectorLayout::new(gradient_len, segment_floats).expect("the switch accepted the layout");
        WorkerProtocol::new(JOB, layout, membership, recv_buffer_bytes)
    }

    /// Runs to the end, checking every result of every worker.
    ///
    /// # Errors
    /// Names the first wrong sum, failure, or the point where nothing moves any more.
    pub fn run(mut self) -> Result<Report, String> {
        for worker in 0..self.workers.len() {
            self.begin_round(worker);
            self.flush_worker(worker);
        }
        let limit = self.now.plus(Duration::from_secs(60) * self.scenario.rounds);
        while self.workers.iter().any(|worker| worker.rounds_left > 0) {
            if self.now > limit {
                return Err(format!("not finished after {:?} of virtual time", self.now));
            }
            self.step()?;
        }
        self.report.elapsed = self.now.since(Instant::from_nanos(1));
        let segments = u64::from(self.workers[0].protocol.layout().segment_count());
        self.report.ideal = 2 * segments * self.workers.len() as u64 * u64::from(self.scenario.rounds);
        Ok(self.report)
    }

    /// Lets the next packet arrive, or the next timer run out.
    fn step(&mut self) -> Result<(), String> {
        let packet = self.wire.peek().map(|Reverse(next)| next.at);
        let timers = self.workers.iter().filter_map(|worker| worker.protocol.poll_timeout());
        let timer = timers.chain(self.switch.poll_timeout()).min();
        match (packet, timer) {
            (Some(packet), Some(timer)) if timer < packet => self.expire(timer),
            (Some(_), _) => {
                let Some(Reverse(next)) = self.wire.pop() else { return Ok(()) };
                self.now = self.now.max(next.at);
                return self.deliver(next.what);
            }
            (None, Some(timer)) => self.expire(timer),
            (None, None) => return Err("nothing moves any more".into()),
        }
        Ok(())
    }

    fn expire(&mut self, timer: Instant) {
        self.now = self.now.max(timer);
        for worker in 0..self.workers.len() {
            let protocol = &mut self.workers[worker].protocol;
            if protocol.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
                protocol.handle_timeout(self.now);
                self.flush_worker(worker);
            }
        }
        self.switch.handle_timeout(self.now);
        self.flush_switch();
    }

    fn deliver(&mut self, what: What) -> Result<(), String> {
        match what {
            What::ToSwitch { from, data, bytes } => {
                self.switch.handle_datagrams(self.now, &endpoint(from), class(data), &bytes, bytes.len());
                self.flush_switch();
            }
            What::ToWorker { to, data, bytes } => {
                let worker = &mut self.workers[to];
                worker.protocol.handle_datagrams(
                    self.now,
                    class(data),
                    &bytes,
                    bytes.len(),
                    &mut worker.vector,
                );
                match worker.protocol.take_outcome() {
                    None => {}
                    Some(Ok(finished)) => self.check(to, finished)?,
                    Some(Err(failure)) => return Err(failed(to, failure)),
                }
                self.flush_worker(to);
            }
        }
        Ok(())
    }

    fn check(&mut self, worker: usize, finished: Finished) -> Result<(), String> {
        let members = self.workers.len();
        if usize::from(finished.fewest) != members || finished.fewest != finished.most {
            return Err(format!("worker {worker}: {finished:?}, expected {members} contributions"));
        }
        for (element, sum) in self.workers[worker].vector.iter().enumerate() {
            let expected: f32 = (0..members).map(|i| contribution(i, finished.round, element)).sum();
            if sum.to_bits() != expected.to_bits() {
                let round = finished.round;
                return Err(format!(
                    "worker {worker} round {round} [{element}] is {sum}, expected {expected}"
                ));
            }
        }
        self.report.rounds += 1;
        self.workers[worker].rounds_left -= 1;
        if self.workers[worker].rounds_left > 0 {
            self.begin_round(worker);
        }
        Ok(())
    }

    fn begin_round(&mut self, worker: usize) {
        let SimulatedWorker { protocol, vector, .. } = &mut self.workers[worker];
        let round = protocol.begin_round(self.now);
        for (element, x) in vector.iter_mut().enumerate() {
            *x = contribution(worker, round, element);
        }
    }

    fn flush_worker(&mut self, from: usize) {
        let mut buffer = Vec::new();
        loop {
            let SimulatedWorker { protocol, vector, .. } = &mut self.workers[from];
            let Some((class, stride)) = protocol.poll_transmit(self.now, vector, &mut buffer) else { break };
            let data = class == Class::Data;
            for bytes in buffer.chunks(stride) {
                self.send(&What::ToSwitch { from, data, bytes: bytes.to_vec() });
            }
        }
    }

    fn flush_switch(&mut self) {
        let mut packets = Vec::new();
        while let Some(transmit) = self.switch.poll_transmit() {
            let data = transmit.class == Class::Data;
            for recipient in transmit.recipients() {
                let to = usize::from(recipient.peer.ip().octets()[3]);
                packets
                    .extend(transmit.payload.chunks(transmit.stride).map(|bytes| (to, data, bytes.to_vec())));
            }
        }
        for (to, data, bytes) in packets {
            debug_assert!(!data || DataPacket::new_checked(&bytes).is_ok());
            self.send(&What::ToWorker { to, data, bytes });
        }
        while let Some(event) = self.switch.poll_event() {
            debug_assert!(!matches!(event, Event::EventsLost { .. }));
        }
    }

    /// Puts a packet on the wire: it is lost, or arrives once or twice.
    fn send(&mut self, what: &What) {
        self.report.datagrams += 1;
        let arrivals = match what {
            What::ToSwitch { from, .. } => self.cables[*from].up.arrivals(),
            What::ToWorker { to, .. } => self.cables[*to].down.arrivals(),
        };
        for delay in arrivals {
            self.sequence += 1;
            let at = self.now.plus(delay);
            self.wire.push(Reverse(Happening { at, sequence: self.sequence, what: what.clone() }));
        }
    }
}

fn class(data: bool) -> Class {
    if data { Class::Data } else { Class::Control }
}

fn failed(worker: usize, failure: Failure) -> String {
    format!("worker {worker} failed: {failure:?}")
}
