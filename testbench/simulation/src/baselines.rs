//! Simpler protocols, simulated on the same links as this protocol. They show why rounds, contributor bitmaps and
//! cached results are needed.
//!
//! Two of the three protocols are small models. [`Protocol::Counter`] is the switch of the paper, which counts
//! contributions per segment. The paper does not specify how a worker handles a loss, so the model retransmits after
//! a timeout. [`Protocol::OneBit`] is SwitchML's algorithm (Sapio et al., NSDI 2021, algorithm 3): two generations of
//! slots distinguished by one bit, a bitmap of workers for each, and the older generation kept as a shadow copy.
//! [`Protocol::Rounds`] is not a model but the real switch core and the real worker.

use std::time::Duration;

use iswitch_protocol::Instant;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::checker::{Rule, mix};
use super::network::{Link, LinkCounters, LinkModel, Loss};
use super::queue::Queue;
use super::swarm::Scenario;

/// Number of workers in the comparison.
pub const WORKERS: usize = 4;
/// Number of segments in the vector.
pub const SEGMENTS: usize = 16;
/// Timeout after which a worker of the two models retransmits a segment.
const RETRANSMISSION_TIMEOUT: Duration = Duration::from_millis(1);
/// Interval between two segments that a worker sends.
const PACING: Duration = Duration::from_nanos(1_500);
/// Time limit per round, after which a run counts as hung.
const PATIENCE_PER_ROUND: Duration = Duration::from_millis(30);
const PACKET_LEN_BYTES: usize = 1_500;

/// Protocol in the comparison. The variants differ in how the switch identifies contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Contributions are not identified: the switch counts them per segment.
    Counter,
    /// Contributions are identified by worker and by one bit that alternates between rounds.
    OneBit,
    /// Contributions are identified by worker and round, as in iSwitch for Linux.
    Rounds,
}

const LINK: LinkModel =
    LinkModel { delay: Duration::from_micros(10), jitter: Duration::from_micros(10), ..LinkModel::PERFECT };

const fn loss(probability: f64) -> LinkModel {
    LinkModel { loss: Some(Loss::Bernoulli { probability }), ..LINK }
}

/// Adds random delays to a link, which reorder its packets: microseconds for most packets, and up to 3 ms for the
/// fraction `late` of the packets.
const fn reordering(link: LinkModel, late: f64) -> LinkModel {
    LinkModel { fifo: false, late, late_by: Duration::from_millis(3), ..link }
}

/// Networks of the comparison, by name.
pub const NETWORKS: [(&str, LinkModel); 11] = [
    ("clean", LINK),
    ("loss 1e-4", loss(1e-4)),
    ("loss 1e-3", loss(1e-3)),
    ("loss 1e-2", loss(1e-2)),
    ("duplication 1e-3", LinkModel { duplication: 1e-3, ..LINK }),
    ("reordering", reordering(LINK, 0.0)),
    ("loss 1e-3, reordering", reordering(loss(1e-3), 0.0)),
    ("loss 1e-2, reordering", reordering(loss(1e-2), 0.0)),
    ("late 1e-3", reordering(LINK, 1e-3)),
    ("loss 1e-3, late 1e-3", reordering(loss(1e-3), 1e-3)),
    (
        "loss 1e-2, late 1e-2, duplication 1e-3",
        LinkModel { duplication: 1e-3, ..reordering(loss(1e-2), 1e-2) },
    ),
];

/// Outcome of one run, or the total of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Number of results that workers accepted; a segment counts once for each worker.
    pub results: u64,
    /// Number of accepted results that are not the sum of all workers' gradients of the round.
    pub wrong: u64,
    /// Packets sent.
    pub packets: u64,
    /// Runs that completed.
    pub finished: u64,
    /// Total number of runs.
    pub runs: u64,
}

impl Outcome {
    /// Returns the share of wrong results, in percent.
    pub fn wrong_percent(&self) -> f64 {
        100.0 * self.wrong as f64 / self.results.max(1) as f64
    }

    /// Returns the number of packets sent divided by the number that a network without faults needs: one packet up and
    /// one down per result.
    pub fn overhead(&self) -> f64 {
        self.packets as f64 / (2 * self.results.max(1)) as f64
    }

    /// Adds the counts of another run to these.
    pub fn add(&mut self, other: &Self) {
        self.results += other.results;
        self.wrong += other.wrong;
        self.packets += other.packets;
        self.finished += other.finished;
        self.runs += other.runs;
    }
}

/// Runs one protocol for the given number of rounds.
pub fn run(protocol: Protocol, link: LinkModel, rounds: u32, seed: u64) -> Outcome {
    match protocol {
        Protocol::Rounds => run_real(link, rounds, seed),
        Protocol::Counter | Protocol::OneBit => Model::new(protocol, link, rounds, seed).run(),
    }
}

