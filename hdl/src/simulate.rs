//! `hdl simulate`: traces one segment through the accelerator.

use std::path::PathBuf;

use anyhow::Result;
use hdl::accelerator::Build;
use hdl::walkthrough::Walkthrough;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Build of the accelerator
    #[arg(long, value_enum, default_value_t = Build::Slots128)]
    build: Build,
    /// Number of workers that contribute
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    workers: u8,
    /// Number of floats in the segment
    #[arg(long, default_value_t = 366, value_parser = clap::value_parser!(u16).range(1..=366))]
    floats: u16,
    /// Seed for the random floats
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Value Change Dump (VCD) file for the waveforms of all signals
    #[arg(long)]
    vcd: Option<PathBuf>,
    /// SVG file for a chart that shows when each stage is active
    #[arg(long, requires = "vcd")]
    svg: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: Options) -> Result<()> {
    let Options { build, workers, floats, seed, vcd, svg, json } = options;
    let timings = Walkthrough { build, workers, floats, seed, vcd, svg }.run()?;
    if json {
        println!("{}", serde_json::json!(timings));
    } else {
        println!("{timings}");
    }
    Ok(())
}
