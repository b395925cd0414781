//! `iswitch learner`, `actors`, `replay`, `cell`: a run in processes of different kinds; and all of them at once.

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

use clap::Subcommand;
use iswitch::algorithms::a2c::A2cConfig;
use iswitch::algorithms::ddpg::DdpgConfig;
use iswitch::algorithms::dqn::DqnConfig;
use iswitch::algorithms::ppo::PpoConfig;

pub(crate) use actors::ActorsArgs;
pub(crate) use cell::CellCommandArgs;
pub(crate) use replay::ReplayArgs;

use crate::hyper::{NoneOwn, PpoParameters};
use crate::launch;
use learner::LearnerArgs;
use local::LocalArgs;

/// What learns.
#[derive(Subcommand)]
pub(crate) enum Learner {
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
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
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
pub(crate) enum ActorLearner {
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
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
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
    /// Ends this process when the parent does, and sets the flag when it asks to stop.
    fn follow_parent(&self, stop: &Arc<AtomicBool>) {
        if self.child {
            launch::obey_parent(Arc::clone(stop));
        }
    }
}
