//! The subcommand that names an algorithm, shared by all commands that train.

use std::process::ExitCode;

use clap::{Arg, Args, Subcommand};
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::td3::Td3Config;
use iswitch_learn::algorithms::trainer;

use crate::hyper::{NoneOwn, OwnParameters, PpoParameters};
use crate::train::{self, TrainArgs};

/// Algorithm, with its options and those of the command `C`.
#[derive(Subcommand)]
pub enum Algorithm<C: TrainingCommand> {
    /// Train with deep Q-learning (DQN)
    Dqn(Box<Options<C, NoneOwn>>),
    /// Train with advantage actor-critic (A2C)
    A2c(Box<Options<C, NoneOwn>>),
    /// Train with proximal policy optimisation (PPO)
    Ppo(Box<Options<C, PpoParameters>>),
    /// Train with deep deterministic policy gradient (DDPG)
    Ddpg(Box<Options<C, NoneOwn>>),
    /// Train with twin delayed deterministic policy gradient (TD3)
    Td3(Box<Options<C, NoneOwn>>),
    /// Train with soft actor-critic (SAC), with an automatic temperature
    Sac(Box<Options<C, NoneOwn>>),
}

/// Options of a command that trains with one algorithm.
#[derive(Args)]
#[command(mut_args(C::adapt))]
pub struct Options<C: TrainingCommand, H: Args> {
    #[command(flatten)]
    train: TrainArgs<H>,
    // The options of the command come last, because their heading also applies to the options that follow.
    #[command(flatten)]
    command: C,
}

/// Command that trains, with the options that it adds to those of training.
pub trait TrainingCommand: Args {
    /// Adapts an option of training to this command, for example by hiding it.
    fn adapt(option: Arg) -> Arg {
        option
    }

    /// Runs the command with an algorithm.
    fn run<A: trainer::Algorithm, H: OwnParameters>(&self, train: &TrainArgs<H>) -> anyhow::Result<ExitCode>;
}

impl<C: TrainingCommand> Algorithm<C> {
    /// Runs the command with the chosen algorithm.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Dqn(options) => options.run::<DqnConfig>(),
            Self::A2c(options) => options.run::<A2cConfig>(),
            Self::Ppo(options) => options.run::<PpoConfig>(),
            Self::Ddpg(options) => options.run::<DdpgConfig>(),
            Self::Td3(options) => options.run::<Td3Config>(),
            Self::Sac(options) => options.run::<SacConfig>(),
        }
    }
}

impl<C: TrainingCommand, H: OwnParameters> Options<C, H> {
    fn run<A: trainer::Algorithm>(&self) -> anyhow::Result<ExitCode> {
        self.command.run::<A, H>(&self.train)
    }
}

/// The command `iswitch train`, which adds no options.
#[derive(Args)]
pub struct Train {}

impl TrainingCommand for Train {
    fn run<A: trainer::Algorithm, H: OwnParameters>(&self, train: &TrainArgs<H>) -> anyhow::Result<ExitCode> {
        train::run::<A, H>(train)
    }
}
