//! Runs of a policy, with measurements of queues and delays, and heat maps.

use std::collections::VecDeque;

use super::bound::PooledBound;
use super::network::{Queues, Routing, Shape, end_slot};
use super::policy::Policy;
use super::rates::{Arrivals, Rates};
use iswitch_study::StudyError;

/// Results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Number of slots of the run.
    pub slots: u64,
    /// Number of packets in the network before the arrivals of a slot, averaged over slots.
    pub queued: f64,
    /// Delay by Little's law, in slots: the mean number of packets after the arrivals of a slot, divided by the nominal
    /// arrival rate.
    pub delay: f64,
    /// Mean delay of the packets that left, in slots. The delay includes both the slot of arrival and the slot of exit.
    pub tracked_delay: f64,
    /// Lower bound on [`Self::queued`] under any policy, for the same arrivals.
    pub bound_queued: f64,
    /// Lower bound on [`Self::delay`] under any policy, for the same arrivals.
    pub bound_delay: f64,
    /// Number of packets that arrived.
    pub arrived: u64,
    /// Number of packets that left the network.
    pub left: u64,
    /// Length of each queue before the arrivals of a slot, averaged over slots, as `[stage, switch, class]` (figure 7
    /// of the paper).
    pub heat: Vec<f64>,
}

/// Accumulator for the measurements of a run, updated slot by slot.
#[derive(Clone, Debug)]
pub struct Meter {
    bound: PooledBound,
    tracker: Tracker,
    slots: u64,
    before: u64,
    after: u64,
    bound_before: u64,
    bound_after: u64,
    heat: Vec<u64>,
}

impl Meter {
    /// Creates a meter for an empty network.
    pub fn new(shape: Shape) -> Self {
        Self {
            bound: PooledBound::new(shape),
            tracker: Tracker::new(shape),
            slots: 0,
            before: 0,
            after: 0,
            bound_before: 0,
            bound_after: 0,
            heat: vec![0; shape.queues()],
        }
    }

    /// Records the queues before the arrivals of a slot.
    pub fn before_arrivals(&mut self, queues: &Queues) {
        self.before += queues.total();
        self.bound_before += self.bound.total(queues);
        self.heat.iter_mut().zip(queues.all()).for_each(|(sum, len)| *sum += u64::from(*len));
    }

    /// Records the queues after the arrivals of a slot.
    pub fn after_arrivals(&mut self, queues: &Queues, arrivals: &[u32]) {
        self.after += queues.total();
        self.bound_after += self.bound.total(queues);
        self.tracker.arrive(arrivals);
    }

    /// Ends a slot in which packets move as assigned in `routing`.
    pub fn end_slot(&mut self, routing: &Routing) {
        self.bound.end_slot(routing);
        self.tracker.end_slot(routing);
        self.slots += 1;
    }

    /// Returns sums over slots: the number of packets before arrivals, the number after arrivals, and the lower bounds
    /// on these two numbers under any policy.
    pub fn sums(&self) -> [u64; 4] {
        [self.before, self.after, self.bound_before, self.bound_after]
    }

    /// Returns the results. `rate` is the nominal arrival rate, in packets per slot.
    pub fn finish(&self, rate: f64) -> Measurement {
        let mean = |sum: u64| sum as f64 / self.slots.max(1) as f64;
        let Tracker { arrived, left, delays, .. } = self.tracker;
        Measurement {
            slots: self.slots,
            queued: mean(self.before),
            delay: mean(self.after) / rate,
            tracked_delay: delays as f64 / left.max(1) as f64,
            bound_queued: mean(self.bound_before),
            bound_delay: mean(self.bound_after) / rate,
            arrived,
            left,
            heat: self.heat.iter().map(|sum| mean(*sum)).collect(),
        }
    }
}

/// Arrival slot of each packet in the network. All queues are first in, first out.
#[derive(Clone, Debug)]
struct Tracker {
    shape: Shape,
    /// Arrival slots of the packets in each queue, as `[stage, switch, class]`.
    queues: Vec<VecDeque<u64>>,
    moving: Vec<(usize, u64)>,
    slot: u64,
    arrived: u64,
    left: u64,
    /// Sum of the delays of the packets that left, in slots.
    delays: u64,
}

impl Tracker {
    fn new(shape: Shape) -> Self {
        let queues = vec![VecDeque::new(); shape.queues()];
        Self { shape, queues, moving: Vec::new(), slot: 0, arrived: 0, left: 0, delays: 0 }
    }

    fn arrive(&mut self, arrivals: &[u32]) {
        for (queue, count) in self.queues.iter_mut().zip(arrivals) {
            queue.extend(std::iter::repeat_n(self.slot, *count as usize));
            self.arrived += u64::from(*count);
        }
    }

