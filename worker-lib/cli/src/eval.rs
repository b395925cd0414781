//! `iswitch eval`: runs a trained agent and reports its returns.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use iswitch_learn::algorithms::evaluate::evaluate;
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::env;
use iswitch_manual::print_line;
use serde::Serialize;

/// Arguments of `iswitch eval`.
#[derive(Args)]
pub(crate) struct EvalArgs {
    /// Run directory, as given to `iswitch train --out`
    checkpoint: PathBuf,
    /// Number of episodes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    episodes: u32,
    /// Seed of the start states and, with --stochastic, of the actions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sample actions from the policy, as in training
    ///
    /// By default, the agent takes the most probable action.
    #[arg(long)]
    stochastic: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Evaluation {
    algorithm: String,
    env: String,
    episodes: u32,
    mean_return: f64,
    std_return: f64,
    min_return: f64,
    max_return: f64,
    mean_length: f64,
    solved: bool,
}

/// Evaluates with the saved weights and normalisation statistics.
pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let trained = Trained::read(&args.checkpoint).context("no checkpoint to evaluate")?;
    let mut env = env::make(&trained.env)?;
    let mut policy = trained.policy(env.spec())?;
    let episodes =
        evaluate(policy.as_mut(), env.as_mut(), args.episodes as usize, args.seed, args.stochastic)?;
    let count = f64::from(args.episodes);
    let returns = || episodes.iter().map(|episode| episode.episode_return);
    let mean = returns().sum::<f64>() / count;
    let evaluation = Evaluation {
        algorithm: trained.algorithm,
        env: trained.env,
        episodes: args.episodes,
        mean_return: mean,
        std_return: (returns().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt(),
        min_return: returns().fold(f64::INFINITY, f64::min),
        max_return: returns().fold(f64::NEG_INFINITY, f64::max),
        mean_length: episodes.iter().map(|episode| f64::from(episode.length)).sum::<f64>() / count,
        solved: mean >= env.spec().solved_return,
    };
    if args.json {
        print_line!("{}", serde_json::to_string(&evaluation)?)?;
    } else {
        print_line!(
            "{} on {} after {} training steps: mean return {:.1} +/- {:.1} (min {:.1}, max {:.1}), mean length {:.0} \
             steps, over {} episodes",
            evaluation.algorithm.to_uppercase(),
            evaluation.env,
            trained.steps,
            evaluation.mean_return,
            evaluation.std_return,
            evaluation.min_return,
            evaluation.max_return,
            evaluation.mean_length,
            evaluation.episodes,
        )?;
    }
    Ok(())
}
