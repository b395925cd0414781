//! Writes the Verilog, and shows what it does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use hdl::accelerator::Build;
use hdl::generate;
use hdl::walkthrough::Walkthrough;

/// The iSwitch accelerator for a NetFPGA-SUME, as RTL.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the Verilog of both builds
    Generate {
        /// Where to
        #[arg(long, default_value = "hdl/verilog")]
        directory: PathBuf,
    },
    /// Send one segment of every worker through a simulated accelerator, and say when what comes out
    Simulate(Simulate),
}

#[derive(Debug, clap::Args)]
struct Simulate {
    /// Which accelerator
    #[arg(long, value_enum, default_value_t = Build::Slots128)]
    build: Build,
    /// Workers that contribute
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    workers: u8,
    /// Floats in the segment
    #[arg(long, default_value_t = 366, value_parser = clap::value_parser!(u16).range(1..=366))]
    floats: u16,
    /// Decides about the floats
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write every change of every signal into this file, as a Value Change Dump
    #[arg(long)]
    vcd: Option<PathBuf>,
    /// Draw the streams and the stages between them into this file, as SVG
    #[arg(long, requires = "vcd")]
    svg: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Generate { directory } => generate_all(&directory),
        Command::Simulate(options) => simulate(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hdl: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn generate_all(directory: &Path) -> Result<()> {
    for build in Build::ALL {
        let path = directory.join(build.file_name());
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, generate::accelerator(build)))
            .with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    Ok(())
}

fn simulate(options: Simulate) -> Result<()> {
    let Simulate { build, workers, floats, seed, vcd, svg, json } = options;
    let sight = Walkthrough { build, workers, floats, seed, vcd, svg }.run()?;
    if json {
        println!("{}", serde_json::json!(sight));
    } else {
        println!("{sight}");
    }
    Ok(())
}
