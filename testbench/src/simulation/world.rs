//! The world: machines, the wires between them, and what happens to both.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch_daemon::switch::{Config, Counters, Departure, Endpoint, Event, PortId, Switch};
use iswitch_protocol::wire::{Class, WireError};
use iswitch_protocol::{Instant, Round, Seg, VectorLayout};

use super::checker::{Checker, RoundThen, Rule, Violation, Witness, mix, violated};
use super::network::Link;
use super::packets::Packet;
use super::process::{Process, Progress, SwitchNode, Training, Waiting, WorkerNode};
use super::report::Report;
use super::swarm::{Action, Node, Planned, Scenario};
use super::transcript::{Transcript, describe};
use super::wires::{Direction, Wires};
use super::worker::{Options, Request, Worker};
use super::{Happening, JOB, SWITCH, address_of, worker_at};

/// Clocks start here, so that they can be turned back.
const BEGIN: Instant = Instant::from_nanos(60_000_000_000);
/// The faults end after so many events at the latest.
const MAX_FAULTY_EVENTS: u64 = 10_000;
/// Rounds that everything alive must be given after the faults have ended.
const ROUNDS_AFTER_HEAL: u32 = 2;
/// How long that may take: leases, retries and clocks that were turned back add up to less.
const LIVENESS_LIMIT: Duration = Duration::from_secs(60);
/// How often the operator looks.
const OPERATOR_INTERVAL: Duration = Duration::from_millis(20);
/// Memory of the switch, besides what the vector needs.
const SWITCH_MEMORY_BYTES: usize = 64 << 10;
/// Memory that a segment needs at most, in both generations: the switch has a slot for each 256 bytes.
const SEGMENT_MEMORY_BYTES: usize = 1 << 10;
const FIRST_UDP_PORT: u16 = 5000;

/// A running simulation.
pub(super) struct World<'a> {
    scenario: &'a Scenario,
    transcript: &'a mut Transcript,
    seed: u64,
    now: Instant,
    wires: Wires,
    switch: SwitchNode,
    boots: u64,
    workers: Vec<WorkerNode>,
    /// Which life has an address, or had it last.
    lives: HashMap<SocketAddrV4, usize>,
    next_life: usize,
    training: Training,
    checker: Checker,
    /// The latest round that a data packet to the present switch has named.
    named: Option<Round>,
    healed_at: Option<Instant>,
    /// Whether the threshold H is set.
    is_pinned: bool,
    /// Whether the job was reset after the faults had ended, and with H as the members have it.
    was_reset: bool,
    report: Report,
    buffer: Vec<u8>,
}

impl<'a> World<'a> {
    /// # Panics
    /// If the scenario's vector cannot be cut up, or its segments do not hold the witness.
    pub(super) fn new(scenario: &'a Scenario, seed: u64, transcript: &'a mut Transcript) -> Self {
        let layout = VectorLayout::new(scenario.gradient_len, scenario.segment_floats).expect("a layout");
        let lives = scenario.lives();
        let last = scenario.gradient_len % u32::from(scenario.segment_floats);
        let shortest = if last == 0 { u32::from(scenario.segment_floats) } else { last };
        assert!(shortest as usize >= scenario.min_segment_floats(), "a segment of {shortest} floats");
        let may_be_damaged = scenario.link.corruption > 0.0 && scenario.link.missed_checksum > 0.0;
        Self {
            scenario,
            transcript,
            seed,
            now: BEGIN,
            wires: Wires::new(scenario, seed),
            switch: SwitchNode { process: Process::default(), switch: None, boot: 0 },
            boots: 0,
            workers: (0..scenario.workers).map(WorkerNode::new).collect(),
            lives: HashMap::new(),
            next_life: 0,
            training: Training {
                compute: scenario.compute,
                rounds: scenario.rounds,
                poison_one_in: scenario.poison_one_in,
                excuses_refusals: may_be_damaged,
                waits_for_all: scenario.waits_for_all(),
            },
            checker: Checker::new(Witness::new(layout, lives), lives, !may_be_damaged),
            named: None,
            healed_at: None,
            is_pinned: false,
            was_reset: false,
            report: Report { unchecked: u64::from(may_be_damaged), ..Report::default() },
            buffer: Vec::new(),
        }
    }

