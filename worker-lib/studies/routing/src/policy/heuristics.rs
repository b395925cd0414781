//! Policies without learning, which use the queue lengths at the beginning of a slot.
//!
//! These policies rate a link by the length of the queue of the packet's class at the switch to which the link leads.
//! All switches see the same lengths, and many of them choose the same shortest queue. Because of this herding,
//! [`JoinShortestQueue`] is worse than [`PowerOfTwo`] here.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::{Fill, Policy, decide};
use crate::network::{Decision, Decisions, Queues, Routing, Shape};

/// Policy that chooses a random idle link.
#[derive(Clone, Debug)]
pub struct Random {
    decisions: Decisions,
    rng: ChaCha8Rng,
}

impl Random {
    /// Creates the policy. `rng` chooses the links.
    pub fn new(shape: Shape, rng: ChaCha8Rng) -> Self {
        Self { decisions: Decisions::new(shape), rng }
    }
}

impl Policy for Random {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let rng = &mut self.rng;
        decide(&mut self.decisions, queues, routing, |_, idle| rng.random_range(0..idle.len()));
    }
}

/// Returns the length of the queue to which a link leads.
fn behind(queues: &Queues, decision: Decision, link: u16) -> u32 {
    queues.len(decision.stage + 1, usize::from(link), decision.class)
}

/// Returns the position of the lowest cost. If several positions have the lowest cost, returns one of them at random.
pub(super) fn least<T: PartialOrd>(costs: impl Iterator<Item = T>, rng: &mut ChaCha8Rng) -> usize {
    let mut best: Option<(usize, T)> = None;
    let mut equal = 1_u32;
    for (position, cost) in costs.enumerate() {
        match &best {
            Some((_, least)) if cost > *least => {}
            Some((_, least)) if cost == *least => {
                equal += 1;
                if rng.random_range(0..equal) == 0 {
                    best = Some((position, cost));
                }
            }
            _ => {
                best = Some((position, cost));
                equal = 1;
            }
        }
    }
    best.map_or(0, |(position, _)| position)
}

/// Policy that chooses the idle link to the shortest queue (section 4.2 of the paper).
#[derive(Clone, Debug)]
pub struct JoinShortestQueue {
    decisions: Decisions,
    rng: ChaCha8Rng,
    fill: Fill,
}

impl JoinShortestQueue {
    /// Creates the policy. `rng` breaks ties and, with [`Fill::Random`], chooses the links of packets behind the head
    /// of a queue.
    pub fn new(shape: Shape, fill: Fill, rng: ChaCha8Rng) -> Self {
        Self { decisions: Decisions::new(shape), rng, fill }
    }
}

impl Policy for JoinShortestQueue {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let Self { decisions, rng, fill } = self;
        decide(decisions, queues, routing, |decision, idle| {
            if fill.is_random(decision) {
                return rng.random_range(0..idle.len());
            }
            least(idle.iter().map(|link| behind(queues, decision, *link)), rng)
        });
    }
}

/// Policy that samples two random idle links and chooses the one to the shorter queue (Mitzenmacher, 2001).
#[derive(Clone, Debug)]
pub struct PowerOfTwo {
    decisions: Decisions,
    rng: ChaCha8Rng,
    fill: Fill,
}

impl PowerOfTwo {
    /// Creates the policy. `rng` determines the two links, and `fill` is the rule for packets behind the head of a
    /// queue.
    pub fn new(shape: Shape, fill: Fill, rng: ChaCha8Rng) -> Self {
        Self { decisions: Decisions::new(shape), rng, fill }
    }
}

impl Policy for PowerOfTwo {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let Self { decisions, rng, fill } = self;
        decide(decisions, queues, routing, |decision, idle| {
            let first = rng.random_range(0..idle.len());
            if idle.len() == 1 || fill.is_random(decision) {
                return first;
            }
            let second = (first + rng.random_range(1..idle.len())) % idle.len();
            let [a, b] = [first, second].map(|position| behind(queues, decision, idle[position]));
            if a <= b { first } else { second }
        });
    }
}

/// DRILL(d, m): policy that chooses the best link among `d` random idle links and the `m` best links of the previous
/// decision (Ghorbani et al., 2015). Switches have no output queues in this model, so links are compared by the lengths
/// of the queues to which they lead. Each switch remembers its best links for each class separately.
#[derive(Clone, Debug)]
pub struct Drill {
    decisions: Decisions,
    rng: ChaCha8Rng,
    fill: Fill,
    samples: usize,
    memory: usize,
    /// Remembered links, best first, as `[boundary, switch, class]`.
    remembered: Vec<Vec<u16>>,
    candidates: Vec<(u32, u16)>,
}

impl Drill {
    /// Creates the policy with `samples` (d), which must be at least 1, and `memory` (m).
    pub fn new(shape: Shape, samples: usize, memory: usize, fill: Fill, rng: ChaCha8Rng) -> Self {
        Self {
            decisions: Decisions::new(shape),
            rng,
            fill,
            samples,
            memory,
            remembered: vec![Vec::new(); shape.boundaries() * shape.links()],
            candidates: Vec::new(),
        }
    }
}

impl Policy for Drill {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let switches = queues.shape().switches();
        let Self { decisions, rng, fill, samples, memory, remembered, candidates } = self;
        decide(decisions, queues, routing, |decision, idle| {
            if fill.is_random(decision) {
                return rng.random_range(0..idle.len());
            }
            let remembered =
                &mut remembered[(decision.stage * switches + decision.switch) * switches + decision.class];
            let sampled = rand::seq::index::sample(rng, idle.len(), (*samples).min(idle.len()));
            candidates.clear();
            candidates.extend(sampled.iter().map(|position| (0, idle[position])));
            let still_idle = remembered.iter().filter(|link| idle.contains(link));
            candidates.extend(still_idle.map(|link| (0, *link)));
            candidates.iter_mut().for_each(|(len, link)| *len = behind(queues, decision, *link));
            // The sort is stable, so a newly sampled link is preferred to a remembered link that leads to an equally
            // long queue.
            candidates.sort_by_key(|(len, _)| *len);
            let best = candidates[0].1;
            remembered.clear();
            for (_, link) in candidates.iter() {
                if remembered.len() < *memory && !remembered.contains(link) {
                    remembered.push(*link);
                }
            }
            idle.iter().position(|link| *link == best).unwrap_or(0)
        });
    }
}

/// Policy in which each switch uses its links in round-robin order, regardless of queue lengths. The policy is known as
/// packet spraying or deterministic Valiant load balancing.
#[derive(Clone, Debug)]
pub struct Spray {
    decisions: Decisions,
    /// Next link of each switch, as `[boundary, switch]`.
    turns: Vec<u16>,
}

impl Spray {
    /// Creates the policy. Each switch of a stage begins with a different link.
    pub fn new(shape: Shape) -> Self {
        let switches = shape.switches();
        let turns = (0..shape.boundaries() * switches).map(|at| (at % switches) as u16).collect();
        Self { decisions: Decisions::new(shape), turns }
    }
}

impl Policy for Spray {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let switches = queues.shape().switches();
        let Self { decisions, turns } = self;
        decide(decisions, queues, routing, |decision, idle| {
            let turn = &mut turns[decision.stage * switches + decision.switch];
            let position = idle.iter().position(|link| link >= turn).unwrap_or(0);
            *turn = (idle[position] + 1) % switches as u16;
            position
        });
    }
}
