//! Accounting of GPU time, and the outcome of a simulation.

use crate::Job;
use crate::state::{Progress, Run};

/// GPU-seconds by use. Their sum is the number of GPUs in the cluster times the makespan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuTime {
    /// Work that was not undone by a failure.
    pub useful: f64,
    /// Work that was undone by failures.
    pub lost: f64,
    /// Time spent on restarts and checkpoints.
    pub overhead: f64,
    /// Time during which working GPUs were held by jobs that waited for the repair of another GPU.
    pub held: f64,
    /// Time during which GPUs were out of service after a failure.
    pub failed: f64,
    /// Time during which working GPUs were not held by any job.
    pub idle: f64,
}

impl GpuTime {
    /// Returns the sum of all GPU-seconds.
    pub fn total(&self) -> f64 {
        self.useful + self.lost + self.overhead + self.held + self.failed + self.idle
    }

    /// Returns the useful fraction of all GPU-seconds; 0 if the sum is 0.
    pub fn utilisation(&self) -> f64 {
        if self.total() > 0.0 { self.useful / self.total() } else { 0.0 }
    }
}

/// Breakdown of the time that has elapsed in a run, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// Time spent on work that is saved in a checkpoint.
    pub(super) saved: f64,
    /// Time spent on work since the last checkpoint.
    pub(super) unsaved: f64,
    /// Time spent on the restart and on checkpoints.
    pub(super) overhead: f64,
}

impl Share {
    /// Breaks down the first `elapsed` seconds of a run that contains `work` seconds of work in total.
    pub(super) fn of(run: &Run, work: f64, elapsed: f64) -> Self {
        let overhead = elapsed.min(run.overhead);
        let after = elapsed - overhead;
        let segments = (after / (run.interval + run.cost)).floor().min(checkpoints(work, run.interval));
        let within = after - segments * (run.interval + run.cost);
        // With an infinite interval there are no segments, and 0 times infinity would be NaN.
        let saved = if segments > 0.0 { segments * run.interval } else { 0.0 };
        let within = if segments > 0.0 { within } else { after };
        let unsaved = within.min(run.interval).min(work - saved);
        Self { saved, unsaved, overhead: elapsed - saved - unsaved }
    }
}

/// Returns the work in seconds that a failure would undo after `elapsed` seconds of a run that contains `work` seconds
/// of work in total.
pub(crate) fn unsaved(run: &Run, work: f64, elapsed: f64) -> f64 {
    Share::of(run, work, elapsed).unsaved
}

/// Returns the integral of [`Share::unsaved`] over the first `elapsed` seconds of a run, in seconds squared. Multiplied
/// by the failure rate, this integral is the work that failures are expected to undo.
pub(super) fn unsaved_integral(run: &Run, work: f64, elapsed: f64) -> f64 {
    let after = (elapsed - run.overhead).max(0.0);
    let segments = (after / (run.interval + run.cost)).floor().min(checkpoints(work, run.interval));
    let (whole, within) = if segments > 0.0 {
        let whole = run.interval * run.interval / 2.0 + run.interval * run.cost;
        (segments * whole, after - segments * (run.interval + run.cost))
    } else {
        (0.0, after)
    };
    let rising = within.min(run.interval);
    // The unsaved work stays constant while a checkpoint is written.
    whole + rising * rising / 2.0 + (within - rising) * rising
}

/// Returns the number of checkpoints in a run with `work` seconds of work; no checkpoint is written at the end of the
/// work.
pub(crate) fn checkpoints(work: f64, interval: f64) -> f64 {
    if interval >= work { 0.0 } else { (work / interval).ceil() - 1.0 }
}

/// Outcome of a simulation. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time at which the last job completed, or the end of the simulation (the horizon) if a job did not complete.
    pub makespan: f64,
    /// Completion time of each job, measured from its arrival; `None` if the job had not completed at the horizon.
    pub completion_times: Vec<Option<f64>>,
    /// Number of GPU failures.
    pub failures: u64,
    /// Number of failures that stopped a job.
    pub hits: u64,
    /// Number of suspensions by the placer.
    pub suspensions: u64,
    /// Number of times that GPUs were assigned to a job.
    pub placements: u64,
    /// GPU time by use.
    pub gpu_time: GpuTime,
    /// Expected amount of work that failures undo, in GPU-seconds. It is computed from the estimated failure rate of
    /// the GPUs of each job and from the amount of work that the job has not saved at each moment. [`GpuTime::lost`]
    /// differs from the expected amount only by chance.
    pub expected_loss: f64,
    /// Effective training time ratio of all jobs that started: the sum of the work that they completed, divided by the
    /// sum of the times from their first start to their completion (or to the end of the simulation). Both sums are
    /// weighted by the number of GPUs that a job asks for. Time spent in the queue counts if it follows a failure, but
    /// not if it precedes the first start. (Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning
    /// Research Clusters", 2024, count queue time in both cases.) `None` if no job started.
    pub ettr: Option<f64>,
}

