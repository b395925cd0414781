//! Results of policies, as means over draws.

use iswitch_placement::simulation::GpuTime;
use serde::Serialize;

use super::HOUR_S;
use super::runs::{Measured, PolicyRuns};
use iswitch_cli::mean::Mean;

/// Ratio of a policy's result to the baseline's, as the geometric mean over draws. The geometric mean is used because
/// makespans may differ by a factor of ten between draws: with the arithmetic mean, each of two policies could appear
/// to be worse than the other, depending on which one is the baseline.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Ratio {
    pub(super) mean: f64,
    /// Lower end of the 95 % confidence interval; null for a single draw.
    pub(super) low: Option<f64>,
    /// Upper end of the 95 % confidence interval; null for a single draw.
    pub(super) high: Option<f64>,
}

impl Ratio {
    fn of(ratios: &[f64]) -> Self {
        let Mean { mean, ci95 } = Mean::of(&ratios.iter().map(|ratio| ratio.ln()).collect::<Vec<_>>());
        let exp = |sign: f64| ci95.map(|ci95| (mean + sign * ci95).exp());
        Self { mean: mean.exp(), low: exp(-1.0), high: exp(1.0) }
    }

    pub(super) fn text(self) -> String {
        let Self { mean, low, high } = self;
        match low.zip(high) {
            Some((low, high)) => format!("{mean:.3} ({low:.3}-{high:.3})"),
            None => format!("{mean:.3}"),
        }
    }
}

/// Completion times in seconds: each draw's mean and percentiles, averaged over draws. The mean covers only completed
/// jobs; a percentile is null if, in any draw, it corresponds to a job that did not complete.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TimesSummary {
    pub(super) mean: Option<Mean>,
    pub(super) p50: Option<Mean>,
    pub(super) p95: Option<Mean>,
    pub(super) p99: Option<Mean>,
}

/// GPU-hours by use. Their sum is the makespan multiplied by the number of GPUs in the cluster.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct GpuHours {
    /// Hours of work that no failure undid.
    pub(super) useful: Mean,
    /// Hours of work that failures undid.
    pub(super) lost: Mean,
    /// Hours spent on restarts and checkpoints.
    pub(super) overhead: Mean,
    /// Hours during which working GPUs were held by jobs that waited for the repair of another GPU.
    pub(super) held: Mean,
    /// Hours during which GPUs were out of service after a failure.
    pub(super) failed: Mean,
    /// Hours during which working GPUs were not held by any job.
    pub(super) idle: Mean,
}

/// Results of one policy over several draws. The JSON keys are part of the public interface and must not change.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) policy: String,
    pub(super) rate_factor: f64,
    pub(super) checkpoint: String,
    pub(super) draws: usize,
    pub(super) jobs: usize,
    /// Makespan in seconds.
    pub(super) makespan: Mean,
    /// Makespan divided by that of the baseline; null without a baseline.
    pub(super) makespan_ratio: Option<Ratio>,
    pub(super) jct: TimesSummary,
    /// Mean completion time divided by that of the baseline; null without a baseline.
    pub(super) jct_ratio: Option<Ratio>,
    /// Number of GPU failures.
    pub(super) failures: Mean,
    /// Number of failures that stopped a job.
    pub(super) hits: Mean,
    pub(super) suspensions: Mean,
    pub(super) gpu_hours: GpuHours,
    /// Share of all GPU-hours that was useful work.
    pub(super) utilisation: Mean,
    /// Effective training time ratio; null if there is a draw in which no job started.
    pub(super) ettr: Option<Mean>,
    /// Effective training time ratio divided by that of the baseline; null without a baseline.
    pub(super) ettr_ratio: Option<Ratio>,
    /// Number of jobs per draw that had not completed at the horizon, the end of the simulation.
    pub(super) unfinished: Mean,
}

impl Summary {
    /// Summarises the runs of a policy. Ratios are relative to `baseline`, whose runs must be on the same draws.
    pub(super) fn new(runs: &PolicyRuns, baseline: Option<&PolicyRuns>) -> Self {
        let mean = |of: fn(&Measured) -> f64| runs.mean(|run| of(&run.measured));
        let hours = |of: fn(&GpuTime) -> f64| runs.mean(|run| of(&run.measured.gpu_time) / HOUR_S);
        let jct = |of: fn(&Measured) -> Option<f64>| runs.mean_of_all(|run| of(&run.measured));
        let ratio = |of: fn(&Measured) -> Option<f64>| {
            let ratios = runs.ratios(baseline?, |run| of(&run.measured));
            ratios.map(|ratios| Ratio::of(&ratios))
        };
        Self {
            policy: runs.policy.clone(),
            rate_factor: runs.condition.rate_factor,
            checkpoint: runs.condition.saving.to_string(),
            draws: runs.runs.len(),
            jobs: runs.runs.last().map_or(0, |run| run.jobs),
            makespan: mean(|run| run.makespan),
            makespan_ratio: ratio(|run| Some(run.makespan)),
            jct: TimesSummary {
                mean: jct(|run| run.jct_mean),
                p50: jct(|run| run.jct_p50),
                p95: jct(|run| run.jct_p95),
                p99: jct(|run| run.jct_p99),
            },
            jct_ratio: ratio(|run| run.jct_mean),
            failures: mean(|run| run.failures as f64),
            hits: mean(|run| run.hits as f64),
            suspensions: mean(|run| run.suspensions as f64),
            gpu_hours: GpuHours {
                useful: hours(|time| time.useful),
                lost: hours(|time| time.lost),
                overhead: hours(|time| time.overhead),
                held: hours(|time| time.held),
                failed: hours(|time| time.failed),
                idle: hours(|time| time.idle),
            },
            utilisation: mean(|run| run.gpu_time.utilisation()),
            ettr: jct(|run| run.ettr),
            ettr_ratio: ratio(|run| run.ettr),
            unfinished: mean(|run| run.unfinished as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reversed_ratio_is_the_inverse() {
        let there = Ratio::of(&[0.5, 8.0]);
        let back = Ratio::of(&[2.0, 0.125]);
        assert!((there.mean - 2.0).abs() < 1e-12 && (there.mean * back.mean - 1.0).abs() < 1e-12);
        assert!((there.low.unwrap() * back.high.unwrap() - 1.0).abs() < 1e-9, "{there:?}, {back:?}");
        assert_eq!(Ratio::of(&[0.25]).text(), "0.250");
        assert_eq!(Ratio::of(&[3.0, 3.0]).text(), "3.000 (3.000-3.000)");
    }
}
