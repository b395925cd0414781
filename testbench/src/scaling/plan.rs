//! Algorithms without a summing switch, as plans of messages. A message may wait until other messages have arrived.

use super::wire::Framing;
use super::{Algorithm, Scenario};

/// One message, of at least one byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u32,
    /// Whether the receiver adds the message to its own data.
    pub(super) is_added: bool,
    /// Gate that is counted down when the message is received.
    pub(super) opens: u32,
    /// Number of links on the path of the message.
    pub(super) hops: u8,
}

/// Gate that sends its messages once a number of other messages have been received.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    pub(super) missing: u32,
    /// Messages to send, which all have the same sender.
    pub(super) messages: Vec<Message>,
    /// Gates that are counted down when this one opens.
    pub(super) followers: [Option<u32>; 2],
}

/// Plan of an algorithm: the gates with the messages to send. The first gates open when the hosts start.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) hosts: usize,
    pub(super) gates: Vec<Gate>,
}

/// Index that names no gate, for messages that no other message waits for.
pub(super) const NOTHING: u32 = u32::MAX;

/// Returns the plan of an algorithm for a scenario.
///
/// # Panics
/// Panics if the algorithm sums in switches, because hosts then exchange no messages.
pub(super) fn of(scenario: &Scenario, algorithm: Algorithm) -> Plan {
    let planner = Planner::new(scenario);
    match algorithm {
        Algorithm::Ring => planner.ring(false),
        Algorithm::RingPipelined => planner.ring(true),
        Algorithm::Server => planner.server(false),
        Algorithm::ServerPipelined => planner.server(true),
        Algorithm::ShardedServer => planner.sharded(),
        Algorithm::HalvingDoubling => planner.halving(true),
        Algorithm::RecursiveDoubling => planner.halving(false),
        Algorithm::Daemon | Algorithm::Hardware => unreachable!("{algorithm} has no messages between hosts"),
    }
}

/// Returns the length, in bytes, of part `at` of a vector of floats that is divided into `parts` parts.
pub(super) fn part_bytes(scenario: &Scenario, at: usize, parts: usize) -> usize {
    let floats = scenario.floats as usize;
    (floats * (at + 1) / parts - floats * at / parts) * size_of::<f32>()
}

/// Returns the number of servers that a vector is split over: each worker is one, unless a part would be smaller than a
/// packet.
pub(super) fn shards(scenario: &Scenario) -> usize {
    Framing::stream().packets(scenario.bytes()).count().min(scenario.workers)
}

struct Planner<'a> {
    scenario: &'a Scenario,
    tree: super::topology::Tree,
    plan: Plan,
}

