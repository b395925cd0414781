//! Staleness of gradients: the bound of Algorithm 1, and the staleness that was actually measured.
//!
//! The time t counts the updates of the weights. A gradient is computed from the weights of time `t_w`. It is committed
//! if `t - t_w <= S`, and skipped otherwise. After the commit, t may advance further before the gradient becomes part
//! of an aggregate. The true staleness of the gradient is therefore relative to the weights to which that aggregate is
//! applied.

use std::collections::VecDeque;

/// Number of buckets in the inclusion histogram. The last bucket also counts all higher staleness values.
const INCLUSION_BUCKETS: usize = 32;
/// Number of applied aggregates that are remembered. They are needed because the admission of a vector to an aggregate
/// may be reported after the aggregate was applied.
const APPLIED_AGGREGATES: usize = 64;

/// Number of gradients by staleness, in updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    fn new(buckets: usize) -> Self {
        Self { counts: vec![0; buckets] }
    }

    fn add(&mut self, staleness: u64) {
        let last = self.counts.len() - 1;
        self.counts[(staleness as usize).min(last)] += 1;
    }

    /// Returns the number of gradients that were 0, 1, 2, ... updates stale. The last element also counts all gradients
    /// with a higher staleness.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the total number of gradients.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the maximum staleness, or `None` if the histogram is empty.
    pub fn max(&self) -> Option<usize> {
        self.counts.iter().rposition(|count| *count > 0)
    }

    /// Returns the mean staleness; zero if the histogram is empty.
    pub fn mean(&self) -> f64 {
        let sum: u64 = (0u64..).zip(&self.counts).map(|(staleness, count)| staleness * count).sum();
        sum as f64 / self.total().max(1) as f64
    }
}

/// The time t of one worker, and the gradients that the worker has committed.
#[derive(Clone, Debug)]
pub struct Staleness {
    bound: u32,
    updates: u64,
    skipped: u64,
    lost: u64,
    at_commit: Histogram,
    at_inclusion: Histogram,
    /// Committed vectors: sequence number, and t of the weights from which the gradient was computed.
    committed: VecDeque<(u64, u64)>,
    /// Vectors in aggregates that have not been applied yet: number of the aggregate, and t of the weights from which
    /// the gradient was computed.
    included: VecDeque<(u32, u64)>,
    /// The most recently applied aggregates: number, and t before each was applied.
    applied: VecDeque<(u32, u64)>,
}

impl Staleness {
    /// Creates the state for a staleness bound S of `bound` updates.
    pub fn new(bound: u32) -> Self {
        Self {
            bound,
            updates: 0,
            skipped: 0,
            lost: 0,
            at_commit: Histogram::new(bound as usize + 1),
            at_inclusion: Histogram::new(INCLUSION_BUCKETS),
            committed: VecDeque::new(),
            included: VecDeque::new(),
            applied: VecDeque::with_capacity(APPLIED_AGGREGATES),
        }
    }

    /// Returns the time t: the number of updates so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns whether a gradient that was computed from the weights of time `made_at` may be committed now. If not,
    /// counts it as skipped.
    pub fn may_commit(&mut self, made_at: u64) -> bool {
        let may = self.updates - made_at <= u64::from(self.bound);
        self.skipped += u64::from(!may);
        may
    }

    /// Records that the gradient was committed as vector `sequence`.
    pub fn committed(&mut self, sequence: u64, made_at: u64) {
        self.at_commit.add(self.updates - made_at);
        self.committed.push_back((sequence, made_at));
    }

    /// Records that a vector became part of an aggregate or, if `aggregate` is `None`, that it was lost. Vectors must
    /// be reported in the order in which they were committed.
    pub fn admitted(&mut self, sequence: u64, aggregate: Option<u32>) {
        while let Some((committed, made_at)) = self.committed.pop_front() {
            if committed != sequence {
                // The outcome of this vector was never reported.
                self.lost += 1;
                continue;
            }
            let Some(aggregate) = aggregate else {
                self.lost += 1;
                return;
            };
            match self.applied.iter().find(|(applied, _)| *applied == aggregate) {
                Some((_, updates)) => self.at_inclusion.add(updates - made_at),
                None => self.included.push_back((aggregate, made_at)),
            }
            return;
        }
    }

    /// Records that an aggregate was applied to the weights, and advances t.
    pub fn applied(&mut self, aggregate: u32) {
        let updates = self.updates;
        let at_inclusion = &mut self.at_inclusion;
        self.included.retain(|(taken_by, made_at)| {
            let is_applied = *taken_by == aggregate;
            if is_applied {
                at_inclusion.add(updates - made_at);
            }
            !is_applied
        });
        if self.applied.len() == APPLIED_AGGREGATES {
            self.applied.pop_front();
        }
        self.applied.push_back((aggregate, updates));
        self.updates += 1;
    }

    /// Returns the number of gradients that were too stale to be committed.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of gradients that were committed but did not become part of any aggregate.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the staleness of gradients when they were committed; it never exceeds S.
    pub fn at_commit(&self) -> &Histogram {
        &self.at_commit
    }

    /// Returns the staleness of gradients when the aggregate that contains them was applied.
    pub fn at_inclusion(&self) -> &Histogram {
        &self.at_inclusion
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_is_committed_up_to_the_bound() {
        let mut staleness = Staleness::new(3);
        (0..3).for_each(|aggregate| staleness.applied(aggregate));
        assert!(staleness.may_commit(0));
        staleness.committed(0, 0);
        staleness.applied(3);
        assert!(!staleness.may_commit(0));
        assert_eq!((staleness.skipped(), staleness.at_commit().counts()), (1, &[0, 0, 0, 1][..]));
    }

    #[test]
    fn true_staleness_refers_to_the_weights_at_application() {
        let mut staleness = Staleness::new(3);
        staleness.committed(0, 0);
        staleness.applied(10);
        staleness.admitted(0, Some(11));
        assert_eq!(staleness.at_inclusion().total(), 0);
        staleness.applied(11);
        assert_eq!(staleness.at_inclusion().counts()[..3], [0, 1, 0]);
        staleness.committed(1, 2);
        staleness.applied(12);
        staleness.admitted(1, Some(12));
        assert_eq!(staleness.at_inclusion().counts()[..3], [1, 1, 0], "the sum arrived before the admission");
        assert_eq!((staleness.at_inclusion().max(), staleness.at_inclusion().mean()), (Some(1), 0.5));
    }

    #[test]
    fn unconfirmed_vectors_count_as_lost() {
        let mut staleness = Staleness::new(3);
        (0..3).for_each(|sequence| staleness.committed(sequence, 0));
        staleness.admitted(0, None);
        staleness.admitted(2, Some(5));
        assert_eq!(staleness.lost(), 2);
    }
}
