//! Simulation of an asynchronous job in virtual time with the real switch core and the real worker protocol. The
//! three pipeline stages are reduced to the points that affect sums: when a gradient is computed, committed and
//! applied.
//!
//! One seed determines the whole run. Vectors consist of integers, so every sum is exact, and a result reveals any
//! vector that was counted twice, in part or in two aggregates. There is one switch, because a switch with a parent
//! refuses asynchronous jobs (requirement V-10).

mod census;
mod learner;
mod member;
mod report;
mod scenario;
mod upsets;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch::worker::Path;
use iswitch_protocol::wire::{Action, Class, ControlBody};
use iswitch_protocol::{Round, Seg};
use iswitch_switch::{Departure, Event, Instant, JobStatus, Switch};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use census::{Census, Finished};
use learner::Undecided;
use member::{SimulatedWorker, address, endpoint, worker_at};
pub use report::{Departures, Report, Totals, WorkerReport};
pub use scenario::{Faults, Pace, Scenario};
pub use upsets::{PlannedUpset, Upset};

use crate::checker::{Rule, Violation, violated};
use crate::transcript::{Transcript, describe};
use crate::{Failure, JOB, run_with_transcript};

/// Aggregates that must be delivered to every worker after the faults have ended.
const UPDATES_AFTER_HEAL: u64 = 2;
/// Time limit for the aggregates of [`UPDATES_AFTER_HEAL`], in virtual time and in addition to two leases. Retries are
/// at most half a second apart.
const LIVENESS_LIMIT: Duration = Duration::from_secs(3);
/// Time after a lease for which the operator waits before restarting the workers that a job waits for.
const OPERATOR_PATIENCE: Duration = Duration::from_millis(500);

/// Runs the scenario drawn from a seed.
///
/// # Errors
/// Returns the first rule violation.
pub fn simulate(seed: u64) -> Result<Totals, Box<Failure<Scenario>>> {
    run(&Scenario::draw(seed), seed).map(|report| Totals::of(&report))
}

/// Runs a scenario and checks every sum of every worker; the seed determines the behaviour of the network.
///
/// # Errors
/// Returns the first rule violation.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Report, Box<Failure<Scenario>>> {
    run_with_transcript(scenario, seed, |transcript| Simulation::new(scenario, seed, transcript).run())
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    at: Instant,
    /// Sequence number that orders packets arriving at the same time.
    sequence: u64,
    /// Worker that sent the packet or receives it.
    worker: usize,
    /// Port of the sending or receiving process.
    udp_port: u16,
    to_switch: bool,
    is_data: bool,
    /// Group to which the packet was sent, if any.
    group: Option<SocketAddrV4>,
    bytes: Vec<u8>,
}

/// State that the simulation keeps for an aggregate.
#[derive(Default)]
struct Aggregate {
    /// Number of contributions that the switch sent.
    sent: Option<u16>,
    /// Sum that the first worker received, and the number of contributions to it.
    sum: Option<(Vec<f32>, u16)>,
    /// Model of the first worker after it applied the aggregate.
    model: Vec<f32>,
    /// Vectors in the aggregate, by worker and number.
    vectors: Vec<(usize, u64)>,
}

/// A running simulation.
struct Simulation<'a> {
    scenario: &'a Scenario,
    seed: u64,
    transcript: &'a mut Transcript,
    /// Current network faults.
    faults: Faults,
    random: ChaCha8Rng,
    begin: Instant,
    now: Instant,
    sequence: u64,
    wire: BinaryHeap<Reverse<Packet>>,
    switch: Switch,
    census: Census,
    workers: Vec<SimulatedWorker>,
    /// Number of worker processes started so far.
    lives: u64,
    /// Reports of the processes that have ended.
    ended: Vec<WorkerReport>,
    departures: Departures,
    undecided: Vec<Undecided>,
    /// Aggregates by epoch and number.
    aggregates: BTreeMap<(u64, u32), Aggregate>,
    /// Number of upsets that have occurred.
    upsets: usize,
    /// Models of workers whose membership was Resumed, by epoch and next aggregate.
    resumed_models: BTreeMap<(u64, u32), Vec<f32>>,
    datagrams: u64,
    /// Probability that one worker misses a packet to a group that reaches the others.
    group_loss: f64,
    /// Number of data packets that the switch sent to groups.
    group_datagrams: u64,
}

