//! Means of several runs with their confidence.

use iswitch_routing::measure::Measurement;
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

impl Summary {
    pub(super) fn new(
        policy: String,
        (stages, switches): (usize, usize),
        load: f64,
        runs: &[Measurement],
    ) -> Self {
        let mean = |of: fn(&Measurement) -> f64| Mean::of(&runs.iter().map(of).collect::<Vec<_>>());
        let (queued, bound_queued) = (mean(|run| run.queued), mean(|run| run.bound_queued));
        Self {
            policy,
            stages,
            switches,
            load,
            runs: runs.len(),
            slots: runs.first().map_or(0, |run| run.slots),
            queued,
            delay: mean(|run| run.delay),
            tracked_delay: mean(|run| run.tracked_delay),
            bound_queued,
            bound_delay: mean(|run| run.bound_delay),
            above_bound: if bound_queued.mean > 0.0 { queued.mean / bound_queued.mean - 1.0 } else { 0.0 },
        }
    }
}
