//! Sum tree for prioritised sampling: a binary tree whose leaves are integer weights and whose inner nodes are the sums
//! of their children.
//!
//! Sampling and updates take logarithmic time in the number of slots. The sums are integers, so they are always exact,
//! without accumulated rounding errors.

use std::ops::{Add, Sub};

/// Weights of slots, updated one at a time. `T` is an unsigned integer that can hold the sum of all weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumTree<T> {
    /// Nodes of the tree: `tree[1]` is the root, and `tree[leaves + i]` is the weight of slot `i`.
    tree: Vec<T>,
    leaves: usize,
}

impl<T: Copy + Default + PartialOrd + Add<Output = T> + Sub<Output = T>> SumTree<T> {
    /// Returns a tree whose slots all have weight zero. The number of slots is `slots` rounded up to a power of two.
    pub fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two();
        Self { tree: vec![T::default(); 2 * leaves], leaves }
    }

    /// Returns the sum of all weights.
    pub fn total(&self) -> T {
        self.tree[1]
    }

    /// Returns the weight of a slot, or zero if it was never set.
    pub fn get(&self, slot: usize) -> T {
        self.tree.get(self.leaves + slot).copied().unwrap_or_default()
    }

    /// Returns the weights of all slots.
    pub fn weights(&self) -> &[T] {
        &self.tree[self.leaves..]
    }

    /// Sets the weight of a slot, and adds slots if necessary.
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

    /// Sets the weights of the first `weights.len()` slots.
    ///
    /// # Panics
    /// Panics if there are more weights than slots.
    pub fn set_all(&mut self, weights: &[T]) {
        self.tree[self.leaves..][..weights.len()].copy_from_slice(weights);
        for at in (1..self.leaves).rev() {
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1];
        }
    }

    /// Returns the slot that contains `point` if the weights are laid end to end in slot order: the sum of the weights
    /// of all earlier slots is at most `point`, and that sum plus the slot's weight is above it. `point` must be below
    /// the total.
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
        fn the_tree_agrees_with_a_linear_search(
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
    fn a_slot_without_a_weight_has_weight_zero() {
        let mut tree = SumTree::<u128>::new(0);
        assert_eq!((tree.total(), tree.get(7)), (0, 0));
        tree.set(5, 3);
        assert_eq!((tree.total(), tree.get(7), tree.find(2)), (3, 0, 5));
    }
}