    fn end_slot(&mut self, routing: &Routing) {
        let last = self.shape.boundaries() * self.shape.links();
        for arrived in self.queues[last..].iter_mut().filter_map(VecDeque::pop_front) {
            self.left += 1;
            self.delays += self.slot - arrived + 1;
        }
        let size = self.shape.switches();
        let index = |stage: u16, switch: u16, class: u16| {
            (usize::from(stage) * size + usize::from(switch)) * size + usize::from(class)
        };
        for hop in routing.hops() {
            let packet = self.queues[index(hop.stage, hop.switch, hop.class)].pop_front();
            self.moving.extend(packet.map(|packet| (index(hop.stage + 1, hop.link, hop.class), packet)));
        }
        self.moving.drain(..).for_each(|(queue, packet)| self.queues[queue].push_back(packet));
        self.slot += 1;
    }
}

/// Callback for each slot. Its arguments are the numbers of packets in the network before and after the arrivals of the
/// slot, and the arrivals.
pub type OnSlot<'a> = &'a mut dyn FnMut(u64, u64, &[u32]);

/// Runs a policy for `slots` slots, starting from an empty network.
///
/// # Errors
/// Fails if the policy fails, sends a packet that is not in its queue, or leaves a link idle while a packet waits for
/// it.
pub fn measure(
    policy: &mut dyn Policy,
    rates: &Rates,
    arrivals: &mut Arrivals,
    slots: u64,
    on_slot: OnSlot<'_>,
) -> Result<Measurement, StudyError> {
    let shape = rates.shape();
    let mut queues = Queues::empty(shape);
    let mut routing = Routing::idle(shape);
    let mut meter = Meter::new(shape);
    for _ in 0..slots {
        meter.before_arrivals(&queues);
        let before = queues.total();
        let drawn = arrivals.draw();
        queues.arrive(drawn);
        meter.after_arrivals(&queues, drawn);
        on_slot(before, queues.total(), drawn);
        routing.clear();
        policy.route(&queues, &mut routing);
        policy.failure().map_or(Ok(()), Err)?;
        routing.check(&queues)?;
        end_slot(&mut queues, &routing);
        meter.end_slot(&routing);
    }
    Ok(meter.finish(rates.total()))
}

#[cfg(test)]
mod tests {
    use super::super::policy::{Fill, PolicySpec};
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    fn run(policy: PolicySpec, shape: Shape, load: f64, seed: u64, slots: u64) -> (Measurement, u64) {
        let rates = Rates::uniform(shape, load, seed).unwrap();
        let mut arrivals = Arrivals::new(&rates, stream(seed, Purpose::Arrivals, 0));
        let mut policy = policy.build(shape, Fill::Random, seed);
        let mut after_total = 0;
        let mut add = |_, after, _: &[u32]| after_total += after;
        let measured = measure(policy.as_mut(), &rates, &mut arrivals, slots, &mut add).unwrap();
        (measured, after_total)
    }

    #[test]
    fn no_policy_falls_below_the_lower_bound_shared_by_in_order_policies() {
        for (stages, switches, load) in [(2, 5, 0.9), (3, 8, 0.8), (4, 6, 0.7), (3, 1, 0.5)] {
            let shape = Shape::new(stages, switches).unwrap();
            let results: Vec<_> =
                PolicySpec::all().map(|policy| (policy, run(policy, shape, load, 3, 300).0)).collect();
            for (policy, result) in &results {
                assert!(result.queued >= result.bound_queued, "{policy}: {result:?}");
                let is_same = result.bound_queued == results[0].1.bound_queued;
                assert!(is_same || *policy == PolicySpec::MaxWeight, "{policy}: {result:?}");
                assert_eq!(result.arrived, results[0].1.arrived);
            }
        }
    }

    #[test]
    fn packet_delays_satisfy_littles_law() {
        let shape = Shape::new(3, 6).unwrap();
        for policy in PolicySpec::all() {
            let (result, after_total) = run(policy, shape, 0.6, 5, 4000);
            // A packet is counted in each slot of its stay, so the sums differ only by the packets still in the
            // network.
            let inside = result.arrived - result.left;
            let stays = (result.tracked_delay * result.left as f64).round() as u64;
            assert!(
                stays <= after_total && after_total <= stays + 60 * inside,
                "{policy}: {stays} {after_total}"
            );
            let difference = (result.tracked_delay - result.delay).abs();
            assert!(difference < 0.03 * result.delay, "{policy}: {} {}", result.tracked_delay, result.delay);
        }
    }

    #[test]
    fn the_heat_map_adds_up_to_the_queue_length() {
        let (result, _) = run(PolicySpec::JoinShortestQueue, Shape::new(3, 5).unwrap(), 0.7, 1, 200);
        assert!((result.heat.iter().sum::<f64>() - result.queued).abs() < 1e-9);
    }
}
