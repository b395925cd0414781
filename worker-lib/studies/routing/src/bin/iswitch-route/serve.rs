//! `iswitch route serve`: the routing agent of a network.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use iswitch_routing::agent::Agent;
use iswitch_routing::network::Shape;
use iswitch_routing::policy::Fill;
use iswitch_study::contest::Contestant as _;

use super::network::ShapeArgs;
use super::source::{POLICIES, PolicySource};
use iswitch_cli::line_server::{self, Answer, Service};

/// Arguments of `iswitch route serve`.
#[derive(Args)]
pub(crate) struct ServeArgs {
    #[arg(help = format!("Policy: {POLICIES}"))]
    policy: String,
    /// Unix socket to listen at. Each connection is one network with a fresh policy, and gets a line of JSON for each
    /// line: {"queues": [[[n, ...], ...], ...]}, by stage, switch and class, is answered with {"links": [[[c, ...],
    /// ...], ...]}, by stage, switch and link; a link without a packet is null.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    #[command(flatten)]
    shape: ShapeArgs,
    /// How packets that are not heads of their queues find a link: random, or by the policy's rule.
    #[arg(long, default_value = "random")]
    fill: Fill,
    /// Seed of the policy's draws, the same for each connection.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let source = PolicySource::parse(&args.policy)?;
    let shape = args.shape.shape(source.shape())?;
    // What cannot be built is best told before anybody connects.
    source.build(shape, args.fill, args.seed)?;
    let name = source.name();
    line_server::serve(&args.socket, &name, Network { source, shape, fill: args.fill, seed: args.seed })?;
    Ok(ExitCode::SUCCESS)
}

/// Each connection is a network.
struct Network {
    source: PolicySource,
    shape: Shape,
    fill: Fill,
    seed: u64,
}

impl Service for Network {
    fn connect(&self) -> anyhow::Result<Answer> {
        let policy = self.source.build(self.shape, self.fill, self.seed)?;
        let mut agent = Agent::new(self.source.name(), policy, self.shape);
        Ok(Box::new(move |line| agent.answer(line)))
    }

    fn line_len_max_bytes(&self) -> usize {
        Agent::request_len_max_bytes(self.shape)
    }

    fn describe(&self) -> String {
        self.shape.to_string()
    }
}
