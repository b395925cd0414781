//! Selection with probabilities that depend on the priorities.

use iswitch_sum_tree::SumTree;
use rand::{Rng, RngExt};

use super::uniform::Uniform;

/// Integer that represents a weight of 1. Weights have a resolution of 2^-40, and the sum of 2^28 maximum weights does
/// not overflow.
const ONE: f64 = 1_099_511_627_776.0;
/// Maximum weight, which is a priority to the power of the exponent.
pub(crate) const WEIGHT_MAX: f64 = ONE;
/// Maximum exponent.
pub(crate) const EXPONENT_MAX: f64 = 16.0;

/// Weights of the slots, and the set of all slots. The set is used if all weights are zero.
#[derive(Clone, Debug)]
pub(in crate::table) struct Prioritized {
    exponent: f64,
    weights: SumTree<u128>,
    members: Uniform,
}

impl Prioritized {
    pub(super) fn new(exponent: f64) -> Self {
        Self { exponent, weights: SumTree::new(1), members: Uniform::default() }
    }

    pub(super) fn insert(&mut self, slot: u32, priority: f64) {
        self.members.insert(slot);
        self.update(slot, priority);
    }

    pub(super) fn update(&mut self, slot: u32, priority: f64) {
        self.weights.set(slot as usize, weight(priority, self.exponent));
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.members.remove(slot);
        self.weights.set(slot as usize, 0);
    }

    pub(super) fn pick(&self, rng: &mut impl Rng) -> Option<(u32, f64)> {
        let total = self.weights.total();
        if total == 0 {
            return self.members.pick(rng);
        }
        let slot = self.weights.find(rng.random_range(0..total));
        Some((slot as u32, self.weights.get(slot) as f64 / total as f64))
    }

    pub(super) fn mass(&self) -> f64 {
        self.weights.total() as f64 / ONE
    }
}

/// Returns the weight of a priority. Priority 0 has weight 0 for any exponent; every other priority has at least the
/// smallest positive weight.
fn weight(priority: f64, exponent: f64) -> u128 {
    if priority <= 0.0 {
        return 0;
    }
    let weight = priority.powf(exponent).min(WEIGHT_MAX) * ONE;
    (weight as u128).max(1)
}
