//! `testbench models`.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::models::table::CSV_HEAD;
use iswitch_testbench::models::{Contender, Load, Site, Table, measure};
use iswitch_testbench::peers::Rate;

use crate::files::write;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Actors that read at the same moment
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=4000))]
    actors: u16,
    /// Bytes of the models, in KiB
    #[arg(
        long, value_delimiter = ',', default_value = "2048",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20)
    )]
    kib: Vec<u32>,
    /// Numbers of cells
    #[arg(
        long, value_delimiter = ',', default_value = "1,2,4,6,8",
        value_parser = clap::value_parser!(u8).range(1..=32)
    )]
    cells: Vec<u8>,
    /// Rate of the links of learner and cells, each way
    #[arg(long, default_value = "0.8gbit")]
    rate: Rate,
    /// Times that each contender has its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// Write every turn of every contender into this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a figure for each size into this directory, as SVG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Print the measurements for each size as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if !networks_and("testbench models", &["tc"]) {
        return ExitCode::FAILURE;
    }
    match try_run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbench models: {error}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(options: &Options) -> Result<(), String> {
    let has_nginx = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok();
    if !has_nginx {
        eprintln!("nginx is missing: apt-get install nginx-light");
    }
    let cells: Vec<usize> = options.cells.iter().copied().map(usize::from).collect();
    let contenders = Contender::all(&cells, has_nginx);
    let most = cells.iter().copied().max().unwrap_or_default();
    let mut site = Site::new(most, options.rate, has_nginx);
    let mut csv = CSV_HEAD.to_owned();
    for kib in &options.kib {
        let (actors, turns) = (usize::from(options.actors), usize::from(options.turns));
        let load = Load { actors, len_bytes: (*kib as usize) << 10, turns };
        let table = measure(&mut site, &contenders, load, &|text| eprintln!("{text}"));
        println!("{}", if options.json { table.json().to_string() } else { table.text() });
        csv += &table.csv();
        draw(options, &table)?;
    }
    options.csv.as_ref().map_or(Ok(()), |path| write(path, &csv))
}

fn draw(options: &Options, table: &Table) -> Result<(), String> {
    let Some(directory) = &options.plots else { return Ok(()) };
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("--plots {}: {error}", directory.display()))?;
    write(&directory.join(format!("{}.svg", table.slug())), &table.figure())
}
