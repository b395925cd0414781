//! The `iswitch-models` command: serves, caches, publishes and reads models.

use std::process::ExitCode;

use clap::Parser;
use iswitch_models::cli::Command;

/// Distributes versioned models from a learner to its actors.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iswitch-models: {error:#}");
            ExitCode::FAILURE
        }
    }
}
