//! The `iswitch-models` command: serves, caches, publishes and reads models.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use iswitch_models::cli::Command;

/// Distribute versioned models from a learner to its actors
#[derive(Debug, Parser)]
#[command(name = "iswitch-models", version, max_term_width = 79)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(Cli::command) {
        return status;
    }
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iswitch-models: {}", iswitch_manual::describe(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