impl<'a> Simulation<'a> {
    /// Creates a job whose workers are about to join.
    fn new(scenario: &'a Scenario, seed: u64, transcript: &'a mut Transcript) -> Self {
        let begin = Instant::from_nanos(1);
        let count = scenario.workers.len();
        Self {
            scenario,
            seed,
            transcript,
            faults: scenario.faults,
            random: ChaCha8Rng::seed_from_u64(seed),
            begin,
            now: begin,
            sequence: 0,
            wire: BinaryHeap::new(),
            switch: upsets::switch(seed, 0, scenario),
            census: Census::default(),
            workers: (0..count).map(|worker| SimulatedWorker::new(scenario, seed, worker, begin)).collect(),
            lives: count as u64,
            ended: Vec::new(),
            departures: Departures::default(),
            undecided: Vec::new(),
            aggregates: BTreeMap::new(),
            upsets: 0,
            resumed_models: BTreeMap::new(),
            datagrams: 0,
            group_loss: scenario.groups.loss,
            group_datagrams: 0,
        }
    }

    /// Runs the simulation to its end.
    fn run(mut self) -> Result<Report, Violation> {
        if self.scenario.threshold > 0 {
            let body = ControlBody::SetH { threshold: self.scenario.threshold };
            self.workers[0].protocol.order(self.now, body);
        }
        (0..self.workers.len()).for_each(|worker| self.flush_worker(worker));
        let end = self.begin.plus(self.scenario.duration);
        while self.now < end && self.step()? {}
        if self.scenario.heals {
            self.heal()?;
        }
        self.report()
    }

    /// Ends all faults; from now on, every live worker must make progress.
    fn heal(&mut self) -> Result<(), Violation> {
        self.note(|| "all faults end".to_owned());
        self.faults = Faults { delay: self.faults.delay, ..Faults::NONE };
        self.group_loss = 0.0;
        for worker in &mut self.workers {
            worker.pace.stall = None;
            worker.updates_since_heal = 0;
        }
        self.start_stopped(false);
        let lease = Duration::from_millis(u64::from(self.scenario.lease_ms));
        let mut operate_at = Some(self.now.plus(lease + OPERATOR_PATIENCE));
        let limit = self.now.plus(LIVENESS_LIMIT + lease * 2);
        while !self.has_made_progress() {
            if self.now > limit {
                let jobs: Vec<_> = self.switch.jobs().collect();
                let updates: Vec<_> = self.workers.iter().map(|worker| worker.updates_since_heal).collect();
                let detail = format!(
                    "updates applied since the faults ended: {updates:?}; jobs of the switch: {jobs:?}"
                );
                return violated(Rule::Liveness, detail);
            }
            if operate_at.take_if(|at| *at <= self.now).is_some() && !self.is_complete() {
                self.note(|| "starting all workers that the job waits for".to_owned());
                self.start_stopped(true);
            }
            self.step()?;
        }
        Ok(())
    }

    fn has_made_progress(&self) -> bool {
        let is_stopped = |worker: &SimulatedWorker| !worker.is_running && worker.returns.is_none();
        let has_made_progress = |worker: &SimulatedWorker| worker.updates_since_heal >= UPDATES_AFTER_HEAL;
        self.workers.iter().all(|worker| is_stopped(worker) || has_made_progress(worker))
            && self.is_census_right()
    }

    /// Returns whether the job has all the workers it waits for.
    fn is_complete(&self) -> bool {
        self.switch.jobs().any(|job| job.job == JOB && job.formed)
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        self.transcript.note(self.now, line);
    }

    /// Processes the next packet or deadline. Returns false if nothing is left to process.
    fn step(&mut self) -> Result<bool, Violation> {
        let (begin, now) = (self.begin, self.now);
        let packet = self.wire.peek().map(|Reverse(next)| next.at);
        let deadlines = self.workers.iter().filter_map(|worker| worker.deadline(begin, now));
        let deadline = deadlines.chain(self.switch.poll_timeout()).chain(self.upset_deadline()).min();
        let Some(at) = packet.into_iter().chain(deadline).min() else {
            if self.workers.iter().any(|worker| worker.is_running) {
                return violated(Rule::Liveness, "no events are left, but workers still run".to_owned());
            }
            return Ok(false);
        };
        self.now = self.now.max(at);
        self.upset();
        if packet == Some(at) {
            if let Some(Reverse(next)) = self.wire.pop() {
                self.deliver(next)?;
            }
            return Ok(true);
        }
        for worker in 0..self.workers.len() {
            if self.workers[worker].deadline(begin, now).is_some_and(|deadline| deadline <= self.now) {
                self.act(worker)?;
            }
        }
        self.switch.handle_timeout(self.now);
        self.flush_switch()?;
        Ok(true)
    }

