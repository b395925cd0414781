//! Hyper-parameters of PPO.

use serde::{Deserialize, Serialize};

use crate::algorithms::TrainError;
use crate::algorithms::actor_critic::ActorCritic;
use crate::algorithms::config::{annealed, hyper_parameters};
use crate::algorithms::share::{ENVIRONMENTS_MIN, Share, environments_of};
use crate::algorithms::trainer::Algorithm as _;
use crate::env::EnvSpec;

/// Minimum length of the sequences of a recurrent policy. In a sequence of one step, no gradient flows through the
/// state, so the policy would not learn what to remember.
const SEQUENCE_MIN: usize = 2;

/// Maximum width of recurrent layers. The number of parameters grows with the square of the width; at the maximum, the
/// LSTM layers of the two networks together have about 135 million.
pub(super) const MEMORY_MAX: u64 = 4096;

hyper_parameters! {
/// Hyper-parameters, named as in CleanRL and Stable-Baselines3. Sizes are totals over all workers.
/// [`Algorithm::preset`](crate::algorithms::trainer::Algorithm::preset) returns tuned values for each environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PpoConfig {
    /// Total number of environment steps, rounded up to whole rollouts.
    pub total_steps: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of environments in the job; by default, the smallest multiple of the world size that is at least
    /// `environments_min`.
    pub environments: Option<usize>,
    /// Lower limit on the default number of environments; 4 if absent.
    pub environments_min: Option<usize>,
    /// Number of steps in one rollout, in total across all environments (`n_steps * n_envs`).
    pub rollout_steps: usize,
    /// Number of samples in one minibatch, in total across all environments.
    pub minibatch_size: usize,
    /// Number of passes over each rollout.
    pub epochs: usize,
    /// Initial Adam learning rate.
    pub learning_rate: f32,
    /// Whether the learning rate decreases linearly to 0 over `total_steps`.
    pub anneal_learning_rate: bool,
    /// Discount factor; the initial value if `gamma_final` is given.
    pub gamma: f32,
    /// Discount factor at the end of the run; the horizon, 1 / (1 - gamma), grows linearly until then. The discount
    /// factor is constant if this value is absent, or if only `gamma` is given.
    pub gamma_final: Option<f32>,
    /// Lambda of generalised advantage estimation: 0 uses only the value function, and 1 uses only the sampled return.
    pub gae_lambda: f32,
    /// Distance of the probability ratio from 1 beyond which the objective is clipped.
    pub clip_range: f32,
    /// Maximum change of a value from its old estimate in the value loss; unlimited if absent.
    pub clip_range_value: Option<f32>,
    /// Weight of the entropy bonus.
    pub entropy_coefficient: f32,
    /// Weight of the value loss.
    pub value_coefficient: f32,
    /// Euclidean norm to which the aggregated gradient is clipped.
    pub max_grad_norm: f32,
    /// Adam epsilon.
    pub adam_epsilon: f32,
    /// Initial logarithm of the policy's standard deviation (continuous actions).
    pub log_std_init: f32,
    /// Widths of the hidden layers of each network.
    pub hidden: Vec<usize>,
    /// Width of the LSTM layer that precedes each network; if absent, the networks have no LSTM layer.
    pub lstm: Option<usize>,
    /// Width of the GRU layer that precedes each network; if absent, the networks have no GRU layer. A policy has
    /// either an LSTM or a GRU.
    pub gru: Option<usize>,
    /// Whether observations are normalised by their running mean and variance.
    pub normalise_observations: bool,
    /// Whether rewards are divided by the standard deviation of the discounted return.
    pub normalise_rewards: bool,
}
}

impl PpoConfig {
    /// Returns hyper-parameters for continuous control, with the networks of the iSwitch paper.
    pub(super) fn continuous() -> Self {
        Self {
            total_steps: 1_000_000,
            seed: 1,
            environments: None,
            environments_min: None,
            rollout_steps: 2048,
            minibatch_size: 64,
            epochs: 10,
            learning_rate: 3e-4,
            anneal_learning_rate: true,
            gamma: 0.99,
            gamma_final: None,
            gae_lambda: 0.95,
            clip_range: 0.2,
            clip_range_value: Some(0.2),
            entropy_coefficient: 0.0,
            value_coefficient: 0.5,
            max_grad_norm: 0.5,
            adam_epsilon: 1e-5,
            log_std_init: 0.0,
            hidden: vec![64, 64],
            lstm: None,
            gru: None,
            normalise_observations: true,
            normalise_rewards: true,
        }
    }

    /// Creates the networks for an environment. Their `parameter_count` is the length of the vectors that the job
    /// aggregates.
    pub fn networks(&self, env: &EnvSpec) -> ActorCritic {
        ActorCritic::with_memory(env, &self.hidden, self.memory())
    }

    /// Returns the learning rate after a fraction `part` (0 to 1) of the run has elapsed.
    pub(super) fn learning_rate_after(&self, part: f64) -> f32 {
        annealed(self.learning_rate, self.anneal_learning_rate, part)
    }

    /// Returns the discount factor after a fraction `part` (0 to 1) of the run has elapsed.
    pub(super) fn gamma_after(&self, part: f64) -> f32 {
        let Some(end) = self.gamma_final else { return self.gamma };
        let horizon = |gamma: f32| 1.0 / (1.0 - f64::from(gamma));
        let part = part.min(1.0);
        (1.0 - 1.0 / ((1.0 - part) * horizon(self.gamma) + part * horizon(end))) as f32
    }

