//! The `testbench scaling` subcommand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use iswitch_protocol::limits::{MAX_HEIGHT, MAX_MEMBERS, MAX_PARTS, MAX_SUPERFRAME_DATAGRAMS};
use iswitch_testbench::contest::Progress;
use iswitch_testbench::peers::Rate;
use iswitch_testbench::scaling::costs::Costs;
use iswitch_testbench::scaling::study::{Study, Table};
use iswitch_testbench::scaling::topology::Tree;
use iswitch_testbench::scaling::{Algorithm, MAX_FLOATS, Scenario, calibrate, plot, reality};
use strum::IntoEnumIterator as _;

use crate::output::{Output, exit};
use crate::peers::PAPER_FLOATS;

const WORKERS: [u32; 5] = [10, 100, 1_000, 10_000, 100_000];
const MAX_WORKERS: i64 = 1_000_000;
/// Maximum value of the options for delays, in microseconds.
const MAX_DELAY_US: f64 = 1e6;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Numbers of workers for which the time of a sum is calculated
    #[arg(
        long, value_delimiter = ',', default_values_t = WORKERS,
        value_parser = clap::value_parser!(u32).range(1..=MAX_WORKERS)
    )]
    workers: Vec<u32>,
    /// Lengths of the vectors, in floats
    ///
    /// The default lengths are those of the four models in the iSwitch paper.
    #[arg(
        long, value_delimiter = ',', default_values_t = PAPER_FLOATS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_FLOATS))
    )]
    floats: Vec<u32>,
    /// Algorithms whose times are calculated [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Algorithm>,
    /// Rate of each link, in each direction
    #[arg(long, default_value = "10gbit")]
    rate: Rate,
    /// Propagation delay of each link, in microseconds
    #[arg(long, default_value_t = 1.0, value_parser = micros)]
    delay_us: f64,
    /// Number of workers at each switch of the lowest level
    ///
    /// The paper uses three.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=MAX_MEMBERS as i64))]
    rack: u16,
    /// Number of child switches of each switch of a higher level
    #[arg(
        long, default_value_t = MAX_MEMBERS as u16,
        value_parser = clap::value_parser!(u16).range(2..=MAX_MEMBERS as i64)
    )]
    radix: u16,
    /// Number of segments per super-frame that workers and iswitchd send
    #[arg(
        long, default_value_t = 44,
        value_parser = clap::value_parser!(u8).range(1..=MAX_SUPERFRAME_DATAGRAMS as i64)
    )]
    superframe_segments: u8,
    /// Number of iswitchd threads at each switch
    ///
    /// Each thread runs on its own processor core and aggregates its share of the vector.
    #[arg(
        long, alias = "switch-daemons", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=MAX_PARTS as i64)
    )]
    switch_threads: u8,
    /// Receive buffer of each switch, in MiB
    ///
    /// The workers' windows are calculated from this size.
    #[arg(
        long, value_name = "MIB", default_value_t = 16,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    switch_buffer_mib: u16,
    /// Maximum random delay of a worker's start, in microseconds
    ///
    /// The delay of each worker is drawn uniformly from 0 to this value. With this option, no times are calculated for
    /// more than --packets-up-to workers.
    #[arg(long, default_value_t = 0.0, value_parser = micros)]
    jitter_us: f64,
    /// Seed of the random delays
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Maximum number of workers for which every packet of every worker is simulated
    ///
    /// With more workers, the simulation follows one worker, which represents all others.
    #[arg(long, value_name = "WORKERS", default_value_t = 100)]
    packets_up_to: usize,
    /// File with processing costs, as printed by --calibrate
    ///
    /// By default, the costs are those measured on a machine with 2 cores.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Measure the processing costs of this machine, print them, and exit
    #[arg(long, conflicts_with_all = ["costs", "against"])]
    calibrate: bool,
    /// Compare the model with the measurements in FILE
    ///
    /// The file is the output of `testbench peers --json`. Only the measured cases are calculated.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Number of cores of the machine that produced the measurements in --against
    #[arg(
        long, default_value_t = 2, requires = "against",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    cores: u16,
    #[command(flatten)]
    output: Output,
}

fn micros(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|error| format!("{error}"))?;
    let is_good = (0.0..=MAX_DELAY_US).contains(&value);
    if is_good { Ok(value) } else { Err(format!("{value}, expected 0 to {MAX_DELAY_US}")) }
}

pub(crate) fn run(options: &Options) -> ExitCode {
    exit("scaling", try_run(options))
}

fn try_run(options: &Options) -> Result<(), String> {
    if options.calibrate {
        let costs = calibrate::measure().map_err(|error| format!("loopback interface: {error}"))?;
        let json = || serde_json::to_string(&costs).unwrap_or_default();
        print!("{}", if options.output.json { json() + "\n" } else { calibrate::file(&costs) });
        return Ok(());
    }
    let costs = match &options.costs {
        None => Costs::measured(),
        Some(path) => Costs::parse(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))?,
    };
    if let Some(path) = &options.against {
        let pairs = reality::compare(&read(path)?, usize::from(options.cores), costs);
        let pairs = pairs.map_err(|error| format!("{}: {error}", path.display()))?;
        options.output.show(&reality::text(&pairs), &reality::json(&pairs));
        return Ok(());
    }
    check_heights(options)?;
    options.output.prepare()?;
    let progress = Progress::new();
    for floats in &options.floats {
        let table = study(options, *floats, costs, &progress);
        options.output.show(&table.text(), &table.json());
        options.output.draw(&format!("scaling-{floats}"), &plot::draw(&table))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn check_heights(options: &Options) -> Result<(), String> {
    for workers in &options.workers {
        let tree = Tree::new(*workers as usize, usize::from(options.rack), usize::from(options.radix));
        if tree.levels() > usize::from(MAX_HEIGHT) {
            let (rack, radix, levels) = (options.rack, options.radix, tree.levels());
            return Err(format!(
                "{workers} workers with --rack {rack} and --radix {radix} need {levels} levels of switches, \
                 expected at most {MAX_HEIGHT}"
            ));
        }
    }
    Ok(())
}

fn study(options: &Options, floats: u32, costs: Costs, progress: &Progress) -> Table {
    let scenario = Scenario {
        rack: usize::from(options.rack),
        radix: usize::from(options.radix),
        bits_per_s: options.rate.bits_per_s,
        delay_us: options.delay_us,
        superframe_segments: usize::from(options.superframe_segments),
        switch_threads: usize::from(options.switch_threads),
        switch_buffer_bytes: usize::from(options.switch_buffer_mib) << 20,
        jitter_us: options.jitter_us,
        seed: options.seed,
        ..Scenario::new(1, floats, costs)
    };
    let algorithms = if options.only.is_empty() { Algorithm::iter().collect() } else { options.only.clone() };
    let study = Study {
        scenario,
        workers: options.workers.iter().map(|workers| *workers as usize).collect(),
        algorithms,
        packets_up_to: options.packets_up_to,
    };
    progress.begin(study.workers.len() * study.algorithms.len());
    let table = study.run(|workers, algorithm| {
        progress.step(&format!("{floats} floats, {workers} workers: {algorithm}"));
    });
    progress.end();
    table
}
