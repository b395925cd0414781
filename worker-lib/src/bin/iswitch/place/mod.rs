//! `iswitch place`: placement of training jobs on GPUs that fail.

mod compare;
mod evaluate;
mod failures;
mod gantt;
mod jobs;
mod output;
mod plots;
mod results;
mod rules;
mod runs;
mod serve;
mod source;
mod train;
mod workload;

use std::process::ExitCode;

use clap::Subcommand;

/// Units in which results are shown, in seconds.
const HOUR_S: f64 = 3600.0;
const DAY_S: f64 = 24.0 * HOUR_S;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum PlaceCommand {
    /// Trains a network that places jobs, with one or more workers.
    Train(Box<train::TrainArgs>),
    /// Runs one policy and reports makespan, completion times and where the GPUs' time went.
    Evaluate(Box<evaluate::EvaluateArgs>),
    /// Runs several policies on the same draws, over failure rates and checkpoint intervals: table, CSV, figures.
    Compare(Box<compare::CompareArgs>),
    /// Answers a scheduler which GPUs a job should get: JSON lines at a Unix socket.
    Serve(Box<serve::ServeArgs>),
}

impl PlaceCommand {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Train(args) => train::run(args),
            Self::Evaluate(args) => evaluate::run(args).map(|()| ExitCode::SUCCESS),
            Self::Compare(args) => compare::run(args).map(|()| ExitCode::SUCCESS),
            Self::Serve(args) => serve::run(args).map(|()| ExitCode::SUCCESS),
        }
    }
}
