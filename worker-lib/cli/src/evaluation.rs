//! Statistics of the returns of a trained agent.

use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::evaluate::{EvaluationEpisode, evaluate, evaluate_parallel};
use iswitch_learn::algorithms::trainer::Policy;
use iswitch_learn::env::{EnvSpec, Environment};
use serde::Serialize;

/// Default number of evaluation episodes.
pub const EPISODES: u32 = 10;
/// Default seed of the start states and of sampled actions.
pub const SEED: u64 = 1;

/// Statistics of evaluation episodes. Other programs rely on the keys of the JSON object and on their order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of episodes.
    pub episodes: usize,
    /// Mean of the returns.
    pub mean_return: f64,
    /// Standard deviation of the episodes' returns.
    pub std_return: f64,
    /// Smallest return.
    pub min_return: f64,
    /// Largest return.
    pub max_return: f64,
    /// Mean length of the episodes, in steps.
    pub mean_length: f64,
    /// Whether the mean return is at least the return at which the environment is considered solved.
    pub solved: bool,
}

impl Evaluation {
    /// Runs `episodes` episodes; at least one is required. See [`evaluate`].
    ///
    /// # Errors
    /// Fails if the environment fails.
    pub fn run(
        policy: &mut dyn Policy,
        env: &mut dyn Environment,
        (episodes, seed): (u32, u64),
        stochastic: bool,
    ) -> Result<Self, TrainError> {
        let outcomes = evaluate(policy, env, episodes as usize, seed, stochastic)?;
        Ok(Self::of(&outcomes, env.spec()))
    }

    /// Runs `episodes` episodes, several at a time; at least one is required. See [`evaluate_parallel`].
    ///
    /// # Errors
    /// Fails if an environment fails.
    pub fn run_parallel(
        policies: &mut [Box<dyn Policy>],
        environments: &mut [Box<dyn Environment>],
        (episodes, seed): (u32, u64),
    ) -> Result<Self, TrainError> {
        let outcomes = evaluate_parallel(policies, environments, episodes as usize, seed)?;
        Ok(Self::of(&outcomes, environments[0].spec()))
    }

    /// Computes the statistics of `episodes`, which must not be empty.
    pub fn of(episodes: &[EvaluationEpisode], spec: &EnvSpec) -> Self {
        let count = episodes.len() as f64;
        let returns = || episodes.iter().map(|episode| episode.episode_return);
        let mean = returns().sum::<f64>() / count;
        Self {
            episodes: episodes.len(),
            mean_return: mean,
            std_return: (returns().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt(),
            min_return: returns().fold(f64::INFINITY, f64::min),
            max_return: returns().fold(f64::NEG_INFINITY, f64::max),
            mean_length: episodes.iter().map(|episode| f64::from(episode.length)).sum::<f64>() / count,
            solved: mean >= spec.solved_return,
        }
    }
}
