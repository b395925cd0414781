//! `iswitch study`: reproduces the tables and figures of the studies' results pages.

mod list;
mod options;
mod page;
mod recipe;
mod report;
mod reproduce;
mod results;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use iswitch_cli::program;

use options::{CoflowArgs, PlacementArgs, RoutingArgs};
use recipe::{Data, Study};

/// Reproduce the results pages of the studies
#[derive(Parser)]
#[command(name = "iswitch-study", bin_name = "iswitch study", version, max_term_width = 79, about)]
enum Cli {
    /// Run the commands of a results page and produce its tables and figures
    ///
    /// The commands are those of `iswitch route`, `iswitch coflow` and `iswitch place`. The output directory stores
    /// the result of each command, so a repeated call runs only the commands that have no result yet. report.md
    /// contains the tables in the layout of the results page, and lists how their numbers differ from those on the
    /// page.
    #[command(subcommand)]
    Reproduce(Page),
}

#[derive(Subcommand)]
enum Page {
    /// Reproduce docs/results/routing.md, which needs no data files
    Routing(RoutingArgs),
    /// Reproduce docs/results/coflow.md
    ///
    /// The data files are given by options or environment variables; docs/coflow.md explains where to get them. If a
    /// file is not given, the commands use synthetic data instead, and the report says so for each table.
    Coflow(CoflowArgs),
    /// Reproduce docs/results/placement.md
    ///
    /// The data files are given by options or environment variables; docs/placement.md explains where to get them. If
    /// a file is not given, the commands use synthetic data instead, and the report says so for each table.
    Placement(PlacementArgs),
}

fn main() -> ExitCode {
    program::main(|cli: Cli| {
        let Cli::Reproduce(page) = &cli;
        match page {
            Page::Routing(args) => reproduce::run(Study::Routing, Data::new(), &args.common),
            Page::Coflow(args) => reproduce::run(Study::Coflow, args.data(), &args.common),
            Page::Placement(args) => reproduce::run(Study::Placement, args.data(), &args.common),
        }
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