    /// Runs to the end.
    pub(super) fn run(mut self) -> Result<Report, Violation> {
        self.schedule_plan();
        while let Some((at, what)) = self.wires.queue.pop() {
            self.now = self.now.max(at);
            self.report.events += 1;
            let is_faulty = self.healed_at.is_none() && self.scenario.rounds.is_none();
            if is_faulty && self.report.events > MAX_FAULTY_EVENTS {
                self.heal();
            }
            self.happen(what)?;
            if self.is_finished() {
                break;
            }
            self.check_patience()?;
        }
        self.report.elapsed = self.now.since(BEGIN);
        self.report.network = self.wires.counters;
        Ok(self.report)
    }

    fn schedule_plan(&mut self) {
        let queue = &mut self.wires.queue;
        queue.push(BEGIN, Happening::StartSwitch);
        for (worker, node) in self.workers.iter_mut().enumerate() {
            let start = self.scenario.starts.get(worker).copied().unwrap_or_default();
            node.will_start = true;
            queue.push(BEGIN.plus(start), Happening::StartWorker { worker, new_port: false });
        }
        for (position, planned) in self.scenario.plan.iter().enumerate() {
            queue.push(BEGIN.plus(planned.at), Happening::Planned(position));
        }
        if self.scenario.rounds.is_none() {
            queue.push(BEGIN.plus(self.scenario.duration), Happening::Heal);
        }
    }

    fn is_finished(&self) -> bool {
        if let Some(rounds) = self.scenario.rounds {
            return self.workers.iter().all(|node| node.delivered >= rounds);
        }
        if self.healed_at.is_none() {
            return false;
        }
        // What was promised without checksums is over: nothing has panicked.
        self.report.unchecked > 0
            || self.workers.iter().all(|node| {
                let is_gone = node.worker.is_none() && !node.will_start;
                is_gone || node.delivered_since_heal >= ROUNDS_AFTER_HEAL
            })
    }

    fn check_patience(&self) -> Result<(), Violation> {
        let limit = match self.healed_at {
            Some(healed_at) => healed_at.plus(LIVENESS_LIMIT),
            None => BEGIN.plus(self.scenario.duration).plus(LIVENESS_LIMIT),
        };
        if self.now <= limit {
            return Ok(());
        }
        let behind = self.workers.iter().filter(|node| node.delivered_since_heal < ROUNDS_AFTER_HEAL);
        let behind: Vec<_> = behind.map(|node| node.index).collect();
        let jobs: Vec<_> = self.switch.switch.iter().flat_map(Switch::jobs).collect();
        violated(Rule::Liveness, format!("workers {behind:?} do not go on; the switch has {jobs:?}"))
    }

