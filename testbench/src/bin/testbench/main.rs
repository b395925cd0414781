//! Simulations of the switch and its workers: random ones, and the comparison with simpler protocols.

mod compare;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Proves the switch and the worker protocol by simulation.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run random scenarios, and stop at the first that breaks a rule
    Simulate(simulate::Options),
    /// Compare the protocol with simpler ones on the same networks
    Compare(compare::Options),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Simulate(options) => simulate::run(&options),
        Command::Compare(options) => compare::compare(&options),
    }
}
