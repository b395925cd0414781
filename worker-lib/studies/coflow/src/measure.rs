//! Metrics of a run that are common in the literature.

use super::bound::Bound;
use super::simulation::Outcome;
use super::workload::Job;

/// Statistics of the completion times of coflows or of jobs, in seconds; all statistics are 0 if there are no times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Mean.
    pub mean: f64,
    /// 50th percentile: the shortest time that at least 50 % of all times do not exceed.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl Times {
    /// Computes the statistics of `seconds`. Percentiles use the nearest-rank method, so each percentile is one of the
    /// times.
    pub fn of(seconds: &[f64]) -> Self {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let Some(max) = sorted.last().copied() else { return Self::default() };
        // Integers are exact; as a float, 0.95 x 20 would be slightly more than 19.
        let rank = |percent: usize| sorted[(percent * sorted.len()).div_ceil(100) - 1];
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Self { mean, p50: rank(50), p95: rank(95), p99: rank(99), max }
    }
}

/// Results of one run of one policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Coflow completion times, each measured from the time at which the coflow became ready.
    pub cct: Times,
    /// Job completion times, each measured from the arrival of the job.
    pub jct: Times,
    /// Time at which the last job completed, in seconds since the start of the simulation.
    pub makespan: f64,
    /// Number of jobs that met their deadline, divided by the number of jobs that have one; `None` if no job has a
    /// deadline.
    pub deadlines_met: Option<f64>,
    /// Lower bounds on the mean job completion time under any policy.
    pub bound: Bound,
    /// Number of times that rates were recomputed.
    pub decisions: u64,
}

impl Measurement {
    /// Computes the results of a run from its jobs, their lower bounds (the same for all policies) and the outcome.
    pub fn of(jobs: &[Job], bound: Bound, outcome: &Outcome) -> Self {
        Self {
            cct: Times::of(&outcome.coflow_times),
            jct: Times::of(&outcome.job_times),
            makespan: outcome.makespan,
            deadlines_met: deadlines_met(jobs, outcome),
            bound,
            decisions: outcome.decisions,
        }
    }
}

fn deadlines_met(jobs: &[Job], outcome: &Outcome) -> Option<f64> {
    let met: Vec<bool> =
        jobs.iter().zip(&outcome.job_times).filter_map(|(job, time)| is_met(job, *time)).collect();
    (!met.is_empty()).then(|| met.iter().filter(|met| **met).count() as f64 / met.len() as f64)
}

/// Returns whether a job with a completion time of `seconds` met its deadline, or `None` if the job has no deadline.
/// Tolerates rounding errors.
pub fn is_met(job: &Job, seconds: f64) -> Option<bool> {
    job.deadline.map(|deadline| seconds <= deadline * (1.0 + 1e-6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let up_to = |count: u32| (1..=count).rev().map(f64::from).collect::<Vec<_>>();
        let Times { mean, p50, p95, p99, max } = Times::of(&up_to(200));
        assert_eq!((mean, p50, p95, p99, max), (100.5, 100.0, 190.0, 198.0, 200.0));
        let Times { p50, p95, p99, .. } = Times::of(&up_to(20));
        assert_eq!((p50, p95, p99), (10.0, 19.0, 20.0));
        assert_eq!(Times::of(&[7.0]), Times { mean: 7.0, p50: 7.0, p95: 7.0, p99: 7.0, max: 7.0 });
        assert_eq!(Times::of(&[]), Times::default());
    }
}
