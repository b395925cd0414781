//! Trained agents, read from run directories. The caller need not know the algorithm.

use std::path::Path;

use super::TrainError;
use super::a2c::A2cConfig;
use super::checkpoint::{ModelFile, job};
use super::ddpg::DdpgConfig;
use super::dqn::DqnConfig;
use super::ppo::PpoConfig;
use super::sac::SacConfig;
use super::td3::Td3Config;
use super::trainer::{Algorithm, Policy};
use crate::env::EnvSpec;

/// Names of the algorithms whose policies schedule jobs or route packets. Each name is also that of an `iswitch`
/// subcommand.
const STUDIES: [&str; 3] = ["route", "coflow", "place"];

/// A trained agent, as read from its run directory.
#[derive(Debug)]
pub struct Trained {
    /// Name of the algorithm, such as `ppo`.
    pub algorithm: String,
    /// Id of the environment.
    pub env: String,
    /// Number of environment steps for which the agent has been trained.
    pub steps: u64,
    /// Mean return of the last 100 training episodes, including exploration; `None` if no episode had ended, or if the
    /// file is from an earlier version.
    pub mean_return: Option<f64>,
    /// Hyper-parameters, as JSON.
    pub config: String,
    file: ModelFile,
}

impl Trained {
    /// Reads the agent from a model file. `path` is the file or its run directory.
    ///
    /// # Errors
    /// Fails if `path` contains no agent, or if the agent's policy schedules jobs or routes packets instead of acting
    /// in an environment.
    pub fn read(path: &Path) -> Result<Self, TrainError> {
        let file = ModelFile::read(path)?;
        let reader = file.reader()?;
        let text = |key: &str| reader.text(key).map(str::to_owned);
        let algorithm = reader.text("algorithm")?;
        if STUDIES.contains(&algorithm) {
            return Err(
                reader.refuse(format!("it holds a policy that only `iswitch {algorithm} evaluate` can run"))
            );
        }
        let (algorithm, env, config) = (text("algorithm")?, text("env")?, text("config")?);
        let (steps, mean_return) = (reader.number("steps")?, reader.mean_return());
        Ok(Self { algorithm, env, steps, mean_return, config, file })
    }

    /// Loads the agent's policy for an environment.
    ///
    /// # Errors
    /// Fails if the agent was trained in an environment other than `env`, or if its algorithm is unknown.
    pub fn policy(&self, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError> {
        let reader = self.file.reader()?;
        if *self.env != *env.id {
            return Err(
                reader.refuse(format!("it holds an agent for environment {}, not {}", self.env, env.id))
            );
        }
        match self.algorithm.as_str() {
            DqnConfig::NAME => job::<DqnConfig>(&reader)?.1.policy(&reader, env),
            A2cConfig::NAME => job::<A2cConfig>(&reader)?.1.policy(&reader, env),
            PpoConfig::NAME => job::<PpoConfig>(&reader)?.1.policy(&reader, env),
            DdpgConfig::NAME => job::<DdpgConfig>(&reader)?.1.policy(&reader, env),
            Td3Config::NAME => job::<Td3Config>(&reader)?.1.policy(&reader, env),
            SacConfig::NAME => job::<SacConfig>(&reader)?.1.policy(&reader, env),
            other => Err(reader.refuse(format!("it holds an agent of the unsupported algorithm {other}"))),
        }
    }
}
