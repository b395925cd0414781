//! Means over draws.

use iswitch_coflow::measure::{Measurement, Times};
use serde::Serialize;

use super::runs::PolicyRuns;
use iswitch_cli::mean::Mean;

/// Completion times in seconds: of each draw the mean and percentiles, of these the means over draws.
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

/// What one policy came to over several draws. The keys are an interface.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) policy: String,
    pub(super) draws: usize,
    pub(super) jobs: usize,
    pub(super) cct: TimesSummary,
    pub(super) jct: TimesSummary,
    pub(super) makespan: Mean,
    /// Share of jobs that met their deadlines; null where they have none.
    pub(super) deadlines_met: Option<Mean>,
    /// Least mean job completion times under any policy: jobs alone, the busiest port by itself.
    pub(super) bound_isolated: Mean,
    pub(super) bound_port: Mean,
    /// Mean job completion time over that of the baseline: the mean of the draws' ratios. Null without a baseline.
    pub(super) jct_ratio: Option<Mean>,
}

impl Summary {
    /// Ratios are those to `baseline`, which ran on the same draws.
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
            jct_ratio: ratios.map(|ratios| Mean::of(&ratios)),
        }
    }

    /// The greater of the bounds.
    pub(super) fn bound(&self) -> Mean {
        if self.bound_isolated.mean > self.bound_port.mean { self.bound_isolated } else { self.bound_port }
    }
}
