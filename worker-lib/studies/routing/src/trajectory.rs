//! Recorded slots of a learner, and the discounted costs that follow their states.

use super::bound::PooledBound;
use super::network::{Hop, Queues, Routing, Shape, end_slot};
use super::policy::Lane;

/// Recorded slots of one network, with all their intermediate states.
#[derive(Clone, Debug)]
pub struct Trajectory {
    /// Queues at the beginning of each slot, in the form in which a value function sees them.
    starts: Vec<Queues>,
    hops: Vec<Hop>,
    /// For each slot, the index in `hops` after the slot's last hop.
    ends: Vec<usize>,
    /// Cost of each slot.
    costs: Vec<f64>,
}

impl Trajectory {
    /// Creates a trajectory without slots.
    pub fn new() -> Self {
        Self { starts: Vec::new(), hops: Vec::new(), ends: Vec::new(), costs: Vec::new() }
    }

    fn push(&mut self, start: &Queues, exits_first: bool, hops: &[Hop], cost: f64) {
        let mut seen = start.clone();
        if exits_first {
            seen.leave();
        }
        self.starts.push(seen);
        self.hops.extend_from_slice(hops);
        self.ends.push(self.hops.len());
        self.costs.push(cost);
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.starts.len()
    }

    /// Returns the state at the beginning of a slot, in the form in which a value function sees it.
    pub fn start(&self, slot: usize) -> &Queues {
        &self.starts[slot]
    }

    /// Returns the packets that were assigned a link in a slot, in the order of assignment.
    pub fn hops(&self, slot: usize) -> &[Hop] {
        let begin = if slot == 0 { 0 } else { self.ends[slot - 1] };
        &self.hops[begin..self.ends[slot]]
    }

    /// Returns the number of states of a slot: the one at its beginning, and one after the assignment of each packet to
    /// a link.
    pub fn states(&self, slot: usize) -> usize {
        self.hops(slot).len() + 1
    }

    /// Writes state number `at` of a slot into `into`.
    pub fn state(&self, slot: usize, at: usize, into: &mut Queues) {
        into.copy_from(&self.starts[slot]);
        self.hops(slot)[..at].iter().for_each(|hop| into.apply(*hop));
    }

    /// Returns the costs of `count` slots, beginning with slot `slot`.
    pub fn costs(&self, slot: usize, count: usize) -> &[f64] {
        &self.costs[slot..slot + count]
    }

    /// Returns the discounted cost of each slot that is followed by at least `window` slots. For slot t, this is the
    /// weighted sum of the costs of slots t to t + window (inclusive); the first weight is 1, and each further weight
    /// is `discount` times the previous one. Intermediate states have no cost and take no time: the discounted cost of
    /// a slot applies to all of its states.
    pub fn discounted(&self, discount: f64, window: usize) -> Vec<f64> {
        let complete = self.slots().saturating_sub(window);
        let beyond = discount.powi(window as i32 + 1);
        let mut sums = vec![0.0; self.slots() + 1];
        for slot in (0..self.slots()).rev() {
            let leaving = self.costs.get(slot + window + 1).map_or(0.0, |cost| beyond * cost);
            sums[slot] = self.costs[slot] + discount * sums[slot + 1] - leaving;
        }
        sums.truncate(complete);
        sums
    }
}

impl Default for Trajectory {
    fn default() -> Self {
        Self::new()
    }
}

/// Network that a learner simulates or uses, together with its recorded slots.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    pub(super) queues: Queues,
    routing: Routing,
    bound: PooledBound,
    pub(super) trajectory: Trajectory,
}

/// Options for recording a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) exits_first: bool,
    /// Whether the lower bound on the number of packets, for the same arrivals, is subtracted from the cost of each
    /// slot. The bound does not depend on the policy, so the subtraction does not change the ranking of policies, but
    /// it removes most of the noise caused by random arrivals.
    pub(super) control_variate: bool,
}

impl Environment {
    /// Creates an empty network without recorded slots.
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            queues: Queues::empty(shape),
            routing: Routing::idle(shape),
            bound: PooledBound::new(shape),
            trajectory: Trajectory::new(),
        }
    }

    /// Ends a slot whose packets `lane` has routed, and records it.
    pub(super) fn end_slot(&mut self, lane: &Lane, memory: Memory) {
        let Memory { exits_first, control_variate } = memory;
        let unavoidable = if control_variate { self.bound.total(&self.queues) } else { 0 };
        let cost = self.queues.total() as f64 - unavoidable as f64;
        self.trajectory.push(&self.queues, exits_first, lane.hops(), cost);
        self.routing.replace(lane.hops());
        end_slot(&mut self.queues, &self.routing);
        self.bound.end_slot(&self.routing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_values_are_sums_of_discounted_costs() {
        let shape = Shape::new(2, 1).unwrap();
        let mut trajectory = Trajectory::new();
        for cost in [3.0, 1.0, 4.0, 1.0, 5.0, 9.0] {
            trajectory.push(&Queues::empty(shape), true, &[], cost);
        }
        let want: Vec<_> = [(3.0, 1.0, 4.0), (1.0, 4.0, 1.0), (4.0, 1.0, 5.0), (1.0, 5.0, 9.0)]
            .map(|(a, b, c)| a + 0.5 * b + 0.25 * c)
            .into();
        assert_eq!(trajectory.discounted(0.5, 2), want);
        assert!(trajectory.discounted(0.5, 6).is_empty());
    }

    #[test]
    fn states_are_recorded_after_each_hop() {
        let shape = Shape::new(3, 2).unwrap();
        let mut start = Queues::empty(shape);
        start.all_mut().fill(1);
        let hops = [(0, 0, 1, 1), (1, 1, 0, 0)].map(|(stage, switch, class, link)| Hop {
            stage,
            switch,
            class,
            link,
        });
        let mut trajectory = Trajectory::new();
        trajectory.push(&start, false, &hops, 0.0);
        trajectory.push(&start, true, &hops[..1], 0.0);
        assert_eq!([trajectory.states(0), trajectory.states(1)], [3, 2]);
        let mut state = Queues::empty(shape);
        trajectory.state(0, 2, &mut state);
        assert_eq!(state.all(), [1, 0, 1, 1, 1, 1, 0, 2, 2, 1, 1, 1]);
        trajectory.state(1, 0, &mut state);
        assert_eq!(state.all(), [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    }
}
