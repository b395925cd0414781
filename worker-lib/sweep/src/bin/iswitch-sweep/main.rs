//! `iswitch sweep`: trains with many seeds and hyper-parameters, and reports robust statistics of the returns.

mod grid;
mod options;
mod plan;
mod pool;
mod record;
mod report;

use std::process::ExitCode;

use clap::Parser;
use iswitch_cli::algorithm::{Algorithm, Train};
use iswitch_cli::program;

use options::Sweep;

/// Train with many seeds and hyper-parameters, and report robust statistics
#[derive(Parser)]
#[command(name = "iswitch-sweep", bin_name = "iswitch sweep", version, max_term_width = 79, about)]
enum Cli {
    /// Train once for each seed and each combination of hyper-parameters
    ///
    /// Several runs are trained at once, each in its own process. Repeat the command after an interruption, or with
    /// more seeds or values: finished runs are not repeated. At the end, the sweep prints a table with one row per
    /// configuration: the number of solved runs, and the interquartile mean (IQM) of the returns of all runs with its
    /// 95 % bootstrap interval (Agarwal et al., 2021).
    #[command(subcommand)]
    Train(Algorithm<Sweep>),
    /// Train one run; used internally by a sweep
    #[command(subcommand, hide = true)]
    Run(Algorithm<Train>),
}

fn main() -> ExitCode {
    program::main(|mut cli: Cli| match &mut cli {
        Cli::Train(algorithm) => algorithm.run(),
        Cli::Run(algorithm) => algorithm.run(),
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