    /// Returns the share of the global batch that belongs to worker `rank` of `workers`.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the batch cannot be divided, or if the sequences of a recurrent policy are too short.
    pub fn share(&self, rank: usize, workers: usize) -> Result<Share, TrainError> {
        let least = self.environments_min.unwrap_or(ENVIRONMENTS_MIN);
        let environments = environments_of(self.environments, least, workers);
        let share = Share::new(rank, workers, Some(environments), self.rollout_steps, self.minibatch_size)?;
        if let Some((cell, _)) = self.memory()
            && share.minibatch_per_env < SEQUENCE_MIN
        {
            return Err(TrainError::Config(format!(
                "minibatch_size is {}, expected at least {} with {}: a minibatch must hold a sequence of at least \
                 {SEQUENCE_MIN} steps from each of {environments} environments",
                self.minibatch_size,
                SEQUENCE_MIN * environments,
                cell.name(),
            )));
        }
        Ok(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_environments_is_a_multiple_of_the_workers_above_the_minimum() {
        let config = PpoConfig { environments_min: Some(16), ..PpoConfig::continuous() };
        let environments = |workers| config.share(0, workers).unwrap().environments;
        assert_eq!([1, 2, 3, 4, 16, 17].map(environments), [16, 16, 18, 16, 16, 17]);
        let given = PpoConfig { environments: Some(6), ..config.clone() };
        assert_eq!(given.share(0, 3).unwrap().environments, 6);
    }

    #[test]
    fn a_recurrent_policy_needs_sequences() {
        let sizes = PpoConfig { rollout_steps: 64, minibatch_size: 16, ..PpoConfig::continuous() };
        let recurrent = PpoConfig { lstm: Some(8), ..sizes.clone() };
        let share = |config: &PpoConfig, environments| {
            PpoConfig { environments: Some(environments), ..config.clone() }.share(0, 1)
        };
        assert_eq!(share(&recurrent, 8).unwrap().minibatch_per_env, 2);
        let error = share(&recurrent, 16).unwrap_err().to_string();
        let expected = "minibatch_size is 16, expected at least 32 with lstm: a minibatch must hold a sequence of \
                        at least 2 steps from each of 16 environments";
        assert_eq!(error, expected);
        assert!(share(&sizes, 16).is_ok());
    }

    #[test]
    fn impossible_widths_of_the_recurrent_layers_are_refused() {
        for width in [0, 4097, usize::MAX] {
            let config = PpoConfig { lstm: Some(width), ..PpoConfig::continuous() };
            let error = config.check().unwrap_err().to_string();
            assert_eq!(error, format!("lstm is {width}, expected 1 to 4096"));
            let config = PpoConfig { gru: Some(width), ..PpoConfig::continuous() };
            let error = config.check().unwrap_err().to_string();
            assert_eq!(error, format!("gru is {width}, expected 1 to 4096"));
        }
    }

    #[test]
    fn a_policy_has_only_one_kind_of_recurrent_layer() {
        let config = PpoConfig { lstm: Some(64), gru: Some(32), ..PpoConfig::continuous() };
        let error = config.check().unwrap_err().to_string();
        assert_eq!(
            error,
            "lstm is 64 and gru is 32, expected one of them to be null: a policy has one kind of memory"
        );
    }

    #[test]
    fn a_minimum_of_no_environments_is_refused() {
        let config = PpoConfig { environments_min: Some(0), ..PpoConfig::continuous() };
        let error = config.check().unwrap_err().to_string();
        assert_eq!(error, "environments_min is 0, expected at least 1");
    }

    #[test]
    fn the_horizon_of_a_rising_discount_factor_grows_linearly() {
        let config = PpoConfig { gamma: 0.98, gamma_final: Some(0.998), ..PpoConfig::continuous() };
        for (part, horizon) in [(0.0, 50.0), (0.25, 162.5), (0.5, 275.0), (1.0, 500.0), (2.0, 500.0)] {
            let expected = 1.0 - 1.0 / horizon;
            let gamma = f64::from(config.gamma_after(part));
            assert!((gamma - expected).abs() < 1e-6, "after {part} of the run: {gamma}, expected {expected}");
        }
    }

    #[test]
    fn a_discount_factor_without_a_final_value_is_constant_and_may_be_one() {
        let config = PpoConfig { gamma: 1.0, gamma_final: None, ..PpoConfig::continuous() };
        assert!(config.check().is_ok());
        assert_eq!([0.0, 0.5, 1.0].map(|part| config.gamma_after(part)), [1.0; 3]);
    }

    #[test]
    fn a_rising_discount_factor_needs_finite_horizons() {
        let check = |gamma, gamma_final| {
            let config = PpoConfig { gamma, gamma_final: Some(gamma_final), ..PpoConfig::continuous() };
            config.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(0.9, 0.99), Ok(()));
        let expected = "expected at least 0 and below 1, for a finite horizon";
        assert_eq!(check(1.0, 0.99), Err(format!("gamma is 1.0, {expected}")));
        assert_eq!(check(0.9, 1.0), Err(format!("gamma_final is 1.0, {expected}")));
    }
}
