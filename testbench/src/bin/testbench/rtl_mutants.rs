//! The `testbench rtl-mutants` subcommand: injects faults into the accelerator's RTL, which the checks must find.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use hdl::verification::faults::{self, Check, Fault};
use indicatif::{ProgressBar, ProgressStyle};
use iswitch_testbench::rtl_mutants::{Bench, Effort, Outcome, Trial, select};
use serde::Serialize;
use serde_json::json;

/// Maximum number of characters of a check's message that the table shows.
const SHOWN_CHARS: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Name of a fault in hdl/faults.toml to test [default: all]
    ///
    /// Repeatable.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Number of packets that the lock-step check compares for each fault
    ///
    /// A fault that causes no error within these packets counts as undetected.
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// Number of random operand pairs that the adder check adds for each fault
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pairs: u64,
    /// Number of clock cycles that the module check simulates for each fault
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..))]
    cycles: u16,
    /// Seed of the random number generator
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Tests the faults, and succeeds if all of them are detected.
pub(crate) fn run(options: &Options) -> ExitCode {
    match try_all(options) {
        Ok(all_found) => ExitCode::from(u8::from(!all_found)),
        Err(error) => {
            eprintln!("testbench rtl-mutants: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_all(options: &Options) -> Result<bool> {
    let begin = Instant::now();
    let Options { packets, pairs, cycles, seed, .. } = *options;
    let effort = Effort { packets, pairs, cycles: cycles.into(), seed };
    let faults = select(faults::all(), &options.only)?;
    let bar = ProgressBar::new(faults.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} faults, {elapsed}, {msg}")?);
    bar.enable_steady_tick(Duration::from_secs(1));
    bar.set_message("compiling");
    let bench = Bench::build(faults, effort)?;
    let build_seconds = begin.elapsed().as_secs_f64();
    bar.set_message("no fault");
    let control_seconds = bench.control()?;
    let mut trials = Vec::new();
    for fault in bench.faults() {
        bar.set_message(fault.name.clone());
        trials.push((fault, bench.attempt(fault)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let is_found = |(_, trial): &&(&Fault, Trial)| matches!(trial.outcome, Outcome::Found { .. });
    let found = trials.iter().filter(is_found).count();
    let seconds = begin.elapsed().as_secs_f64();
    if options.json {
        let rows: Vec<_> = trials.iter().map(|(fault, trial)| Row::of(fault, trial)).collect();
        let result = json!({
            "effort": effort, "seconds": seconds, "build_seconds": build_seconds,
            "control_seconds": control_seconds, "found": found, "faults": rows,
        });
        println!("{result}");
    } else {
        print_table(&trials);
        println!(
            "\n{found} of {} faults detected, no error in the unchanged RTL; {seconds:.0} s, including \
             {build_seconds:.0} s of compilation",
            trials.len()
        );
    }
    Ok(found == trials.len())
}

/// Row of the result: a fault and its trial.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    what: &'a str,
    found_by: Check,
    #[serde(flatten)]
    trial: &'a Trial,
}

impl<'a> Row<'a> {
    fn of(fault: &'a Fault, trial: &'a Trial) -> Self {
        Self { name: &fault.name, what: &fault.what, found_by: fault.found_by, trial }
    }
}

fn print_table(trials: &[(&Fault, Trial)]) {
    println!("| fault | description | message of the check | time |");
    println!("|---|---|---|---|");
    for (fault, Trial { outcome, seconds }) in trials {
        let said = match outcome {
            Outcome::Found { detail } => cut(detail),
            Outcome::Survived => "NOT DETECTED".to_owned(),
            Outcome::Failed { error } => format!("FAILED: {}", cut(error)),
        };
        println!("| {} | {} | {said} | {seconds:.1} s |", fault.name, fault.what);
    }
}

/// Returns at most the first [`SHOWN_CHARS`] characters of a text, on one line.
fn cut(text: &str) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
