//! Running a trained policy without learning.

use super::TrainError;
use super::checkpoint::Model;
use super::normalise::{Normaliser, normalise_or_copy};
use super::streams::{Purpose, stream};
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

/// Runs `episodes` episodes with the saved weights and normalisation statistics. Takes the most probable
/// action, or draws actions if `stochastic`. Start states and draws come from the evaluation streams of
/// `seed`: the same arguments give the same episodes.
///
/// # Errors
/// If the environment fails.
pub fn evaluate(
    model: &Model,
    env: &mut dyn Environment,
    episodes: usize,
    seed: u64,
    stochastic: bool,
) -> Result<Vec<EvaluationEpisode>, TrainError> {
    let agent = model.config.networks(env.spec());
    let normaliser =
        model.config.normalise_observations.then(|| Normaliser::new(&model.replica.observation_moments));
    let mut rng = stream(seed, Purpose::Evaluation, 0);
    let mut work = agent.actor().workspace(1);
    let mut raw = vec![0.0; agent.observation_dim()];
    let (mut observation, mut action) = (raw.clone(), vec![0.0; agent.action_dim()]);
    let parameters = &model.replica.parameters;
    let actor = &parameters[agent.actor_range()];
    let mut results = Vec::with_capacity(episodes);
    for _ in 0..episodes {
        env.reset(&mut rng, &mut raw)?;
        let mut episode = EvaluationEpisode { episode_return: 0.0, length: 0, truncated: false };
        loop {
            normalise_or_copy(normaliser.as_ref(), &raw, &mut observation);
            let output = agent.actor().forward(actor, &observation, &mut work);
            if stochastic {
                agent.sample(parameters, output, &mut rng, &mut action);
            } else {
                agent.mode(output, &mut action);
            }
            let step = env.step(agent.to_env(&action), &mut raw)?;
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
