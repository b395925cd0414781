//! Calculates the same times as `packets`, but simulates only one worker: if all workers behave identically, one of
//! them represents all.
//!
//! While a worker in a ring sends a message to its successor, it receives a message of the same length from its
//! predecessor, as if it had sent the message to itself. The same holds for two partners that exchange halves. The
//! workers differ only in the distance to their partners.

use std::collections::HashMap;

use super::costs::to_picos;
use super::packets;
use super::plan::{self, Exchange, Gate, Message, NOTHING, Plan, Step, rank_of};
use super::resources::Cable;
use super::topology::Tree;
use super::wire::Framing;
use super::{Algorithm, Picos, Scenario};

/// Returns the time of one sum if all workers begin at once.
///
/// # Panics
/// Panics if the algorithm sums in switches, or if workers begin at different times or share cores.
pub(super) fn run(scenario: &Scenario, algorithm: Algorithm) -> Picos {
    assert!(scenario.folds(), "workers must begin at the same time and must not share cores");
    if scenario.workers == 1 && !matches!(algorithm, Algorithm::Server | Algorithm::ServerPipelined) {
        return 0;
    }
    match algorithm {
        Algorithm::Ring => ring(scenario, false),
        Algorithm::RingPipelined => ring(scenario, true),
        Algorithm::Server => Service::single(scenario, false).time(scenario),
        Algorithm::ServerPipelined => Service::single(scenario, true).time(scenario),
        Algorithm::ShardedServer => sharded(scenario),
        Algorithm::HalvingDoubling => halving(scenario, true),
        Algorithm::RecursiveDoubling => halving(scenario, false),
        Algorithm::Daemon | Algorithm::Hardware => unreachable!("{algorithm} has no messages between hosts"),
    }
}

fn to_itself(bytes: usize, hops: usize, is_added: bool, opens: u32) -> Message {
    Message { from: 0, to: 0, bytes: bytes as u32, is_added, opens, hops: hops as u8 }
}

fn alone(scenario: &Scenario) -> Scenario {
    Scenario { workers: 1, ..*scenario }
}

/// Follows the chunk that takes the longest. Each chunk travels around the ring twice, less two consecutive steps;
/// the slowest chunk is the one that omits the two steps that cross the fewest links.
fn ring(scenario: &Scenario, is_pipelined: bool) -> Picos {
    let (workers, tree) = (scenario.workers, scenario.tree());
    let hops = |from: usize| tree.hops(from % workers, (from + 1) % workers);
    let omitted = |chunk: usize| hops(chunk + workers - 2) + hops(chunk + workers - 1);
    let chunk = (0..workers).min_by_key(|chunk| omitted(*chunk)).unwrap_or(0);
    let bytes = (scenario.floats as usize).div_ceil(workers) * size_of::<f32>();
    let pieces: Vec<_> = if is_pipelined { Framing::stream().frames(bytes).collect() } else { vec![bytes] };
    let steps = 2 * (workers - 1);
    let mut plan = Plan { hosts: 1, gates: vec![Gate::default()] };
    for piece in pieces {
        let mut gate = 0;
        for step in 0..steps {
            plan.gates.push(Gate { missing: 1, ..Gate::default() });
            let next = plan.gates.len() - 1;
            let message = to_itself(piece, hops(chunk + step), step < workers - 1, next as u32);
            plan.gates[gate].messages.push(message);
            gate = next;
        }
    }
    packets::run(&alone(scenario), plan)
}

/// Times of an exchange between two partners.
struct Exchanges<'a> {
    scenario: &'a Scenario,
    known: HashMap<(usize, usize, bool, bool), Picos>,
}

impl Exchanges<'_> {
    fn time(&mut self, bytes: usize, hops: usize, is_added: bool, both_ways: bool) -> Picos {
        *self.known.entry((bytes, hops, is_added, both_ways)).or_insert_with(|| {
            let message = Message { to: u32::from(!both_ways), ..to_itself(bytes, hops, is_added, NOTHING) };
            let gates = vec![Gate { messages: vec![message], ..Gate::default() }];
            packets::run(&alone(self.scenario), Plan { hosts: 2, gates })
        })
    }
}

/// Simulates steps in which each pair of partners begins when both have completed the previous step.
fn halving(scenario: &Scenario, is_halved: bool) -> Picos {
    let tree = scenario.tree();
    let Exchange { first_pairs, steps } = Exchange::of(scenario.workers, is_halved);
    let mut exchanges = Exchanges { scenario, known: HashMap::new() };
    let mut times = vec![0; scenario.workers - first_pairs];
    let neighbours = |pair: usize| tree.hops(2 * pair, 2 * pair + 1);
    for (pair, time) in times.iter_mut().enumerate().take(first_pairs) {
        *time = exchanges.time(scenario.bytes(), neighbours(pair), true, false);
    }
    for Step { distance, divisor, is_added } in steps {
        let bytes = (scenario.floats as usize).div_ceil(divisor) * size_of::<f32>();
        let after = |(index, time): (usize, &Picos)| {
            let partner = index ^ distance;
            let hops = tree.hops(rank_of(index, first_pairs), rank_of(partner, first_pairs));
            times[partner].max(*time) + exchanges.time(bytes, hops, is_added, true)
        };
        times = times.iter().enumerate().map(after).collect();
    }
    for (pair, time) in times.iter_mut().enumerate().take(first_pairs) {
        *time += exchanges.time(scenario.bytes(), neighbours(pair), false, false);
    }
    times.into_iter().max().unwrap_or(0)
}

