//! `iswitch eval`: runs a trained agent and reports its returns.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::env;
use iswitch_manual::print_line;
use serde::Serialize;

use crate::evaluation::{EPISODES, Evaluation, SEED};
use crate::train::env_threads;

/// Arguments of `iswitch eval`.
#[derive(Args, Clone, Debug)]
pub struct EvalArgs {
    /// Run directory, as given to `iswitch train --out`, or its model.safetensors
    pub checkpoint: PathBuf,
    /// Number of episodes to run
    #[arg(long, default_value_t = EPISODES, value_parser = clap::value_parser!(u32).range(1..))]
    pub episodes: u32,
    /// Seed of the start states and, with --stochastic, of the actions
    #[arg(long, default_value_t = SEED)]
    pub seed: u64,
    /// Sample actions from the policy, as in training
    ///
    /// By default, the agent takes the most probable action.
    #[arg(long)]
    pub stochastic: bool,
    /// Record the first episodes as a video: FILE.gif, or FILE.mp4 (needs ffmpeg)
    ///
    /// The built-in environments have their own renderer. Gymnasium environments render themselves; those that use
    /// MuJoCo require OpenGL for this (libegl1 or libosmesa6). The program `iswitch-video` records the video.
    #[arg(long, value_name = "FILE")]
    pub video: Option<PathBuf>,
    /// Number of episodes in the video
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "video",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub video_episodes: u32,
    /// Number of threads, each of which runs one episode at a time [default: 1]
    ///
    /// For Gymnasium environments, this is the number of Python processes instead. The result does not depend on this
    /// number, except with EnvPool, whose environments draw their start states from separate random streams.
    #[arg(long, value_name = "N", conflicts_with_all = ["stochastic", "video"], value_parser = env_threads())]
    pub env_threads: Option<u16>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Result of `iswitch eval`. Other programs rely on the keys of the JSON object and on their order.
#[derive(Debug, Serialize)]
pub struct Report {
    algorithm: String,
    env: String,
    #[serde(flatten)]
    evaluation: Evaluation,
    /// Number of environment steps for which the agent was trained.
    #[serde(skip)]
    steps: u64,
}

/// Evaluates the agent with its saved weights and normalisation statistics, and prints the result.
pub fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let trained = read(args)?;
    let evaluation = evaluate(args, &trained)?;
    let report = Report::new(&trained, evaluation);
    if args.json {
        print_line!("{}", serde_json::to_string(&report)?)?;
    } else {
        print_line!("{}", report.text())?;
    }
    Ok(())
}

fn evaluate(args: &EvalArgs, trained: &Trained) -> anyhow::Result<Evaluation> {
    let options = (args.episodes, args.seed);
    let threads = args.env_threads.map_or(1, usize::from).min(args.episodes as usize);
    let mut environments = env::make_parallel(&trained.env, threads, threads)?;
    let spec = environments[0].spec().clone();
    let policies = environments.iter().map(|_| trained.policy(&spec)).collect::<Result<Vec<_>, _>>();
    let mut policies = policies?;
    Ok(match (&mut policies[..], &mut environments[..]) {
        ([policy], [env]) => Evaluation::run(policy.as_mut(), env.as_mut(), options, args.stochastic)?,
        (policies, environments) => Evaluation::run_parallel(policies, environments, options)?,
    })
}

/// Reads the trained agent.
pub fn read(args: &EvalArgs) -> anyhow::Result<Trained> {
    Trained::read(&args.checkpoint).context("no checkpoint to evaluate")
}

impl Report {
    /// Creates the report on a trained agent.
    pub fn new(trained: &Trained, evaluation: Evaluation) -> Self {
        let (algorithm, env) = (trained.algorithm.clone(), trained.env.clone());
        Self { algorithm, env, evaluation, steps: trained.steps }
    }

    /// Returns the result as a line of text.
    pub fn text(&self) -> String {
        let Self { algorithm, env, evaluation, steps } = self;
        format!(
            "{} on {env} after {steps} training steps: mean return {:.1} +/- {:.1} (min {:.1}, max {:.1}), mean length \
             {:.0} steps, over {} episodes",
            algorithm.to_uppercase(),
            evaluation.mean_return,
            evaluation.std_return,
            evaluation.min_return,
            evaluation.max_return,
            evaluation.mean_length,
            evaluation.episodes,
        )
    }
}
