//! Placement with knowledge of all future failures.

use super::Placer;
use super::pick::by_number;
use crate::failure::FailureDraw;
use crate::simulation::Scenario;
use crate::state::State;
use iswitch_learn::algorithms::streams::Purpose;

/// Placer that knows when each GPU will fail. It starts jobs first in, first out, each on the free GPUs whose next
/// failure is latest. No real policy can do this; the results show the maximum possible gain from the choice among free
/// GPUs.
#[derive(Debug)]
pub struct Clairvoyant<'a> {
    draw: FailureDraw<'a>,
    /// Start and end of each component's current or next outage, in seconds; both infinite if the component never fails
    /// again.
    next: Vec<(f64, f64)>,
    repair: f64,
}

impl<'a> Clairvoyant<'a> {
    /// Creates a placer that foresees the failures of [`simulate`](crate::simulation::simulate) with this seed.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Self {
        let failures = scenario.failures();
        let draw = FailureDraw::new(failures, seed, Purpose::Failures, 0);
        let repair = scenario.options().repair;
        let mut it = Self { draw, next: Vec::with_capacity(failures.components()), repair };
        for component in 0..failures.components() {
            let first = it.after(component, 0.0);
            it.next.push(first);
        }
        it
    }

    fn after(&mut self, component: usize, since: f64) -> (f64, f64) {
        self.draw.next(component, since, self.repair).unwrap_or((f64::INFINITY, f64::INFINITY))
    }
}

impl Placer for Clairvoyant<'_> {
    fn place(&mut self, state: &State<'_>, _job: usize, size: usize, picks: &mut Vec<usize>) {
        for component in 0..self.next.len() {
            while self.next[component].1 <= state.time {
                self.next[component] = self.after(component, self.next[component].1);
            }
        }
        let next = &self.next;
        by_number(state, size, picks, |gpu| {
            let domains =
                state.failures().domains_of(gpu).iter().map(|domain| next[state.gpus.len() + domain].0);
            -domains.fold(next[gpu].0, f64::min)
        });
    }
}
