//! Evaluation of a trained policy, without learning.

use super::TrainError;
use super::streams::{Purpose, stream};
use super::trainer::Policy;
use crate::env::Environment;

/// Outcome of one evaluation episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvaluationEpisode {
    /// Sum of the rewards, not scaled.
    pub episode_return: f64,
    /// Length of the episode, in steps.
    pub length: u32,
    /// Whether the time limit truncated the episode.
    pub truncated: bool,
}

/// Runs `episodes` episodes. Takes the most probable action of the policy, or samples actions if `stochastic`. Start
/// states and samples come from the evaluation stream of `seed`, so that the same arguments give the same episodes.
///
/// # Errors
/// Fails if the environment fails.
pub fn evaluate(
    policy: &mut dyn Policy,
    env: &mut dyn Environment,
    episodes: usize,
    seed: u64,
    stochastic: bool,
) -> Result<Vec<EvaluationEpisode>, TrainError> {
    let spec = env.spec().clone();
    let mut rng = stream(seed, Purpose::Evaluation, 0);
    let mut observation = vec![0.0; spec.observation_dim];
    let mut action = vec![0.0; spec.action.stored_dim()];
    let mut results = Vec::with_capacity(episodes);
    for _ in 0..episodes {
        env.reset(&mut rng, &mut observation)?;
        let mut episode = EvaluationEpisode { episode_return: 0.0, length: 0, truncated: false };
        loop {
            policy.act(&observation, stochastic.then_some(&mut rng), &mut action);
            let step = env.step(spec.to_env(&action), &mut observation)?;
            episode.episode_return += step.reward;
            episode.length += 1;
            if step.terminated || step.truncated {
                episode.truncated = step.truncated;
                break;
            }
        }
        results.push(episode);
    }
    Ok(results)
}
