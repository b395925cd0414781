//! `iswitch place serve`: a service that places the jobs of an external scheduler.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use iswitch_placement::agent::Agent;
use iswitch_placement::options::Queueing;
use iswitch_placement::reader::read_rates;
use iswitch_placement::{Cluster, Failures, Options};
use iswitch_study::contest::Contestant as _;

use super::rules::CostArgs;
use super::source::{PICKERS, PolicySource};
use super::workload::ClusterArgs;
use iswitch_cli::line_server::{self, Answer, Limits, Service};

/// Arguments of `iswitch place serve`.
#[derive(Args)]
pub(crate) struct ServeArgs {
    #[arg(
        help = "Policy: its name, or the run directory of a training run",
        long_help = format!("Policy: {PICKERS}")
    )]
    policy: String,
    /// Path of the Unix socket to listen on [default: standard input]
    ///
    /// A client sends one JSON request per line, and the service answers each with one line of JSON. Without this
    /// option, the service reads requests from a single client from standard input and writes the answers to
    /// standard output. A request such as {"gpus": [{"state": "free"}, ...], "job": {"gpus": 2, "duration": 3600}} has
    /// an entry for each GPU. The answer, such as {"gpus": [4, 5]}, lists the GPUs for the job; an empty list means
    /// that the job should wait. The state of an entry is free, busy, failed or draining; a draining GPU works, but
    /// gets no further jobs. An entry may also have id, rate (failures per year), age (in years), node, and left
    /// (seconds until the GPU is free or repaired). If a request has a list named jobs instead of job, the answer
    /// contains all decisions of the policy: the jobs to suspend, and the jobs to start and their GPUs. Each job in the
    /// list has id and gpus, and optionally duration, done and running_for (in seconds), on (the GPUs of a running
    /// job), left (seconds until a running job completes) and starts. The request {"describe": true} returns a
    /// description of the service.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// CSV file of failure rates and ages: gpu,per_year,age_years
    ///
    /// The file has one line for each GPU and supplies the values that requests omit. Without a file, GPUs are assumed
    /// not to fail.
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    #[command(flatten)]
    cost: CostArgs,
    /// Seed of the policy's random choices; each connection starts with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Serves requests until the process is asked to stop, or until standard input ends.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let cluster = args.cluster.load()?;
    let failures = match &args.rates {
        Some(path) => read_rates(path, &cluster)?,
        None => Failures::none(&cluster),
    };
    let source = PolicySource::parse(&args.policy)?;
    let options = Options { queueing: Queueing::Easy, ..args.cost.options()? };
    let scheduler = Scheduler { source, cluster, failures, options, seed: args.seed };
    // Create an agent now, so that a policy error is reported before any scheduler connects.
    scheduler.agent()?;
    let name = scheduler.source.name();
    line_server::serve(args.socket.as_deref(), args.limits, &name, scheduler)?;
    Ok(ExitCode::SUCCESS)
}

/// Service that creates a separate agent for each connection.
struct Scheduler {
    source: PolicySource,
    cluster: Cluster,
    failures: Failures,
    options: Options,
    seed: u64,
}

impl Scheduler {
    fn agent(&self) -> anyhow::Result<Agent> {
        self.source.agent(&self.cluster, &self.failures, self.options, self.seed)
    }
}

impl Service for Scheduler {
    fn connect(&self) -> anyhow::Result<Answer> {
        let mut agent = self.agent()?;
        Ok(Box::new(move |line| agent.answer(line)))
    }

    fn line_len_max_bytes(&self) -> usize {
        Agent::request_len_max_bytes(self.cluster.gpus())
    }

    fn describe(&self) -> String {
        format!("{} GPUs on {} nodes", self.cluster.gpus(), self.cluster.nodes().len())
    }
}