fn run_real(link: LinkModel, rounds: u32, seed: u64) -> Outcome {
    let scenario = Scenario {
        workers: WORKERS,
        gradient_len: (2 * SEGMENTS) as u32,
        segment_floats: 2,
        rounds: Some(rounds),
        link,
        duration: PATIENCE_PER_ROUND * rounds,
        ..Scenario::perfect()
    };
    match super::run(&scenario, seed) {
        Ok(report) => Outcome {
            results: report.segments,
            wrong: 0,
            packets: report.data_packets + report.control_packets,
            finished: 1,
            runs: 1,
        },
        Err(failure) => {
            let is_wrong = !matches!(failure.violation.rule, Rule::Liveness | Rule::Panic);
            Outcome { wrong: u64::from(is_wrong), runs: 1, ..Outcome::default() }
        }
    }
}

/// Event of a model: a packet arrives, or a deadline expires.
#[derive(Clone, Copy, Debug)]
enum ScheduledEvent {
    AtSwitch(Packet),
    AtWorker(Packet),
    Timeout(Packet),
}

/// A worker's contribution to a segment, or the result for it.
#[derive(Clone, Copy, Debug)]
struct Packet {
    worker: usize,
    segment: usize,
    /// Round number. In the models, packets carry only one bit of it, or none.
    round: u32,
    value: u64,
}

/// One generation of a segment's slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sum: u64,
    count: usize,
    /// Workers in the sum: bit i stands for worker i.
    seen: u64,
    /// Result of the last round that was completed in this slot.
    result: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct ModelWorker {
    round: u32,
    /// Segments without a result: bit i stands for segment i.
    waiting: u32,
}

struct Model {
    protocol: Protocol,
    rounds: u32,
    now: Instant,
    random: ChaCha8Rng,
    queue: Queue<ScheduledEvent>,
    up: Vec<Link>,
    down: Vec<Link>,
    counters: LinkCounters,
    slots: [[Slot; SEGMENTS]; 2],
    workers: Vec<ModelWorker>,
    outcome: Outcome,
}

/// Returns the integer that a worker contributes.
fn gradient(worker: usize, segment: usize, round: u32) -> u64 {
    mix(u64::from(round) << 16 ^ (segment as u64) << 8 ^ worker as u64) >> 8
}

impl Model {
    fn new(protocol: Protocol, link: LinkModel, rounds: u32, seed: u64) -> Self {
        let links = || (0..WORKERS).map(|_| Link::new(link)).collect();
        Self {
            protocol,
            rounds,
            now: Instant::default(),
            random: ChaCha8Rng::seed_from_u64(seed),
            queue: Queue::new(),
            up: links(),
            down: links(),
            counters: LinkCounters::default(),
            slots: [[Slot::default(); SEGMENTS]; 2],
            workers: vec![ModelWorker::default(); WORKERS],
            outcome: Outcome { runs: 1, ..Outcome::default() },
        }
    }

    fn run(mut self) -> Outcome {
        (0..WORKERS).for_each(|worker| self.begin_round(worker));
        let limit = Instant::default().plus(PATIENCE_PER_ROUND * self.rounds);
        while let Some((at, what)) = self.queue.pop() {
            if at > limit {
                break;
            }
            self.now = at;
            match what {
                ScheduledEvent::AtSwitch(packet) if self.protocol == Protocol::Counter => self.count(packet),
                ScheduledEvent::AtSwitch(packet) => self.count_once(packet),
                ScheduledEvent::AtWorker(packet) => self.take(packet),
                ScheduledEvent::Timeout(packet) => self.send_again(packet),
            }
            if self.workers.iter().all(|worker| worker.round == self.rounds) {
                self.outcome.finished = 1;
                break;
            }
        }
        self.outcome.packets = self.counters.sent;
        self.outcome
    }

    fn begin_round(&mut self, worker: usize) {
        let round = self.workers[worker].round;
        if round == self.rounds {
            return;
        }
        self.workers[worker].waiting = (1 << SEGMENTS) - 1;
        let begin = self.now;
        for segment in 0..SEGMENTS {
            self.now = begin.plus(PACING * segment as u32);
            let value = gradient(worker, segment, round);
            self.send_up(Packet { worker, segment, round, value });
        }
        self.now = begin;
    }

    fn send_up(&mut self, packet: Packet) {
        let link = &mut self.up[packet.worker];
        let arrivals = link.carry(self.now, PACKET_LEN_BYTES, &mut self.random, &mut self.counters);
        for arrival in arrivals.into_iter().flatten() {
            self.queue.push(arrival.at, ScheduledEvent::AtSwitch(packet));
        }
        // Timeouts vary slightly, so that workers do not retransmit in lockstep.
        let timeout = RETRANSMISSION_TIMEOUT.mul_f64(1.0 + 0.1 * self.random.random::<f64>());
        self.queue.push(self.now.plus(timeout), ScheduledEvent::Timeout(packet));
    }

