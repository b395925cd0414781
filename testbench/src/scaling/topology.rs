//! Trees of switches: racks of workers, and switches above them.

/// Tree of switches whose leaves are workers. Consecutive ranks fill one switch before the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    workers: usize,
    /// Number of workers below a full switch, by level from the lowest to the highest. All workers are below the top
    /// switch.
    capacities: Vec<usize>,
}

impl Tree {
    /// Returns a tree with racks of `rack` workers below switches with `radix` ports for children.
    ///
    /// # Panics
    /// Panics unless `workers` and `rack` are at least 1 and `radix` is at least 2.
    pub fn new(workers: usize, rack: usize, radix: usize) -> Self {
        assert!(workers > 0 && rack > 0 && radix > 1, "{workers} workers, rack {rack}, radix {radix}");
        let mut capacities = vec![rack];
        while let Some(top) = capacities.last().filter(|top| **top < workers) {
            capacities.push(top * radix);
        }
        Self { workers, capacities }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the number of levels of switches.
    pub fn levels(&self) -> usize {
        self.capacities.len()
    }

    /// Returns the number of switches.
    pub fn switches(&self) -> usize {
        self.capacities.iter().map(|capacity| self.workers.div_ceil(*capacity)).sum()
    }

    /// Returns the number of workers below a full switch of a level.
    pub(super) fn capacity(&self, level: usize) -> usize {
        self.capacities[level]
    }

    /// Returns the maximum number of children of a switch.
    pub fn fan_in(&self) -> usize {
        let mut below = self.workers;
        let mut most = 0;
        for (level, capacity) in self.capacities.iter().enumerate() {
            let full = if level == 0 { *capacity } else { capacity / self.capacities[level - 1] };
            most = most.max(full.min(below));
            below = self.workers.div_ceil(*capacity);
        }
        most
    }

    /// Returns the number of links on the shortest path between two workers.
    pub fn hops(&self, a: usize, b: usize) -> usize {
        if a == b {
            return 0;
        }
        let level = self.capacities.iter().position(|capacity| a / capacity == b / capacity);
        2 * (1 + level.unwrap_or(self.capacities.len() - 1))
    }

    /// Returns the number of links between a worker and a server that is connected to the top switch.
    pub fn hops_to_root(&self) -> usize {
        self.levels() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_of_three_match_the_paper() {
        let tree = Tree::new(12, 3, 64);
        assert_eq!((tree.levels(), tree.switches(), tree.fan_in()), (2, 5, 4));
        assert_eq!((tree.hops(0, 2), tree.hops(2, 3), tree.hops(4, 4)), (2, 4, 0));
        assert_eq!(tree.hops_to_root(), 3);
    }

    #[test]
    fn a_hundred_thousand_workers_need_four_levels() {
        for (rack, radix, switches) in [(3, 64, 33_334 + 521 + 9 + 1), (32, 32, 3_125 + 98 + 4 + 1)] {
            let tree = Tree::new(100_000, rack, radix);
            assert_eq!((tree.levels(), tree.switches(), tree.fan_in()), (4, switches, radix));
            assert_eq!(tree.hops(0, 99_999), 8);
        }
        assert_eq!(Tree::new(1, 3, 64).fan_in(), 1);
    }
}
