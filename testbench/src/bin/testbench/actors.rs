//! The subcommands `testbench actors` and `testbench recovery`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use iswitch_harness::requirements::programs;
use iswitch_testbench::actors::recovery;
use iswitch_testbench::actors::scaling::{CSV_HEAD, measure};
use iswitch_testbench::actors::testbed::Run;
use iswitch_testbench::contest::Progress;

use crate::output::{exit, print, write};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Numbers of actors to measure
    #[arg(
        long, value_delimiter = ',', default_value = "2,4,8,16,32,64,128",
        value_parser = clap::value_parser!(u16).range(1..=4096)
    )]
    actors: Vec<u16>,
    /// Id of the environment
    #[arg(long, default_value = "CartPole-v1")]
    env: String,
    /// Number of environment steps of each training run
    #[arg(long, default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Rate of each actor's environment, in steps per second
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Hyper-parameter of the learner, in the syntax of its --set option
    ///
    /// Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE", default_value = "hidden=[256,256]")]
    settings: Vec<String>,
    /// Number of turns, each with its own seed
    ///
    /// Each turn trains once with each number of actors.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// Seed of the first turn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// CSV file for the result of every run
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// SVG file for a figure
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the measurements as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecoveryOptions {
    /// Number of times that a process of each kind is killed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    kills: u16,
    /// Print the measurements as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if !programs("testbench actors", &["taskset"]) {
        return ExitCode::FAILURE;
    }
    let learner = options.settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]);
    let run = Run {
        env: options.env.clone(),
        steps: options.steps,
        rate: options.rate,
        actors: 0,
        seed: options.seed,
        learner: learner.collect(),
    };
    let actors: Vec<usize> = options.actors.iter().copied().map(usize::from).collect();
    let table = measure(&run, &actors, usize::from(options.turns), &Progress::new());
    print(options.json, &table.text(), &table.json());
    let files = [(&options.csv, CSV_HEAD.to_owned() + &table.csv()), (&options.plot, table.figure())];
    let mut wanted = files.into_iter().filter_map(|(path, text)| Some((path.as_ref()?, text)));
    exit("actors", wanted.try_for_each(|(path, text)| write(path, &text)))
}

pub(crate) fn recover(options: &RecoveryOptions) -> ExitCode {
    let table = recovery::measure(usize::from(options.kills), &Progress::new());
    print(options.json, &table.text(), &table.json());
    ExitCode::SUCCESS
}
