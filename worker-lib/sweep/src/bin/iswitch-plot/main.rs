//! `iswitch plot`: draws the learning curves of runs.

mod runs;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser;
use iswitch_cli::program;
use iswitch_learn::env;
use iswitch_manual::{output, print_line};
use iswitch_sweep::curves::{Figure, estimates};
use iswitch_sweep::statistics::Estimate;
use serde::Serialize;

use runs::{Configuration, configurations};

/// Draw the learning curves of runs as SVG
///
/// Each configuration is drawn as a line that shows the mean return over environment steps. If a configuration has been
/// trained with several seeds, the line shows the interquartile mean (IQM) over the runs, with a band for its 95 %
/// bootstrap interval (Agarwal et al., 2021).
#[derive(Parser)]
#[command(name = "iswitch-plot", bin_name = "iswitch plot", version, max_term_width = 79, about)]
struct Cli {
    /// Run directories of `iswitch train`, or directories of `iswitch sweep`
    ///
    /// Runs belong to the same configuration if their config.toml files differ only in the seed. A run without
    /// config.toml gets its own line.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Output file for the figure; its name must end with .svg
    #[arg(long, value_name = "FILE", default_value = "curves.svg")]
    out: PathBuf,
    /// Title of the figure [default: the algorithms and the environments]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Print the curves as one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// A figure and its data. The keys of the JSON object are part of the public interface and must not change.
#[derive(Serialize)]
struct Plot {
    figure: PathBuf,
    configurations: Vec<Row>,
}

/// Data of one line.
#[derive(Serialize)]
struct Row {
    name: String,
    runs: Vec<RunRow>,
    curve: Vec<Point>,
}

#[derive(Serialize)]
struct RunRow {
    run: PathBuf,
    seed: Option<u64>,
    steps: Option<f64>,
    /// Mean return of the last 100 episodes; null if no episode ended.
    mean_return: Option<f64>,
}

#[derive(Serialize)]
struct Point {
    steps: f64,
    #[serde(flatten)]
    estimate: Estimate,
}

impl Cli {
    fn run(&self) -> anyhow::Result<ExitCode> {
        if self.out.extension().is_none_or(|extension| extension != "svg") {
            bail!(
                "--out {}: figures are SVG, expected a name that ends with .svg; programs such as rsvg-convert \
                 convert SVG to PNG",
                self.out.display()
            );
        }
        let configurations = configurations(&self.runs)?;
        let figure = Figure {
            title: self.title.clone().unwrap_or_else(|| title(&configurations)),
            note: "Lines: interquartile mean over runs; bands: 95 % bootstrap interval.".to_owned(),
            solved_return: solved_return(&configurations),
        };
        let curves: Vec<_> = configurations.iter().map(Configuration::curves).collect();
        fs::write(&self.out, figure.draw(&curves))
            .with_context(|| format!("cannot write {}", self.out.display()))?;
        let rows = configurations.into_iter().map(Row::new).collect();
        let plot = Plot { figure: self.out.clone(), configurations: rows };
        if self.json {
            print_line!("{}", serde_json::to_string(&plot)?)?;
        } else {
            output::print(format_args!("{}", plot.text()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Row {
    fn new(configuration: Configuration) -> Self {
        let curves: Vec<_> = configuration.runs.iter().map(|run| run.curve.clone()).collect();
        let curve =
            estimates(&curves).into_iter().map(|(steps, estimate)| Point { steps, estimate }).collect();
        let runs = configuration.runs.into_iter().map(|run| {
            let (steps, mean_return) = run.curve.last().copied().unzip();
            RunRow { run: run.directory, seed: run.seed, steps, mean_return }
        });
        Self { name: configuration.name, runs: runs.collect(), curve }
    }

    /// Returns one line of text that describes the curve.
    fn text(&self) -> String {
        let Self { name, runs, curve } = self;
        let runs = match runs.len() {
            1 => "1 run".to_owned(),
            count => format!("{count} runs"),
        };
        let Some(Point { steps, estimate: Estimate { iqm, low, high } }) = curve.last() else {
            return format!("- {name}: {runs}, no episode has ended\n");
        };
        format!(
            "- {name}: {runs}, return {iqm:.1} (95 % interval: {low:.1} to {high:.1}) after {steps:.0} steps\n"
        )
    }
}

impl Plot {
    fn text(&self) -> String {
        let head = format!("Learning curves in {}:\n", self.figure.display());
        head + &self.configurations.iter().map(Row::text).collect::<String>()
    }
}

/// Returns the default title: the names of the algorithms and of the environments, without duplicates.
fn title(configurations: &[Configuration]) -> String {
    let distinct = |name: &str| {
        let mut values = Vec::new();
        for value in configurations.iter().filter_map(|configuration| configuration.setting(name)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.join(", ")
    };
    let (algorithms, environments) = (distinct("algorithm").to_uppercase(), distinct("env"));
    if algorithms.is_empty() {
        return "Learning curves".to_owned();
    }
    format!("{algorithms} on {environments}: learning curves")
}

/// Returns the return at which the environment counts as solved if all runs use the same built-in environment, and
/// otherwise infinity. For an environment that is not built in, finding this return would require a Python interpreter.
fn solved_return(configurations: &[Configuration]) -> f64 {
    let mut environments = configurations.iter().map(|configuration| configuration.setting("env"));
    let Some(Some(first)) = environments.next() else { return f64::INFINITY };
    let is_common = environments.all(|other| other.as_ref() == Some(&first));
    if !is_common || !env::known_ids().contains(&first.as_str()) {
        return f64::INFINITY;
    }
    env::make(&first).map_or(f64::INFINITY, |env| env.spec().solved_return)
}

fn main() -> ExitCode {
    program::main(|cli: Cli| cli.run())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
