//! Sequential minimisation (equations 8 and 9 of the paper): each packet in turn takes the link whose intermediate
//! state is worth least.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::Policy;
use super::heuristics::least;
use crate::network::{Decision, Decisions, Hop, Queues, Routing, Shape};
use crate::value::Value;

/// One network of several in lock-step.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The state with all packets moved that have a link. With exits first also without those that leave.
    now: Queues,
    decisions: Decisions,
    rng: ChaCha8Rng,
    pending: Option<Decision>,
    hops: Vec<Hop>,
}

impl Lane {
    /// The intermediate state.
    pub fn now(&self) -> &Queues {
        &self.now
    }

    /// The packet whose link is sought.
    ///
    /// # Panics
    /// If there is none.
    pub fn decision(&self) -> Decision {
        self.pending.expect("a lane that is asked about has a packet")
    }

    /// Links that it may take.
    pub fn idle(&self) -> &[u16] {
        self.decisions.idle()
    }

    /// The slot's packets so far, in order.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    fn begin(&mut self, start: &Queues, exits_first: bool) {
        self.now.copy_from(start);
        if exits_first {
            self.now.leave();
        }
        self.decisions.restart();
        self.hops.clear();
    }

    /// Goes on to the next packet that does not take a random link, if there is one.
    fn seek(&mut self, start: &Queues, epsilon: f64) -> bool {
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

    fn take(&mut self, position: usize) {
        let hop = self.decision().over(self.decisions.take(position));
        self.now.apply(hop);
        self.hops.push(hop);
    }
}

/// A policy that is greedy for a value. Several networks can be routed in lock-step, so that a costly value is asked
/// about many states at once.
pub struct Greedy<V> {
    value: V,
    exits_first: bool,
    lanes: Vec<Lane>,
    asked: Vec<usize>,
    costs: Vec<f32>,
}

impl<V: Value> Greedy<V> {
    /// For as many networks as there are streams in `rngs`, which decide ties and random links. With `exits_first` the
    /// value sees the last stage without the packets that leave in the slot: otherwise it cannot tell them from those
    /// that have just come.
    pub fn new(shape: Shape, value: V, exits_first: bool, rngs: Vec<ChaCha8Rng>) -> Self {
        let lane = |rng| Lane {
            now: Queues::empty(shape),
            decisions: Decisions::new(shape),
            rng,
            pending: None,
            hops: Vec::new(),
        };
        Self {
            value,
            exits_first,
            lanes: rngs.into_iter().map(lane).collect(),
            asked: Vec::new(),
            costs: Vec::new(),
        }
    }

    /// The networks, after [`Self::route_all`].
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// What links are chosen by.
    pub fn value_mut(&mut self) -> &mut V {
        &mut self.value
    }

    /// The value alone.
    pub fn into_value(self) -> V {
        self.value
    }

    /// Routes a slot in each network; `starts` are their queues after arrivals. A packet takes a random link with
    /// probability `epsilon`.
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
