//! `iswitch eval`: runs a trained agent and reports its returns.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use iswitch_cli::evaluation::{EPISODES, Evaluation, SEED};
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
    #[arg(long, default_value_t = EPISODES, value_parser = clap::value_parser!(u32).range(1..))]
    episodes: u32,
    /// Seed of the start states and, with --stochastic, of the actions
    #[arg(long, default_value_t = SEED)]
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
struct Output {
    algorithm: String,
    env: String,
    #[serde(flatten)]
    evaluation: Evaluation,
}

/// Evaluates with the saved weights and normalisation statistics.
pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let trained = Trained::read(&args.checkpoint).context("no checkpoint to evaluate")?;
    let mut env = env::make(&trained.env)?;
    let mut policy = trained.policy(env.spec())?;
    let evaluation =
        Evaluation::run(policy.as_mut(), env.as_mut(), (args.episodes, args.seed), args.stochastic)?;
    let output = Output { algorithm: trained.algorithm, env: trained.env, evaluation };
    if args.json {
        print_line!("{}", serde_json::to_string(&output)?)?;
    } else {
        let Output { algorithm, env, evaluation } = output;
        print_line!(
            "{} on {} after {} training steps: mean return {:.1} +/- {:.1} (min {:.1}, max {:.1}), mean length {:.0} \
             steps, over {} episodes",
            algorithm.to_uppercase(),
            env,
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
