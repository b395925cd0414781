//! `hdl verify-adder`: compares the sums of the adder's Verilog with those of the host CPU.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use hdl::verification::adder::{Outcome, Plan, build, verify, verilog};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of random pairs of operands
    ///
    /// At least half of the operands have an exponent near the exponent of 1.0 or near a limit of the format. In one
    /// pair in eight, the operands nearly cancel.
    #[arg(long, default_value_t = 100_000_000)]
    random: u64,
    /// Seed for the random pairs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Step between the corner cases that are checked; 1 checks all of them
    ///
    /// The 37,748,736 corner cases are all pairs of operands that have one of the 256 exponents, one of 12 fractions,
    /// and either sign.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    corner_step: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Compiles the adder with Verilator and compares its sums with those of the host CPU.
pub(crate) fn run(options: &Options) -> ExitCode {
    let Options { random, seed, corner_step, json } = *options;
    let plan = Plan { random, seed, corner_step };
    let begin = Instant::now();
    let outcome = match add_all(plan) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("verify-adder, seed {seed}: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    let Outcome { sums, nan, infinite, subnormal } = outcome;
    if json {
        println!("{}", json!({ "random": random, "seed": seed, "outcome": outcome, "seconds": seconds }));
    } else {
        println!(
            "{sums} sums computed by the Verilog adder, {random} of them for random pairs ({nan} NaN, {infinite} \
             infinite, {subnormal} subnormal): all correct; {seconds:.0} s"
        );
    }
    ExitCode::SUCCESS
}

fn add_all(plan: Plan) -> Result<Outcome> {
    let directory = tempfile::tempdir()?;
    let program = build(&verilog(), directory.path())?;
    let bar = ProgressBar::new(plan.pairs());
    bar.set_style(ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} sums, {eta} left")?);
    let outcome = verify(&program, &[], plan, |sums| bar.set_position(sums));
    bar.finish_and_clear();
    Ok(outcome?)
}
