//! The `testbench lockstep` subcommand: compares the accelerator with the switch core.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use hdl::accelerator::Build;
use hdl::generate;
use hdl::simulation::{RustDevice, Verilated};
use indicatif::{ProgressBar, ProgressStyle};
use iswitch_testbench::lockstep::{Outcome, Recovered, recover, run as run_lockstep};
use serde::Serialize;
use tempfile::TempDir;

/// Simulator of the accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Simulator {
    /// rust-hdl; suitable for thousands of packets
    Rust,
    /// Verilator, from the generated Verilog; suitable for millions of packets
    Verilator,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of packets to send
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// Number of jobs with packet loss to run, instead of --packets
    ///
    /// Workers lose contributions, Helps and results, and recover with Help.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "packets")]
    lossy_jobs: Option<u64>,
    /// Seed of the random number generator
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Simulator of the accelerator
    #[arg(long, value_enum, default_value_t = Simulator::Rust)]
    simulator: Simulator,
    /// Build of the accelerator to simulate
    #[arg(long, value_enum, default_value_t = Build::Slots128)]
    build: Build,
    /// Directory in which Verilator's programs are kept for later calls [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    build_dir: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let done = match options.lossy_jobs {
        Some(jobs) => lose(options, jobs).map(|outcome| print(&outcome, options.json)),
        None => compare(options).map(|outcome| print(&outcome, options.json)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seed {}: {error:#}", options.seed);
            ExitCode::FAILURE
        }
    }
}

fn print<T: Serialize + Display>(outcome: &T, json: bool) {
    if json {
        println!("{}", serde_json::json!(outcome));
    } else {
        println!("{outcome}");
    }
}

/// Runs jobs in which packets are lost.
fn lose(options: &Options, jobs: u64) -> Result<Recovered> {
    let Options { seed, build, .. } = *options;
    match options.simulator {
        Simulator::Rust => recover(&mut RustDevice::new(build), build, jobs, seed),
        Simulator::Verilator => recover(&mut verilated(options)?.0, build, jobs, seed),
    }
}

/// Compiles the accelerator with Verilator, and starts it. The temporary directory, if any, must outlive the process.
fn verilated(options: &Options) -> Result<(Verilated, Option<TempDir>)> {
    let verilog = generate::accelerator(options.build);
    let (directory, temporary) = if let Some(directory) = &options.build_dir {
        (directory.join(hdl::report::name(options.build)), None)
    } else {
        let temporary = tempfile::tempdir()?;
        (temporary.path().to_owned(), Some(temporary))
    };
    let program = Verilated::build(&verilog, &directory)?;
    Ok((Verilated::start(&program)?, temporary))
}

fn compare(options: &Options) -> Result<Outcome> {
    let bar = ProgressBar::new(options.packets);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} packets, {eta} left")?);
    let progress = |outcome: &Outcome| bar.set_position(outcome.packets);
    let Options { packets, seed, build, .. } = *options;
    let outcome = match options.simulator {
        Simulator::Rust => run_lockstep(&mut RustDevice::new(build), build, packets, seed, progress),
        Simulator::Verilator => run_lockstep(&mut verilated(options)?.0, build, packets, seed, progress),
    };
    bar.finish_and_clear();
    outcome
}
