//! The `testbench neighbour` subcommand.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use iswitch_harness::cluster::PortKind;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::contest::Progress;
use iswitch_testbench::neighbour::{Attack, Load, Testbed, measure};
use strum::VariantArray as _;

use crate::output::{exit, print};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of workers of the victim, the job whose goodput is measured
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=32))]
    workers: u8,
    /// Number of floats in the vector of the victim
    #[arg(long, default_value_t = 10_119, value_parser = clap::value_parser!(u32).range(100..=4_000_000))]
    floats: u32,
    /// Duration of the victim's aggregation in each run, in seconds
    ///
    /// The maximum is 8 seconds, because the switch expels silent members of the attacker after 10 seconds.
    #[arg(long, default_value_t = 1.5, value_parser = seconds)]
    seconds: f64,
    /// Number of times that the victim runs alone and under each attack
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// Attacks to measure [default: all]
    #[arg(long, value_delimiter = ',', value_parser = attack)]
    only: Vec<Attack>,
    /// Kind of port that the daemon receives on
    #[arg(long, value_enum, default_value = "raw")]
    ports: Ports,
    /// Print the measurements as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ports {
    /// Raw ports, on the interfaces of a bridge
    Raw,
    /// A UDP socket
    Udp,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=8.0).contains(seconds));
    seconds.ok_or_else(|| "expected 0.1 to 8".to_owned())
}

fn attack(text: &str) -> Result<Attack, String> {
    let all = Attack::VARIANTS.iter().copied();
    let names = || all.clone().map(Attack::name).collect::<Vec<_>>().join(", ");
    all.clone().find(|attack| attack.name() == text).ok_or_else(|| format!("expected one of {}", names()))
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if !networks_and("testbench neighbour", &[]) {
        return ExitCode::FAILURE;
    }
    let attacks = if options.only.is_empty() { Attack::VARIANTS } else { &options.only };
    let workers = usize::from(options.workers);
    let kind = match options.ports {
        Ports::Raw => PortKind::Raw,
        Ports::Udp => PortKind::Udp,
    };
    let load = Load { workers, floats: options.floats, seconds: options.seconds };
    let testbed = Testbed::new(workers, kind);
    match measure(&testbed, attacks, load, options.turns.into(), &Progress::new()) {
        Ok(table) => {
            print(options.json, &table.text(), &table.json());
            ExitCode::from(u8::from(!table.is_exact()))
        }
        Err(error) => exit("neighbour", Err(error)),
    }
}
