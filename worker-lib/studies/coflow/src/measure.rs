//! What a run came to, in the numbers that papers report.

use super::bound::Bound;
use super::simulation::Outcome;
use super::workload::Job;

/// Completion times of coflows or of jobs, in seconds; all are 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Their mean.
    pub mean: f64,
    /// The least time that at least half of all do not exceed.
    pub p50: f64,
    /// The same of 95 in a hundred.
    pub p95: f64,
    /// The same of 99 in a hundred.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

impl Times {
    /// Of these; percentiles by nearest rank, so that each is one of them.
    pub fn of(seconds: &[f64]) -> Self {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let Some(max) = sorted.last().copied() else { return Self::default() };
        // Exact in whole numbers, where 0.95 of 20 would be a little more than 19.
        let rank = |percent: usize| sorted[(percent * sorted.len()).div_ceil(100) - 1];
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Self { mean, p50: rank(50), p95: rank(95), p99: rank(99), max }
    }
}

/// One run of one policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Coflow completion times, each from when the coflow could start.
    pub cct: Times,
    /// Job completion times, each from the job's arrival.
    pub jct: Times,
    /// When the last job was complete, in seconds from time 0.
    pub makespan: f64,
    /// Share of the jobs with a deadline that met it, if there are any.
    pub deadlines_met: Option<f64>,
    /// Least mean job completion times under any policy.
    pub bound: Bound,
    /// Times that rates were computed.
    pub decisions: u64,
}

impl Measurement {
    /// Of an outcome and the jobs that it is of, with their bound, which is the same for all policies.
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

/// Whether a job that took so many seconds met its deadline, if it has one. What rounding takes is not missed.
pub fn is_met(job: &Job, seconds: f64) -> Option<bool> {
    job.deadline.map(|deadline| seconds <= deadline * (1.0 + 1e-6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let up_to = |count: u32| (1..=count).rev().map(f64::from).collect::<Vec<_>>();
        let Times { mean, p50, p95, p99, max } = Times::of(&up_to(200));
        assert_eq!((mean, p50, p95, p99, max), (100.5, 100.0, 190.0, 198.0, 200.0));
        let Times { p50, p95, p99, .. } = Times::of(&up_to(20));
        assert_eq!((p50, p95, p99), (10.0, 19.0, 20.0));
        assert_eq!(Times::of(&[7.0]), Times { mean: 7.0, p50: 7.0, p95: 7.0, p99: 7.0, max: 7.0 });
        assert_eq!(Times::of(&[]), Times::default());
    }
}
