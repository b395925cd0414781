//! Running a trained policy without learning.

use super::TrainError;
use super::streams::{Purpose, stream};
use super::trainer::Policy;
use crate::env::Environment;

/// What one evaluation episode came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvaluationEpisode {
    /// Sum of rewards, not scaled.
    pub episode_return: f64,
    /// Steps.
    pub length: u32,
    /// Whether the time limit ended it.
    pub truncated: bool,
}

/// Runs `episodes` episodes. Takes the action that the policy holds best, or draws actions if `stochastic`. Start
/// states and draws come from the evaluation streams of `seed`: the same arguments give the same episodes.
///
/// # Errors
/// If the environment fails.
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
