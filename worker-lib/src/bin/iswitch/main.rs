//! The `iswitch` command: trains and evaluates agents with gradients aggregated in the network.

mod actor_learner;
mod asynchronous;
mod coflow;
mod eval;
mod files;
mod group;
mod hyper;
mod launch;
mod learner;
mod line_server;
mod mean;
mod outcome;
mod place;
mod progress;
mod route;
mod run;
mod session;
mod switch;
mod train;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use iswitch::algorithms::a2c::A2cConfig;
use iswitch::algorithms::ddpg::DdpgConfig;
use iswitch::algorithms::dqn::DqnConfig;
use iswitch::algorithms::ppo::PpoConfig;

use actor_learner::{ActorLearner, ActorsArgs, CellCommandArgs, Learner, ReplayArgs};
use hyper::{NoneOwn, PpoParameters};
use train::TrainArgs;

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
    /// Trains with actors, replay, cells and learners in processes of their own: starts and looks after all of them on
    /// this machine.
    #[command(subcommand)]
    ActorLearner(ActorLearner),
    /// One of the learners, which learn from what actors elsewhere insert into the replay; or all of them.
    #[command(subcommand)]
    Learner(Learner),
    /// Actors, which act for learners elsewhere.
    Actors(ActorsArgs),
    /// A shard of the replay between actors and learners.
    Replay(ReplayArgs),
    /// A cache of policies between a learner and the actors near it.
    Cell(CellCommandArgs),
    /// Runs a trained agent and reports its returns.
    Eval(eval::EvalArgs),
    /// Trains and compares packet-routing policies for multi-stage networks.
    #[command(subcommand)]
    Route(route::RouteCommand),
    /// Trains and compares policies that schedule coflows of jobs in a data centre's fabric.
    #[command(subcommand)]
    Coflow(coflow::CoflowCommand),
    /// Trains and compares policies that place training jobs on GPUs that fail, and answers a scheduler.
    #[command(subcommand)]
    Place(place::PlaceCommand),
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
    if let Some(status) = iswitch_manual::write_if_asked(Cli::command) {
        return status;
    }
    let filter = tracing_subscriber::EnvFilter::try_from_env("ISWITCH_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let result = match Cli::parse().command {
        Command::Train(algorithm) => algorithm.run(),
        Command::ActorLearner(command) => command.run(),
        Command::Learner(command) => command.run(),
        Command::Actors(args) => args.run().map(|()| ExitCode::SUCCESS),
        Command::Replay(args) => args.run().map(|()| ExitCode::SUCCESS),
        Command::Cell(args) => args.run().map(|()| ExitCode::SUCCESS),
        Command::Eval(args) => eval::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Route(command) => command.run(),
        Command::Coflow(command) => command.run(),
        Command::Place(command) => command.run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("iswitch: {error:#}");
        ExitCode::FAILURE
    })
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
