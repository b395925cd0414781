//! Networks of a learner that are simulated slot by slot, side by side.

use super::config::RoutingConfig;
use super::measure::Meter;
use super::network::{Queues, Routing, Shape, end_slot};
use super::policy::{Greedy, Lane};
use super::rates::{Arrivals, Rates};
use super::trajectory::{Environment, Memory, Trajectory};
use super::value::Value;
use iswitch_learn::algorithms::streams::{Purpose, stream};

/// Networks that are routed by the same policy, and records of their slots.
pub(super) struct Lockstep<V> {
    policy: Greedy<V>,
    arrivals: Vec<Arrivals>,
    pub(super) environments: Vec<Environment>,
    starts: Vec<Queues>,
}

impl<V: Value> Lockstep<V> {
    /// Creates one empty network for each index. The index selects the network's random streams for links and arrivals.
    pub(super) fn new(
        config: &RoutingConfig,
        (value, rates): (V, &Rates),
        indices: &[usize],
        [links, arrivals]: [Purpose; 2],
    ) -> Self {
        let shape = rates.shape();
        let streams = |purpose| indices.iter().map(move |index| stream(config.seed, purpose, *index));
        Self {
            policy: Greedy::new(shape, value, config.exits_first, streams(links).collect()),
            arrivals: streams(arrivals).map(|rng| Arrivals::new(rates, rng)).collect(),
            environments: indices.iter().map(|_| Environment::new(shape)).collect(),
            starts: vec![Queues::empty(shape); indices.len()],
        }
    }

    /// Simulates and records one slot in each network.
    pub(super) fn slot(&mut self, epsilon: f64, memory: Memory) {
        for ((environment, arrivals), start) in
            self.environments.iter_mut().zip(&mut self.arrivals).zip(&mut self.starts)
        {
            environment.queues.arrive(arrivals.draw());
            start.copy_from(&environment.queues);
        }
        self.policy.route_all(&self.starts, epsilon);
        for (environment, lane) in self.environments.iter_mut().zip(self.policy.lanes()) {
            environment.end_slot(lane, memory);
        }
    }

    /// Returns the value function by which links are chosen.
    pub(super) fn value_mut(&mut self) -> &mut V {
        self.policy.value_mut()
    }

    /// Returns the recorded slots of one network, and the value function by which links are chosen.
    pub(super) fn trajectory_and_value(&mut self, environment: usize) -> (&Trajectory, &mut V) {
        (&self.environments[environment].trajectory, self.policy.value_mut())
    }

    /// Returns the value function and discards the networks.
    pub(super) fn into_value(self) -> V {
        self.policy.into_value()
    }
}

/// Network on which a policy is tested, together with its measurements.
pub(super) struct Test {
    queues: Queues,
    arrivals: Arrivals,
    routing: Routing,
    pub(super) meter: Meter,
}

impl Test {
    /// Creates an empty network.
    pub(super) fn new(shape: Shape, arrivals: Arrivals) -> Self {
        Self {
            queues: Queues::empty(shape),
            arrivals,
            routing: Routing::idle(shape),
            meter: Meter::new(shape),
        }
    }

    /// Begins a slot: adds the slot's arrivals and writes the resulting queues into `start`.
    pub(super) fn begin_slot(&mut self, start: &mut Queues) {
        self.meter.before_arrivals(&self.queues);
        let drawn = self.arrivals.draw();
        self.queues.arrive(drawn);
        self.meter.after_arrivals(&self.queues, drawn);
        start.copy_from(&self.queues);
    }

    /// Ends a slot whose packets `lane` has routed.
    pub(super) fn end_slot(&mut self, lane: &Lane) {
        self.routing.replace(lane.hops());
        end_slot(&mut self.queues, &self.routing);
        self.meter.end_slot(&self.routing);
    }
}
