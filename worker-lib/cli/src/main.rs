//! The `iswitch` command: trains and evaluates agents with gradients aggregated in the network.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use iswitch_cli::algorithm::{self, Algorithm, Train};
use iswitch_cli::eval::{self, EvalArgs};
use iswitch_cli::{program, subcommand};

const EXAMPLES: &str = "\
Examples:
  iswitch train ppo --workers 4                      Run the switch and workers on this machine
  iswitch train ppo --switch 10.9.0.254:7711 --workers 4 --rank 0
  iswitch train --config runs/first/config.toml      Repeat a run
  iswitch train --resume                             Resume the newest run
  iswitch eval runs/first --video first.gif          Evaluate a trained agent, record a video
  iswitch export runs/first --out policy.onnx        Export the policy for ONNX Runtime
  iswitch plot runs/first runs/second                Draw the learning curves as SVG
  iswitch sweep train ppo --seeds 10                 Report statistics over 10 seeds
  iswitch lab --workers 4 --rate 1gbit -- iswitch train ppo";

/// Train and evaluate RL agents with in-network gradient aggregation
///
/// The switch between the workers sums their gradients while the packets pass through it. `iswitch train ppo` trains
/// with a switch and four workers on this machine. Use --switch to join a switch on another machine.
#[derive(Parser)]
#[command(name = "iswitch", version, max_term_width = 79, about, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent with one or more workers
    ///
    /// With --config FILE or --resume, the algorithm may be omitted; it then comes from the file or the resumed run.
    #[command(subcommand)]
    Train(Algorithm<Train>),
    /// Run a trained agent and report its returns
    Eval(EvalArgs),
    /// Export a trained policy to ONNX, safetensors, JSON or a Hugging Face folder
    #[command(disable_help_flag = true)]
    Export(Forwarded),
    /// Train with many seeds and hyper-parameters, and report robust statistics
    #[command(disable_help_flag = true)]
    Sweep(Forwarded),
    /// Draw the learning curves of runs
    #[command(disable_help_flag = true)]
    Plot(Forwarded),
    /// Train with separate actor, replay, cell and learner processes on this machine
    ///
    /// The command starts and supervises all of these processes.
    #[command(disable_help_flag = true)]
    ActorLearner(Forwarded),
    /// Run one learner or all learners of a distributed actor-learner job
    ///
    /// The learners sample the experience that actors on other machines insert into the replay shards.
    #[command(disable_help_flag = true)]
    Learner(Forwarded),
    /// Run actors for learners on other machines
    #[command(disable_help_flag = true)]
    Actors(Forwarded),
    /// Run a replay shard between actors and learners
    #[command(disable_help_flag = true)]
    Replay(Forwarded),
    /// Run a cell: a policy cache between a learner and the actors near it
    #[command(disable_help_flag = true)]
    Cell(Forwarded),
    /// Run a command in each worker of an emulated network with a switch, without root
    #[command(disable_help_flag = true)]
    Lab(Forwarded),
    /// Train and compare packet-routing policies for multi-stage networks
    #[command(disable_help_flag = true)]
    Route(Forwarded),
    /// Train and compare coflow-scheduling policies for a data-centre fabric
    #[command(disable_help_flag = true)]
    Coflow(Forwarded),
    /// Train, compare and serve policies that place training jobs on GPUs that fail
    #[command(disable_help_flag = true)]
    Place(Forwarded),
    /// Reproduce the tables and figures of the studies' results pages
    #[command(disable_help_flag = true)]
    Study(Forwarded),
}

/// Arguments that are forwarded to the subcommand's program, which parses them.
#[derive(Args)]
struct Forwarded {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl Forwarded {
    /// Replaces this process with `program`. The arguments of the program are `first`, followed by the user's
    /// arguments.
    ///
    /// # Errors
    /// See [`subcommand::replace`].
    fn run(&self, program: &str, first: &[&str]) -> anyhow::Result<ExitCode> {
        let first = first.iter().map(OsString::from);
        subcommand::replace(program, first.chain(self.arguments.iter().cloned()))
    }
}

impl Command {
    fn run(&mut self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Train(algorithm) => algorithm.run(),
            // `iswitch-video` parses the same arguments as `iswitch eval`.
            Self::Eval(EvalArgs { video: Some(_), .. }) => {
                subcommand::replace("iswitch-video", std::env::args_os().skip(2))
            }
            Self::Eval(args) => eval::run(args).map(|()| ExitCode::SUCCESS),
            Self::Export(arguments) => arguments.run("iswitch-export", &[]),
            Self::Sweep(arguments) => arguments.run("iswitch-sweep", &[]),
            Self::Plot(arguments) => arguments.run("iswitch-plot", &[]),
            Self::ActorLearner(arguments) => arguments.run("iswitch-actors", &["actor-learner"]),
            Self::Learner(arguments) => arguments.run("iswitch-actors", &["learner"]),
            Self::Actors(arguments) => arguments.run("iswitch-actors", &["actors"]),
            Self::Replay(arguments) => arguments.run("iswitch-actors", &["replay"]),
            Self::Cell(arguments) => arguments.run("iswitch-actors", &["cell"]),
            Self::Lab(arguments) => arguments.run("iswitch-lab", &[]),
            Self::Route(arguments) => arguments.run("iswitch-route", &[]),
            Self::Coflow(arguments) => arguments.run("iswitch-coflow", &[]),
            Self::Place(arguments) => arguments.run("iswitch-place", &[]),
            Self::Study(arguments) => arguments.run("iswitch-study", &[]),
        }
    }
}

fn main() -> ExitCode {
    let arguments = || algorithm::add_algorithm(std::env::args_os().collect());
    program::main_with(arguments, |mut cli: Cli| cli.command.run())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
