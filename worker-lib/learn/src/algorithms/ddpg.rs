//! Deep deterministic policy gradient (Lillicrap et al., 2016).
//!
//! Implementation details:
//!
//! 1. The actor and the critic have two layers of 128 units with layer normalisation and ReLU; the action enters the
//!    critic at its second layer. These are the networks of the iSwitch paper, with 40,327 parameters for HalfCheetah.
//! 2. The actor and the critic share one aggregation: both gradients are computed at the same parameters and
//!    concatenated in one vector. Each network has its own Adam optimiser and learning rate.
//! 3. Truncation is not treated as termination: targets bootstrap from the final observation of a truncated episode.
//! 4. The target networks move towards the learned networks by the fraction `tau` after each update.
//! 5. Actions are uniformly random until learning starts; afterwards, Gaussian noise is added to the policy's actions.
//! 6. Each environment has its own replay buffer; a batch contains the same number of samples from each buffer.
//! 7. Options add the three changes of [`td3`](super::td3) to these networks: the smaller of two critics' values, noise
//!    on the target's actions, and updates of the policy and the targets only every few critic updates.

use serde::{Deserialize, Serialize};

use super::TrainError;
use super::checkpoint::Reader;
use super::config::hyper_parameters;
use super::critics::Architecture;
use super::deterministic::DeterministicActorCritic;
use super::deterministic::learner::{DeterministicAlgorithm, Settings, policy};
use super::experience::uniform_experience;
use super::halves::Tail;
use super::off_policy::OffPolicy;
use super::trainer::{Algorithm, Mode, Policy, common_accessors};
use super::vector::VectorShape;
use crate::env::EnvSpec;

hyper_parameters! {
/// Hyper-parameters, named as in CleanRL and Stable-Baselines3. Sizes are totals over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DdpgConfig {
    /// Total number of environment steps.
    pub total_steps: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of environments in the job; by default, the smallest multiple of the world size that is at least 4.
    pub environments: Option<usize>,
    /// Capacity of the replay buffer, in transitions (total across all environments).
    pub buffer_size: usize,
    /// Number of samples in one minibatch, in total across all environments.
    pub batch_size: usize,
    /// Number of environment steps before learning starts; until then, actions are uniformly random.
    pub learning_starts: u64,
    /// Number of environment steps from one group of updates to the next.
    pub train_every: u64,
    /// Number of updates in a group; 0 means one update per environment step.
    pub updates: u64,
    /// Adam learning rate of the actor.
    pub actor_learning_rate: f32,
    /// Adam learning rate of the critic.
    pub critic_learning_rate: f32,
    /// Discount factor.
    pub gamma: f32,
    /// Interpolation factor of the target networks per update.
    pub tau: f32,
    /// Standard deviation of the exploration noise on actions in [-1, 1].
    pub exploration_noise: f32,
    /// Widths of the hidden layers of each network.
    pub hidden: Vec<usize>,
    /// TD3: whether the target uses the smaller value of two critics.
    pub twin_critics: bool,
    /// TD3: number of critic updates per update of the policy and the target networks.
    pub policy_delay: u64,
    /// TD3: standard deviation of the noise added to the target policy's actions.
    pub target_noise: f32,
    /// TD3: bound on the noise added to the target policy's actions.
    pub target_noise_clip: f32,
}
}

impl DdpgConfig {
    /// Returns hyper-parameters for continuous control, with the networks of the iSwitch paper.
    fn continuous() -> Self {
        Self {
            total_steps: 1_000_000,
            seed: 1,
            environments: None,
            buffer_size: 1_000_000,
            batch_size: 128,
            learning_starts: 10_000,
            train_every: 1,
            updates: 0,
            actor_learning_rate: 3e-4,
            critic_learning_rate: 3e-4,
            gamma: 0.99,
            tau: 5e-3,
            exploration_noise: 0.1,
            hidden: vec![128, 128],
            twin_critics: false,
            policy_delay: 1,
            target_noise: 0.0,
            target_noise_clip: 0.5,
        }
    }
}

impl Algorithm for DdpgConfig {
    const NAME: &'static str = "ddpg";
    const DEFAULT_ENV: &'static str = "Pendulum-v1";
    const CHECKPOINT_EVERY: u64 = 500;
    type Family = OffPolicy;

    fn preset(env: &str) -> Self {
        match env {
            "Pendulum-v1" => Self {
                total_steps: 40_000,
                buffer_size: 40_000,
                learning_starts: 1_000,
                gamma: 0.95,
                ..Self::continuous()
            },
            _ => Self::continuous(),
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        self.settings().check(self.total_steps, &self.hidden)
    }

    common_accessors!();

    fn vector_shape(&self, env: &EnvSpec, _mode: Mode) -> Result<VectorShape, TrainError> {
        Ok(Tail::after(self.agent(env)?.parameter_count()))
    }

    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError> {
        policy(&self, reader, env)
    }
}

impl DeterministicAlgorithm for DdpgConfig {
    fn settings(&self) -> Settings {
        Settings {
            experience: uniform_experience!(self),
            actor_learning_rate: self.actor_learning_rate,
            critic_learning_rate: self.critic_learning_rate,
            gamma: self.gamma,
            tau: self.tau,
            exploration_noise: self.exploration_noise,
            policy_delay: self.policy_delay,
            target_noise: self.target_noise,
            target_noise_clip: self.target_noise_clip,
        }
    }

    fn agent(&self, env: &EnvSpec) -> Result<DeterministicActorCritic, TrainError> {
        let critics = if self.twin_critics { 2 } else { 1 };
        DeterministicActorCritic::new(env, &self.hidden, critics, Architecture::Normalised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_reported_by_name() {
        let check = |change: fn(&mut DdpgConfig)| {
            let mut config = DdpgConfig::preset("Pendulum-v1");
            change(&mut config);
            config.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|config| config.gamma = 1.5), Err("gamma is 1.5, expected 0 to 1".to_owned()));
        assert_eq!(
            check(|config| config.batch_size = 0),
            Err("batch_size is 0, expected at least 1".to_owned())
        );
        let error = check(|config| config.hidden = vec![]).unwrap_err();
        assert_eq!(error, "hidden is [], expected at least one width, none of them 0");
    }
}
