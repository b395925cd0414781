//! Suspensions that save work.

use super::{Order, Placer, most_reliable};
use crate::options::Checkpoint;
use crate::state::{Phase, State};

/// The longest job first on the most reliable GPUs, as [`LongestReliable`](super::PolicySpec::LongestReliable), and a
/// job is suspended when a failure would undo more work than Young's interval. A suspension saves a job's state and
/// costs a restart, so it is a checkpoint that the scheduler asks for, whatever the job does itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saving;

impl Placer for Saving {
    fn suspend(&mut self, state: &State<'_>, jobs: &mut Vec<usize>) {
        let due = |job: &usize| is_due(state, *job, interval(state, *job));
        jobs.extend(state.active.iter().copied().filter(due));
    }

    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        Order::LongestFirst.sort(state, queue);
    }

    fn place(&mut self, state: &State<'_>, _job: usize, size: usize, picks: &mut Vec<usize>) {
        most_reliable(state, size, picks);
    }

    fn look_again(&mut self, state: &State<'_>) -> Option<f64> {
        let waits = state.active.iter().filter_map(|job| due_in(state, *job, interval(state, *job)));
        waits.min_by(f64::total_cmp)
    }
}

/// Seconds of work between two suspensions of a job that runs that are best to first order: sqrt(2 restart / rate) for
/// the sum of the estimated failure rates of its GPUs (Young, CACM 17(9), 1974). Infinite if nothing fails.
pub(crate) fn interval(state: &State<'_>, job: usize) -> f64 {
    let rate = state.gpus_of(job).iter().map(|gpu| state.rate(*gpu)).sum();
    Checkpoint::YoungDaly { cost: state.options().restart }.interval(rate).0
}

/// Whether a job runs, has at least `interval` seconds of work that a failure would undo, and goes on for so long that
/// saving them is worth a restart.
pub(crate) fn is_due(state: &State<'_>, job: usize, interval: f64) -> bool {
    // What was looked at again at that moment may be a rounding error below it.
    is_worth_it(state, job, interval) && state.unsaved(job) * (1.0 + 1e-9) >= interval
}

/// Seconds until [`is_due`] is to be asked again; none if it will not be true in this run.
pub(crate) fn due_in(state: &State<'_>, job: usize, interval: f64) -> Option<f64> {
    let Phase::Running(run) = &state.progress[job].phase else { return None };
    if interval > run.interval || !is_worth_it(state, job, interval) {
        return None;
    }
    let loads = (run.begin + run.overhead - state.time).max(0.0);
    Some(loads + (interval - state.unsaved(job)).max(0.0))
}

/// A suspension after an interval's work saves it from failures in what is left. For an interval of Young that is worth
/// the restart if what is left is more than half of it: rate * left * interval > restart.
fn is_worth_it(state: &State<'_>, job: usize, interval: f64) -> bool {
    let Phase::Running(run) = &state.progress[job].phase else { return false };
    run.end - state.time > interval / 2.0
}
