//! Policy that suspends jobs to save their work.

use super::{Order, Placer, most_reliable};
use crate::options::Checkpoint;
use crate::state::{Phase, State};

/// Placer that puts the longest job first on the most reliable GPUs, as
/// [`LongestReliable`](super::PolicySpec::LongestReliable) does, and suspends a job as soon as a failure would undo
/// more work than Young's interval. A suspension saves a job's state and costs a restart. It is therefore a checkpoint
/// requested by the scheduler, independent of the job's own checkpoints.
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

/// Returns the amount of work between two suspensions of a running job, in seconds, that is optimal to first order:
/// sqrt(2 restart / rate). `rate` is the sum of the estimated failure rates of the job's GPUs (Young, CACM 17(9),
/// 1974). The result is infinite if the rate is 0.
pub(crate) fn interval(state: &State<'_>, job: usize) -> f64 {
    let rate = state.rate_of(state.gpus_of(job));
    Checkpoint::YoungDaly { cost: state.restart(job) }.interval(rate).0
}

/// Returns whether a job runs, has at least `interval` seconds of work that a failure would undo, and has enough
/// remaining work to make a suspension worth the restart.
pub(crate) fn is_due(state: &State<'_>, job: usize, interval: f64) -> bool {
    // At the moment for which [`due_in`] requests a decision, a rounding error may leave the work just below the
    // interval.
    is_worth_it(state, job, interval) && state.unsaved(job) * (1.0 + 1e-9) >= interval
}

/// Returns the seconds until [`is_due`] must be checked again, or `None` if it will not become true in this run.
pub(crate) fn due_in(state: &State<'_>, job: usize, interval: f64) -> Option<f64> {
    let Phase::Running(run) = &state.progress[job].phase else { return None };
    if interval > run.interval || !is_worth_it(state, job, interval) {
        return None;
    }
    let loads = (run.begin + run.overhead - state.time).max(0.0);
    Some(loads + (interval - state.unsaved(job)).max(0.0))
}

/// Returns whether a suspension after an interval of work is worth the restart. The suspension protects this work from
/// failures during the remaining work, so it is worth the restart if rate * left * interval > restart, where `left` is
/// the remaining work. For Young's interval, this holds if the remaining work is more than half an interval.
fn is_worth_it(state: &State<'_>, job: usize, interval: f64) -> bool {
    let Phase::Running(run) = &state.progress[job].phase else { return false };
    run.end - state.time > interval / 2.0
}