    fn deliver(&mut self, packet: Packet) -> Result<(), Violation> {
        let Packet { worker, udp_port, to_switch, is_data, group, bytes, .. } = packet;
        let class = if is_data { Class::Data } else { Class::Control };
        self.note(|| {
            let way = if to_switch { format!("{worker} -> switch") } else { format!("switch -> {worker}") };
            format!("{way}: {}", describe(class, &bytes, bytes.len()))
        });
        if to_switch {
            let from = endpoint(worker, udp_port);
            self.switch.handle_datagrams(self.now, &from, class, &bytes, bytes.len());
            // A control packet of an earlier session fails authentication, and a Join may come from an earlier
            // process.
            let is_join = bytes.first() == Some(&(Action::Join as u8));
            if is_data || !self.scenario.is_keyed && !is_join {
                self.census.hear(from.peer, self.now);
            }
            return self.flush_switch();
        }
        if !self.workers[worker].is_running || self.workers[worker].udp_port != udp_port {
            return Ok(());
        }
        let path = if group.is_some() { Path::Group } else { Path::Unicast };
        // The machine of a worker that has left a group drops the packets of that group.
        if group.is_some() && group != self.workers[worker].protocol.group() {
            return Ok(());
        }
        self.workers[worker].inbox.push_back((path, class, bytes));
        if self.workers[worker].stopped_until(self.begin, self.now).is_some() {
            return Ok(());
        }
        self.act(worker)
    }

    /// Runs one turn of a worker: it receives, applies sums, and computes and commits gradients.
    fn act(&mut self, worker: usize) -> Result<(), Violation> {
        let now = self.now;
        if !self.workers[worker].is_running {
            self.start_process(worker);
            return Ok(());
        }
        while let Some((path, class, bytes)) = self.workers[worker].inbox.pop_front() {
            let protocol = &mut self.workers[worker].protocol;
            protocol.handle_arrival(now, path, class, &bytes, bytes.len());
            if let Some(group) = protocol.group() {
                protocol.subscribed(group);
            }
            if self.is_turned_away(worker)? {
                return Ok(());
            }
            self.note_admission(worker)?;
            self.apply_sums(worker)?;
        }
        let acting = &mut self.workers[worker];
        if acting.protocol.poll_timeout().is_some_and(|deadline| deadline <= now) {
            acting.protocol.handle_timeout(now);
        }
        self.apply_sums(worker)?;
        self.note_submission(worker)?;
        self.compute(worker)?;
        self.flush_worker(worker);
        Ok(())
    }

    fn flush_worker(&mut self, worker: usize) {
        let mut buffer = Vec::new();
        while let Some((class, stride)) = self.workers[worker].protocol.poll_transmit(self.now, &mut buffer) {
            for bytes in buffer.chunks(stride) {
                self.send(worker, self.workers[worker].udp_port, (true, None), class, bytes);
            }
        }
    }

    fn flush_switch(&mut self) -> Result<(), Violation> {
        self.follow_epoch();
        let (mut packets, mut results) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.switch.poll_transmit() {
            for recipient in transmit.recipients() {
                let datagrams = transmit.payload.chunks(transmit.stride);
                packets.extend(datagrams.map(|bytes| (recipient.peer, transmit.class, bytes.to_vec())));
            }
            if transmit.class == Class::Data {
                results.extend(
                    transmit.payload.chunks(transmit.stride).filter_map(|bytes| bytes.first_chunk().copied()),
                );
            }
        }
        let mut finished = None;
        for seg in results.into_iter().map(Seg::from_bytes) {
            finished = self.note_result(seg)?.or(finished);
        }
        for (to, class, bytes) in packets {
            if to.ip().is_multicast() {
                self.send_to_group(to, class, &bytes);
            } else {
                self.send(worker_at(to), to.port(), (false, None), class, &bytes);
            }
        }
        self.follow_switch(finished)
    }

    /// Puts a packet on the wire, where it is lost or arrives once or twice.
    fn send(
        &mut self,
        worker: usize,
        udp_port: u16,
        (to_switch, group): (bool, Option<SocketAddrV4>),
        class: Class,
        bytes: &[u8],
    ) {
        let Faults { delay, jitter, loss, duplication } = self.faults;
        let copies = 1 + u32::from(self.random.random_bool(duplication));
        self.datagrams += 1;
        for _ in 0..copies {
            if self.random.random_bool(loss) {
                continue;
            }
            let jitter = jitter.mul_f64(self.random.random::<f64>());
            self.sequence += 1;
            let (at, is_data) = (self.now.plus(delay + jitter), class == Class::Data);
            let bytes = bytes.to_vec();
            self.wire.push(Reverse(Packet {
                at,
                sequence: self.sequence,
                worker,
                udp_port,
                to_switch,
                is_data,
                group,
                bytes,
            }));
        }
    }

    /// Sends a packet to those workers that are subscribed to a group and that packets to it reach.
    fn send_to_group(&mut self, group: SocketAddrV4, class: Class, bytes: &[u8]) {
        let elapsed = self.now.since(self.begin);
        let loss = self.group_loss;
        self.group_datagrams += u64::from(class == Class::Data);
        for worker in 0..self.workers.len() {
            let it = &self.workers[worker];
            let is_subscribed = it.is_running && it.protocol.group() == Some(group);
            let is_reached = is_subscribed && self.scenario.groups.reach(worker, elapsed);
            if is_reached && !(loss > 0.0 && self.random.random_bool(loss)) {
                let udp_port = self.workers[worker].udp_port;
                self.send(worker, udp_port, (false, Some(group)), class, bytes);
            }
        }
    }

