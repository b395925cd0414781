//! Commands that start the processes of a distributed run: `iswitch learner`, `actors`, `replay` and `cell`, one for
//! each kind of process. `iswitch actor-learner` starts all of them.

mod access;
mod actors;
mod cell;
mod learner;
mod local;
mod replay;
mod supervise;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Parser, Subcommand};
use iswitch_cli::hyper::{NoneOwn, PpoParameters};
use iswitch_cli::{launch, program};
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::td3::Td3Config;

use actors::ActorsArgs;
use cell::CellCommandArgs;
use learner::LearnerArgs;
use local::LocalArgs;
use replay::ReplayArgs;

/// Train with actors, replay shards, cells and learners in separate processes
#[derive(Parser)]
#[command(name = "iswitch-actors", bin_name = "iswitch", version, max_term_width = 79, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train with separate actor and learner processes on this machine
    ///
    /// Starts and supervises all processes of the run: actors, replay shards, cells and learners.
    #[command(subcommand)]
    ActorLearner(ActorLearner),
    /// Run one learner or all learners of a run with remote actors
    ///
    /// The learners learn from the experience that actors in other processes insert into the replay shards.
    #[command(subcommand)]
    Learner(Learner),
    /// Run actors for learners in other processes
    Actors(ActorsArgs),
    /// Run a replay shard between actors and learners
    Replay(ReplayArgs),
    /// Run a cell, which caches the policies of a learner for nearby actors
    Cell(CellCommandArgs),
}

impl Command {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::ActorLearner(command) => command.run(),
            Self::Learner(command) => command.run(),
            Self::Actors(args) => args.run().map(|()| ExitCode::SUCCESS),
            Self::Replay(args) => args.run().map(|()| ExitCode::SUCCESS),
            Self::Cell(args) => args.run().map(|()| ExitCode::SUCCESS),
        }
    }
}

/// Algorithm of a learner process.
#[derive(Subcommand)]
enum Learner {
    /// Deep Q-learning with experience replay
    Dqn(Box<LearnerArgs<NoneOwn>>),
    /// Advantage actor-critic with on-policy rollouts
    A2c(Box<LearnerArgs<NoneOwn>>),
    /// Proximal policy optimisation with on-policy rollouts
    Ppo(Box<LearnerArgs<PpoParameters>>),
    /// Deep deterministic policy gradient with experience replay
    Ddpg(Box<LearnerArgs<NoneOwn>>),
    /// Twin delayed deterministic policy gradient with experience replay
    Td3(Box<LearnerArgs<NoneOwn>>),
    /// Soft actor-critic with experience replay
    Sac(Box<LearnerArgs<NoneOwn>>),
}

impl Learner {
    fn run(mut self) -> anyhow::Result<ExitCode> {
        match &mut self {
            Self::Dqn(args) => learner::run::<DqnConfig, _>(args),
            Self::A2c(args) => learner::run::<A2cConfig, _>(args),
            Self::Ppo(args) => learner::run::<PpoConfig, _>(args),
            Self::Ddpg(args) => learner::run::<DdpgConfig, _>(args),
            Self::Td3(args) => learner::run::<Td3Config, _>(args),
            Self::Sac(args) => learner::run::<SacConfig, _>(args),
        }
    }
}

/// Algorithm of a run that has all of its processes on this machine.
#[derive(Subcommand)]
enum ActorLearner {
    /// Deep Q-learning with experience replay
    Dqn(Box<LocalArgs<NoneOwn>>),
    /// Advantage actor-critic with on-policy rollouts
    A2c(Box<LocalArgs<NoneOwn>>),
    /// Proximal policy optimisation with on-policy rollouts
    Ppo(Box<LocalArgs<PpoParameters>>),
    /// Deep deterministic policy gradient with experience replay
    Ddpg(Box<LocalArgs<NoneOwn>>),
    /// Twin delayed deterministic policy gradient with experience replay
    Td3(Box<LocalArgs<NoneOwn>>),
    /// Soft actor-critic with experience replay
    Sac(Box<LocalArgs<NoneOwn>>),
}

impl ActorLearner {
    fn run(mut self) -> anyhow::Result<ExitCode> {
        match &mut self {
            Self::Dqn(args) => local::run::<DqnConfig, _>(args),
            Self::A2c(args) => local::run::<A2cConfig, _>(args),
            Self::Ppo(args) => local::run::<PpoConfig, _>(args),
            Self::Ddpg(args) => local::run::<DdpgConfig, _>(args),
            Self::Td3(args) => local::run::<Td3Config, _>(args),
            Self::Sac(args) => local::run::<SacConfig, _>(args),
        }
    }
}

/// Arguments that a parent process passes to the child processes that it supervises.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ChildArgs {
    /// Exit when the parent process exits
    ///
    /// The parent process passes this option to its children.
    #[arg(long, hide = true)]
    child: bool,
}

impl ChildArgs {
    /// If this process is the child of a supervisor, makes it exit when the supervisor exits, and sets `stop` when the
    /// supervisor requests a stop.
    fn follow_parent(&self, stop: &Arc<AtomicBool>) {
        if self.child {
            launch::obey_parent(Arc::clone(stop));
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
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
