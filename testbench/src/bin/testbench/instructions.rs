//! `testbench instructions`: instructions of the core for one packet, as Valgrind counts them.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use iswitch_testbench::core_load::{LoadMode, SEGMENT_FLOATS};
use iswitch_testbench::instructions::{TABLE, compare, count, load, parse, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Compare with the table in docs/results/core.md, and fail if a count differs by more than 10 percent
    #[arg(long)]
    check: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// Only be the program that Valgrind watches
    #[arg(long, hide = true, value_name = "MODE")]
    load: Option<LoadMode>,
    #[arg(long, hide = true, default_value_t = SEGMENT_FLOATS)]
    floats: usize,
    #[arg(long, hide = true, default_value_t = 1)]
    rounds: u32,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if let Some(mode) = options.load {
        load(mode, options.floats, options.rounds);
        return ExitCode::SUCCESS;
    }
    match count_and_compare(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbench instructions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn count_and_compare(options: &Options) -> Result<()> {
    let counts = count(&std::env::current_exe().context("finding this program")?)?;
    if options.json {
        println!("{}", serde_json::to_string(&counts)?);
    } else {
        print!("{}", table(&counts));
    }
    if options.check {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TABLE);
        let document = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        compare(&counts, &parse(&document)?)?;
    }
    Ok(())
}
