//! Integer weights as the leaves of a binary tree of their sums, for draws by priority.
//!
//! A draw and a change take the logarithm of the number of slots. Sums are integers, so that they never drift from
//! their leaves.

use std::ops::{Add, Sub};

/// Weights of slots, of which one changes at a time. `T` is an unsigned integer that holds the sum of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumTree<T> {
    /// `tree[1]` is the root, `tree[leaves + i]` the weight of slot `i`.
    tree: Vec<T>,
    leaves: usize,
}

impl<T: Copy + Default + PartialOrd + Add<Output = T> + Sub<Output = T>> SumTree<T> {
    /// Slots without weights: at least `slots`, a power of two.
    pub fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two();
        Self { tree: vec![T::default(); 2 * leaves], leaves }
    }

    /// The sum of all weights.
    pub fn total(&self) -> T {
        self.tree[1]
    }

    /// The weight of a slot; zero if it has never had one.
    pub fn get(&self, slot: usize) -> T {
        self.tree.get(self.leaves + slot).copied().unwrap_or_default()
    }

    /// The weights of all slots.
    pub fn weights(&self) -> &[T] {
        &self.tree[self.leaves..]
    }

    /// Changes the weight of a slot. Makes room for it if there is none.
    pub fn set(&mut self, slot: usize, weight: T) {
        if slot >= self.leaves {
            let mut grown = Self::new(slot + 1);
            grown.set_all(self.weights());
            *self = grown;
        }
        let mut at = self.leaves + slot;
        self.tree[at] = weight;
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1];
        }
    }

    /// Changes the weights of the first slots.
    ///
    /// # Panics
    /// If there are more weights than slots.
    pub fn set_all(&mut self, weights: &[T]) {
        self.tree[self.leaves..][..weights.len()].copy_from_slice(weights);
        for at in (1..self.leaves).rev() {
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1];
        }
    }

    /// The slot in whose share of the sum `point` lies, which is below the total.
    pub fn find(&self, mut point: T) -> usize {
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            if point >= self.tree[at] {
                point = point - self.tree[at];
                at += 1;
            }
        }
        at - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_tree_finds_what_a_walk_over_all_finds(
            changes in prop::collection::vec((0_usize..40, 0_u64..100), 1..80),
            slots in 0_usize..40,
            part in 0.0_f64..1.0,
        ) {
            let (mut tree, mut model) = (SumTree::new(slots), vec![0; 64]);
            for (slot, weight) in changes {
                tree.set(slot, weight);
                model[slot] = weight;
                prop_assert_eq!(tree.get(slot), weight);
            }
            prop_assert_eq!(tree.total(), model.iter().sum::<u64>());
            let mut left = (tree.total() as f64 * part) as u64;
            if left < tree.total() {
                let found = tree.find(left);
                let walk = model.iter().position(|own| {
                    let is_here = left < *own;
                    left = left.saturating_sub(*own);
                    is_here
                });
                prop_assert_eq!(Some(found), walk);
            }
            let mut copy = SumTree::new(tree.weights().len());
            copy.set_all(tree.weights());
            prop_assert_eq!(copy, tree);
        }
    }

    #[test]
    fn a_slot_that_never_had_a_weight_has_none() {
        let mut tree = SumTree::<u128>::new(0);
        assert_eq!((tree.total(), tree.get(7)), (0, 0));
        tree.set(5, 3);
        assert_eq!((tree.total(), tree.get(7), tree.find(2)), (3, 0, 5));
    }
}
