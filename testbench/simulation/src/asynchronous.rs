//! An asynchronous job in virtual time: the real switch core and the real worker protocol, with the three stages of
//! the pipeline reduced to what decides about sums: when a gradient is made, committed and applied.
//!
//! One seed decides everything. Vectors are integers, so every sum is exact, and any vector that was counted twice,
//! or in part, or in two aggregates, shows in the result.

mod scenario;
mod upsets;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::AddAssign;
use std::time::Duration;

use iswitch::pipeline::{Staleness, digest};
use iswitch::worker::asynchronous::{AsyncCounters, AsyncProtocol, Submission, Sum};
use iswitch::worker::auth::Authenticator;
use iswitch::worker::protocol;
use iswitch::worker::session::SessionConfig;
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Mode};
use iswitch_protocol::{Round, VectorLayout};
use iswitch_switch::{Config, Departure, Endpoint, Event, Instant, PortId, Switch};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

pub use scenario::{Faults, Pace, Scenario};
pub use upsets::{PlannedUpset, Upset};

use crate::checker::{Rule, Violation, violated};
use crate::transcript::{Transcript, describe};
use crate::{Failure, JOB, job_key, run_with_transcript};

const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711);
const GRADIENT_LEN: u32 = 150;
const SEGMENT_FLOATS: u16 = 4;
/// Aggregates that every worker must be given after the faults have ended.
const UPDATES_AFTER_HEAL: u64 = 2;
/// How long that may take, in virtual time: retries are at most half a second apart.
const LIVENESS_LIMIT: Duration = Duration::from_secs(3);

/// Runs what a seed stands for.
///
/// # Errors
/// The first rule that was broken.
pub fn simulate(seed: u64) -> Result<Totals, Box<Failure<Scenario>>> {
    run(&Scenario::draw(seed), seed).map(|report| Totals::of(&report))
}

/// Runs a scenario, checking every sum of every worker; the seed decides what the network does.
///
/// # Errors
/// The first rule that was broken.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Report, Box<Failure<Scenario>>> {
    run_with_transcript(scenario, seed, |transcript| Simulation::new(scenario, seed, transcript).run())
}

/// What one worker has done.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// Its clock t and the staleness of its gradients.
    pub staleness: Staleness,
    /// What its protocol counted.
    pub counters: AsyncCounters,
    /// How often it needed the state of a peer.
    pub missed: u64,
}

/// What a simulation has shown.
#[derive(Clone, Debug)]
pub struct Report {
    /// Crashes of the switch and Resets.
    pub upsets: u64,
    /// Whether the job has a key.
    pub is_keyed: bool,
    /// Aggregates that any worker has applied.
    pub aggregates: u64,
    /// Aggregates whose sum was compared with the vectors that their senders say are in them.
    pub checked: u64,
    /// Datagrams that were put on the wire.
    pub datagrams: u64,
    /// The workers.
    pub workers: Vec<WorkerReport>,
}

/// Counts of one simulation, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Aggregates that any worker has applied.
    pub aggregates: u64,
    /// Aggregates whose sum was compared with the vectors in them.
    pub checked: u64,
    /// Datagrams that were put on the wire.
    pub datagrams: u64,
    /// Vectors that aggregates have taken.
    pub admitted: u64,
    /// Gradients that were too stale to be committed.
    pub skipped: u64,
    /// Segments sent again because the switch missed them.
    pub retransmitted: u64,
    /// Helps sent.
    pub helps: u64,
    /// Times that a worker needed the state of a peer.
    pub missed: u64,
    /// Times that the switch had forgotten a worker and took it back.
    pub rejoins: u64,
    /// Crashes of the switch and Resets.
    pub upsets: u64,
    /// Jobs with a key.
    pub authenticated: u64,
}

