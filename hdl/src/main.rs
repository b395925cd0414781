//! Command-line tool that generates the Verilog, simulates it, reports its resources and timing, and verifies it.

mod report_command;
mod simulate;
mod verify_adder;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use hdl::accelerator::Build;
use hdl::generate;

/// The iSwitch accelerator for a NetFPGA-SUME, as RTL.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the Verilog of a build
    Generate {
        /// The size of the buffer
        #[arg(long, value_enum, default_value_t = Build::Slots128)]
        build: Build,
        /// Where to
        #[arg(long, default_value = "hdl/verilog")]
        directory: PathBuf,
    },
    /// Send one segment of every worker through a simulated accelerator, and say when what comes out
    Simulate(simulate::Options),
    /// Synthesise with yosys: LUT, FF, BRAM and DSP, and an estimate of the critical path
    Report(report_command::Options),
    /// Add random and corner pairs with the adder's Verilog, and compare each sum; needs Verilator
    VerifyAdder(verify_adder::Options),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Generate { build, directory } => finish(write_verilog(build, &directory)),
        Command::Simulate(options) => finish(simulate::run(options)),
        Command::Report(options) => report_command::run(&options),
        Command::VerifyAdder(options) => verify_adder::run(&options),
    }
}

fn finish(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hdl: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write_verilog(build: Build, directory: &Path) -> Result<()> {
    let path = directory.join(build.file_name());
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, generate::accelerator(build)))
        .with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}
