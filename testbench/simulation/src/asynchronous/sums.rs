//! The sums of a simulation that has ended, against the vectors that were committed.

use super::learner::Undecided;
use super::member::vector;
use super::{Aggregate, Simulation};
use crate::checker::{Rule, Violation, violated};

/// Sums with more unconfirmed vectors than this are not searched for them: that takes long, and few sums have as many.
const MOST_UNCONFIRMED: usize = 3;

/// Aggregates whose sum is that of vectors that were committed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    pub(super) all: u64,
    /// Those with a vector whose sender never learned of it.
    pub(super) unconfirmed: u64,
}

impl Simulation<'_> {
    /// Checks that each sum is that of the vectors that are known to be in it and of others that may be in it.
    pub(super) fn check_sums(&self) -> Result<Checked, Violation> {
        let mut undecided = self.undecided.clone();
        for (worker, acting) in self.workers.iter().enumerate() {
            let under_way = acting.committed.map(|number| Undecided { worker, number, epoch: acting.epoch });
            undecided.extend(under_way);
        }
        let mut checked = Checked::default();
        for ((epoch, number), aggregate) in &self.aggregates {
            let Some((_, contributions)) = aggregate.sum else { continue };
            let Some(unconfirmed) = usize::from(contributions).checked_sub(aggregate.vectors.len()) else {
                let detail = format!("aggregate {number} counts {contributions}: {:?}", aggregate.vectors);
                return violated(Rule::Lost, detail);
            };
            if unconfirmed > MOST_UNCONFIRMED {
                continue;
            }
            let candidates: Vec<_> =
                undecided.iter().filter(|vector| vector.epoch == *epoch).copied().collect();
            let Some(found) = find(&rest_of(aggregate), &candidates, unconfirmed) else {
                let (rule, vectors) = (Rule::Sum, &aggregate.vectors);
                let detail =
                    format!("aggregate {number} is not the sum of {vectors:?} and {unconfirmed} others");
                return violated(rule, detail);
            };
            if let [only] = found[..] {
                // A vector is in one aggregate. Of several that are found, others may have the same sum.
                undecided.retain(|vector| *vector != only);
            }
            checked.all += 1;
            checked.unconfirmed += u64::from(unconfirmed > 0);
        }
        Ok(checked)
    }
}

/// What is in a sum besides the vectors whose senders were told so.
fn rest_of(aggregate: &Aggregate) -> Vec<f32> {
    let (mut rest, _) = aggregate.sum.clone().unwrap_or_default();
    for (worker, number) in &aggregate.vectors {
        let own = vector(rest.len() as u32, *worker, *number);
        rest.iter_mut().zip(own).for_each(|(sum, x)| *sum -= x);
    }
    rest
}

/// So many of the candidates whose sum is the rest.
fn find(rest: &[f32], candidates: &[Undecided], count: usize) -> Option<Vec<Undecided>> {
    if count == 0 {
        return rest.iter().all(|x| *x == 0.0).then(Vec::new);
    }
    candidates.iter().enumerate().find_map(|(at, candidate)| {
        let own = vector(rest.len() as u32, candidate.worker, candidate.number);
        let left: Vec<_> = rest.iter().zip(&own).map(|(rest, x)| rest - x).collect();
        if left.iter().any(|x| *x < 0.0) {
            return None;
        }
        let mut found = find(&left, &candidates[at + 1..], count - 1)?;
        found.push(*candidate);
        Some(found)
    })
}