    fn send_down(&mut self, packet: Packet) {
        let link = &mut self.down[packet.worker];
        let arrivals = link.carry(self.now, PACKET_LEN_BYTES, &mut self.random, &mut self.counters);
        for arrival in arrivals.into_iter().flatten() {
            self.queue.push(arrival.at, ScheduledEvent::AtWorker(packet));
        }
    }

    fn send_to_all(&mut self, packet: Packet) {
        (0..WORKERS).for_each(|worker| self.send_down(Packet { worker, ..packet }));
    }

    fn send_again(&mut self, packet: Packet) {
        let worker = &self.workers[packet.worker];
        if worker.round == packet.round && worker.waiting >> packet.segment & 1 == 1 {
            self.send_up(packet);
        }
    }

    /// Handles a contribution as the paper's switch does.
    fn count(&mut self, packet: Packet) {
        let slot = &mut self.slots[0][packet.segment];
        slot.sum = slot.sum.wrapping_add(packet.value);
        slot.count += 1;
        if slot.count == WORKERS {
            let value = slot.sum;
            *slot = Slot::default();
            self.send_to_all(Packet { value, ..packet });
        }
    }

    /// Handles a contribution as SwitchML's switch does.
    fn count_once(&mut self, packet: Packet) {
        let (this, other) = (packet.round as usize & 1, packet.round as usize & 1 ^ 1);
        let bit = 1 << packet.worker;
        let slot = &mut self.slots[this][packet.segment];
        if slot.seen & bit != 0 {
            // This is a retransmission. If the sum is complete, the result did not reach the worker.
            if let Some(value) = slot.result.filter(|_| slot.count == 0) {
                self.send_down(Packet { value, ..packet });
            }
            return;
        }
        slot.seen |= bit;
        slot.sum = if slot.count == 0 { packet.value } else { slot.sum.wrapping_add(packet.value) };
        slot.count = (slot.count + 1) % WORKERS;
        let is_complete = slot.count == 0;
        if is_complete {
            slot.result = Some(slot.sum);
        }
        let value = slot.sum;
        self.slots[other][packet.segment].seen &= !bit;
        if is_complete {
            self.send_to_all(Packet { value, ..packet });
        }
    }

    fn take(&mut self, packet: Packet) {
        let Packet { worker: at, segment, .. } = packet;
        let worker = &mut self.workers[at];
        // SwitchML's packets name the position in the stream; the paper's packets name only the segment.
        let is_named = self.protocol == Protocol::OneBit;
        let is_expected = worker.waiting >> segment & 1 == 1 && (!is_named || packet.round == worker.round);
        if !is_expected {
            return;
        }
        worker.waiting &= !(1 << segment);
        let round = worker.round;
        let is_done = worker.waiting == 0;
        worker.round += u32::from(is_done);
        let all = (0..WORKERS).map(|worker| gradient(worker, segment, round));
        self.outcome.results += 1;
        self.outcome.wrong += u64::from(packet.value != all.fold(0, u64::wrapping_add));
        if is_done {
            self.begin_round(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn a_clean_network_causes_almost_no_extra_packets() {
        for &protocol in Protocol::VARIANTS {
            let outcome = run(protocol, LINK, 20, 1);
            assert_eq!((outcome.wrong, outcome.finished), (0, 1), "{protocol:?}");
            assert_eq!(outcome.results, (20 * WORKERS * SEGMENTS) as u64, "{protocol:?}");
            assert!(outcome.overhead() < 1.02, "{protocol:?}: {}", outcome.overhead());
        }
    }

    #[test]
    fn packet_loss_corrupts_sums_only_with_a_bare_counter() {
        for (protocol, is_exact) in
            [(Protocol::Counter, false), (Protocol::OneBit, true), (Protocol::Rounds, true)]
        {
            let outcome = run(protocol, loss(1e-2), 100, 1);
            assert_eq!((outcome.wrong == 0, outcome.finished), (is_exact, 1), "{protocol:?}");
        }
    }

    #[test]
    fn only_round_numbers_tolerate_late_packets() {
        let (_, link) = NETWORKS[NETWORKS.len() - 1];
        let wrong = |protocol| (1..4).map(|seed| run(protocol, link, 200, seed).wrong).sum::<u64>();
        assert!(wrong(Protocol::Counter) > 0);
        assert!(wrong(Protocol::OneBit) > 0);
        assert_eq!(wrong(Protocol::Rounds), 0);
    }
}
