//! The `testbench instructions` subcommand: counts the instructions of the core per packet with Valgrind.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use iswitch_harness::binaries;
use iswitch_testbench::instructions::{TABLE, compare, count, parse, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Compare the counts with the table in docs/results/core.md
    ///
    /// The command fails if a count differs by more than 10 percent.
    #[arg(long)]
    check: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    match count_and_compare(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbench instructions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn count_and_compare(options: &Options) -> Result<()> {
    let counts = count(&binaries::core_load())?;
    if options.json {
        println!("{}", serde_json::to_string(&counts)?);
    } else {
        print!("{}", table(&counts));
    }
    if options.check {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TABLE);
        let name = || path.display().to_string();
        let document = std::fs::read_to_string(&path).with_context(name)?;
        compare(&counts, &parse(&document).with_context(name)?)?;
    }
    Ok(())
}
