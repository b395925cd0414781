//! `iswitch coflow`: trains, compares and serves coflow scheduling policies for jobs that are graphs of coflows.

mod compare;
mod evaluate;
mod gantt;
mod output;
mod plots;
mod results;
mod runs;
mod serve;
mod source;
mod train;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use iswitch_cli::program;

/// Train, compare and serve coflow scheduling policies for a data-centre fabric
#[derive(Parser)]
#[command(name = "iswitch-coflow", bin_name = "iswitch coflow", version, max_term_width = 79, about)]
enum Cli {
    /// Train a network that assigns priorities to coflows, with one or more workers
    Train(Box<train::TrainArgs>),
    /// Run one policy and report completion times
    Evaluate(evaluate::EvaluateArgs),
    /// Compare several policies on the same jobs
    ///
    /// Prints a table, or one JSON object with --json; --csv and --plots also write the results to files.
    Compare(compare::CompareArgs),
    /// Answer requests from a cluster's scheduler on a Unix socket or standard input
    ///
    /// Each request and each answer is one line of JSON. The service keeps the scheduler's jobs and their progress.
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
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