    fn happen(&mut self, what: Happening) -> Result<(), Violation> {
        match what {
            Happening::AtSwitch { packet, peer, is_bad } => self.arrive_at_switch(packet, peer, is_bad),
            Happening::AtWorker { packet, peer, is_bad } => self.arrive_at_worker(packet, peer, is_bad),
            Happening::Wake(node) => self.wake(node),
            Happening::Planned(position) => self.act(self.scenario.plan[position]),
            Happening::StartWorker { worker, new_port } => self.start_worker(worker, new_port),
            Happening::StartSwitch => {
                self.start_switch();
                Ok(())
            }
            Happening::Resume(node) => self.resume(node),
            Happening::Reconnect { workers, up, down } => {
                self.note(|| format!("the partition of {workers:x} ends"));
                self.wires.partition(workers, up, down, Link::unblock);
                Ok(())
            }
            Happening::Heal => {
                self.heal();
                Ok(())
            }
            Happening::Operate => self.operate(),
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        self.transcript.note(self.now, line);
    }

    fn process(&mut self, node: Node) -> &mut Process {
        match node {
            Node::Switch => &mut self.switch.process,
            Node::Worker(worker) => &mut self.workers[worker].process,
        }
    }

    fn schedule(&mut self, node: Node) {
        let now = self.now;
        let deadline = match node {
            Node::Switch => self.switch.switch.as_ref().and_then(Switch::poll_timeout),
            Node::Worker(worker) => self.workers[worker].poll_timeout(),
        };
        let process = self.process(node);
        if process.pauses > 0 {
            return;
        }
        if let Some(at) = process.schedule(now, deadline) {
            self.wires.queue.push(at, Happening::Wake(node));
        }
    }

    fn wake(&mut self, node: Node) -> Result<(), Violation> {
        let now = self.now;
        if !self.process(node).wakes(now) || self.process(node).pauses > 0 {
            return Ok(());
        }
        let clock = self.process(node).clock(now);
        match node {
            Node::Switch => {
                if let Some(switch) = &mut self.switch.switch {
                    let before = *switch.counters();
                    switch.handle_timeout(clock);
                    self.flush_switch(&before)?;
                }
                check_timer(node, self.switch.switch.as_ref().and_then(Switch::poll_timeout), clock)?;
            }
            Node::Worker(worker) => {
                self.workers[worker].handle_timeout(now, &self.training, &self.checker.witness());
                self.flush_worker(worker)?;
                check_timer(node, self.workers[worker].poll_timeout(), clock)?;
            }
        }
        self.schedule(node);
        Ok(())
    }

    fn arrive_at_switch(&mut self, packet: u32, peer: SocketAddrV4, is_bad: bool) -> Result<(), Violation> {
        if is_bad {
            self.wires.packets.discard(packet);
            return self.give_switch_invalid();
        }
        if self.switch.process.pauses > 0 {
            self.keep(Node::Switch, packet, peer);
            return Ok(());
        }
        self.give_switch(packet, peer)
    }

    fn arrive_at_worker(&mut self, packet: u32, peer: SocketAddrV4, is_bad: bool) -> Result<(), Violation> {
        let node = &self.workers[worker_at(peer)];
        if is_bad || node.worker.is_none() || node.udp_port != peer.port() {
            self.wires.packets.discard(packet);
            return Ok(());
        }
        if node.process.pauses > 0 {
            self.keep(Node::Worker(worker_at(peer)), packet, peer);
            return Ok(());
        }
        self.give_worker(packet, peer)
    }

    /// What arrives during a pause waits in the socket's buffer.
    fn keep(&mut self, node: Node, packet: u32, peer: SocketAddrV4) {
        let buffer_bytes = match node {
            Node::Switch => self.scenario.switch_buffer_bytes,
            Node::Worker(_) => self.scenario.worker_buffer_bytes,
        };
        let len = self.wires.packets.get_mut(packet).bytes.len();
        if !self.process(node).keep(Waiting { packet, peer, len }, buffer_bytes) {
            self.report.buffer_overflows += 1;
            self.wires.packets.discard(packet);
        }
    }

    fn give_switch_invalid(&mut self) -> Result<(), Violation> {
        let clock = self.switch.process.clock(self.now);
        let Some(switch) = &mut self.switch.switch else { return Ok(()) };
        let before = *switch.counters();
        switch.handle_invalid(clock, WireError::BadChecksum);
        let dropped = switch.counters().dropped() - before.dropped();
        if dropped != 1 {
            return violated(Rule::Counters, format!("an invalid frame was counted {dropped} times"));
        }
        self.flush_switch(&before)?;
        self.schedule(Node::Switch);
        Ok(())
    }

    fn give_switch(&mut self, slot: u32, peer: SocketAddrV4) -> Result<(), Violation> {
        let clock = self.switch.process.clock(self.now);
        let packet = self.wires.packets.take(slot);
        let Packet { class, bytes, stride } = &packet;
        self.transcript.note(self.now, || format!("{peer} -> switch: {}", describe(*class, bytes, *stride)));
        if let Some(switch) = &mut self.switch.switch {
            let before = *switch.counters();
            let from = Endpoint { port: PortId(0), peer, local: SWITCH, peer_mac: [0; 6], local_mac: [0; 6] };
            switch.handle_datagrams(clock, &from, *class, bytes, *stride);
            let datagrams = bytes.len().div_ceil((*stride).max(1)) as u64;
            check_received(&before, switch.counters(), *class, datagrams)?;
            self.flush_switch(&before)?;
            self.schedule(Node::Switch);
        }
        self.wires.packets.give_back(slot, packet);
        Ok(())
    }

    /// Sends what the switch has to send, and looks at what it reports.
    fn flush_switch(&mut self, before: &Counters) -> Result<(), Violation> {
        let Self { switch: SwitchNode { switch, boot, .. }, wires, checker, report, transcript, .. } = self;
        let Some(switch) = switch else { return Ok(()) };
        let (mut data_sent, mut control_sent) = (0, 0);
        while let Some(transmit) = switch.poll_transmit() {
            let peers = transmit.recipients().count() as u64;
            let datagrams = transmit.payload.len().div_ceil(transmit.stride.max(1)) as u64;
            match transmit.class {
                Class::Data => data_sent += datagrams * peers,
                Class::Control => control_sent += datagrams,
            }
            let to = || transmit.recipients().map(|to| to.peer);
            transcript.note(self.now, || {
                let text = describe(transmit.class, transmit.payload, transmit.stride);
                format!("switch -> {:?}: {text}", to().collect::<Vec<_>>())
            });
            if transmit.class == Class::Data {
                for bytes in transmit.payload.chunks(transmit.stride) {
                    checker.sent(*boot, bytes)?;
                }
            }
            let (class, payload, stride) = (transmit.class, transmit.payload, transmit.stride);
            let peers: Vec<_> = to().collect();
            wires.send(self.now, Direction::Down, &peers, class, payload, stride);
        }
        report.data_packets += data_sent;
        report.control_packets += control_sent;
        let after = switch.counters();
        let counted = (after.data_sent - before.data_sent, after.control_sent - before.control_sent);
        if counted != (data_sent, control_sent) {
            let detail = format!("counted {counted:?} as sent, which were {:?}", (data_sent, control_sent));
            return violated(Rule::Counters, detail);
        }
        while let Some(event) = self.switch.switch.as_mut().and_then(Switch::poll_event) {
            self.note(|| format!("switch: {event}"));
            self.hear(event)?;
        }
        Ok(())
    }

    fn hear(&mut self, event: Event) -> Result<(), Violation> {
        let boot = self.switch.boot;
        match event {
            Event::Joined { address, round, .. } => {
                if let Some(life) = self.lives.get(&address) {
                    self.checker.joined(*life, boot, round);
                }
            }
            Event::Left { job, address, why, .. } => {
                self.report.leaves += u64::from(why == Departure::Leave);
                self.report.expelled += u64::from(why == Departure::Silent);
                let job = self.switch.switch.iter().flat_map(Switch::jobs).find(|status| status.job == job);
                let round = match job.map(|job| job.round) {
                    Some(Some(newest)) => RoundThen::Open(Round::new(newest)),
                    Some(None) => RoundThen::None,
                    None => RoundThen::JobEnded,
                };
                if let Some(life) = self.lives.get(&address) {
                    self.checker.departed(*life, boot, round);
                }
            }
            Event::JobResumed { round, .. } => {
                self.report.resumed += 1;
                self.checker.resumed(boot, round);
            }
            Event::Reset { round, .. } => {
                self.report.resets += 1;
                self.checker.reset((boot, round));
                self.was_reset |= self.healed_at.is_some() && !self.is_pinned;
                let is_named = self.named.is_some_and(|named| !named.is_before(round));
                if is_named && self.report.unchecked == 0 {
                    let named = self.named.unwrap_or_default();
                    let detail = format!("the job goes on at round {round}, packets named {named}");
                    return violated(Rule::Reset, detail);
                }
            }
            Event::ThresholdSet { threshold, .. } => {
                self.report.thresholds += 1;
                self.is_pinned = threshold > 0;
            }
            Event::Halted { .. } => self.report.halts += 1,
            Event::EventsLost { count } => {
                return violated(Rule::Counters, format!("{count} events were lost"));
            }
            _ => {}
        }
        Ok(())
    }

    fn give_worker(&mut self, slot: u32, peer: SocketAddrV4) -> Result<(), Violation> {
        let worker = worker_at(peer);
        let packet = self.wires.packets.take(slot);
        let Packet { class, bytes, stride } = &packet;
        self.transcript.note(self.now, || format!("switch -> {peer}: {}", describe(*class, bytes, *stride)));
        self.workers[worker].handle_datagrams(self.now, *class, bytes, *stride);
        self.wires.packets.give_back(slot, packet);
        self.flush_worker(worker)?;
        self.schedule(Node::Worker(worker));
        Ok(())
    }

    /// Lets the training loop react, and sends what the worker has to send.
    fn flush_worker(&mut self, worker: usize) -> Result<(), Violation> {
        let node = &mut self.workers[worker];
        let Progress { delivered, rejoins, repeated, poisoned } =
            node.advance(self.now, &self.training, &mut self.checker)?;
        self.report.rounds += delivered;
        self.report.segments += delivered * u64::from(self.checker.segments());
        self.report.rejoins += rejoins;
        self.report.repeated_rounds += repeated;
        self.report.poisoned += poisoned;
        let (clock, address) = (node.process.clock(self.now), node.address());
        if delivered > 0 {
            self.transcript.note(self.now, || format!("{address} has its sum"));
        }
        let node = &mut self.workers[worker];
        let (life, gradient) = (node.life, node.gradient());
        let Some(protocol) = &mut node.worker else { return Ok(()) };
        while let Some((class, stride)) = protocol.poll_transmit(clock, &mut self.buffer) {
            let datagrams = self.buffer.len().div_ceil(stride.max(1)) as u64;
            match class {
                Class::Data => self.report.data_packets += datagrams,
                Class::Control => self.report.control_packets += datagrams,
            }
            if class == Class::Data {
                // All packets of a super-frame are of the same round.
                let seg = self.buffer.first_chunk().map(|bytes| Seg::from_bytes(*bytes));
                let round = seg.map_or(Round::default(), |seg| seg.round);
                let (boot, supplies) = (protocol.boot(), protocol.supplies(round));
                self.checker.offered(life, (boot, round), gradient, supplies)?;
                let is_newest = self.named.is_none_or(|named| named.is_before(round));
                if boot == self.switch.boot && is_newest {
                    self.named = Some(round);
                }
            }
            self.wires.send(self.now, Direction::Up, &[address], class, &self.buffer, stride);
        }
        Ok(())
    }

    fn start_switch(&mut self) {
        if self.switch.switch.is_some() {
            return;
        }
        self.boots += 1;
        let boot = mix(self.seed ^ self.boots << 48);
        self.note(|| format!("the switch starts, boot {boot:x}"));
        let config = Config {
            boot,
            lease_ms: self.scenario.lease_ms,
            memory_bytes: SWITCH_MEMORY_BYTES + SEGMENT_MEMORY_BYTES * self.checker.segments() as usize,
            recv_buffer_bytes: self.scenario.switch_buffer_bytes,
            ..Config::default()
        };
        self.named = None;
        self.is_pinned = false;
        self.switch.start(config);
    }

    /// A process that takes over a UDP port waits until nothing sent from it is under way, as TCP does
    /// (RFC 9293 section 3.4.3).
    fn start_worker(&mut self, worker: usize, new_port: bool) -> Result<(), Violation> {
        let quiet_time = self.scenario.link.max_lifetime();
        let node = &mut self.workers[worker];
        if !node.will_start {
            return Ok(());
        }
        node.crash(self.now);
        let is_first = node.udp_port == 0;
        let quiet_until = node.ended_at.plus(quiet_time);
        if !is_first && !new_port && self.now < quiet_until {
            let again = Happening::StartWorker { worker, new_port };
            self.wires.queue.push(quiet_until, again);
            return Ok(());
        }
        node.will_start = false;
        let life = self.next_life;
        self.next_life += 1;
        let udp_port = if is_first || new_port { FIRST_UDP_PORT + life as u16 } else { node.udp_port };
        let options = Options {
            job: JOB,
            layout: self.checker.layout(),
            workers: if self.scenario.declared { self.scenario.workers as u16 } else { 0 },
            recv_buffer_bytes: self.scenario.worker_buffer_bytes,
            instance: mix(self.seed ^ (life as u64) << 40) as u32,
        };
        node.start(self.now, life, udp_port, options);
        self.lives.insert(address_of(worker, udp_port), life);
        self.note(|| format!("worker {worker} starts as life {life} at port {udp_port}"));
        self.flush_worker(worker)?;
        self.schedule(Node::Worker(worker));
        Ok(())
    }

    fn act(&mut self, planned: Planned) -> Result<(), Violation> {
        if self.healed_at.is_some() {
            return Ok(());
        }
        self.note(|| format!("{:?}", planned.action));
        match planned.action {
            Action::CrashWorker { worker, restart_after, new_port } => {
                if self.workers[worker].worker.is_some() {
                    self.report.worker_crashes += 1;
                    self.workers[worker].crash(self.now);
                    self.restart_worker(worker, restart_after, new_port);
                }
            }
            Action::CrashSwitch { restart_after } => {
                self.report.switch_crashes += 1;
                self.switch.switch = None;
                self.switch.process.kill();
                self.wires.queue.push(self.now.plus(restart_after), Happening::StartSwitch);
            }
            Action::Pause { node, duration } => {
                self.report.pauses += 1;
                self.process(node).pauses += 1;
                self.wires.queue.push(self.now.plus(duration), Happening::Resume(node));
            }
            Action::TurnClock { node, by_us } => {
                self.report.clock_jumps += 1;
                self.process(node).turn_clock(by_us * 1000);
                self.schedule(node);
            }
            Action::Partition { workers, up, down, duration } => {
                self.report.partitions += 1;
                self.wires.partition(workers, up, down, Link::block);
                let end = Happening::Reconnect { workers, up, down };
                self.wires.queue.push(self.now.plus(duration), end);
            }
            Action::Leave { worker, return_after } => {
                if self.workers[worker].worker.as_ref().is_some_and(Worker::is_member) {
                    self.restart_worker(worker, return_after, false);
                    return self.ask(worker, Request::Leave);
                }
            }
            Action::SetThreshold { worker, threshold } => {
                return self.ask(worker, Request::SetThreshold(threshold));
            }
            Action::ForceBroadcast { worker } => {
                self.report.forced += 1;
                return self.ask(worker, Request::ForceBroadcast);
            }
            Action::Reset { worker } => return self.ask(worker, Request::Reset),
            Action::Halt { worker } => return self.ask(worker, Request::Halt),
        }
        Ok(())
    }

    fn ask(&mut self, worker: usize, request: Request) -> Result<(), Violation> {
        self.workers[worker].request(self.now, request);
        if self.workers[worker].process.pauses == 0 {
            self.flush_worker(worker)?;
        }
        self.schedule(Node::Worker(worker));
        Ok(())
    }

    fn restart_worker(&mut self, worker: usize, after: Option<Duration>, new_port: bool) {
        if let Some(after) = after {
            self.workers[worker].will_start = true;
            self.wires.queue.push(self.now.plus(after), Happening::StartWorker { worker, new_port });
        }
    }

    fn resume(&mut self, node: Node) -> Result<(), Violation> {
        let process = self.process(node);
        // A process that was killed meanwhile is not paused any more.
        process.pauses = process.pauses.saturating_sub(1);
        if process.pauses > 0 {
            return Ok(());
        }
        self.note(|| format!("{node:?} goes on"));
        while let Some(Waiting { packet, peer, .. }) = self.process(node).next_waiting() {
            match node {
                Node::Switch => self.give_switch(packet, peer)?,
                Node::Worker(_) => self.arrive_at_worker(packet, peer, false)?,
            }
        }
        self.schedule(node);
        Ok(())
    }

    /// Ends all faults: from now on everything that is alive has to go on.
    fn heal(&mut self) {
        if self.healed_at.is_some() {
            return;
        }
        self.note(|| "all faults end".to_owned());
        self.healed_at = Some(self.now);
        self.wires.heal();
        let queue = &mut self.wires.queue;
        queue.push(self.now, Happening::StartSwitch);
        for node in std::iter::once(Node::Switch).chain((0..self.workers.len()).map(Node::Worker)) {
            let process = match node {
                Node::Switch => &mut self.switch.process,
                Node::Worker(worker) => &mut self.workers[worker].process,
            };
            process.pauses = process.pauses.min(1);
            queue.push(self.now, Happening::Resume(node));
        }
        for (worker, node) in self.workers.iter_mut().enumerate() {
            node.delivered_since_heal = 0;
            if let Some(worker) = &mut node.worker {
                worker.cancel_requests();
            }
            if node.will_start {
                queue.push(self.now, Happening::StartWorker { worker, new_port: false });
            }
        }
        // Not before the last packet that was late has arrived.
        queue.push(self.now.plus(self.scenario.link.max_lifetime()), Happening::Operate);
    }

    /// What an operator does about a job that cannot go on by itself.
    fn operate(&mut self) -> Result<(), Violation> {
        let job = self.switch.switch.iter().flat_map(Switch::jobs).find(|status| status.job == JOB);
        if self.scenario.declared && job.as_ref().is_none_or(|job| !job.formed) {
            // It starts with as many workers as it declared, so those that are gone have to come back.
            for worker in 0..self.workers.len() {
                if self.workers[worker].worker.is_none() && !self.workers[worker].will_start {
                    self.restart_worker(worker, Some(Duration::ZERO), false);
                }
            }
        }
        let sets_thresholds =
            self.scenario.plan.iter().any(|planned| matches!(planned.action, Action::SetThreshold { .. }));
        let request = match job {
            Some(job) if job.threshold_pinned => Some(Request::SetThreshold(0)),
            // A round that was opened with a threshold above the number of members does not end.
            Some(job) if job.halted || sets_thresholds && !self.was_reset => Some(Request::Reset),
            _ => None,
        };
        let members = self.workers.iter().filter(|node| node.worker.as_ref().is_some_and(Worker::is_member));
        let members: Vec<_> = members.map(|node| node.index).collect();
        let turn = self.now.as_nanos() / OPERATOR_INTERVAL.as_nanos() as u64;
        self.wires.queue.push(self.now.plus(OPERATOR_INTERVAL), Happening::Operate);
        match (request, members.len()) {
            (Some(request), 1..) => self.ask(members[turn as usize % members.len()], request),
            _ => Ok(()),
        }
    }
}

/// What is received is either used, or counted under the reason why not.
fn check_received(
    before: &Counters,
    after: &Counters,
    class: Class,
    datagrams: u64,
) -> Result<(), Violation> {
    let received = match class {
        Class::Data => after.data_received - before.data_received,
        Class::Control => after.control_received - before.control_received,
    };
    let used = after.contributions - before.contributions;
    let dropped = after.dropped() - before.dropped();
    let is_consistent = match class {
        Class::Data => used + dropped == received,
        Class::Control => used == 0 && dropped <= received,
    };
    if received == datagrams && is_consistent {
        return Ok(());
    }
    let detail = format!("{datagrams} datagrams: {received} received, {used} used, {dropped} dropped");
    violated(Rule::Counters, detail)
}

/// A deadline that has been handled must not stay where it is: the driver would spin.
fn check_timer(node: Node, deadline: Option<Instant>, clock: Instant) -> Result<(), Violation> {
    match deadline {
        Some(deadline) if deadline < clock => {
            violated(Rule::Timer, format!("{node:?} is at {clock:?} and still wants {deadline:?}"))
        }
        _ => Ok(()),
    }
}
