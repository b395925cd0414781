//! Twin delayed deterministic policy gradient, TD3 (Fujimoto et al., 2018).
//!
//! Implementation details. This algorithm shares its code with [`ddpg`](super::ddpg), from which it differs as follows:
//!
//! 1. The actor and the critics have two layers of 256 units with ReLU and without normalisation; the action enters a
//!    critic at its first layer. The parameters of all layers are initialised as in PyTorch: they are drawn uniformly
//!    within a bound that depends on the fan-in.
//! 2. Two critics learn from the same target, which uses the smaller of their values (clipped double Q-learning). The
//!    policy maximises the value of the first critic.
//! 3. The target adds Gaussian noise to the actions of the target policy (target policy smoothing). The noise has a
//!    standard deviation of `target_noise` and is clipped to `target_noise_clip`; the sum is clipped to [-1, 1].
//! 4. The policy and all target networks are updated once per `policy_delay` updates of the critics. In the other
//!    updates, the policy's part of the gradient is zero and is not applied. In asynchronous mode, a worker does not
//!    know to which update its gradient will contribute, so every gradient includes the policy's part.
//! 5. The gradients of the policy and the critics are computed at the same parameters and share one aggregation,
//!    whereas the published code updates the critics before it computes the gradient of the policy.
//! 6. Actions are uniformly random until learning starts; afterwards, Gaussian noise is added to the policy's actions.
//! 7. Truncation is not treated as termination: targets bootstrap from the final observation of a truncated episode.

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
pub struct Td3Config {
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
    /// Number of critic updates per update of the policy and the target networks.
    pub policy_delay: u64,
    /// Standard deviation of the noise added to the target policy's actions.
    pub target_noise: f32,
    /// Bound on the noise added to the target policy's actions.
    pub target_noise_clip: f32,
}
}

impl Td3Config {
    /// Returns hyper-parameters for continuous control: those in the published code of Fujimoto et al.
    fn continuous() -> Self {
        Self {
            total_steps: 1_000_000,
            seed: 1,
            environments: None,
            buffer_size: 1_000_000,
            batch_size: 256,
            learning_starts: 25_000,
            train_every: 1,
            updates: 0,
            actor_learning_rate: 3e-4,
            critic_learning_rate: 3e-4,
            gamma: 0.99,
            tau: 5e-3,
            exploration_noise: 0.1,
            hidden: vec![256, 256],
            policy_delay: 2,
            target_noise: 0.2,
            target_noise_clip: 0.5,
        }
    }
}

impl Algorithm for Td3Config {
    const NAME: &'static str = "td3";
    const DEFAULT_ENV: &'static str = "Pendulum-v1";
    const CHECKPOINT_EVERY: u64 = 500;
    type Family = OffPolicy;

    fn preset(env: &str) -> Self {
        match env {
            "Pendulum-v1" => Self {
                total_steps: 40_000,
                buffer_size: 40_000,
                batch_size: 128,
                learning_starts: 1_000,
                actor_learning_rate: 1e-3,
                critic_learning_rate: 1e-3,
                gamma: 0.98,
                hidden: vec![64, 64],
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

impl DeterministicAlgorithm for Td3Config {
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
        DeterministicActorCritic::new(env, &self.hidden, 2, Architecture::Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::critics::samples::spec;

    #[test]
    fn critics_and_actor_have_the_sizes_of_the_published_code() {
        let (env, config) = (spec(), Td3Config::preset("any"));
        let agent = config.agent(&env).unwrap();
        let dense = |inputs: usize, outputs: usize| (inputs + 1) * outputs;
        assert_eq!(agent.actor_range().len(), dense(3, 256) + dense(256, 256) + dense(256, 2));
        assert_eq!(agent.critic_range().len(), 2 * (dense(3 + 2, 256) + dense(256, 256) + dense(256, 1)));
    }

    #[test]
    fn options_out_of_range_are_reported_by_name() {
        let check = |change: fn(&mut Td3Config)| {
            let mut config = Td3Config::preset("Pendulum-v1");
            change(&mut config);
            config.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        let error = check(|config| config.policy_delay = 0).unwrap_err();
        assert_eq!(error, "policy_delay is 0, expected at least 1");
        let error = check(|config| config.target_noise = -1.0).unwrap_err();
        assert_eq!(error, "target_noise is -1.0, expected a number >= 0");
    }
}
