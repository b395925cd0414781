//! `hdl verify-adder`: compares the adder's Verilog with the host CPU's sums.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use hdl::verification::adder::{Outcome, Plan, build, verify, verilog};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Random pairs of operands; half of them are at an edge of the format
    #[arg(long, default_value_t = 100_000_000)]
    random: u64,
    /// Decides about everything that is random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Add only every so many-th of the 37,748,736 pairs of all exponents, 12 fractions and both signs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    corner_step: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Compiles the adder with Verilator and compares its sums.
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
            "{sums} sums ({random} of random pairs; {nan} NaN, {infinite} infinite, {subnormal} subnormal), no \
             difference, in {seconds:.0} s"
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
