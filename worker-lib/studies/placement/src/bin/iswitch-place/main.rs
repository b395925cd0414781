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

use clap::Parser;
use iswitch_cli::program;

/// Units in which results are shown, in seconds.
const HOUR_S: f64 = 3600.0;
const DAY_S: f64 = 24.0 * HOUR_S;

/// Trains and compares policies that place training jobs on GPUs that fail, and answers a scheduler.
#[derive(Parser)]
#[command(name = "iswitch-place", bin_name = "iswitch place", version, about)]
enum Cli {
    /// Trains a network that places jobs, with one or more workers.
    Train(Box<train::TrainArgs>),
    /// Runs one policy and reports makespan, completion times and where the GPUs' time went.
    Evaluate(Box<evaluate::EvaluateArgs>),
    /// Runs several policies on the same draws, over failure rates and checkpoint intervals: table, CSV, figures.
    Compare(Box<compare::CompareArgs>),
    /// Answers a scheduler which GPUs a job should get: JSON lines at a Unix socket.
    Serve(Box<serve::ServeArgs>),
}

fn main() -> ExitCode {
    program::main(|cli: Cli| match &cli {
        Cli::Train(args) => iswitch_study::train::run(args.as_ref()),
        Cli::Evaluate(args) => evaluate::run(args),
        Cli::Compare(args) => compare::run(args),
        Cli::Serve(args) => serve::run(args),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
