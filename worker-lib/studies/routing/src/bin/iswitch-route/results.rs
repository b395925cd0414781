//! Means of several runs with their confidence.

use std::fmt;

use iswitch_routing::measure::Measurement;
use iswitch_routing::network::Shape;
use iswitch_study::contest::Series;
use serde::Serialize;

use iswitch_cli::mean::Mean;

/// What one policy came to over several runs. The keys are an interface.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) policy: String,
    pub(super) stages: usize,
    pub(super) switches: usize,
    pub(super) load: f64,
    pub(super) runs: usize,
    pub(super) slots: u64,
    /// Packets in the network before arrivals.
    pub(super) queued: Mean,
    /// In slots, by Little's law.
    pub(super) delay: Mean,
    /// In slots, over the packets that left.
    pub(super) tracked_delay: Mean,
    /// What no policy could fall below for the same arrivals.
    pub(super) bound_queued: Mean,
    pub(super) bound_delay: Mean,
    /// Queued beyond the bound, in parts of the bound, of all runs together.
    pub(super) above_bound: f64,
}

/// Runs of one policy at one load.
pub(super) type PolicyRuns = Series<Load, Run>;

/// A load that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load(pub(super) f64);

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rates of a file have a load of their own.
        if self.0.is_nan() { Ok(()) } else { write!(f, "load {:.2}, ", self.0) }
    }
}

/// What one run came to.
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