fn sharded(scenario: &Scenario) -> Picos {
    let (workers, shards) = (scenario.workers, plan::shards(scenario));
    let tree = scenario.tree();
    let bytes = (scenario.floats as usize).div_ceil(shards) * size_of::<f32>();
    if shards < workers {
        return Service {
            bytes,
            hops: farthest(&tree),
            others: shards - 1,
            workers: workers - 1,
            is_pipelined: false,
        }
        .time(scenario);
    }
    let send = |gate: &mut Gate, is_added, opens| {
        let to = |other| to_itself(bytes, tree.hops(0, other), is_added, opens);
        gate.messages.extend((1..workers).map(to));
    };
    let (mut begin, mut complete) =
        (Gate::default(), Gate { missing: workers as u32 - 1, ..Gate::default() });
    send(&mut begin, true, 1);
    send(&mut complete, false, NOTHING);
    packets::run(&alone(scenario), Plan { hosts: 1, gates: vec![begin, complete] })
}

fn farthest(tree: &Tree) -> usize {
    tree.hops(0, tree.workers() - 1)
}

/// Server and its workers, which all behave identically. The simulation follows the super-frames of the vector.
struct Service {
    workers: usize,
    bytes: usize,
    hops: usize,
    /// Number of other servers that this server, as a worker, sends to and receives from.
    others: usize,
    is_pipelined: bool,
}

/// Times at which the resources of a server become free.
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    link_in: Picos,
    processor: Picos,
    link_out: Picos,
}

impl Service {
    fn single(scenario: &Scenario, is_pipelined: bool) -> Self {
        let hops = scenario.tree().hops_to_root();
        Self { workers: scenario.workers, bytes: scenario.bytes(), hops, others: 0, is_pipelined }
    }

    fn time(&self, scenario: &Scenario) -> Picos {
        let costs = &scenario.costs;
        let frames: Vec<_> = Framing::stream().frames(self.bytes).collect();
        let of_others: Picos = frames.iter().map(|bytes| costs.stream.send.of(*bytes)).sum();
        let mut server = Server { processor: self.others as Picos * of_others, ..Server::default() };
        let mut worker = 0;
        for bytes in &frames {
            worker += costs.stream.send.of(*bytes);
            server = self.gather(scenario, server, worker, *bytes);
            if self.is_pipelined {
                server = self.scatter(scenario, server, *bytes);
            }
        }
        if !self.is_pipelined {
            // Meanwhile, the sums of the other servers arrive.
            let of_others: Picos = frames.iter().map(|bytes| costs.stream.receive.of(*bytes)).sum();
            server.processor += self.others as Picos * of_others;
            for bytes in &frames {
                server = self.scatter(scenario, server, *bytes);
            }
        }
        let last = frames.last().copied().unwrap_or(0);
        let receive = costs.stream.receive.of(last) + to_picos(costs.wake_ns);
        let Cable { delay, .. } = scenario.cable();
        server.link_out + self.before_last_link(scenario) + delay + receive
    }

    /// Returns the time that a packet takes from the end of its first link to the beginning of its last link.
    fn before_last_link(&self, scenario: &Scenario) -> Picos {
        let (framing, cable) = (Framing::stream(), scenario.cable());
        let packet =
            framing.wire_bytes(framing.payload_bytes.min(self.bytes)) as Picos * cable.picos_per_byte;
        (self.hops - 1) as Picos * (cable.delay + packet)
    }

    /// Receives the super-frames of all workers for one part of the vector. The packets of the workers arrive in turn.
    fn gather(&self, scenario: &Scenario, mut server: Server, sent: Picos, bytes: usize) -> Server {
        let (framing, cable, costs) = (Framing::stream(), scenario.cable(), &scenario.costs);
        let workers = self.workers as Picos;
        let serialise = |wire_bytes: usize| wire_bytes as Picos * cable.picos_per_byte;
        let head = sent + self.before_last_link(scenario);
        server.link_in = server.link_in.max(head) + workers * serialise(framing.message_wire_bytes(bytes));
        let last_packet = framing.packets(bytes).last().unwrap_or(0);
        let spread = (workers - 1) * serialise(framing.wire_bytes(last_packet));
        let (first, last) = (server.link_in - spread + cable.delay, server.link_in + cable.delay);
        let receive = costs.stream.receive.plus(costs.worker_add).of(bytes);
        let wake = if server.processor < first { to_picos(costs.wake_ns) } else { 0 };
        server.processor = (server.processor.max(first + wake) + workers * receive).max(last + receive);
        server
    }

    fn scatter(&self, scenario: &Scenario, mut server: Server, bytes: usize) -> Server {
        let workers = self.workers as Picos;
        let send = scenario.costs.stream.send.of(bytes);
        let wire = Framing::stream().message_wire_bytes(bytes) as Picos * scenario.cable().picos_per_byte;
        let begun = server.processor + send;
        server.processor += workers * send;
        server.link_out = (server.link_out.max(begun) + workers * wire).max(server.processor + wire);
        server
    }
}
