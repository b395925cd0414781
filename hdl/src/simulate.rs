//! `hdl simulate`: traces one segment through the accelerator.

use std::path::PathBuf;

use anyhow::Result;
use hdl::accelerator::Build;
use hdl::walkthrough::Walkthrough;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
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

pub(crate) fn run(options: Options) -> Result<()> {
    let Options { build, workers, floats, seed, vcd, svg, json } = options;
    let sight = Walkthrough { build, workers, floats, seed, vcd, svg }.run()?;
    if json {
        println!("{}", serde_json::json!(sight));
    } else {
        println!("{sight}");
    }
    Ok(())
}
