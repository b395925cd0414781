//! The function `iswitch._studies.placement`.

use std::path::PathBuf;

use iswitch_placement::cluster::Level;
use iswitch_placement::environment::{EnvironmentOptions, Objective, PlacementEnvironment};
use iswitch_placement::failure::RATE_MAX;
use iswitch_placement::inputs::{FailuresInput, GPUS, GPUS_PER_NODE, JobsInput};
use iswitch_placement::options::{AfterFailure, Checkpoint, Queueing};
use iswitch_placement::policy::Order;
use iswitch_placement::rates::Knowledge;
use iswitch_placement::reader::read_nodes;
use iswitch_placement::workload::{DomainFailures, FailureSource, Workload};
use iswitch_placement::{Cluster, Options};
use pyo3::prelude::*;

use crate::environment::Simulator;
use crate::errors::{bad, check_exist, named, to_python};

const DAY_S: f64 = 86_400.0;

/// Checkpoint setting, as passed from Python: a name, or the number of seconds of work between two checkpoints.
#[derive(FromPyObject)]
pub(crate) enum CheckpointArgument {
    Name(String),
    Seconds(f64),
}

impl CheckpointArgument {
    fn checkpoint(&self, cost: f64) -> PyResult<Checkpoint> {
        match self {
            Self::Name(name) if name == "none" => Ok(Checkpoint::None),
            Self::Name(name) if name == "young-daly" => Ok(Checkpoint::YoungDaly { cost }),
            Self::Name(name) => {
                Err(bad("checkpoint", name, "none, young-daly or a number of seconds above 0"))
            }
            Self::Seconds(interval) => Ok(Checkpoint::Periodic { interval: *interval, cost }),
        }
    }
}

/// Keyword arguments of the environment, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PlacementArguments {
    gpus: Option<usize>,
    gpus_per_node: Option<usize>,
    cluster_file: Option<PathBuf>,
    nodes_per_rack: Option<usize>,
    racks_per_switch: usize,
    job_file: Option<PathBuf>,
    batch: Option<usize>,
    interarrival_s: Option<f64>,
    shortest_s: Option<f64>,
    longest_s: Option<f64>,
    widest: Option<usize>,
    throughputs: Option<PathBuf>,
    gpu_type: String,
    applications: Option<PathBuf>,
    lives: Option<PathBuf>,
    node_faults: Option<PathBuf>,
    failures_file: Option<PathBuf>,
    rates_file: Option<PathBuf>,
    node_rate: f64,
    rack_rate: f64,
    switch_rate: f64,
    domain_repair_s: f64,
    knowledge: String,
    gpus_of_draw: Option<u64>,
    rate_factor: f64,
    checkpoint: Option<CheckpointArgument>,
    checkpoint_cost_s: f64,
    restart_s: f64,
    restart_per_gpu_s: f64,
    repair_s: f64,
    queueing: String,
    after_failure: String,
    spares: usize,
    spread_slowdown: f64,
    horizon_days: f64,
    order: String,
    objective: String,
}

/// Returns a simulator of a cluster in which an agent picks the GPUs of each job.
#[pyfunction]
pub(crate) fn placement(options: PlacementArguments) -> PyResult<Simulator> {
    let arguments = options;
    arguments.check_files()?;
    let cluster = arguments.cluster()?;
    let (jobs, _) = arguments.jobs().load(cluster.gpus()).map_err(to_python)?;
    let failures = arguments.failures()?.load(&cluster).map_err(to_python)?;
    let options = arguments.options(&failures)?;
    let settings = EnvironmentOptions {
        rate_factor: arguments.rate_factor,
        checkpoint: options.checkpoint,
        order: named::<Order>("order", &arguments.order)?,
        objective: named::<Objective>("objective", &arguments.objective)?,
    };
    let workload = Workload { cluster, jobs, failures, domains: arguments.domains()?, options };
    PlacementEnvironment::new(workload, settings).map(Simulator::new).map_err(to_python)
}

impl PlacementArguments {
    fn check_files(&self) -> PyResult<()> {
        check_exist(&[
            ("cluster_file", &self.cluster_file),
            ("job_file", &self.job_file),
            ("throughputs", &self.throughputs),
            ("applications", &self.applications),
            ("lives", &self.lives),
            ("node_faults", &self.node_faults),
            ("failures_file", &self.failures_file),
            ("rates_file", &self.rates_file),
        ])
    }

