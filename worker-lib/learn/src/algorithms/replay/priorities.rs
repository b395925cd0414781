//! Priorities of transitions (Schaul et al., 2016).

use rand::{Rng, RngExt};

use super::{Batch, Prioritisation};

/// Priorities as the leaves of a binary tree of their sums, so that drawing and changing take the logarithm of their
/// number. Sums are integers: they never drift from their leaves.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    how: Prioritisation,
    /// `tree[1]` is the root, `tree[leaves + i]` the priority of transition `i`.
    tree: Vec<u64>,
    leaves: usize,
    greatest: u64,
}

/// A priority of 1 as an integer: priorities resolve 2^-32 and reach 2^8, and 2^24 of them have a sum.
const ONE: f64 = 4_294_967_296.0;
const PRIORITY_MAX: u64 = 1 << 40;

impl Priorities {
    pub(super) fn new(capacity: usize, how: Prioritisation) -> Self {
        let leaves = capacity.next_power_of_two();
        Self { how, tree: vec![0; 2 * leaves], leaves, greatest: ONE as u64 }
    }

    pub(super) fn set(&mut self, index: usize, error: f32) {
        if self.tree[self.leaves + index] == 0 {
            // It has been overwritten since it was drawn.
            return;
        }
        let priority = f64::from(error.abs() + self.how.epsilon).powf(f64::from(self.how.alpha));
        // NaN becomes the least.
        let priority = ((priority * ONE) as u64).clamp(1, PRIORITY_MAX);
        self.greatest = self.greatest.max(priority);
        self.put(index, priority);
    }

    /// A new transition is drawn soon: it has the greatest priority so far.
    pub(super) fn set_greatest(&mut self, index: usize) {
        self.put(index, self.greatest);
    }

    pub(super) fn put(&mut self, index: usize, priority: u64) {
        let mut at = self.leaves + index;
        self.tree[at] = priority;
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1];
        }
    }

    /// The transition in whose share of the sum `point` lies.
    pub(super) fn find(&self, mut point: u64) -> usize {
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            if point >= self.tree[at] {
                point -= self.tree[at];
                at += 1;
            }
        }
        at - self.leaves
    }

    /// What can be drawn no longer.
    pub(super) fn clear(&mut self, index: usize) {
        self.put(index, 0);
    }

    /// One draw from each of `count` equal parts of the sum; there are `len` transitions.
    pub(super) fn sample(&self, count: usize, len: usize, rng: &mut impl Rng, batch: &mut Batch) {
        let total = self.tree[1];
        for part in 0..count as u128 {
            let bound = |part: u128| (u128::from(total) * part / count as u128) as u64;
            let (start, end) = (bound(part), bound(part + 1));
            let point = if start < end { rng.random_range(start..end) } else { start };
            let index = self.find(point.min(total - 1));
            let probability = self.tree[self.leaves + index] as f64 / total as f64;
            batch.indices.push(index);
            batch.weights.push(self.how.weight(len as f64, probability));
        }
        batch.normalise_weights();
    }

    /// For a checkpoint: the leaves, and last the greatest of all. Priorities are below 2^53.
    pub(super) fn save(&self) -> Vec<f64> {
        self.tree[self.leaves..].iter().chain([&self.greatest]).map(|priority| *priority as f64).collect()
    }

    /// Takes in what [`Self::save`] gave, of as many leaves.
    pub(super) fn restore(&mut self, saved: &[f64]) {
        let Some((greatest, leaves)) = saved.split_last() else { return };
        self.greatest = (*greatest as u64).clamp(1, PRIORITY_MAX);
        for (leaf, priority) in self.tree[self.leaves..].iter_mut().zip(leaves) {
            *leaf = (*priority as u64).min(PRIORITY_MAX);
        }
        for at in (1..self.leaves).rev() {
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1];
        }
    }

    /// Leaves of the tree.
    pub(super) fn leaves(&self) -> usize {
        self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOW: Prioritisation = Prioritisation { alpha: 0.6, beta: 0.4, epsilon: 1e-6 };

    proptest! {
        #[test]
        fn the_tree_finds_what_a_walk_over_all_finds(
            errors in prop::collection::vec(0.0_f32..10.0, 1..40),
            point in 0.0_f64..1.0,
        ) {
            let mut priorities = Priorities::new(errors.len(), HOW);
            for (i, error) in errors.iter().enumerate() {
                priorities.set_greatest(i);
                priorities.set(i, *error);
            }
            let point = (priorities.tree[1] as f64 * point) as u64;
            let mut left = point;
            let walk = (0..errors.len()).find(|i| {
                let own = priorities.tree[priorities.leaves + i];
                let is_here = left < own;
                left = left.saturating_sub(own);
                is_here
            });
            prop_assert_eq!(Some(priorities.find(point)), walk);
            let mut restored = Priorities::new(errors.len(), HOW);
            restored.restore(&priorities.save());
            prop_assert_eq!(restored.tree, priorities.tree);
        }
    }
}
