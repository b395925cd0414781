//! The subcommand that selects an algorithm. All training commands share it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, Args, Subcommand};
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::td3::Td3Config;
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer;

use crate::config_file::ConfigFile;
use crate::hyper::{NoneOwn, OwnParameters, PpoParameters};
use crate::run::{RUNS, newest_run};
use crate::train::{self, TrainArgs};

/// An algorithm, with its own options and those of the command `C`.
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
    // The options of the command come last, because their heading also applies to all options that follow.
    #[command(flatten)]
    command: C,
}

/// Training command, with options in addition to the common training options.
pub trait TrainingCommand: Args {
    /// Adapts a training option to this command, for example by hiding it.
    fn adapt(option: Arg) -> Arg {
        option
    }

    /// Runs the command with the given algorithm.
    fn run<A: trainer::Algorithm, H: OwnParameters>(&self, train: &TrainArgs<H>) -> anyhow::Result<ExitCode>;
}

impl<C: TrainingCommand> Algorithm<C> {
    /// Runs the command with the chosen algorithm.
    pub fn run(&mut self) -> anyhow::Result<ExitCode> {
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
    fn run<A: trainer::Algorithm>(&mut self) -> anyhow::Result<ExitCode> {
        self.train.read_config::<A>()?;
        self.command.run::<A, H>(&self.train)
    }
}

/// The `iswitch train` command, which adds no options.
#[derive(Args)]
pub struct Train {}

impl TrainingCommand for Train {
    fn run<A: trainer::Algorithm, H: OwnParameters>(&self, train: &TrainArgs<H>) -> anyhow::Result<ExitCode> {
        train::run::<A, H>(train)
    }
}

/// Adds the algorithm to a command line `iswitch train OPTIONS` that does not name one. With `--config`, the algorithm
/// comes from the file; with `--resume`, it comes from the resumed run. Other command lines are returned unchanged.
///
/// # Errors
/// Fails if the file or the run cannot be read.
pub fn add_algorithm(mut arguments: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    const FIRST_OPTION: usize = 2;
    let is_training = arguments.get(1).is_some_and(|command| command == "train");
    let begins_with_option =
        arguments.get(FIRST_OPTION).is_some_and(|first| first.as_encoded_bytes().starts_with(b"-"));
    if !is_training || !begins_with_option {
        return Ok(arguments);
    }
    let options = &arguments[FIRST_OPTION..];
    let algorithm = if let Some(file) = value(options, "--config") {
        Some(ConfigFile::read(&file)?.algorithm().to_owned())
    } else if options.iter().any(|option| option == "--resume") {
        let run = value(options, "--out").map_or_else(|| newest_run(RUNS.as_ref(), |_| true), Ok)?;
        Some(Trained::read(&run)?.algorithm)
    } else {
        None
    };
    if let Some(algorithm) = algorithm {
        arguments.insert(FIRST_OPTION, algorithm.into());
    }
    Ok(arguments)
}

/// Returns the value of an option that is given as `--NAME VALUE` or `--NAME=VALUE`. If the option is given several
/// times, returns the last value.
fn value(options: &[OsString], name: &str) -> Option<PathBuf> {
    let joined =
        |option: &OsStr| Some(option.to_str()?.strip_prefix(name)?.strip_prefix('=')?.to_owned().into());
    let mut values = options.iter().enumerate().filter_map(|(at, option)| {
        if option == name { options.get(at + 1).map(PathBuf::from) } else { joined(option) }
    });
    values.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        let completed = add_algorithm(arguments).unwrap();
        completed.iter().map(|argument| argument.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_algorithm_of_the_last_configuration_file_is_added() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, algorithm: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, format!("algorithm = '{algorithm}'\n")).unwrap();
            path.display().to_string()
        };
        let (ppo, dqn) = (file("ppo.toml", "ppo"), file("dqn.toml", "dqn"));
        for options in [
            format!("--config {ppo} --seed 3"),
            format!("--seed 3 --config={ppo}"),
            format!("--config {dqn} --config={ppo}"),
        ] {
            assert_eq!(
                completed(&format!("iswitch train {options}")),
                format!("iswitch train ppo {options}")
            );
        }
        for unchanged in [
            "iswitch train --help".to_owned(),
            format!("iswitch train a2c --config {ppo}"),
            format!("iswitch eval --config {ppo}"),
            "iswitch train".to_owned(),
        ] {
            assert_eq!(completed(&unchanged), unchanged);
        }
    }
}
