//! Sequential minimisation (equations 8 and 9 of the paper): each packet in turn takes the link whose intermediate
//! state has the lowest value.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Policy;
use super::heuristics::least;
use crate::network::{Decision, Decisions, Hop, Queues, Routing, Shape};
use crate::value::Value;

/// State of one of the networks that are routed in lock-step.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Intermediate state: the queues as if all packets with an assigned link had already moved. With `exits_first`,
    /// the packets that leave in this slot are removed as well.
    now: Queues,
    decisions: Decisions,
    rng: ChaCha8Rng,
    pending: Option<Decision>,
    hops: Vec<Hop>,
}

impl Lane {
    /// Creates a lane for an empty network. `rng` chooses the random links.
    pub(crate) fn new(shape: Shape, rng: ChaCha8Rng) -> Self {
        Self {
            now: Queues::empty(shape),
            decisions: Decisions::new(shape),
            rng,
            pending: None,
            hops: Vec::new(),
        }
    }

    /// Returns the intermediate state.
    pub fn now(&self) -> &Queues {
        &self.now
    }

    /// Returns the packet that needs a link.
    ///
    /// # Panics
    /// Panics if no packet needs a link.
    pub fn decision(&self) -> Decision {
        self.pending.expect("the lane has a packet that needs a link")
    }

    /// Returns the links that the packet of [`Self::decision`] may take.
    pub fn idle(&self) -> &[u16] {
        self.decisions.idle()
    }

    /// Returns the packets that were assigned a link in this slot, in the order of assignment.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Begins a slot. `start` contains the queues after arrivals; with `exits_first`, the intermediate state lacks the
    /// packets that leave in this slot.
    pub(crate) fn begin(&mut self, start: &Queues, exits_first: bool) {
        self.now.copy_from(start);
        if exits_first {
            self.now.leave();
        }
        self.decisions.restart();
        self.hops.clear();
    }

    /// Proceeds to the next packet that needs a decision, and returns whether there is one. A packet with a single idle
    /// link takes this link without a decision; any other packet takes a random idle link with probability `epsilon`.
    pub(crate) fn seek(&mut self, start: &Queues, epsilon: f64) -> bool {
        loop {
            self.pending = self.decisions.next(start);
            if self.pending.is_none() {
                return false;
            }
            let links = self.decisions.idle().len();
            if links == 1 {
                self.take(0);
            } else if epsilon > 0.0 && self.rng.random_bool(epsilon) {
                let position = self.rng.random_range(0..links);
                self.take(position);
            } else {
                return true;
            }
        }
    }

    /// Assigns the idle link at `position` to the current packet.
    pub(crate) fn take(&mut self, position: usize) {
        let hop = self.decision().over(self.decisions.take(position));
        self.now.apply(hop);
        self.hops.push(hop);
    }
}

/// Policy that is greedy with respect to a value function. Several networks can be routed in lock-step, so that an
/// expensive value function evaluates many states at once.
pub struct Greedy<V> {
    value: V,
    exits_first: bool,
    lanes: Vec<Lane>,
    asked: Vec<usize>,
    costs: Vec<f32>,
}

impl<V: Value> Greedy<V> {
    /// Creates the policy for one network per random stream in `rngs`. The streams determine random links and break
    /// ties. With `exits_first`, the value function sees the last stage without the packets that leave in the current
    /// slot; otherwise, it cannot distinguish them from packets that have just arrived.
    pub fn new(shape: Shape, value: V, exits_first: bool, rngs: Vec<ChaCha8Rng>) -> Self {
        Self {
            value,
            exits_first,
            lanes: rngs.into_iter().map(|rng| Lane::new(shape, rng)).collect(),
            asked: Vec::new(),
            costs: Vec::new(),
        }
    }

    /// Returns the networks, in the state in which [`Self::route_all`] left them.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Returns the value function by which links are chosen.
    pub fn value_mut(&mut self) -> &mut V {
        &mut self.value
    }

    /// Returns the value function and discards the networks.
    pub fn into_value(self) -> V {
        self.value
    }

    /// Routes the packets of one slot in each network. `starts` contains the queues of each network after arrivals. A
    /// packet takes a random link with probability `epsilon`.
    pub fn route_all(&mut self, starts: &[Queues], epsilon: f64) {
        self.asked.clear();
        for (at, (lane, start)) in self.lanes.iter_mut().zip(starts).enumerate() {
            lane.begin(start, self.exits_first);
            if lane.seek(start, epsilon) {
                self.asked.push(at);
            }
        }
        while !self.asked.is_empty() {
            self.costs.clear();
            self.value.costs(&self.lanes, &self.asked, &mut self.costs);
            let (lanes, mut costs) = (&mut self.lanes, self.costs.as_slice());
            self.asked.retain(|at| {
                let lane = &mut lanes[*at];
                let (own, others) = costs.split_at(lane.idle().len());
                costs = others;
                let position = least(own.iter(), &mut lane.rng);
                lane.take(position);
                lane.seek(&starts[*at], epsilon)
            });
        }
    }
}

impl<V: Value> Policy for Greedy<V> {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        self.route_all(std::slice::from_ref(queues), 0.0);
        routing.replace(&self.lanes[0].hops);
    }
}
