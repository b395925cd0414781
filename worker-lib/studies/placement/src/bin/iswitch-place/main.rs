//! `iswitch place`: placement of training jobs on GPUs that fail.

mod advise;
mod compare;
mod decisions;
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

/// Length of an hour, in seconds; results are shown in hours and days.
const HOUR_S: f64 = 3600.0;
/// Length of a day, in seconds.
const DAY_S: f64 = 24.0 * HOUR_S;

/// Train, compare and serve policies that place training jobs on failing GPUs
#[derive(Parser)]
#[command(name = "iswitch-place", bin_name = "iswitch place", version, max_term_width = 79, about)]
enum Cli {
    /// Train a network that places jobs, with one or more workers
    Train(Box<train::TrainArgs>),
    /// Run one policy and report makespan, completion times and GPU-hours
    ///
    /// The GPU-hours are divided into useful work, work that failures undid, restarts and checkpoints, GPUs held by
    /// jobs that wait for a repair, failed GPUs, and idle GPUs.
    Evaluate(Box<evaluate::EvaluateArgs>),
    /// Compare policies on the same draws, over failure rates and checkpoint settings
    ///
    /// The results are a table, and optionally JSON, CSV and figures.
    Compare(Box<compare::CompareArgs>),
    /// Choose GPUs for a scheduler's jobs, as a service
    ///
    /// Each request and each answer is one line of JSON.
    Serve(Box<serve::ServeArgs>),
    /// Print what a policy would do now with the jobs of Slurm or Kubernetes
    ///
    /// The command reads the output of scontrol and squeue, or of kubectl, from files. It does not carry out the
    /// decisions.
    Advise(Box<advise::AdviseArgs>),
}

fn main() -> ExitCode {
    program::main(|cli: Cli| match &cli {
        Cli::Train(args) => iswitch_study::train::run(args.as_ref()),
        Cli::Evaluate(args) => evaluate::run(args),
        Cli::Compare(args) => compare::run(args),
        Cli::Serve(args) => serve::run(args),
        Cli::Advise(args) => advise::run(args),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
