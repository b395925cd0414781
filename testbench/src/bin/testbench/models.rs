//! The `testbench models` subcommand.

use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::contest::Progress;
use iswitch_testbench::models::table::CSV_HEAD;
use iswitch_testbench::models::{Contender, Load, Testbed, measure};

use crate::output::{Csv, Measured, exit};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of actors that read at the same moment
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=4000))]
    actors: u16,
    /// Sizes of the models, in KiB
    #[arg(
        long, value_delimiter = ',', default_value = "2048",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20)
    )]
    kib: Vec<u32>,
    /// Numbers of cells to measure
    #[arg(
        long, value_delimiter = ',', default_value = "1,2,4,6,8",
        value_parser = clap::value_parser!(u8).range(1..=32)
    )]
    cells: Vec<u8>,
    #[command(flatten)]
    measured: Measured,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if !networks_and("testbench models", &["tc"]) {
        return ExitCode::FAILURE;
    }
    exit("models", try_run(options))
}

fn try_run(options: &Options) -> Result<(), String> {
    let has_nginx = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok();
    if !has_nginx {
        eprintln!(
            "nginx is not installed and is not measured; install it with `apt-get install nginx-light`"
        );
    }
    let cells: Vec<usize> = options.cells.iter().copied().map(usize::from).collect();
    let contenders = Contender::all(&cells, has_nginx);
    let most = cells.iter().copied().max().unwrap_or_default();
    let measured = &options.measured;
    measured.output.prepare()?;
    let mut testbed = Testbed::new(most, measured.rate, has_nginx);
    let mut csv = Csv::new(measured.csv.as_deref(), CSV_HEAD);
    let progress = Progress::new();
    for kib in &options.kib {
        let (actors, turns) = (usize::from(options.actors), usize::from(measured.turns));
        let load = Load { actors, len_bytes: (*kib as usize) << 10, turns };
        let table = measure(&mut testbed, &contenders, load, &progress);
        measured.output.show(&table.text(), &table.json());
        csv.add(&table.csv())?;
        measured.output.draw(&table.slug(), &table.figure())?;
    }
    Ok(())
}
