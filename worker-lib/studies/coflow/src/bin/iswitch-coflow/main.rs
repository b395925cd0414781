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

use clap::Parser;
use iswitch_cli::program;

/// Trains and compares policies that schedule coflows of jobs in a data centre's fabric.
#[derive(Parser)]
#[command(name = "iswitch-coflow", bin_name = "iswitch coflow", version, about)]
enum Cli {
    /// Trains a network that gives coflows priorities, with one or more workers.
    Train(Box<train::TrainArgs>),
    /// Runs one policy and reports completion times.
    Evaluate(evaluate::EvaluateArgs),
    /// Runs several policies on the same jobs: table, CSV, figures.
    Compare(compare::CompareArgs),
}

fn main() -> ExitCode {
    program::main(|cli: Cli| match &cli {
        Cli::Train(args) => iswitch_study::train::run(args.as_ref()),
        Cli::Evaluate(args) => evaluate::run(args),
        Cli::Compare(args) => compare::run(args),
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
