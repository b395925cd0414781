//! The `testbench replay` subcommand.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::contest::Progress;
use iswitch_testbench::replay::table::CSV_HEAD;
use iswitch_testbench::replay::{Contender, Load, Reverb, Testbed, measure, throughput};

use crate::output::{Csv, Measured, exit};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Numbers of actors for which the insert latency is measured
    #[arg(
        long, value_delimiter = ',', default_value = "16,64,256,1024,2048",
        value_parser = clap::value_parser!(u16).range(1..=4000)
    )]
    actors: Vec<u16>,
    /// Sizes of the inserted items, in KiB; each size is measured separately
    #[arg(
        long, value_delimiter = ',', default_value = "64,256,2048",
        value_parser = clap::value_parser!(u32).range(1..=8 << 10)
    )]
    kib: Vec<u32>,
    /// Numbers of replayd shards for which the insert latency is measured
    #[arg(
        long, value_delimiter = ',', default_value = "1,2,4,8",
        value_parser = clap::value_parser!(u8).range(1..=32)
    )]
    shards: Vec<u8>,
    /// Duration of the measurement in each turn, in seconds
    ///
    /// If half of an actor's mean pause between two inserts exceeds this duration, the measurement lasts for half of
    /// the pause instead.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// Measure the throughput of one server with ACTORS actors, instead of latencies
    ///
    /// The actors insert items without a pause, over the loopback interface of this machine. --actors, --shards and
    /// --rate have no effect.
    #[arg(long, value_name = "ACTORS", value_parser = clap::value_parser!(u16).range(1..=256))]
    throughput: Option<u16>,
    #[command(flatten)]
    measured: Measured,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let reverb = Reverb::find();
    if let Err(missing) = &reverb {
        eprintln!("only replayd is measured, because {missing} was not found");
    }
    let reverb = reverb.ok();
    if let Some(actors) = options.throughput {
        measure_throughput(options, usize::from(actors), reverb.as_ref());
        return ExitCode::SUCCESS;
    }
    if !networks_and("testbench replay", &["tc"]) {
        return ExitCode::FAILURE;
    }
    exit("replay", measure_latency(options, reverb.as_ref()))
}

fn measure_throughput(options: &Options, actors: usize, reverb: Option<&Reverb>) {
    for kib in &options.kib {
        let load = throughput::Load {
            len_bytes: (*kib as usize) << 10,
            actors,
            turns: usize::from(options.measured.turns),
            measured: Duration::from_secs(u64::from(options.seconds)),
        };
        let measured = throughput::measure(reverb, load, &Progress::new());
        options.measured.output.show(&measured.text(), &measured.json());
    }
}

fn measure_latency(options: &Options, reverb: Option<&Reverb>) -> Result<(), String> {
    let mut actors: Vec<usize> = options.actors.iter().copied().map(usize::from).collect();
    actors.sort_unstable();
    let shards: Vec<usize> = options.shards.iter().copied().map(usize::from).collect();
    let contenders = Contender::all(&shards, reverb.is_some());
    let most = shards.iter().copied().max().unwrap_or_default();
    let measured = &options.measured;
    measured.output.prepare()?;
    let mut csv = Csv::new(measured.csv.as_deref(), CSV_HEAD);
    let progress = Progress::new();
    for kib in &options.kib {
        let load = Load {
            actors: actors.clone(),
            len_bytes: (*kib as usize) << 10,
            rate: measured.rate,
            turns: usize::from(measured.turns),
            least: Duration::from_secs(u64::from(options.seconds)),
        };
        let testbed = Testbed::new(most, &load, reverb);
        let table = measure(&testbed, &contenders, &load, &progress);
        measured.output.show(&table.text(), &table.json());
        csv.add(&table.csv())?;
        measured.output.draw(&table.slug(), &table.figure())?;
    }
    Ok(())
}
