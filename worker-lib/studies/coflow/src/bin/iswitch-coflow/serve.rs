//! `iswitch coflow serve`: a service that orders the coflows of an external scheduler and computes their rates.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use iswitch_cli::line_server::{self, Answer, Limits, Service};
use iswitch_coflow::StudyError;
use iswitch_coflow::agent::{Agent, MakePolicy, REQUEST_LEN_MAX_BYTES};
use iswitch_coflow::simulation::Fabric;
use iswitch_study::contest::{Contestant as _, POLICY_HELP};

use super::source::{POLICIES, PolicySource};
use super::workload::{FabricArgs, describe};

/// Arguments of `iswitch coflow serve`.
#[derive(Args)]
pub(crate) struct ServeArgs {
    #[arg(
        help = POLICY_HELP,
        long_help = format!("Policy: {POLICIES}. local-search is refused, because it needs all jobs in advance.")
    )]
    policy: String,
    /// Path of the Unix socket to listen on [default: standard input]
    ///
    /// A client sends one JSON request per line, and the service answers each with one line of JSON. Without this
    /// option, the service reads requests from a single client from standard input and writes the answers to standard
    /// output. Each connection has its own jobs. Requests: {"job": {"id": "a", "coflows": [{"flows": [[0, 1, 1e9]]},
    /// {"flows": [[1, 0, 5e8]], "starts_after": [0]}]}} registers a job, with [ingress port, egress port, bytes] for
    /// each flow; {"coflow": {"id": "b", "flows": [[0, 1, 1e9]]}} registers a job of one coflow; {"progress":
    /// [{"job": "a", "coflow": 0, "bytes_left": [4e8]}]} reports the remaining bytes of each flow; {"finished":
    /// [{"job": "a", "coflow": 0}]} reports that a coflow or, with "flows": [0], some of its flows have ended;
    /// {"remove": "a"} removes a job. {"rates": true}, alone or in one of these requests, asks for the ready coflows,
    /// highest priority first, with the rate of each flow in bits per second. {"describe": true} returns a
    /// description of the service.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    fabric: FabricArgs,
    /// Seed of the policy's random choices; each connection starts with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Serves requests until the process is asked to stop, or until standard input ends.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let fabric = args.fabric.load()?;
    let source = PolicySource::parse(&args.policy)?;
    match &source {
        PolicySource::External(external) => return Err(external.refusal("iswitch coflow serve")),
        PolicySource::LocalSearch { .. } => {
            bail!("policy is {}, expected a policy that does not need all jobs in advance", args.policy)
        }
        PolicySource::Plain(_) | PolicySource::Lookahead { .. } | PolicySource::Saved { .. } => {}
    }
    if let Some(warning) = source.warning(&fabric)? {
        eprintln!("{warning}");
    }
    let scheduler = Scheduler { source: Arc::new(source), fabric, seed: args.seed };
    // Create an agent now, so that a policy error is reported before any scheduler connects.
    scheduler.agent()?;
    let name = scheduler.source.name();
    line_server::serve(args.socket.as_deref(), args.limits, &name, scheduler)?;
    Ok(ExitCode::SUCCESS)
}

/// Service that creates a separate agent for each connection.
struct Scheduler {
    source: Arc<PolicySource>,
    fabric: Fabric,
    seed: u64,
}

impl Scheduler {
    fn agent(&self) -> Result<Agent, StudyError> {
        let (source, fabric, seed) = (Arc::clone(&self.source), self.fabric.clone(), self.seed);
        let make: MakePolicy = Box::new(move |jobs| {
            let policy = source.build(jobs, &fabric, seed, &mut |_| {});
            policy.map_err(|error| StudyError::Own(error.into()))
        });
        Agent::new(self.source.name(), make, self.fabric.clone())
    }
}

impl Service for Scheduler {
    fn connect(&self) -> anyhow::Result<Answer> {
        let mut agent = self.agent()?;
        Ok(Box::new(move |line| agent.answer(line)))
    }

    fn line_len_max_bytes(&self) -> usize {
        REQUEST_LEN_MAX_BYTES
    }

    fn describe(&self) -> String {
        describe(&self.fabric)
    }
}
