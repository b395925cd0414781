//! `iswitch route`: training and comparison of packet-routing policies for multi-stage networks.

mod compare;
mod evaluate;
mod network;
mod plots;
mod results;
mod serve;
mod source;
mod train;

use std::process::ExitCode;

use clap::Parser;
use iswitch_cli::program;

/// Train and compare packet-routing policies for multi-stage networks
#[derive(Parser)]
#[command(name = "iswitch-route", bin_name = "iswitch route", version, max_term_width = 79, about)]
enum Cli {
    /// Train a routing policy with one or more workers
    Train(Box<train::TrainArgs>),
    /// Run one policy and report queue lengths and delays
    Evaluate(evaluate::EvaluateArgs),
    /// Compare several policies on the same arrivals, at one or more loads
    ///
    /// Prints a table, or one JSON object with --json; --csv and --plots also write the results to files.
    Compare(compare::CompareArgs),
    /// Serve routing decisions for each slot, as JSON lines
    Serve(serve::ServeArgs),
}

/// Returns the number of threads for the matrix products of each worker, if `workers` workers share this machine.
fn threads(workers: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / workers).max(1)
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
