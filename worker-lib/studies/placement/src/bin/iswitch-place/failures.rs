//! Options that describe failures of GPUs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use iswitch_placement::Cluster;
use iswitch_placement::cluster::Level;
use iswitch_placement::inputs::FailuresInput;
use iswitch_placement::rates::{self, Batch};
use iswitch_placement::workload::{DomainFailures, FailureSource};

use super::rules::Saving;

/// Default of `--domain-repair`, in seconds: four hours.
const DOMAIN_REPAIR_S: f64 = 4.0 * 3600.0;

/// Options that describe how GPUs fail and what policies know about it.
#[derive(Args, Clone, Debug)]
pub(super) struct FailureArgs {
    /// File with the failure history of Titan's GPUs (gc_full.csv)
    ///
    /// In each draw, every GPU in the cluster is assigned the estimated failure rate of a randomly chosen GPU from the
    /// file. Without a file, the failure histories (lives) of GPUs are synthetic and resemble those of Titan's GPUs.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failures", "rates"])]
    life: Option<PathBuf>,
    /// Batch of GPUs whose failure histories (lives) are used
    #[arg(long, value_name = "BATCH", default_value = "old")]
    life_batch: LifeBatch,
    /// For each GPU, draw only from the failure histories of GPUs in its cage
    ///
    /// Upper cages are hotter, and their GPUs fail more often.
    #[arg(long)]
    same_cage: bool,
    /// Number of the draw whose GPUs are used in all draws
    ///
    /// All draws then have the same cluster, as the patent's network requires.
    #[arg(long, value_name = "DRAW", conflicts_with_all = ["failures", "rates"])]
    gpus_of_draw: Option<u64>,
    /// What policies know about the failure rates
    #[arg(long, value_name = "WHAT", default_value = "rates")]
    knowledge: Knowledge,
    /// CSV file of outages: gpu,begin_s,end_s
    ///
    /// GPUs fail at these times in every draw. Policies know the failure rates in the --rates file; without that file,
    /// they know no rates.
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
    /// CSV file of failure rates and ages: gpu,per_year,age_years
    ///
    /// The file has one line for each GPU.
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// File with InfiniteHBD's node faults (fault_trace.json)
    ///
    /// Each draw replays the faults from a random time in the trace onwards, with the nodes in random order. Policies
    /// know the mean fault rate of all nodes. For each node, they also know the faults in the half of the trace before
    /// that time. GPUs do not fail on their own.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failures", "rates", "life", "gpus_of_draw"])]
    node_faults: Option<PathBuf>,
    /// Random failures per node-year; each failure stops all GPUs of the node
    #[arg(long, value_name = "PER_YEAR", default_value_t = 0.0, allow_negative_numbers = true)]
    node_rate: f64,
    /// Random failures per rack-year; see --nodes-per-rack
    #[arg(long, value_name = "PER_YEAR", default_value_t = 0.0, allow_negative_numbers = true)]
    rack_rate: f64,
    /// Random failures per switch-year; see --racks-per-switch
    #[arg(long, value_name = "PER_YEAR", default_value_t = 0.0, allow_negative_numbers = true)]
    switch_rate: f64,
    /// Time until a failed node, rack or switch is repaired, in seconds
    ///
    /// This option applies to the random failures of --node-rate, --rack-rate and --switch-rate.
    #[arg(long, value_name = "SECONDS", default_value_t = DOMAIN_REPAIR_S, allow_negative_numbers = true)]
    domain_repair: f64,
    /// Factor by which all failure rates are multiplied
    ///
    /// With --failures, the times between outages are divided by the factor.
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(super) rate_factor: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LifeBatch {
    /// GPUs installed before 2016, which fail far more often
    Old,
    /// GPUs installed in or after 2016
    New,
    /// All GPUs
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Knowledge {
    /// The failure rate of each GPU
    Rates,
    /// Each GPU's failure history, and the failures observed so far
    Lives,
}

impl FailureArgs {
    /// Returns the checkpoint setting that applies if no option selects one: Young and Daly's interval, or no
    /// checkpoints if the failure rates are unknown.
    pub(super) fn default_checkpoint(&self) -> Saving {
        if self.failures.is_some() && self.rates.is_none() { Saving::None } else { Saving::YoungDaly }
    }

    /// Returns the random failures of nodes, racks and switches.
    pub(super) fn domains(&self) -> Vec<DomainFailures> {
        let rates =
            [(Level::Node, self.node_rate), (Level::Rack, self.rack_rate), (Level::Switch, self.switch_rate)];
        let repair = self.domain_repair;
        let fails = rates.into_iter().filter(|(_, per_year)| *per_year != 0.0);
        fails.map(|(level, per_year)| DomainFailures { level, per_year, repair }).collect()
    }

    /// Reads or generates the failures.
    ///
    /// # Errors
    /// Fails if a file cannot be read or does not fit the cluster.
    pub(super) fn load(&self, cluster: &Cluster) -> anyhow::Result<FailureSource> {
        let input = FailuresInput {
            lives: self.life.clone(),
            batch: match self.life_batch {
                LifeBatch::Old => Some(Batch::Old),
                LifeBatch::New => Some(Batch::New),
                LifeBatch::All => None,
            },
            same_cage: self.same_cage,
            gpus_of_draw: self.gpus_of_draw,
            knowledge: match self.knowledge {
                Knowledge::Rates => rates::Knowledge::Rates,
                Knowledge::Lives => rates::Knowledge::Lives,
            },
            outages: self.failures.clone(),
            rates: self.rates.clone(),
            node_faults: self.node_faults.clone(),
        };
        Ok(input.load(cluster)?)
    }
}
