//! The `iswitch` command: trains and evaluates agents with gradients aggregated in the network.

mod eval;
mod subcommand;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use iswitch_cli::hyper::{NoneOwn, PpoParameters};
use iswitch_cli::program;
use iswitch_cli::train::{self, TrainArgs};
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::ppo::PpoConfig;

use subcommand::Forwarded;

/// Trains reinforcement-learning agents whose gradients are summed by the switch between the workers.
#[derive(Parser)]
#[command(name = "iswitch", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Trains an agent with one or more workers.
    #[command(subcommand)]
    Train(Algorithm),
    /// Runs a trained agent and reports its returns.
    Eval(eval::EvalArgs),
    /// Trains with actors, replay, cells and learners in processes of their own: starts and supervises all of them on
    /// this machine.
    #[command(disable_help_flag = true)]
    ActorLearner(Forwarded),
    /// One of the learners, which learn from what actors elsewhere insert into the replay; or all of them.
    #[command(disable_help_flag = true)]
    Learner(Forwarded),
    /// Actors, which act for learners elsewhere.
    #[command(disable_help_flag = true)]
    Actors(Forwarded),
    /// A shard of the replay between actors and learners.
    #[command(disable_help_flag = true)]
    Replay(Forwarded),
    /// A cache of policies between a learner and the actors near it.
    #[command(disable_help_flag = true)]
    Cell(Forwarded),
    /// Runs a command in each worker of a network inside this machine, with a switch between them; needs no root.
    #[command(disable_help_flag = true)]
    Lab(Forwarded),
    /// Trains and compares packet-routing policies for multi-stage networks.
    #[command(disable_help_flag = true)]
    Route(Forwarded),
    /// Trains and compares policies that schedule coflows of jobs in a data centre's fabric.
    #[command(disable_help_flag = true)]
    Coflow(Forwarded),
    /// Trains and compares policies that place training jobs on GPUs that fail, and answers a scheduler.
    #[command(disable_help_flag = true)]
    Place(Forwarded),
}

impl Command {
    fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Train(algorithm) => algorithm.run(),
            Self::Eval(args) => eval::run(args).map(|()| ExitCode::SUCCESS),
            Self::ActorLearner(arguments) => arguments.run("iswitch-actors", &["actor-learner"]),
            Self::Learner(arguments) => arguments.run("iswitch-actors", &["learner"]),
            Self::Actors(arguments) => arguments.run("iswitch-actors", &["actors"]),
            Self::Replay(arguments) => arguments.run("iswitch-actors", &["replay"]),
            Self::Cell(arguments) => arguments.run("iswitch-actors", &["cell"]),
            Self::Lab(arguments) => arguments.run("iswitch-lab", &[]),
            Self::Route(arguments) => arguments.run("iswitch-route", &[]),
            Self::Coflow(arguments) => arguments.run("iswitch-coflow", &[]),
            Self::Place(arguments) => arguments.run("iswitch-place", &[]),
        }
    }
}

#[derive(Subcommand)]
enum Algorithm {
    /// Deep Q-learning.
    Dqn(Box<TrainArgs<NoneOwn>>),
    /// Advantage actor-critic.
    A2c(Box<TrainArgs<NoneOwn>>),
    /// Proximal policy optimisation.
    Ppo(Box<TrainArgs<PpoParameters>>),
    /// Deep deterministic policy gradient, with the options of TD3.
    Ddpg(Box<TrainArgs<NoneOwn>>),
}

impl Algorithm {
    fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Dqn(args) => train::run::<DqnConfig, _>(args),
            Self::A2c(args) => train::run::<A2cConfig, _>(args),
            Self::Ppo(args) => train::run::<PpoConfig, _>(args),
            Self::Ddpg(args) => train::run::<DdpgConfig, _>(args),
        }
    }
}

fn main() -> ExitCode {
    program::main(|cli: Cli| cli.command.run())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
