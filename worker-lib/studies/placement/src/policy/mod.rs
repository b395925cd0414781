//! Placement policies: the order of the queue and the choice of GPUs.

mod best_of;
mod clairvoyant;
mod domains;
pub mod external;
mod las;
mod oracle;
mod order;
mod pick;
mod pollux;
pub(super) mod saving;
mod spec;

pub use best_of::{Plan, SELECTION_DRAWS, best_of, hindsight};
pub use clairvoyant::Clairvoyant;
pub use domains::{DrainLemons, spread};
pub use las::{LAS_THRESHOLDS, Las};
pub use oracle::Oracle;
pub use order::Order;
pub use pick::{ByRule, MATCH_THRESHOLD, Rule, consolidate, most_reliable, pack};
pub use pollux::Pollux;
pub use saving::Saving;
pub use spec::PolicySpec;

use super::state::State;
use iswitch_study::StudyError;

/// Placement policy: orders the queue and assigns GPUs after every event in the cluster. The simulation calls the
/// methods in the order in which they appear here.
pub trait Placer: Send {
    /// Adds the running jobs that should be suspended to `_jobs`; they return to the queue.
    fn suspend(&mut self, _state: &State<'_>, _jobs: &mut Vec<usize>) {}

    /// Sorts the queue, first job first. On entry, the queue is in order of arrival.
    fn order(&mut self, _state: &State<'_>, _queue: &mut [usize]) {}

    /// Returns the number of GPUs that a job should get, which must be a number on which the job can run, or 0 if the
    /// job should wait while others may start before it.
    fn size(&mut self, state: &State<'_>, job: usize) -> usize {
        state.job(job).gpus()
    }

    /// Adds `size` free GPUs for a job to `picks`, or none if the job should wait as if too few GPUs were free. At
    /// least `size` GPUs are free.
    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>);

    /// Returns the number of seconds after which the placer decides again even if no event occurs before then.
    /// Returns `None` if the placer decides only after events.
    fn look_again(&mut self, _state: &State<'_>) -> Option<f64> {
        None
    }

    /// Returns the error that prevented the placer from making the latest decision; the run then fails with this
    /// error. The simulation calls this method after each decision. Returns `None` for a placer that never fails.
    fn failure(&mut self) -> Option<StudyError> {
        None
    }
}