    fn cluster(&self) -> PyResult<Cluster> {
        let Self { gpus, gpus_per_node, .. } = *self;
        let cluster = match &self.cluster_file {
            Some(path) => {
                for (argument, value) in [("gpus", gpus), ("gpus_per_node", gpus_per_node)] {
                    if let Some(value) = value {
                        return Err(bad(argument, value, "None, because cluster_file lists the nodes"));
                    }
                }
                read_nodes(path)
            }
            None => Cluster::of_gpus(gpus.unwrap_or(GPUS), gpus_per_node.unwrap_or(GPUS_PER_NODE)),
        };
        let racks = |cluster: Cluster| match self.nodes_per_rack {
            Some(nodes) => cluster.with_racks(nodes, self.racks_per_switch),
            None => Ok(cluster),
        };
        cluster.and_then(racks).map_err(to_python)
    }

    fn jobs(&self) -> JobsInput {
        JobsInput {
            file: self.job_file.clone(),
            batch: self.batch,
            interarrival: self.interarrival_s,
            shortest: self.shortest_s,
            longest: self.longest_s,
            widest: self.widest,
            throughputs: self.throughputs.clone(),
            gpu_type: self.gpu_type.clone(),
            applications: self.applications.clone(),
            ..JobsInput::default()
        }
    }

    fn failures(&self) -> PyResult<FailuresInput> {
        let input = FailuresInput {
            lives: self.lives.clone(),
            gpus_of_draw: self.gpus_of_draw,
            knowledge: named::<Knowledge>("knowledge", &self.knowledge)?,
            outages: self.failures_file.clone(),
            rates: self.rates_file.clone(),
            node_faults: self.node_faults.clone(),
            ..FailuresInput::default()
        };
        check_failures(&input)?;
        Ok(input)
    }

    /// Returns the random failures of nodes, racks and switches.
    fn domains(&self) -> PyResult<Vec<DomainFailures>> {
        let rates =
            [(Level::Node, self.node_rate), (Level::Rack, self.rack_rate), (Level::Switch, self.switch_rate)];
        for (level, rate) in rates {
            if !(0.0..=RATE_MAX).contains(&rate) {
                return Err(bad(&format!("{level}_rate"), rate, format!("0 to {RATE_MAX} failures a year")));
            }
        }
        let repair = self.domain_repair_s;
        if !(repair > 0.0 && repair.is_finite()) {
            return Err(bad("domain_repair_s", repair, "a number of seconds above 0"));
        }
        let fails = rates.into_iter().filter(|(_, per_year)| *per_year > 0.0);
        Ok(fails.map(|(level, per_year)| DomainFailures { level, per_year, repair }).collect())
    }

    fn options(&self, failures: &FailureSource) -> PyResult<Options> {
        Ok(Options {
            restart: self.restart_s,
            restart_per_gpu: self.restart_per_gpu_s,
            spares: self.spares,
            repair: self.repair_s,
            checkpoint: checkpoint_of(self.checkpoint.as_ref(), self.checkpoint_cost_s, failures)?,
            queueing: named::<Queueing>("queueing", &self.queueing)?,
            after_failure: named::<AfterFailure>("after_failure", &self.after_failure)?,
            spread_slowdown: self.spread_slowdown,
            horizon: self.horizon_days * DAY_S,
        })
    }
}

/// Checks that at most one argument determines the failures.
fn check_failures(input: &FailuresInput) -> PyResult<()> {
    let has_table = input.outages.is_some() || input.rates.is_some();
    let given = [
        ("node_faults", input.node_faults.is_some(), "failures_file, rates_file", has_table),
        ("node_faults", input.node_faults.is_some(), "lives", input.lives.is_some()),
        ("node_faults", input.node_faults.is_some(), "gpus_of_draw", input.gpus_of_draw.is_some()),
        ("failures_file, rates_file", has_table, "lives", input.lives.is_some()),
        ("failures_file, rates_file", has_table, "gpus_of_draw", input.gpus_of_draw.is_some()),
    ];
    match given.iter().find(|(_, first, _, second)| *first && *second) {
        Some((first, _, second, _)) => {
            Err(bad(second, "given", format!("None, because {first} determines the failures")))
        }
        None => Ok(()),
    }
}

/// Returns the checkpoint setting. The default is Young and Daly's interval if failure rates are known; otherwise,
/// there are no checkpoints.
fn checkpoint_of(
    argument: Option<&CheckpointArgument>,
    cost: f64,
    failures: &FailureSource,
) -> PyResult<Checkpoint> {
    let checkpoint = match argument {
        Some(argument) => argument.checkpoint(cost)?,
        None if failures.has_rates() => Checkpoint::YoungDaly { cost },
        None => Checkpoint::None,
    };
    if matches!(checkpoint, Checkpoint::YoungDaly { .. }) && !failures.has_rates() {
        let expected = "none or a number of seconds above 0, because failures_file without rates_file provides no \
                        failure rates";
        return Err(bad("checkpoint", "young-daly", expected));
    }
    Ok(checkpoint)
}
