//! Oracle that uses an analytic formula for the expected run time of jobs.

use super::{Placer, most_reliable};
use crate::expected::expected_time_with_checkpoints;
use crate::state::{Gpu, Phase, State};

/// Placer that compares the expected run times of jobs, including the time lost to failures. The expected run time is
/// `(e^(L T) - 1) (1/L + R)` for a job of T seconds on GPUs whose failure rates add up to L, if a restart takes R
/// seconds. The job with the largest expected GPU-time starts first. It gets the most reliable free GPUs, or waits for
/// the GPUs of running jobs if waiting leads to an earlier expected completion.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// GPUs in ascending order of the estimated failure rate.
    reliable: Vec<usize>,
}

impl Oracle {
    /// Returns the expected run time, in seconds, of a waiting job, on GPUs whose failure rates add up to `rate`.
    fn expected(state: &State<'_>, job: usize, rate: f64) -> f64 {
        let options = state.options();
        let work = state.progress[job].left;
        expected_time_with_checkpoints(rate, work, state.restart(job), options.checkpoint)
            + state.overhead(job)
    }

    /// Returns the expected time, in seconds from now, until a job would complete if it waited for better GPUs. The job
    /// would wait until one of the running jobs completes, and then start on the best GPUs that are free at that time.
    /// The result is the minimum over all running jobs for which it could wait, assuming that no GPU fails until the
    /// job starts.
    fn expected_if_it_waits(&self, state: &State<'_>, job: usize, size: usize) -> f64 {
        let mut releases: Vec<(f64, &[usize])> = state
            .active
            .iter()
            .filter_map(|active| match &state.progress[*active].phase {
                Phase::Running(run) => Some((run.end - state.time, run.gpus.as_slice())),
                _ => None,
            })
            .collect();
        releases.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut is_free: Vec<bool> = state.gpus.iter().map(Gpu::is_free).collect();
        let mut best = f64::INFINITY;
        for (time, gpus) in releases {
            if time >= best {
                break;
            }
            gpus.iter().for_each(|gpu| is_free[*gpu] = true);
            let picks: Vec<usize> =
                self.reliable.iter().filter(|gpu| is_free[**gpu]).take(size).copied().collect();
            let rate = state.rate_of(&picks);
            best = best.min(time + Self::expected(state, job, rate));
        }
        best
    }
}

impl Placer for Oracle {
    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        let mut rated: Vec<_> = (0..state.gpus.len()).map(|gpu| (state.rate(gpu), gpu)).collect();
        rated.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.reliable = rated.iter().map(|(_, gpu)| *gpu).collect();
        // Element k is the sum of the k + 1 lowest rates.
        let sums: Vec<f64> = rated
            .iter()
            .scan(0.0, |sum, (rate, _)| {
                *sum += rate;
                Some(*sum)
            })
            .collect();
        let key = |job: usize| {
            let gpus = state.job(job).gpus();
            gpus as f64 * Self::expected(state, job, sums[gpus - 1])
        };
        let mut keyed: Vec<_> = queue.iter().map(|job| (key(*job), *job)).collect();
        keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
        queue.iter_mut().zip(keyed).for_each(|(place, (_, job))| *place = job);
    }

    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>) {
        most_reliable(state, size, picks);
        let rate = state.rate_of(picks);
        if self.expected_if_it_waits(state, job, size) < Self::expected(state, job, rate) {
            picks.clear();
        }
    }
}
