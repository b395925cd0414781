//! `iswitch coflow`: coflow scheduling for jobs that are graphs of coflows.

mod compare;
mod evaluate;
mod gantt;
mod output;
mod plots;
mod results;
mod runs;
mod source;
mod train;
mod workload;

use std::process::ExitCode;

use clap::Subcommand;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum CoflowCommand {
    /// Trains a network that gives coflows priorities, with one or more workers.
    Train(Box<train::TrainArgs>),
    /// Runs one policy and reports completion times.
    Evaluate(evaluate::EvaluateArgs),
    /// Runs several policies on the same jobs: table, CSV, figures.
    Compare(compare::CompareArgs),
}

impl CoflowCommand {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Train(args) => train::run(args),
            Self::Evaluate(args) => evaluate::run(args).map(|()| ExitCode::SUCCESS),
            Self::Compare(args) => compare::run(args).map(|()| ExitCode::SUCCESS),
        }
    }
}