impl<'a> Planner<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let gates = vec![Gate::default(); scenario.workers];
        Self { scenario, tree: scenario.tree(), plan: Plan { hosts: scenario.workers, gates } }
    }

    fn gate(&mut self, missing: usize) -> usize {
        self.plan.gates.push(Gate { missing: missing as u32, ..Gate::default() });
        self.plan.gates.len() - 1
    }

    /// Adds a message between two workers that is sent when `gate` opens.
    fn send(&mut self, gate: usize, from: usize, to: usize, bytes: usize, is_added: bool, opens: usize) {
        let hops = self.tree.hops(from, to);
        self.send_over(
            gate,
            Message {
                from: from as u32,
                to: to as u32,
                bytes: bytes as u32,
                is_added,
                opens: opens as u32,
                hops: hops as u8,
            },
        );
    }

    fn send_over(&mut self, gate: usize, message: Message) {
        if message.bytes > 0 {
            self.plan.gates[gate].messages.push(message);
        }
    }

    /// Plans a ring that passes on whole chunks, or each super-frame of a chunk. Each piece travels around the ring
    /// twice, less two steps.
    fn ring(mut self, is_pipelined: bool) -> Plan {
        let workers = self.scenario.workers;
        for chunk in 0..workers {
            let bytes = part_bytes(self.scenario, chunk, workers);
            let pieces: Vec<_> =
                if is_pipelined { Framing::stream().frames(bytes).collect() } else { vec![bytes] };
            for piece in pieces {
                let mut gate = chunk;
                for step in 0..2 * (workers - 1) {
                    let (from, to) = ((chunk + step) % workers, (chunk + step + 1) % workers);
                    let next = self.gate(1);
                    self.send(gate, from, to, piece, step < workers - 1, next);
                    gate = next;
                }
            }
        }
        self.plan
    }

    /// Plans a server, which is an additional host at a port of the highest switch.
    fn server(mut self, is_pipelined: bool) -> Plan {
        let (workers, bytes) = (self.scenario.workers, self.scenario.bytes());
        let hops = self.tree.hops_to_root() as u8;
        let server = workers as u32;
        self.plan.hosts += 1;
        let pieces: Vec<_> =
            if is_pipelined { Framing::stream().frames(bytes).collect() } else { vec![bytes] };
        for piece in pieces {
            let complete = self.gate(workers);
            for worker in 0..workers {
                let there = Message {
                    from: worker as u32,
                    to: server,
                    bytes: piece as u32,
                    is_added: true,
                    opens: complete as u32,
                    hops,
                };
                self.send_over(worker, there);
                let back =
                    Message { from: server, to: worker as u32, is_added: false, opens: NOTHING, ..there };
                self.send_over(complete, back);
            }
        }
        self.plan
    }

    /// Plans servers that are spread over the workers; each worker sends first to the server that follows it.
    fn sharded(mut self) -> Plan {
        let (workers, shards) = (self.scenario.workers, shards(self.scenario));
        let host = |shard: usize| shard * workers / shards;
        let complete: Vec<_> = (0..shards).map(|_| self.gate(workers - 1)).collect();
        for worker in 0..workers {
            let first = (0..shards).find(|shard| host(*shard) > worker).unwrap_or(0);
            for shard in (first..shards).chain(0..first).filter(|shard| host(*shard) != worker) {
                let bytes = part_bytes(self.scenario, shard, shards);
                self.send(worker, worker, host(shard), bytes, true, complete[shard]);
            }
        }
        for (shard, gate) in complete.into_iter().enumerate() {
            let (server, bytes) = (host(shard), part_bytes(self.scenario, shard, shards));
            for worker in (server + 1..workers).chain(0..server) {
                self.send(gate, server, worker, bytes, false, NOTHING as usize);
            }
        }
        self.plan
    }

    /// Plans recursive halving and doubling, or doubling of whole vectors. If the number of workers is not a power of
    /// two, the first workers give their vectors to a neighbour and receive the sum from it, as in MPICH.
    fn halving(mut self, is_halved: bool) -> Plan {
        let Exchange { first_pairs, steps } = Exchange::of(self.scenario.workers, is_halved);
        let bytes = self.scenario.bytes();
        let power = self.scenario.workers - first_pairs;
        // For each worker of the exchange, the gate that opens when the worker has completed a step.
        let mut done: Vec<_> = (0..power).map(|index| rank_of(index, first_pairs)).collect();
        for (index, gate) in done.iter_mut().enumerate().take(first_pairs) {
            let folded = self.gate(1);
            self.send(2 * index, 2 * index, 2 * index + 1, bytes, true, folded);
            *gate = folded;
        }
        for Step { distance, divisor, is_added } in steps {
            // A step begins when both partners have completed the previous one, so that no message arrives before it is
            // expected.
            let ready: Vec<_> = done.iter().map(|_| self.gate(2)).collect();
            let next: Vec<_> = done.iter().map(|_| self.gate(1)).collect();
            for index in 0..power {
                let partner = index ^ distance;
                self.plan.gates[done[index]].followers =
                    [ready[index], ready[partner]].map(|gate| Some(gate as u32));
                let (from, to) = (rank_of(index, first_pairs), rank_of(partner, first_pairs));
                let bytes = (self.scenario.floats as usize).div_ceil(divisor) * size_of::<f32>();
                self.send(ready[index], from, to, bytes, is_added, next[partner]);
            }
            done = next;
        }
        for (index, gate) in done.iter().enumerate().take(first_pairs) {
            self.send(*gate, 2 * index + 1, 2 * index, bytes, false, NOTHING as usize);
        }
        self.plan
    }
}

/// One step of halving or doubling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Distance between the indices of partners.
    pub(super) distance: usize,
    /// Divisor of the vector's length: each partner sends the other 1 / `divisor` of the vector.
    pub(super) divisor: usize,
    pub(super) is_added: bool,
}

/// Schedule of exchanges between the workers.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Number of pairs of workers in which both workers act as one. The pairs have the lowest ranks.
    pub(super) first_pairs: usize,
    pub(super) steps: Vec<Step>,
}

impl Exchange {
    pub(super) fn of(workers: usize, is_halved: bool) -> Self {
        let log = workers.ilog2();
        let up = (0..log).map(|at| Step {
            distance: 1 << at,
            divisor: if is_halved { 2 << at } else { 1 },
            is_added: true,
        });
        let mut steps: Vec<_> = up.collect();
        if is_halved {
            let down: Vec<_> = steps.iter().rev().map(|step| Step { is_added: false, ..*step }).collect();
            steps.extend(down);
        }
        Self { first_pairs: workers - (1 << log), steps }
    }
}

/// Returns the rank of the worker with the given index in the exchange.
pub(super) fn rank_of(index: usize, first_pairs: usize) -> usize {
    if index < first_pairs { 2 * index + 1 } else { index + first_pairs }
}
