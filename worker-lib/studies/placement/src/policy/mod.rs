//! Who is placed first, and where.

mod best_of;
mod las;
mod oracle;
mod order;
mod pick;
mod pollux;
pub(super) mod saving;
mod spec;

pub use best_of::{Plan, SELECTION_DRAWS, best_of, hindsight};
pub use las::{LAS_THRESHOLDS, Las};
pub use oracle::Oracle;
pub use order::Order;
pub use pick::{ByRule, MATCH_THRESHOLD, Rule, consolidate, most_reliable};
pub use pollux::Pollux;
pub use saving::Saving;
pub use spec::PolicySpec;

use super::state::State;

/// Decides about the queue and about GPUs whenever something has happened to the cluster. It is asked in the order of
/// the methods here.
pub trait Placer {
    /// Adds jobs that run and are to be suspended: they go to the queue.
    fn suspend(&mut self, _state: &State<'_>, _jobs: &mut Vec<usize>) {}

    /// Puts the queue in order, the first first. It is given in the order of arrival.
    fn order(&mut self, _state: &State<'_>, _queue: &mut [usize]) {}

    /// GPUs that a job is to have, of those that it can; 0 if it is to wait and others may go before it.
    fn size(&mut self, state: &State<'_>, job: usize) -> usize {
        state.job(job).gpus()
    }

    /// Adds `size` free GPUs for a job, of which there are enough, to `picks`; or none if it is to wait, as if there
    /// were not enough.
    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>);

    /// Seconds from now at which it wants to decide again even if nothing happens until then.
    fn look_again(&mut self, _state: &State<'_>) -> Option<f64> {
        None
    }
}