/// Returns [`Outcome::ettr`] for these jobs in a simulation that ends at `end` seconds.
pub(super) fn ettr(jobs: &[Job], progress: &[Progress], end: f64) -> Option<f64> {
    let (mut work, mut wall) = (0.0, 0.0);
    for (job, progress) in jobs.iter().zip(progress) {
        let Some(started) = progress.started else { continue };
        let gpus = job.gpus() as f64;
        work += gpus * (job.duration() - progress.left);
        wall += gpus * (progress.completed.unwrap_or(end) - started);
    }
    (wall > 0.0).then(|| work / wall)
}

impl Outcome {
    /// Returns the number of jobs that had not completed at the horizon.
    pub fn unfinished(&self) -> usize {
        self.completion_times.iter().filter(|time| time.is_none()).count()
    }

    /// Returns the mean completion time of the completed jobs; `None` if no job completed.
    pub fn mean_completion_time(&self) -> Option<f64> {
        let complete: Vec<f64> = self.completion_times.iter().copied().flatten().collect();
        (!complete.is_empty()).then(|| complete.iter().sum::<f64>() / complete.len() as f64)
    }

    /// Returns the nearest-rank percentile of the completion times: the lowest time within which at least a fraction
    /// `share` (0 to 1) of all jobs completed. `None` if there are no jobs, or the percentile falls on a job that did
    /// not complete.
    pub fn completion_time_percentile(&self, share: f64) -> Option<f64> {
        let mut times: Vec<f64> =
            self.completion_times.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
        times.sort_by(f64::total_cmp);
        let rank = (share.clamp(0.0, 1.0) * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().filter(|time| time.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(overhead: f64, interval: f64, cost: f64) -> Run {
        Run { gpus: vec![0], begin: 0.0, overhead, speed: 1.0, interval, cost, end: 0.0 }
    }

    fn share(run: &Run, work: f64, elapsed: f64) -> (f64, f64, f64) {
        let Share { saved, unsaved, overhead } = Share::of(run, work, elapsed);
        (saved, unsaved, overhead)
    }

    #[test]
    fn a_run_consists_of_overhead_then_alternating_work_and_checkpoints() {
        // The run is an overhead of 5, work of 10, a checkpoint of 2, work of 10, a checkpoint of 2, and work of 5.
        let run = run(5.0, 10.0, 2.0);
        assert_eq!(checkpoints(25.0, 10.0), 2.0);
        assert_eq!(share(&run, 25.0, 3.0), (0.0, 0.0, 3.0));
        assert_eq!(share(&run, 25.0, 9.0), (0.0, 4.0, 5.0));
        // A checkpoint that is half written saves nothing.
        assert_eq!(share(&run, 25.0, 16.0), (0.0, 10.0, 6.0));
        assert_eq!(share(&run, 25.0, 17.0), (10.0, 0.0, 7.0));
        assert_eq!(share(&run, 25.0, 33.0), (20.0, 4.0, 9.0));
        assert_eq!(share(&run, 25.0, 34.0), (20.0, 5.0, 9.0));
    }

    #[test]
    fn unsaved_work_is_integrated_over_time() {
        for (run, work) in [(run(5.0, 10.0, 2.0), 25.0), (run(5.0, f64::INFINITY, 0.0), 40.0)] {
            for elapsed in [3.0, 9.0, 16.5, 17.0, 20.0, 34.0] {
                let step = 1e-3;
                let steps = (elapsed / step) as usize;
                let sum: f64 =
                    (0..steps).map(|at| unsaved(&run, work, (at as f64 + 0.5) * step) * step).sum();
                let got = unsaved_integral(&run, work, elapsed);
                assert!((got - sum).abs() < 0.02, "{run:?} {elapsed}: {got}, {sum}");
            }
        }
    }

    #[test]
    fn without_checkpoints_nothing_is_saved() {
        let run = run(5.0, f64::INFINITY, 0.0);
        assert_eq!(share(&run, 25.0, 4.0), (0.0, 0.0, 4.0));
        assert_eq!(share(&run, 25.0, 25.0), (0.0, 20.0, 5.0));
        assert_eq!(checkpoints(20.0, 10.0), 1.0);
        assert_eq!(checkpoints(10.0, 10.0), 0.0);
    }

    #[test]
    fn completion_time_percentiles_use_the_nearest_rank() {
        let completion_times = vec![Some(4.0), Some(1.0), None, Some(2.0)];
        let outcome = Outcome {
            makespan: 9.0,
            completion_times,
            failures: 0,
            hits: 0,
            suspensions: 0,
            placements: 4,
            gpu_time: GpuTime::default(),
            expected_loss: 0.0,
            ettr: None,
        };
        let percentile = |share| outcome.completion_time_percentile(share);
        assert_eq!([0.0, 0.25, 0.5, 0.75].map(percentile), [Some(1.0), Some(1.0), Some(2.0), Some(4.0)]);
        assert_eq!(percentile(0.76), None);
        assert_eq!(outcome.mean_completion_time(), Some(7.0 / 3.0));
        assert_eq!(outcome.unfinished(), 1);
    }
}
