//! What switches do without learning, from what they know at the beginning of a slot.
//!
//! Lengths are those of the beginning of the slot, at the packet's class in the switch that the link leads to. All
//! switches see the same ones, and many of them choose the same shortest queue: this herding is why
//! [`JoinShortestQueue`] is worse than [`PowerOfTwo`] here.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::{Fill, Policy, decide};
use crate::network::{Decision, Decisions, Queues, Routing, Shape};

/// Any idle link.
#[derive(Clone, Debug)]
pub struct Random {
    decisions: Decisions,
    rng: ChaCha8Rng,
}

impl Random {
    /// With the draws of `rng`.
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

/// Length of the queue that a link leads to.
fn behind(queues: &Queues, decision: Decision, link: u16) -> u32 {
    queues.len(decision.stage + 1, usize::from(link), decision.class)
}

/// Position of the least cost; a random one of several.
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

/// The idle link to the shortest queue (section 4.2 of the paper).
#[derive(Clone, Debug)]
pub struct JoinShortestQueue {
    decisions: Decisions,
    rng: ChaCha8Rng,
    fill: Fill,
}

impl JoinShortestQueue {
    /// Ties, and with [`Fill::Random`] the links of packets that are not heads, are the draws of `rng`.
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

/// The better of two random idle links (Mitzenmacher, 2001).
#[derive(Clone, Debug)]
pub struct PowerOfTwo {
    decisions: Decisions,
    rng: ChaCha8Rng,
    fill: Fill,
}

impl PowerOfTwo {
    /// With the draws of `rng`; `fill` says how packets that are not heads find a link.
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

/// DRILL(d, m): the best of `d` random idle links and of the `m` best ones of the decision before (Ghorbani et al.,
/// 2015). As there are no output queues here, the lengths are those that links lead to; what is remembered is kept for
/// each switch and class.
#[derive(Clone, Debug)]
pub struct Drill {
    decisions: Decisions,
    rng: ChaCha8Rng,
    fill: Fill,
    samples: usize,
    memory: usize,
    /// `[boundary, switch, class]`: links, the best first.
    remembered: Vec<Vec<u16>>,
    candidates: Vec<(u32, u16)>,
}

impl Drill {
    /// With `samples` (d) of at least 1 and `memory` (m).
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
            // Stable: of equals, one that was sampled now.
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

/// Each switch goes round its links, whatever is behind them: packet spraying, or Valiant load balancing in turn.
#[derive(Clone, Debug)]
pub struct Spray {
    decisions: Decisions,
    /// `[boundary, switch]`: the link whose turn it is.
    turns: Vec<u16>,
}

impl Spray {
    /// Each switch begins at another link.
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