impl Totals {
    fn of(report: &Report) -> Self {
        let Report { aggregates, checked, datagrams, upsets, is_keyed, ref workers } = *report;
        let sum = |count: fn(&WorkerReport) -> u64| workers.iter().map(count).sum();
        Self {
            aggregates,
            checked,
            datagrams,
            admitted: sum(|worker| worker.counters.admitted),
            skipped: sum(|worker| worker.staleness.skipped()),
            retransmitted: sum(|worker| worker.counters.retransmitted),
            helps: sum(|worker| worker.counters.helps),
            missed: sum(|worker| worker.missed),
            rejoins: sum(|worker| worker.counters.rejoins),
            upsets,
            authenticated: u64::from(is_keyed),
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.aggregates += other.aggregates;
        self.checked += other.checked;
        self.datagrams += other.datagrams;
        self.admitted += other.admitted;
        self.skipped += other.skipped;
        self.retransmitted += other.retransmitted;
        self.helps += other.helps;
        self.missed += other.missed;
        self.rejoins += other.rejoins;
        self.upsets += other.upsets;
        self.authenticated += other.authenticated;
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    at: Instant,
    /// Keeps the order of packets that arrive at the same time.
    sequence: u64,
    /// The worker that sent it, or that gets it.
    worker: usize,
    to_switch: bool,
    is_data: bool,
    bytes: Vec<u8>,
}

/// A gradient that is being computed, or waits to be committed.
#[derive(Clone, Copy, Debug)]
struct Gradient {
    /// Number among those of its worker.
    number: u64,
    done_at: Instant,
    /// Aggregates that had been applied to the weights that it is made from.
    made_at: u64,
}

struct SimulatedWorker {
    pace: Pace,
    protocol: AsyncProtocol,
    staleness: Staleness,
    model: Vec<f32>,
    /// Aggregates that it has applied.
    updates: u64,
    /// Epoch of the job as it knows it.
    epoch: u64,
    /// The aggregate to be applied next.
    next: Option<Round>,
    /// The same where it has missed what is before, and no peer has got so far.
    awaits_state: Option<Round>,
    gradient: Option<Gradient>,
    computed: u64,
    /// The vector under way.
    committed: Option<u64>,
    sequence: u64,
    missed: u64,
    /// Vectors of which it cannot know what became.
    lost: u64,
    /// What arrived while it was stopped.
    inbox: VecDeque<(Class, Vec<u8>)>,
}

/// What is known of an aggregate.
#[derive(Default)]
struct Aggregate {
    /// The sum and the contributions, as the first worker got them.
    sum: Option<(Vec<f32>, u16)>,
    /// The model after it, as the first worker had it.
    model: Vec<f32>,
    /// Vectors that are in it, by worker and number.
    vectors: Vec<(usize, u64)>,
}

/// A running simulation.
struct Simulation<'a> {
    scenario: &'a Scenario,
    seed: u64,
    transcript: &'a mut Transcript,
    /// What the network does now.
    faults: Faults,
    random: ChaCha8Rng,
    begin: Instant,
    now: Instant,
    sequence: u64,
    wire: BinaryHeap<Reverse<Packet>>,
    switch: Switch,
    workers: Vec<SimulatedWorker>,
    /// By epoch and number.
    aggregates: BTreeMap<(u64, u32), Aggregate>,
    /// Upsets that have happened.
    upsets: usize,
    /// The model of those who were Resumed, by epoch and their next aggregate.
    resumed_models: BTreeMap<(u64, u32), Vec<f32>>,
    /// The first aggregate for which the threshold H is the one that was set.
    pinned_from: Option<u32>,
    datagrams: u64,
}

fn endpoint(worker: usize) -> Endpoint {
    let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, worker as u8), 5000);
    Endpoint { port: PortId(0), peer, local: SWITCH, peer_mac: [0; 6], local_mac: [0; 6] }
}

/// The integers of a worker's vector: sums of them stay exact.
fn vector(worker: usize, number: u64) -> Vec<f32> {
    let element = |index: u64| ((worker as u64 * 31 + number * 17 + index * 7) % 4096) as f32;
    (0..u64::from(GRADIENT_LEN)).map(element).collect()
}

