//! Means over several runs, with their confidence intervals.

use std::fmt;

use iswitch_routing::measure::Measurement;
use iswitch_routing::network::Shape;
use iswitch_study::contest::Series;
use serde::Serialize;

use iswitch_cli::mean::Mean;

/// Results of one policy over several runs. The JSON keys are part of the public interface and must not change.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) policy: String,
    pub(super) stages: usize,
    pub(super) switches: usize,
    pub(super) load: f64,
    pub(super) runs: usize,
    pub(super) slots: u64,
    /// Mean number of packets in the network before arrivals.
    pub(super) queued: Mean,
    /// Delay in slots, computed by Little's law.
    pub(super) delay: Mean,
    /// Delay in slots, averaged over the packets that left the network.
    pub(super) tracked_delay: Mean,
    /// Lower bound on `queued` under any policy, for the same arrivals.
    pub(super) bound_queued: Mean,
    pub(super) bound_delay: Mean,
    /// Excess of `queued` over `bound_queued`, as a fraction of `bound_queued`, computed from the means over all runs.
    pub(super) above_bound: f64,
}

/// Runs of one policy at one load.
pub(super) type PolicyRuns = Series<Load, Run>;

/// Requested load; NaN if the rates are read from a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load(pub(super) f64);

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // If the rates come from a file, they determine the load, and no load was requested.
        if self.0.is_nan() { Ok(()) } else { write!(f, "load {:.2}, ", self.0) }
    }
}

/// Result of one run.
pub(super) struct Run {
    pub(super) measured: Measurement,
    /// Load of the run's arrival rates.
    pub(super) load: f64,
}

impl Summary {
    pub(super) fn new(shape: Shape, series: &PolicyRuns) -> Self {
        let mean = |of: fn(&Measurement) -> f64| series.mean(|run| of(&run.measured));
        let (queued, bound_queued) = (mean(|run| run.queued), mean(|run| run.bound_queued));
        Self {
            policy: series.policy.clone(),
            stages: shape.stages(),
            switches: shape.switches(),
            load: series.runs.last().map_or(series.condition.0, |run| run.load),
            runs: series.runs.len(),
            slots: series.runs.first().map_or(0, |run| run.measured.slots),
            queued,
            delay: mean(|run| run.delay),
            tracked_delay: mean(|run| run.tracked_delay),
            bound_queued,
            bound_delay: mean(|run| run.bound_delay),
            above_bound: if bound_queued.mean > 0.0 { queued.mean / bound_queued.mean - 1.0 } else { 0.0 },
        }
    }
}