    fn report(mut self) -> Result<Report, Violation> {
        let checked = self.check_sums()?;
        self.departures.unconfirmed = checked.unconfirmed;
        let is_applied = |aggregate: &&Aggregate| aggregate.sum.is_some();
        Ok(Report {
            upsets: self.upsets as u64,
            departures: self.departures,
            is_keyed: self.scenario.is_keyed,
            aggregates: self.aggregates.values().filter(is_applied).count() as u64,
            checked: checked.all,
            datagrams: self.datagrams,
            group_datagrams: self.group_datagrams,
            workers: self.workers.iter().map(SimulatedWorker::report).collect(),
            ended: self.ended,
        })
    }
}

impl Simulation<'_> {
    /// Checks the events that the switch reports and the aggregates that it sends for the first time.
    pub(super) fn follow_switch(&mut self, finished: Option<Finished>) -> Result<(), Violation> {
        let mut events = Vec::new();
        while let Some(event) = self.switch.poll_event() {
            events.push(event);
        }
        let open_before = self.census.open;
        let mut begun_with = None;
        if !events.is_empty() {
            let job = self.switch.jobs().find(|job| job.job == JOB);
            let is_filled =
                |job: &JobStatus| job.round.is_some() && job.round != self.census.latest.map(Round::get);
            let is_open = finished.is_some() || job.as_ref().is_some_and(is_filled);
            if is_open {
                begun_with = open_before.or(Some(self.census.threshold()));
            }
            for event in events {
                self.hear_event(event, is_open)?;
            }
            // Members that resume a job may not know whether H was pinned.
            self.census.pinned = job.filter(|job| job.threshold_pinned).map(|job| job.threshold);
        }
        finished.map_or(Ok(()), |finished| self.census.finish(finished, begun_with))
    }

    fn hear_event(&mut self, event: Event, is_open: bool) -> Result<(), Violation> {
        self.note(|| format!("switch: {event}"));
        match event {
            Event::Diverged { .. } => return violated(Rule::Agreement, event.to_string()),
            Event::EventsLost { .. } => return violated(Rule::Counters, event.to_string()),
            Event::Joined { address, .. } => self.census.join(address, is_open, self.now),
            Event::ThresholdSet { .. } => self.census.change(is_open, |_| ()),
            Event::Left { address, why, .. } => {
                self.check_departure(address, why, &event)?;
                self.census.leave(address, is_open);
            }
            _ => {}
        }
        Ok(())
    }

    fn check_departure(
        &mut self,
        gone: SocketAddrV4,
        why: Departure,
        event: &Event,
    ) -> Result<(), Violation> {
        let is_excused = match why {
            Departure::Silent => {
                self.departures.expelled += 1;
                let lease = Duration::from_millis(u64::from(self.scenario.lease_ms));
                self.census.heard.get(&gone).is_none_or(|heard| self.now.since(*heard) > lease)
            }
            // Either a late answer made the member rejoin, or another process uses its address.
            Departure::Forgotten | Departure::Restarted => self.is_disturbed(),
            Departure::Leave => false,
        };
        if is_excused { Ok(()) } else { violated(Rule::Membership, event.to_string()) }
    }

    /// Records that the switch sends a result. Returns the aggregate if this is its first result.
    pub(super) fn note_result(&mut self, seg: Seg) -> Result<Option<Finished>, Violation> {
        let Seg { round: number, contributions, .. } = seg;
        if self.census.last.replace((number, contributions)) == Some((number, contributions)) {
            return Ok(None);
        }
        let known = self.aggregates.entry((self.census.epoch(), number.get())).or_default();
        match known.sent.replace(contributions) {
            None => Ok(Some(Finished { number, contributions })),
            Some(before) if before == contributions => Ok(None),
            Some(before) => {
                let detail = format!(
                    "aggregate {number} was sent with {contributions} vectors, but before with {before}"
                );
                violated(Rule::Agreement, detail)
            }
        }
    }

    /// Follows the current incarnation of the job at the switch; if there is none, keeps the last one.
    pub(super) fn follow_epoch(&mut self) {
        if let Some(epoch) = self.switch.epoch_of(JOB) {
            self.census.enter(epoch);
        }
    }

    /// Returns whether the members are exactly the live workers.
    pub(super) fn is_census_right(&self) -> bool {
        let running = self.workers.iter().enumerate().filter(|(_, worker)| worker.is_running);
        let mut alive: Vec<_> = running.map(|(at, worker)| address(at, worker.udp_port)).collect();
        alive.sort();
        alive.iter().eq(self.census.addresses())
    }
}
