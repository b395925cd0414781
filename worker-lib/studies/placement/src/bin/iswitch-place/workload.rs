//! Options that describe a scenario: the cluster, the jobs, the failures and the rules.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use iswitch_placement::Cluster;
use iswitch_placement::inputs::{GPUS, GPUS_PER_NODE};
use iswitch_placement::reader::read_nodes;
use iswitch_placement::simulation::Scenario;
use iswitch_placement::workload::{self, JobSource};

use super::failures::FailureArgs;
use super::jobs::JobsArgs;
use super::rules::{CostArgs, RulesArgs, Saving};

const RACKS_PER_SWITCH: usize = 4;
const DRAWS: u64 = 20;

/// Options that describe the cluster.
#[derive(Args, Clone, Debug)]
pub(super) struct ClusterArgs {
    /// CSV file of the cluster's nodes
    ///
    /// The file either has the columns gpus and cage, or is Alibaba's node list, which has a gpu column. Without a
    /// file, all nodes are identical; see --gpus and --gpus-per-node.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gpus", "gpus_per_node"])]
    cluster: Option<PathBuf>,
    /// Number of GPUs in the cluster
    #[arg(long, value_name = "N", default_value_t = GPUS)]
    gpus: usize,
    /// Number of GPUs per node
    ///
    /// The last node gets the remaining GPUs. Nodes are assigned to cages 0, 1 and 2 in turn.
    #[arg(long, value_name = "K", default_value_t = GPUS_PER_NODE)]
    gpus_per_node: usize,
    /// Number of nodes per rack; by default, all nodes are in one rack
    ///
    /// Racks consist of consecutive nodes; the last rack gets the remaining nodes.
    #[arg(long, value_name = "N")]
    nodes_per_rack: Option<usize>,
    /// Number of racks behind one switch
    #[arg(long, value_name = "N", requires = "nodes_per_rack", default_value_t = RACKS_PER_SWITCH)]
    racks_per_switch: usize,
}

impl ClusterArgs {
    pub(super) fn load(&self) -> anyhow::Result<Cluster> {
        let cluster = self.nodes()?;
        Ok(match self.nodes_per_rack {
            Some(nodes) => cluster.with_racks(nodes, self.racks_per_switch)?,
            None => cluster,
        })
    }

    fn nodes(&self) -> anyhow::Result<Cluster> {
        if let Some(path) = &self.cluster {
            return Ok(read_nodes(path)?);
        }
        Ok(Cluster::of_gpus(self.gpus, self.gpus_per_node)?)
    }
}

/// Options that describe a scenario: cluster, jobs, failures and rules.
#[derive(Args, Clone, Debug)]
pub(super) struct ScenarioArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    jobs: JobsArgs,
    #[command(flatten)]
    failures: FailureArgs,
    #[command(flatten)]
    rules: RulesArgs,
}

impl ScenarioArgs {
    /// Reads or generates the parts of the workload that all draws share.
    pub(super) fn load(&self) -> anyhow::Result<workload::Workload> {
        let cluster = self.cluster.load()?;
        let (jobs, failures) = (self.jobs.load(cluster.gpus())?, self.failures.load(&cluster)?);
        let domains = self.failures.domains();
        Ok(workload::Workload { cluster, jobs, failures, domains, options: self.rules.options()? })
    }

    /// Returns the condition that the options specify.
    pub(super) fn condition(&self) -> Condition {
        let saving = self.rules.cost.checkpoint.unwrap_or(self.failures.default_checkpoint());
        Condition { rate_factor: self.failures.rate_factor, saving }
    }

    /// Returns the options for the cost of failures.
    pub(super) fn cost(&self) -> &CostArgs {
        &self.rules.cost
    }
}

/// Options that describe all of a simulation except its policy.
#[derive(Args, Clone, Debug)]
pub(super) struct WorkloadArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Number of independent draws of jobs, GPUs and failures
    ///
    /// Each policy runs once on each draw. The default is 20, or 1 if files determine the jobs and the failure times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    draws: Option<u64>,
    /// Number of the first draw; a draw's number is also its seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    draw: u64,
}

/// Settings in which runs on the same draw may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Condition {
    /// Factor by which all failure rates are multiplied.
    pub(super) rate_factor: f64,
    /// Checkpoint setting.
    pub(super) saving: Saving,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate_factor, saving } = self;
        write!(f, "failure rates x {rate_factor}, checkpoint {saving}, ")
    }
}

/// Workload from which the scenarios of all draws are built.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    scenarios: workload::Workload,
    cost: CostArgs,
    condition: Condition,
    draws: Range<u64>,
}

impl WorkloadArgs {
    /// Like [`Self::load`], except that it uses `saving` instead of the default if no option selects a checkpoint
    /// setting.
    ///
    /// # Errors
    /// Returns the errors of [`Self::load`].
    pub(super) fn load_with(&self, saving: Option<Saving>) -> anyhow::Result<Workload> {
        let mut args = self.clone();
        let checkpoint = &mut args.scenario.rules.cost.checkpoint;
        *checkpoint = checkpoint.or(saving);
        args.load()
    }

    /// Reads or generates the parts of the workload that all draws share.
    ///
    /// # Errors
    /// Fails if a file cannot be read or an option is out of range.
    pub(super) fn load(&self) -> anyhow::Result<Workload> {
        let scenarios = self.scenario.load()?;
        let is_fixed = matches!(scenarios.jobs, JobSource::Trace(_)) && scenarios.failures.is_trace();
        let draws = self.draws.unwrap_or(if is_fixed { 1 } else { DRAWS });
        let Some(end) = self.draw.checked_add(draws) else {
            bail!("--draw is {}, expected at most {}", self.draw, u64::MAX - draws)
        };
        let (condition, cost) = (self.scenario.condition(), self.scenario.cost().clone());
        let workload = Workload { scenarios, condition, cost, draws: self.draw..end };
        workload.check(workload.condition)?;
        Ok(workload)
    }
}

impl Workload {
    /// Returns the condition that the options specify; a sweep may override it.
    pub(super) fn condition(&self) -> Condition {
        self.condition
    }

    /// Returns the numbers of all draws.
    pub(super) fn draws(&self) -> Range<u64> {
        self.draws.clone()
    }

    /// Checks that scenarios under this condition can be simulated.
    pub(super) fn check(&self, condition: Condition) -> anyhow::Result<()> {
        if condition.saving == Saving::YoungDaly && !self.scenarios.failures.has_rates() {
            bail!(
                "checkpoint is young-daly, which needs failure rates: --failures specifies only the failure times; \
                 add --rates with the expected failures per year"
            );
        }
        self.scenario(self.draws.start, condition).map(|_| ())
    }

    /// Returns the scenario of a draw. A draw has the same jobs and GPUs under all conditions.
    pub(super) fn scenario(&self, draw: u64, condition: Condition) -> anyhow::Result<Scenario> {
        let Condition { rate_factor, saving } = condition;
        Ok(self.scenarios.scenario(draw, rate_factor, self.cost.checkpoint(saving))?)
    }

    /// Returns a description of the workload for the output.
    pub(super) fn describe(&self) -> String {
        let workload::Workload { cluster, jobs, failures, .. } = &self.scenarios;
        let (gpus, nodes) = (cluster.gpus(), cluster.nodes().len());
        let (jobs, failures) = (jobs.describe(), failures.describe());
        format!("{jobs}; {gpus} GPUs on {nodes} nodes; {failures}; {} draw(s)", self.draws.clone().count())
    }
}
