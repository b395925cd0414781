//! Priorities of transitions (Schaul et al., 2016).

use iswitch_sum_tree::SumTree;
use rand::{Rng, RngExt};

use super::{Batch, Prioritisation};

/// Priorities of the transitions of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    how: Prioritisation,
    tree: SumTree<u64>,
    greatest: u64,
}

/// Fixed-point representation of priority 1. Priorities have a resolution of 2^-32 and a maximum of 2^8; the sum of
/// 2^24 of them does not overflow.
const ONE: f64 = 4_294_967_296.0;
const PRIORITY_MAX: u64 = 1 << 40;

impl Priorities {
    pub(super) fn new(capacity: usize, how: Prioritisation) -> Self {
        Self { how, tree: SumTree::new(capacity), greatest: ONE as u64 }
    }

    pub(super) fn set(&mut self, index: usize, error: f32) {
        if self.tree.get(index) == 0 {
            // The transition has been overwritten since it was drawn.
            return;
        }
        let priority = f64::from(error.abs() + self.how.epsilon).powf(f64::from(self.how.alpha));
        // NaN becomes the minimum.
        let priority = ((priority * ONE) as u64).clamp(1, PRIORITY_MAX);
        self.greatest = self.greatest.max(priority);
        self.tree.set(index, priority);
    }

    /// Gives a new transition the highest priority that any transition has had so far, so that it is likely to be drawn
    /// soon.
    pub(super) fn set_greatest(&mut self, index: usize) {
        self.tree.set(index, self.greatest);
    }

    /// Sets the priority at an index to zero, so that this transition is no longer drawn.
    pub(super) fn clear(&mut self, index: usize) {
        self.tree.set(index, 0);
    }

    /// Divides the sum of the priorities into `count` equal parts and draws one transition from each part. `len` is the
    /// number of transitions.
    pub(super) fn sample(&self, count: usize, len: usize, rng: &mut impl Rng, batch: &mut Batch) {
        let total = self.tree.total();
        for part in 0..count as u128 {
            let bound = |part: u128| (u128::from(total) * part / count as u128) as u64;
            let (start, end) = (bound(part), bound(part + 1));
            let point = if start < end { rng.random_range(start..end) } else { start };
            let index = self.tree.find(point.min(total - 1));
            let probability = self.tree.get(index) as f64 / total as f64;
            batch.indices.push(index);
            batch.weights.push(self.how.weight(len as f64, probability));
        }
        batch.normalise_weights();
    }

    /// Returns the priorities of all slots, followed by the highest priority so far, for a checkpoint. Priorities are
    /// integers below 2^53, which f64 represents exactly.
    pub(super) fn save(&self) -> Vec<f64> {
        self.tree.weights().iter().chain([&self.greatest]).map(|priority| *priority as f64).collect()
    }

    /// Restores the priorities that [`Self::save`] returned for the same number of slots.
    pub(super) fn restore(&mut self, saved: &[f64]) {
        let Some((greatest, priorities)) = saved.split_last() else { return };
        self.greatest = (*greatest as u64).clamp(1, PRIORITY_MAX);
        let priorities: Vec<_> =
            priorities.iter().map(|priority| (*priority as u64).min(PRIORITY_MAX)).collect();
        self.tree.set_all(&priorities);
    }

    /// Returns the number of slots, a power of two.
    pub(super) fn slots(&self) -> usize {
        self.tree.weights().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOW: Prioritisation = Prioritisation { alpha: 0.6, beta: 0.4, epsilon: 1e-6 };

    proptest! {
        #[test]
        fn priorities_survive_a_checkpoint(errors in prop::collection::vec(0.0_f32..10.0, 1..40)) {
            let mut priorities = Priorities::new(errors.len(), HOW);
            for (i, error) in errors.iter().enumerate() {
                priorities.set_greatest(i);
                priorities.set(i, *error);
            }
            let mut restored = Priorities::new(errors.len(), HOW);
            restored.restore(&priorities.save());
            prop_assert_eq!((restored.tree, restored.greatest), (priorities.tree, priorities.greatest));
        }
    }
}
