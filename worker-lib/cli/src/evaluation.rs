//! `iswitch eval`: runs a trained agent and reports its returns.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use iswitch_learn::algorithms::evaluate::{EvaluationEpisode, evaluate};
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::env::{self, EnvSpec};
use iswitch_manual::print_line;
use serde::Serialize;

/// Arguments of `iswitch eval`.
#[derive(Args, Clone, Debug)]
pub struct EvalArgs {
    /// Run directory, as given to `iswitch train --out`
    pub checkpoint: PathBuf,
    /// Number of episodes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub episodes: u32,
    /// Seed of the start states and, with --stochastic, of the actions
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Sample actions from the policy, as in training
    ///
    /// By default, the agent takes the most probable action.
    #[arg(long)]
    pub stochastic: bool,
    /// Record the first episodes as a video: FILE.gif, or FILE.mp4 with ffmpeg
    ///
    /// The built-in environments are drawn. Those of Gymnasium render themselves; for those that use MuJoCo, this
    /// requires OpenGL (libegl1 or libosmesa6). The program `iswitch-video` records the video.
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
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Result of an evaluation. The keys of the JSON object, in this order, are an interface.
#[derive(Debug, Serialize)]
pub struct Evaluation {
    algorithm: String,
    env: String,
    episodes: usize,
    mean_return: f64,
    std_return: f64,
    min_return: f64,
    max_return: f64,
    mean_length: f64,
    solved: bool,
    /// Number of steps of the training.
    #[serde(skip)]
    steps: u64,
}

/// Evaluates with the saved weights and normalisation statistics, and prints the result.
pub fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let trained = read(args)?;
    let mut env = env::make(&trained.env)?;
    let mut policy = trained.policy(env.spec())?;
    let episodes =
        evaluate(policy.as_mut(), env.as_mut(), args.episodes as usize, args.seed, args.stochastic)?;
    let evaluation = Evaluation::new(&trained, env.spec(), &episodes);
    if args.json {
        print_line!("{}", serde_json::to_string(&evaluation)?)?;
    } else {
        print_line!("{}", evaluation.text())?;
    }
    Ok(())
}

/// Reads the agent.
pub fn read(args: &EvalArgs) -> anyhow::Result<Trained> {
    Trained::read(&args.checkpoint).context("no checkpoint to evaluate")
}

impl Evaluation {
    /// Summarises at least one episode.
    pub fn new(trained: &Trained, spec: &EnvSpec, episodes: &[EvaluationEpisode]) -> Self {
        let count = episodes.len() as f64;
        let returns = || episodes.iter().map(|episode| episode.episode_return);
        let mean = returns().sum::<f64>() / count;
        Self {
            algorithm: trained.algorithm.clone(),
            env: trained.env.clone(),
            episodes: episodes.len(),
            mean_return: mean,
            std_return: (returns().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt(),
            min_return: returns().fold(f64::INFINITY, f64::min),
            max_return: returns().fold(f64::NEG_INFINITY, f64::max),
            mean_length: episodes.iter().map(|episode| f64::from(episode.length)).sum::<f64>() / count,
            solved: mean >= spec.solved_return,
            steps: trained.steps,
        }
    }

    /// Returns the result as a line of text.
    pub fn text(&self) -> String {
        format!(
            "{} on {} after {} training steps: mean return {:.1} +/- {:.1} (min {:.1}, max {:.1}), mean length {:.0} \
             steps, over {} episodes",
            self.algorithm.to_uppercase(),
            self.env,
            self.steps,
            self.mean_return,
            self.std_return,
            self.min_return,
            self.max_return,
            self.mean_length,
            self.episodes,
        )
    }
}
