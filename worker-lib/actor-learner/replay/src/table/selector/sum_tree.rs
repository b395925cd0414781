//! Sums over many integers of which one changes at a time.

/// Weights as the leaves of a binary tree of their sums: drawing and changing take the logarithm of their number. Sums
/// are integers, so that they never drift from their leaves.
#[derive(Clone, Debug)]
pub(super) struct SumTree {
    /// `tree[1]` is the root, `tree[leaves + i]` the weight of slot `i`.
    tree: Vec<u128>,
    leaves: usize,
}

impl SumTree {
    pub(super) fn new() -> Self {
        Self { tree: vec![0; 2], leaves: 1 }
    }

    pub(super) fn total(&self) -> u128 {
        self.tree[1]
    }

    pub(super) fn get(&self, slot: u32) -> u128 {
        self.tree.get(self.leaves + slot as usize).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, slot: u32, weight: u128) {
        if slot as usize >= self.leaves {
            self.grow((slot as usize + 1).next_power_of_two());
        }
        let mut at = self.leaves + slot as usize;
        self.tree[at] = weight;
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1];
        }
    }

    /// The slot in whose share of the sum `point`, below the total, lies.
    pub(super) fn find(&self, mut point: u128) -> u32 {
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            if point >= self.tree[at] {
                point -= self.tree[at];
                at += 1;
            }
        }
        (at - self.leaves) as u32
    }

    fn grow(&mut self, leaves: usize) {
        let mut tree = vec![0; 2 * leaves];
        tree[leaves..leaves + self.leaves].copy_from_slice(&self.tree[self.leaves..]);
        for at in (1..leaves).rev() {
            tree[at] = tree[2 * at] + tree[2 * at + 1];
        }
        (self.tree, self.leaves) = (tree, leaves);
    }
}
