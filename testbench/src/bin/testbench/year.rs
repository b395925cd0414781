//! The `testbench year` subcommand.

use std::process::ExitCode;

use clap::Args;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::contest::Progress;
use iswitch_testbench::year::{Action, Plan, run as carry_out};
use strum::VariantArray as _;

use crate::output::{exit, print};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of actions
    ///
    /// Each kind of action is performed once, in the order of the list in --only. Further actions are drawn at random.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    actions: u32,
    /// Number of jobs; every second one has a key
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    jobs: u8,
    /// Number of workers of each job, each in a network namespace of its own
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=32))]
    workers: u8,
    /// Seed for the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kinds of actions to draw from [default: all]
    #[arg(long, value_delimiter = ',', value_parser = action)]
    only: Vec<Action>,
    /// Print the table as one line of JSON
    #[arg(long)]
    json: bool,
}

fn action(text: &str) -> Result<Action, String> {
    let all = || Action::VARIANTS.iter().copied();
    let names = || all().map(Action::name).collect::<Vec<_>>().join(", ");
    all().find(|action| action.name() == text).ok_or_else(|| format!("expected one of {}", names()))
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if !networks_and("testbench year", &["nft"]) {
        return ExitCode::FAILURE;
    }
    let Options { actions, jobs, workers, seed, .. } = *options;
    let mut plan = Plan::new(jobs.into(), workers.into(), actions as usize, seed);
    if !options.only.is_empty() {
        plan.only.clone_from(&options.only);
    }
    let outcome = carry_out(&plan, &Progress::new());
    exit("year", outcome.map(|table| print(options.json, &table.text(), &table.json())))
}
