//! `iswitch route serve`: serves the routing agent of a network.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use iswitch_routing::agent::Agent;
use iswitch_routing::network::Shape;
use iswitch_routing::policy::Fill;
use iswitch_study::contest::{Contestant as _, POLICY_HELP};

use super::network::ShapeArgs;
use super::source::{POLICIES, PolicySource};
use iswitch_cli::line_server::{self, Answer, Limits, Service};

/// Arguments of `iswitch route serve`.
#[derive(Args)]
pub(crate) struct ServeArgs {
    #[arg(help = POLICY_HELP, long_help = format!("Policy: {POLICIES}"))]
    policy: String,
    /// Path of the Unix socket to listen on [default: standard input]
    ///
    /// Without this option, the server reads requests from a single client from standard input and writes the
    /// answers to standard output. Each connection is one network with a fresh policy. The server answers each line
    /// with one line of JSON. The request {"queues": [[[n, ...], ...], ...]} gives the queue lengths by stage, switch
    /// and class. The answer {"links": [[[c, ...], ...], ...]} gives, by stage, switch and link, the class whose packet
    /// takes the link, or null if the link stays idle.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Link choice for packets behind the head of a queue: random or rule
    ///
    /// Only the policies jsq, po2 and drill use this option. With `random`, a packet behind the head of a queue takes a
    /// random link among those still idle. With `rule`, it takes the link that the policy's rule selects, as the head
    /// of a queue always does.
    #[arg(long, default_value = "random")]
    fill: Fill,
    /// Seed of the policy's random choices; each connection starts with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Serves requests until the process is asked to stop, or until standard input ends.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let source = PolicySource::parse(&args.policy)?;
    if let PolicySource::External(external) = &source {
        return Err(external.refusal("iswitch route serve"));
    }
    let shape = args.shape.shape(source.shape())?;
    // Build the policy once before any client connects, so that an error is reported at once.
    source.build(shape, args.fill, args.seed)?;
    let name = source.name();
    let network = Network { source, shape, fill: args.fill, seed: args.seed };
    line_server::serve(args.socket.as_deref(), args.limits, &name, network)?;
    Ok(ExitCode::SUCCESS)
}

/// Service in which each connection is one network with its own policy.
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
