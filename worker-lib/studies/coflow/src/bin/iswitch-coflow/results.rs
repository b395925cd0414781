//! Results as means over draws.

use iswitch_coflow::measure::{Measurement, Times};
use serde::Serialize;

use super::runs::PolicyRuns;
use iswitch_cli::mean::Mean;

/// Completion times in seconds: their mean and percentiles in each draw, averaged over draws.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TimesSummary {
    pub(super) mean: Mean,
    pub(super) p50: Mean,
    pub(super) p95: Mean,
    pub(super) p99: Mean,
    pub(super) max: Mean,
}

impl TimesSummary {
    fn of(runs: &PolicyRuns, times: fn(&Measurement) -> Times) -> Self {
        let mean = |of: fn(Times) -> f64| runs.mean(|run| of(times(&run.measured)));
        Self {
            mean: mean(|it| it.mean),
            p50: mean(|it| it.p50),
            p95: mean(|it| it.p95),
            p99: mean(|it| it.p99),
            max: mean(|it| it.max),
        }
    }
}

/// Results of one policy over several draws. The JSON keys are part of the public interface and must not change.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) policy: String,
    pub(super) draws: usize,
    pub(super) jobs: usize,
    pub(super) cct: TimesSummary,
    pub(super) jct: TimesSummary,
    pub(super) makespan: Mean,
    /// Share of jobs that met their deadlines; null if the jobs have no deadlines.
    pub(super) deadlines_met: Option<Mean>,
    /// Lower bound on the mean job completion time under any policy, derived from the isolated times of the jobs.
    pub(super) bound_isolated: Mean,
    /// Lower bound on the mean job completion time under any policy, derived from the load of the busiest port.
    pub(super) bound_port: Mean,
    /// Lower bound on the mean job completion time under any policy, derived from a linear relaxation.
    pub(super) bound_relaxation: Mean,
    /// Ratio of the policy's mean job completion time to that of the baseline in the same draw, averaged over draws;
    /// null if there is no baseline.
    pub(super) jct_ratio: Option<Mean>,
}

impl Summary {
    /// Summarises the runs of a policy. `baseline` holds the runs of the baseline on the same draws.
    pub(super) fn new(runs: &PolicyRuns, baseline: Option<&PolicyRuns>) -> Self {
        let measured = || runs.runs.iter().map(|run| &run.measured);
        let met: Vec<f64> = measured().filter_map(|run| run.deadlines_met).collect();
        let ratios = baseline.and_then(|base| runs.ratios(base, |run| Some(run.measured.jct.mean)));
        Self {
            policy: runs.policy.clone(),
            draws: runs.runs.len(),
            jobs: runs.runs.last().map_or(0, |run| run.jobs),
            cct: TimesSummary::of(runs, |run| run.cct),
            jct: TimesSummary::of(runs, |run| run.jct),
            makespan: runs.mean(|run| run.measured.makespan),
            deadlines_met: (!met.is_empty()).then(|| Mean::of(&met)),
            bound_isolated: runs.mean(|run| run.measured.bound.isolated),
            bound_port: runs.mean(|run| run.measured.bound.port),
            bound_relaxation: runs.mean(|run| run.measured.bound.relaxation),
            jct_ratio: ratios.map(|ratios| Mean::of(&ratios)),
        }
    }

    /// Returns the greatest of the lower bounds.
    pub(super) fn bound(&self) -> Mean {
        let bounds = [self.bound_isolated, self.bound_port, self.bound_relaxation];
        bounds.into_iter().fold(self.bound_isolated, |a, b| if b.mean > a.mean { b } else { a })
    }
}
