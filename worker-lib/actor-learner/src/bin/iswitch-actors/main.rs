//! `iswitch learner`, `actors`, `replay` and `cell`: a run in processes of different kinds. `iswitch actor-learner`
//! starts all of them.

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

use actors::ActorsArgs;
use cell::CellCommandArgs;
use learner::LearnerArgs;
use local::LocalArgs;
use replay::ReplayArgs;

/// Trains with actors, replay, cells and learners in processes of their own.
#[derive(Parser)]
#[command(name = "iswitch-actors", bin_name = "iswitch", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Trains with actors, replay, cells and learners in processes of their own: starts and supervises all of them on
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

/// What learns.
#[derive(Subcommand)]
enum Learner {
    /// Deep Q-learning, off replay.
    Dqn(Box<LearnerArgs<NoneOwn>>),
    /// Advantage actor-critic, from rollouts.
    A2c(Box<LearnerArgs<NoneOwn>>),
    /// Proximal policy optimisation, from rollouts.
    Ppo(Box<LearnerArgs<PpoParameters>>),
    /// Deep deterministic policy gradient, off replay, with the options of TD3.
    Ddpg(Box<LearnerArgs<NoneOwn>>),
}

impl Learner {
    fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Dqn(args) => learner::run::<DqnConfig, _>(args),
            Self::A2c(args) => learner::run::<A2cConfig, _>(args),
            Self::Ppo(args) => learner::run::<PpoConfig, _>(args),
            Self::Ddpg(args) => learner::run::<DdpgConfig, _>(args),
        }
    }
}

/// What learns, with everything that it needs.
#[derive(Subcommand)]
enum ActorLearner {
    /// Deep Q-learning, off replay.
    Dqn(Box<LocalArgs<NoneOwn>>),
    /// Advantage actor-critic, from rollouts.
    A2c(Box<LocalArgs<NoneOwn>>),
    /// Proximal policy optimisation, from rollouts.
    Ppo(Box<LocalArgs<PpoParameters>>),
    /// Deep deterministic policy gradient, off replay, with the options of TD3.
    Ddpg(Box<LocalArgs<NoneOwn>>),
}

impl ActorLearner {
    fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Dqn(args) => local::run::<DqnConfig, _>(args),
            Self::A2c(args) => local::run::<A2cConfig, _>(args),
            Self::Ppo(args) => local::run::<PpoConfig, _>(args),
            Self::Ddpg(args) => local::run::<DdpgConfig, _>(args),
        }
    }
}

/// A process that another one has started and looks after.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ChildArgs {
    /// Given by the parent process, whose end this one then follows.
    #[arg(long, hide = true)]
    child: bool,
}

impl ChildArgs {
    /// Ends this process when its parent ends, and sets `stop` when the parent asks it to stop.
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
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
