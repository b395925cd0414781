//! `testbench replay`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::peers::Rate;
use iswitch_testbench::replay::table::CSV_HEAD;
use iswitch_testbench::replay::{Contender, Load, Reverb, Site, Table, measure, throughput};

use crate::files::write;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Numbers of actors
    #[arg(
        long, value_delimiter = ',', default_value = "16,64,256,1024,2048",
        value_parser = clap::value_parser!(u16).range(1..=4000)
    )]
    actors: Vec<u16>,
    /// Bytes of the items, in KiB
    #[arg(
        long, value_delimiter = ',', default_value = "64,256,2048",
        value_parser = clap::value_parser!(u32).range(1..=8 << 10)
    )]
    kib: Vec<u32>,
    /// Numbers of shards
    #[arg(
        long, value_delimiter = ',', default_value = "1,2,4,8",
        value_parser = clap::value_parser!(u8).range(1..=32)
    )]
    shards: Vec<u8>,
    /// Rate of the link of each shard, each way
    #[arg(long, default_value = "0.8gbit")]
    rate: Rate,
    /// Times that each contender has its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// Seconds that are measured in a turn; half of an actor's pause if that is longer
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// Measure how much one server takes from so many actors without pause, over no link, instead
    #[arg(long, value_name = "ACTORS", value_parser = clap::value_parser!(u16).range(1..=256))]
    throughput: Option<u16>,
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
    let reverb = Reverb::find();
    if let Err(missing) = &reverb {
        eprintln!("only replayd is measured: there is no {missing}");
    }
    let reverb = reverb.ok();
    if let Some(actors) = options.throughput {
        measure_throughput(options, usize::from(actors), reverb.as_ref());
        return ExitCode::SUCCESS;
    }
    if !networks_and("testbench replay", &["tc"]) {
        return ExitCode::FAILURE;
    }
    match measure_latency(options, reverb.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbench replay: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_throughput(options: &Options, actors: usize, reverb: Option<&Reverb>) {
    let measured = Duration::from_secs(u64::from(options.seconds));
    for kib in &options.kib {
        let len_bytes = (*kib as usize) << 10;
        let measured = throughput::measure(reverb, len_bytes, actors, usize::from(options.turns), measured);
        println!("{}", if options.json { measured.json().to_string() } else { measured.text() });
    }
}

fn measure_latency(options: &Options, reverb: Option<&Reverb>) -> Result<(), String> {
    let mut actors: Vec<usize> = options.actors.iter().copied().map(usize::from).collect();
    actors.sort_unstable();
    let shards: Vec<usize> = options.shards.iter().copied().map(usize::from).collect();
    let contenders = Contender::all(&shards, reverb.is_some());
    let most = shards.iter().copied().max().unwrap_or_default();
    let mut csv = CSV_HEAD.to_owned();
    for kib in &options.kib {
        let load = Load {
            actors: actors.clone(),
            len_bytes: (*kib as usize) << 10,
            rate: options.rate,
            turns: usize::from(options.turns),
            least: Duration::from_secs(u64::from(options.seconds)),
        };
        let site = Site::new(most, &load, reverb);
        let table = measure(&site, &contenders, &load, &|text| eprintln!("{text}"));
        println!("{}", if options.json { table.json().to_string() } else { table.text() });
        csv += &table.csv();
        if let Some(path) = &options.csv {
            write(path, &csv)?;
        }
        draw(options, &table)?;
    }
    Ok(())
}

fn draw(options: &Options, table: &Table) -> Result<(), String> {
    let Some(directory) = &options.plots else { return Ok(()) };
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("--plots {}: {error}", directory.display()))?;
    write(&directory.join(format!("{}.svg", table.slug())), &table.figure())
}
