//! Output of the benchmarks: tables as text or JSON, figures, lines of CSV, and the exit status.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use iswitch_testbench::peers::Rate;
use serde_json::Value;

/// How tables are shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Write a figure for each table into this directory, as SVG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Print each table as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Output {
    /// Makes the directory of the figures, so that a measurement of hours does not end there.
    pub(crate) fn prepare(&self) -> Result<(), String> {
        let Some(plots) = &self.plots else { return Ok(()) };
        std::fs::create_dir_all(plots).map_err(|error| format!("--plots {}: {error}", plots.display()))
    }

    /// Prints a table.
    pub(crate) fn show(&self, text: &str, json: &Value) {
        print(self.json, text, json);
    }

    /// Writes a figure, and says where.
    pub(crate) fn draw(&self, slug: &str, figure: &str) -> Result<(), String> {
        let Some(plots) = &self.plots else { return Ok(()) };
        let path = plots.join(format!("{slug}.svg"));
        write(&path, figure)?;
        eprintln!("{}", path.display());
        Ok(())
    }

    /// The same where a measurement of hours goes on without the figure.
    pub(crate) fn draw_or_warn(&self, slug: &str, figure: &str) {
        if let Err(error) = self.draw(slug, figure) {
            eprintln!("{error}");
        }
    }
}

/// What benchmarks over shaped links have in common that also write every turn into a file.
#[derive(Clone, Debug, Args)]
pub(crate) struct Measured {
    /// Rate of each link, each way
    #[arg(long, default_value = "0.8gbit")]
    pub(crate) rate: Rate,
    /// Times that each contender has its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) turns: u16,
    /// Write every turn of every contender into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Lines that are written after each table.
#[derive(Debug)]
pub(crate) struct Csv<'a> {
    path: Option<&'a Path>,
    text: String,
}

impl<'a> Csv<'a> {
    /// A file with the head of its columns, if there is a path.
    pub(crate) fn new(path: Option<&'a Path>, head: &str) -> Self {
        Self { path, text: head.to_owned() }
    }

    /// Adds lines, and writes the file.
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

/// Writes a file; an error names it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The exit status of a subcommand, whose error is reported.
pub(crate) fn exit(subcommand: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbench {subcommand}: {error}");
            ExitCode::FAILURE
        }
    }
}
