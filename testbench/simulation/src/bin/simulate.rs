//! Standalone runner for random scenarios. `testbench mutants` builds it for each mutant, without the rest of the
//! testbench.

use std::process::ExitCode;

use clap::Parser;
use iswitch_simulation::search;

/// Run random scenarios and stop at the first that violates a rule
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    #[command(flatten)]
    options: search::Options,
}

fn main() -> ExitCode {
    search::run(&Cli::parse().options)
}