impl SimulatedWorker {
    /// When it goes on, if it is stopped now.
    fn stopped_until(&self, begin: Instant, now: Instant) -> Option<Instant> {
        let stall = self.pace.stall?;
        let periods = now.since(begin).as_nanos() / stall.as_nanos();
        (periods % 2 == 1).then(|| begin.plus(stall * (periods as u32 + 1)))
    }

    /// When it has something to do of its own accord.
    fn deadline(&self, begin: Instant, now: Instant) -> Option<Instant> {
        let gradient = self.gradient.map(|gradient| gradient.done_at);
        // A gradient that is done waits for the protocol, which waits for packets.
        let gradient = gradient.filter(|done_at| *done_at > now || self.protocol.is_ready());
        let waiting = (!self.inbox.is_empty()).then_some(now);
        let earliest = self.protocol.poll_timeout().into_iter().chain(gradient).chain(waiting).min()?;
        Some(self.stopped_until(begin, now.max(earliest)).unwrap_or(earliest))
    }
}

impl<'a> Simulation<'a> {
    /// A job whose workers are about to join.
    fn new(scenario: &'a Scenario, seed: u64, transcript: &'a mut Transcript) -> Self {
        let begin = Instant::from_nanos(1);
        let layout = VectorLayout::new(GRADIENT_LEN, SEGMENT_FLOATS).expect("a valid layout");
        let count = scenario.workers.len();
        let member = |(worker, pace): (usize, &Pace)| SimulatedWorker {
            pace: *pace,
            protocol: protocol(session(layout, worker, count, seed), begin, scenario.is_keyed),
            staleness: Staleness::new(scenario.staleness_bound),
            model: vec![0.0; GRADIENT_LEN as usize],
            updates: 0,
            epoch: 0,
            next: None,
            awaits_state: None,
            gradient: None,
            computed: 0,
            committed: None,
            sequence: 0,
            missed: 0,
            lost: 0,
            inbox: VecDeque::new(),
        };
        let workers = scenario.workers.iter().enumerate().map(member).collect();
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
            switch: upsets::switch(seed, 0, scenario.is_keyed),
            workers,
            aggregates: BTreeMap::new(),
            upsets: 0,
            resumed_models: BTreeMap::new(),
            pinned_from: None,
            datagrams: 0,
        }
    }

    /// Runs to the end.
    fn run(mut self) -> Result<Report, Violation> {
        if self.scenario.threshold > 0 {
            let body = ControlBody::SetH { threshold: self.scenario.threshold };
            self.workers[0].protocol.order(self.now, body);
        }
        (0..self.workers.len()).for_each(|worker| self.flush_worker(worker));
        let end = self.begin.plus(self.scenario.duration);
        while self.now < end {
            self.step()?;
        }
        if self.scenario.heals {
            self.heal()?;
        }
        self.report()
    }

    /// Ends all faults: from now on every worker has to go on.
    fn heal(&mut self) -> Result<(), Violation> {
        self.note(|| "all faults end".to_owned());
        self.faults = Faults { delay: self.faults.delay, ..Faults::NONE };
        let limit = self.now.plus(LIVENESS_LIMIT);
        let mut targets = Vec::new();
        for worker in &mut self.workers {
            worker.pace.stall = None;
            targets.push(worker.updates + UPDATES_AFTER_HEAL);
        }
        loop {
            let behind =
                self.workers.iter().zip(&targets).position(|(worker, target)| worker.updates < *target);
            match behind {
                None => return Ok(()),
                Some(behind) if self.now > limit => {
                    let jobs: Vec<_> = self.switch.jobs().collect();
                    let detail = format!("worker {behind} does not go on; the switch has {jobs:?}");
                    return violated(Rule::Liveness, detail);
                }
                Some(_) => self.step()?,
            }
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        self.transcript.note(self.now, line);
    }

    /// Lets the next packet arrive, or the next deadline pass.
    fn step(&mut self) -> Result<(), Violation> {
        let (begin, now) = (self.begin, self.now);
        let packet = self.wire.peek().map(|Reverse(next)| next.at);
        let deadlines = self.workers.iter().filter_map(|worker| worker.deadline(begin, now));
        let deadline = deadlines.chain(self.switch.poll_timeout()).chain(self.upset_deadline()).min();
        let Some(at) = packet.into_iter().chain(deadline).min() else {
            return violated(Rule::Liveness, "nothing moves any more".to_owned());
        };
        self.now = self.now.max(at);
        self.upset();
        if packet == Some(at) {
            let Some(Reverse(next)) = self.wire.pop() else { return Ok(()) };
            return self.deliver(next);
        }
        for worker in 0..self.workers.len() {
            if self.workers[worker].deadline(begin, now).is_some_and(|deadline| deadline <= self.now) {
                self.act(worker)?;
            }
        }
        self.switch.handle_timeout(self.now);
        self.flush_switch()
    }

    fn deliver(&mut self, packet: Packet) -> Result<(), Violation> {
        let Packet { worker, to_switch, is_data, bytes, .. } = packet;
        let class = if is_data { Class::Data } else { Class::Control };
        self.note(|| {
            let way = if to_switch { format!("{worker} -> switch") } else { format!("switch -> {worker}") };
            format!("{way}: {}", describe(class, &bytes, bytes.len()))
        });
        if to_switch {
            self.switch.handle_datagrams(self.now, &endpoint(worker), class, &bytes, bytes.len());
            return self.flush_switch();
        }
        self.workers[worker].inbox.push_back((class, bytes));
        if self.workers[worker].stopped_until(self.begin, self.now).is_some() {
            return Ok(());
        }
        self.act(worker)
    }

    /// One turn of a worker: it receives, applies sums, and computes and commits gradients.
    fn act(&mut self, worker: usize) -> Result<(), Violation> {
        let now = self.now;
        while let Some((class, bytes)) = self.workers[worker].inbox.pop_front() {
            self.workers[worker].protocol.handle_datagrams(now, class, &bytes, bytes.len());
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

    /// LWU: sums in order, each the same for all, and the same model after it.
    fn apply_sums(&mut self, worker: usize) -> Result<(), Violation> {
        self.fetch_state(worker);
        loop {
            while self.workers[worker].awaits_state.is_none()
                && let Some(sum) = self.workers[worker].protocol.take_sum()
            {
                self.apply(worker, sum)?;
            }
            let acting = &mut self.workers[worker];
            if let Some(divergence) = acting.protocol.take_divergence() {
                return violated(Rule::Agreement, format!("worker {worker}: {divergence:?}"));
            }
            match acting.protocol.take_failure() {
                None => return Ok(()),
                Some(protocol::Failure::Missed(next)) => {
                    acting.missed += 1;
                    acting.awaits_state = Some(next);
                    self.fetch_state(worker);
                }
                Some(failure) => {
                    return violated(Rule::Refusal, format!("worker {worker} failed: {failure:?}"));
                }
            }
        }
    }

    /// The state that a worker lacks which has missed sums: the model of a peer that has just applied the last of them.
    fn fetch_state(&mut self, worker: usize) {
        let Some(next) = self.workers[worker].awaits_state else { return };
        if let Some(model) = self.model_before(self.workers[worker].epoch, next) {
            let acting = &mut self.workers[worker];
            (acting.model, acting.next, acting.awaits_state) = (model, Some(next), None);
        }
    }

    fn apply(&mut self, worker: usize, sum: Sum) -> Result<(), Violation> {
        let number = sum.aggregate.get();
        self.check_threshold(number, sum.contributions)?;
        let acting = &mut self.workers[worker];
        if acting.next.is_some_and(|next| next != sum.aggregate) {
            let detail = format!("worker {worker} was given {number}, expected {:?}", acting.next);
            return violated(Rule::RoundOrder, detail);
        }
        acting.updates += 1;
        acting.next = Some(sum.aggregate.next());
        acting.model.iter_mut().zip(&sum.vector).for_each(|(x, sum)| *x = (*x + sum) % 1e6);
        acting.staleness.applied(number);
        acting.protocol.tell_digest(sum.aggregate, digest(&acting.model));
        let known = self.aggregates.entry((acting.epoch, number)).or_default();
        match &known.sum {
            None => {
                known.model.clone_from(&acting.model);
                known.sum = Some((sum.vector.clone(), sum.contributions));
            }
            Some((vector, contributions)) => {
                let is_same = *vector == sum.vector && *contributions == sum.contributions;
                if !is_same || known.model != acting.model {
                    let detail = format!("worker {worker} has another sum or model for aggregate {number}");
                    return violated(Rule::Agreement, detail);
                }
            }
        }
        acting.protocol.recycle(sum.vector);
        self.note(|| format!("{worker} applies {number}"));
        Ok(())
    }

    fn check_threshold(&self, number: u32, contributions: u16) -> Result<(), Violation> {
        let is_pinned = self.pinned_from.is_some_and(|first| number >= first);
        let threshold = if is_pinned { self.scenario.threshold } else { self.workers.len() as u16 };
        // Who comes back may not know any more whether H was set.
        if contributions == threshold || self.upsets > 0 {
            return Ok(());
        }
        let detail = format!("aggregate {number} counts {contributions} vectors, and H was {threshold}");
        violated(Rule::Threshold, detail)
    }

    fn note_submission(&mut self, worker: usize) -> Result<(), Violation> {
        let acting = &mut self.workers[worker];
        let Some(submission) = acting.protocol.take_submission() else { return Ok(()) };
        let committed = acting.committed.take();
        let (number, aggregate) = match (committed, submission) {
            (Some(number), Submission::Admitted(aggregate)) => (number, aggregate),
            (Some(_), Submission::Lost) if self.upsets > 0 => {
                acting.lost += 1;
                acting.staleness.admitted(acting.sequence, None);
                acting.sequence += 1;
                return Ok(());
            }
            _ => return violated(Rule::Lost, format!("worker {worker} was told {submission:?}")),
        };
        acting.staleness.admitted(acting.sequence, Some(aggregate.get()));
        acting.sequence += 1;
        let place = (acting.epoch, aggregate.get());
        self.aggregates.entry(place).or_default().vectors.push((worker, number));
        self.note(|| format!("{worker} is told that {aggregate} has its vector {number}"));
        Ok(())
    }

    /// LGC: computes, commits what is not too stale, begins anew.
    fn compute(&mut self, worker: usize) -> Result<(), Violation> {
        let now = self.now;
        let acting = &mut self.workers[worker];
        if let Some(Gradient { number, done_at, made_at }) = acting.gradient {
            if now < done_at || !acting.protocol.is_ready() {
                return Ok(());
            }
            if acting.staleness.may_commit(made_at) {
                let staleness = acting.updates - made_at;
                if staleness > u64::from(self.scenario.staleness_bound) {
                    let detail =
                        format!("worker {worker} commits a gradient that is {staleness} updates old");
                    return violated(Rule::Staleness, detail);
                }
                acting.staleness.committed(acting.sequence, made_at);
                acting.committed = Some(number);
                acting.protocol.submit(now, &vector(worker, number));
            }
        }
        let done_at = now.plus(acting.pace.compute);
        acting.gradient = Some(Gradient { number: acting.computed, done_at, made_at: acting.updates });
        acting.computed += 1;
        Ok(())
    }

    fn flush_worker(&mut self, worker: usize) {
        let mut buffer = Vec::new();
        while let Some((class, stride)) = self.workers[worker].protocol.poll_transmit(self.now, &mut buffer) {
            for bytes in buffer.chunks(stride) {
                self.send(worker, true, class, bytes);
            }
        }
    }

    fn flush_switch(&mut self) -> Result<(), Violation> {
        let mut packets = Vec::new();
        while let Some(transmit) = self.switch.poll_transmit() {
            for recipient in transmit.recipients() {
                let to = usize::from(recipient.peer.ip().octets()[3]);
                let datagrams = transmit.payload.chunks(transmit.stride);
                packets.extend(datagrams.map(|bytes| (to, transmit.class, bytes.to_vec())));
            }
        }
        for (to, class, bytes) in packets {
            self.send(to, false, class, &bytes);
        }
        while let Some(event) = self.switch.poll_event() {
            match event {
                Event::Diverged { .. } => return violated(Rule::Agreement, event.to_string()),
                Event::ThresholdSet { .. } => {
                    let newest = self.switch.jobs().next().and_then(|job| job.round);
                    self.pinned_from.get_or_insert(newest.map_or(0, |newest| newest + 1));
                }
                // Restarted: an answer from before it was admitted made it join again.
                Event::Left { why: Departure::Forgotten | Departure::Restarted, .. } if self.upsets > 0 => {}
                Event::Left { .. } => return violated(Rule::Membership, event.to_string()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts a packet on the wire: it is lost, or arrives once or twice.
    fn send(&mut self, worker: usize, to_switch: bool, class: Class, bytes: &[u8]) {
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
                to_switch,
                is_data,
                bytes,
            }));
        }
    }

    fn report(self) -> Result<Report, Violation> {
        let mut checked = 0;
        for ((_, number), aggregate) in &self.aggregates {
            let Some((sum, contributions)) = &aggregate.sum else { continue };
            if aggregate.vectors.len() > usize::from(*contributions) {
                let detail = format!("aggregate {number} counts {contributions}: {:?}", aggregate.vectors);
                return violated(Rule::Lost, detail);
            }
            // At the end a sender may not know yet which aggregate took its vector.
            if aggregate.vectors.len() < usize::from(*contributions) {
                continue;
            }
            let mut expected = vec![0.0; GRADIENT_LEN as usize];
            for (worker, vector_number) in &aggregate.vectors {
                let vector = vector(*worker, *vector_number);
                expected.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
            }
            if expected != *sum {
                let detail = format!("aggregate {number} is not the sum of {:?}", aggregate.vectors);
                return violated(Rule::Sum, detail);
            }
            checked += 1;
        }
        let aggregates = self.aggregates.values().filter(|aggregate| aggregate.sum.is_some()).count() as u64;
        // Each worker may not know yet what became of its last vector.
        let unknown = aggregates - checked;
        let lost: u64 = self.workers.iter().map(|worker| worker.lost).sum();
        if unknown > self.workers.len() as u64 + lost {
            let detail =
                format!("{unknown} aggregates count vectors whose senders were told nothing of them");
            return violated(Rule::Lost, detail);
        }
        let workers = self.workers.into_iter().map(|worker| WorkerReport {
            staleness: worker.staleness,
            counters: worker.protocol.counters(),
            missed: worker.missed,
        });
        Ok(Report {
            upsets: self.upsets as u64,
            is_keyed: self.scenario.is_keyed,
            aggregates,
            checked,
            datagrams: self.datagrams,
            workers: workers.collect(),
        })
    }
}

fn config(boot: u64) -> Config {
    Config { boot, memory_bytes: 16 << 20, ..Config::default() }
}

fn protocol(config: SessionConfig, begin: Instant, is_keyed: bool) -> AsyncProtocol {
    // The counter begins with a number that looks random.
    let first_counter = u64::from(config.join.instance) << 24;
    let protocol = AsyncProtocol::new(config, begin);
    if is_keyed { protocol.with_key(Authenticator::new(job_key(), first_counter)) } else { protocol }
}

fn session(layout: VectorLayout, worker: usize, workers: usize, seed: u64) -> SessionConfig {
    let join = JoinRepr {
        mode: Mode::Asynchronous,
        instance: (seed as u32).wrapping_mul(0x9E37_79B9).wrapping_add(worker as u32),
        rank: worker as u16,
        ..JoinRepr::worker(layout.gradient_len(), layout.segment_floats(), workers as u16)
    };
    SessionConfig { job: JOB, layout, join, recv_buffer_bytes: 4 << 20, heartbeats: true }
}
