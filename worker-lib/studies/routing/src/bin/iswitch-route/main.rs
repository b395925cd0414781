//! `iswitch route`: learned packet routing in multi-stage networks.

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

/// Trains and compares packet-routing policies for multi-stage networks.
#[derive(Parser)]
#[command(name = "iswitch-route", bin_name = "iswitch route", version, about)]
enum Cli {
    /// Trains a routing policy with one or more workers.
    Train(Box<train::TrainArgs>),
    /// Runs one policy and reports queues and delays.
    Evaluate(evaluate::EvaluateArgs),
    /// Runs several policies on the same arrivals, over one or more loads: table, CSV, figures.
    Compare(compare::CompareArgs),
    /// Answers for each slot which packet goes over which link: JSON lines at a Unix socket.
    Serve(serve::ServeArgs),
}

/// Threads for the matrix products of one of so many workers on this machine.
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
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
