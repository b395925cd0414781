//! Output of the benchmarks: tables as text or JSON, figures, lines of CSV, and the exit status.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use iswitch_testbench::peers::Rate;
use serde_json::Value;

/// Options for the output of tables and figures.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Directory in which to write an SVG figure for each table
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Print each table as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Output {
    /// Creates the directory for figures before the measurement, so that a measurement of several hours does not fail
    /// at its end.
    pub(crate) fn prepare(&self) -> Result<(), String> {
        let Some(plots) = &self.plots else { return Ok(()) };
        std::fs::create_dir_all(plots).map_err(|error| format!("--plots {}: {error}", plots.display()))
    }

    /// Prints a table.
    pub(crate) fn show(&self, text: &str, json: &Value) {
        print(self.json, text, json);
    }

    /// Writes a figure, and prints its path.
    pub(crate) fn draw(&self, slug: &str, figure: &str) -> Result<(), String> {
        let Some(plots) = &self.plots else { return Ok(()) };
        let path = plots.join(format!("{slug}.svg"));
        write(&path, figure)?;
        eprintln!("{}", path.display());
        Ok(())
    }

    /// Writes a figure as [`Self::draw`] does, but reports an error as a warning, so that a measurement of several
    /// hours continues.
    pub(crate) fn draw_or_warn(&self, slug: &str, figure: &str) {
        if let Err(error) = self.draw(slug, figure) {
            eprintln!("{error}");
        }
    }
}

/// Options of benchmarks over shaped links, which can also write the result of every turn to a file.
#[derive(Clone, Debug, Args)]
pub(crate) struct Measured {
    /// Rate of each link, in each direction
    #[arg(long, default_value = "0.8gbit")]
    pub(crate) rate: Rate,
    /// Number of interleaved measurements of each contender
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) turns: u16,
    /// CSV file for the result of every turn of every contender
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// CSV file that is rewritten after each table.
#[derive(Debug)]
pub(crate) struct Csv<'a> {
    path: Option<&'a Path>,
    text: String,
}

impl<'a> Csv<'a> {
    /// Starts a file with its header line. Without a path, nothing is written.
    pub(crate) fn new(path: Option<&'a Path>, head: &str) -> Self {
        Self { path, text: head.to_owned() }
    }

    /// Adds lines and writes the file.
    pub(crate) fn add(&mut self, lines: &str) -> Result<(), String> {
        self.text += lines;
        self.path.map_or(Ok(()), |path| write(path, &self.text))
    }
}

/// Prints a result as text or as one line of JSON.
pub(crate) fn print(is_json: bool, text: &str, json: &Value) {
    if is_json {
        println!("{json}");
    } else {
        println!("{text}");
    }
}

/// Writes a file. The error text contains the path.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reports the error of a subcommand, if there is one, and returns the exit status.
pub(crate) fn exit(subcommand: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbench {subcommand}: {error}");
            ExitCode::FAILURE
        }
    }
}
