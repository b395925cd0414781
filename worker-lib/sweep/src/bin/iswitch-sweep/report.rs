//! Results of a sweep: a table in Markdown, all runs as CSV, the table and the runs as JSON, and learning curves.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use iswitch_manual::output;
use iswitch_sweep::curves::{Curves, Figure};
use iswitch_sweep::statistics::{Estimate, quantile};
use serde::Serialize;

use crate::grid::{self, Settings};
use crate::plan::{Configuration, Plan};
use crate::record::{Outcome, Run, State};

/// Results of a sweep. The keys of the JSON object are part of the public interface and must not change.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    algorithm: &'static str,
    env: &'a str,
    /// Number of workers of each run.
    workers: usize,
    /// Return at which the environment counts as solved; null if the environment does not define one.
    solved_return: Option<f64>,
    /// Options of `iswitch train` that are the same for all runs.
    options: &'a [String],
    first_seed: u64,
    seeds: u64,
    configurations: Vec<Summary<'a>>,
    #[serde(skip)]
    curves: String,
}

/// Results of one configuration.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(serialize_with = "as_map")]
    settings: &'a Settings,
    solved: usize,
    finished: usize,
    failed: usize,
    /// The interquartile mean of the returns and its 95 % interval.
    estimate: Option<Estimate>,
    median: Option<f64>,
    least: Option<f64>,
    greatest: Option<f64>,
    runs: Vec<Row<'a>>,
}

/// Result of one run.
#[derive(Serialize)]
struct Row<'a> {
    seed: u64,
    /// State of the run: `finished`, `failed` or `unfinished`.
    state: &'static str,
    final_return: Option<f64>,
    solved: bool,
    steps: Option<u64>,
    seconds: Option<f64>,
    error: Option<&'a str>,
}

fn as_map<S: serde::Serializer>(settings: &&Settings, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(settings.iter().map(|(name, value)| (name, value)))
}

impl<'a> Report<'a> {
    pub(crate) fn new(plan: &'a Plan, runs: &[Run], states: &'a [State]) -> Self {
        let (mut summaries, mut curves) = (Vec::new(), Vec::new());
        for (at, Configuration { settings, .. }) in plan.configurations.iter().enumerate() {
            let own = || runs.iter().zip(states).filter(|(run, _)| run.configuration == at);
            summaries
                .push(Summary::new(settings, own().map(|(run, state)| Row::new(run.seed, state)).collect()));
            let finished = own().filter(|(_, state)| state.is_finished());
            let runs = finished.map(|(run, _)| run.curve()).collect();
            curves.push(Curves { name: grid::name(settings), runs });
        }
        Self {
            algorithm: plan.algorithm,
            env: &plan.env,
            workers: plan.workers,
            solved_return: plan.solved_return.is_finite().then_some(plan.solved_return),
            options: &plan.arguments,
            first_seed: *plan.seeds.start(),
            seeds: plan.seeds.end() - plan.seeds.start() + 1,
            curves: figure(plan).draw(&curves),
            configurations: summaries,
        }
    }

    /// Returns whether all runs are finished.
    pub(crate) fn is_complete(&self) -> bool {
        self.configurations.iter().all(|summary| summary.finished as u64 == self.seeds)
    }

    /// Writes the results to files in the directory of the sweep.
    pub(crate) fn write(&self, out: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self)? + "\n";
        let files = [
            ("report.md", self.text()),
            ("results.csv", self.csv()),
            ("results.json", json),
            ("curves.svg", self.curves.clone()),
        ];
        for (name, text) in files {
            let path = out.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Prints the results to standard output.
    pub(crate) fn print(&self, out: &Path, is_json: bool) -> anyhow::Result<()> {
        let text = if is_json {
            serde_json::to_string(self)? + "\n"
        } else {
            format!("{}\nAll results are in {}.\n", self.text(), out.display())
        };
        output::print(format_args!("{text}"))?;
        Ok(())
    }

    /// Returns the results as Markdown.
    fn text(&self) -> String {
        let Self { env, workers, first_seed, seeds, options, .. } = self;
        let algorithm = self.algorithm.to_uppercase();
        let last_seed = first_seed + (seeds - 1);
        let mut text =
            format!("## {algorithm} on {env}, {workers} worker(s), seeds {first_seed} to {last_seed}\n\n");
        if !options.is_empty() {
            let _ = writeln!(text, "Options of all runs: `{}`.\n", options.join(" "));
        }
        text += "| configuration | solved | IQM of the return, 95 % interval | median | least | greatest |\n\
                 |---|---|---|---|---|---|\n";
        for summary in &self.configurations {
            text += &summary.table_row(self.solved_return);
        }
        text += "\nThe return of a run is the mean return of the last 100 training episodes. The IQM is the mean over \
                 the runs without the lowest and the highest quarter; its interval is a percentile bootstrap \
                 interval over the runs.\n";
        if let Some(solved) = self.solved_return {
            let _ = writeln!(text, "A run has solved {env} if its return is at least {solved}.");
        }
        text + &self.exceptions()
    }

    /// Returns a list of the runs that have not solved the environment, as text.
    fn exceptions(&self) -> String {
        let mut text = String::new();
        for Summary { settings, runs, .. } in &self.configurations {
            for row in runs.iter().filter(|row| !row.solved) {
                let result = match (row.error, row.final_return) {
                    (Some(error), _) => format!("failed: {error}"),
                    (None, Some(value)) => format!("return {value:.1}"),
                    (None, None) => row.state.to_owned(),
                };
                let _ = writeln!(text, "- {}, seed {}: {result}", grid::name(settings), row.seed);
            }
        }
        if text.is_empty() { text } else { format!("\nRuns that are not solved:\n\n{text}") }
    }

    /// Returns all runs as CSV.
    fn csv(&self) -> String {
        let names = self.configurations.first().map_or(&[][..], |first| &first.settings[..]);
        let names = names.iter().map(|(name, _)| name.as_str());
        let columns = ["seed", "state", "final_return", "solved", "steps", "seconds", "error"];
        let mut text = csv_row(names.chain(columns).map(str::to_owned));
        for Summary { settings, runs, .. } in &self.configurations {
            for row in runs {
                let values = settings.iter().map(|(_, value)| value.clone());
                text += &csv_row(values.chain(row.cells()));
            }
        }
        text
    }
}

/// Returns the figure for the learning curves without the curves themselves: its title, its note and the solved return.
fn figure(plan: &Plan) -> Figure {
    let (algorithm, seeds) = (plan.algorithm.to_uppercase(), plan.seeds.clone().count());
    Figure {
        title: format!("{algorithm} on {}, {} worker(s): learning curves", plan.env, plan.workers),
        note: format!("Lines: interquartile mean of {seeds} seeds; bands: 95 % bootstrap interval."),
        solved_return: plan.solved_return,
    }
}

impl<'a> Summary<'a> {
    fn new(settings: &'a Settings, runs: Vec<Row<'a>>) -> Self {
        let mut returns: Vec<f64> = runs.iter().filter_map(|row| row.final_return).collect();
        let estimate = Estimate::of(&returns, Estimate::RESAMPLES);
        returns.sort_by(f64::total_cmp);
        let count = |is: fn(&Row<'_>) -> bool| runs.iter().filter(|row| is(row)).count();
        Self {
            settings,
            solved: count(|row| row.solved),
            finished: count(|row| row.state == FINISHED),
            failed: count(|row| row.error.is_some()),
            estimate,
            median: (!returns.is_empty()).then(|| quantile(&returns, 0.5)),
            least: returns.first().copied(),
            greatest: returns.last().copied(),
            runs,
        }
    }

    fn table_row(&self, solved_return: Option<f64>) -> String {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let solved = match solved_return {
            Some(_) => format!("{} of {}", self.solved, self.runs.len()),
            None => "-".to_owned(),
        };
        let estimate = self
            .estimate
            .map_or("-".to_owned(), |Estimate { iqm, low, high }| format!("{iqm:.1} [{low:.1}, {high:.1}]"));
        format!(
            "| {} | {solved} | {estimate} | {} | {} | {} |\n",
            grid::name(self.settings),
            number(self.median),
            number(self.least),
            number(self.greatest)
        )
    }
}

const FINISHED: &str = "finished";

impl<'a> Row<'a> {
    fn new(seed: u64, state: &'a State) -> Self {
        let row = |state, error| Self {
            seed,
            state,
            error,
            final_return: None,
            solved: false,
            steps: None,
            seconds: None,
        };
        match state {
            State::New | State::Unfinished => row("unfinished", None),
            State::Failed(error) => row("failed", Some(error.as_str())),
            State::Finished(Outcome { steps, final_return, solved, seconds }) => Self {
                final_return: *final_return,
                solved: *solved,
                steps: Some(*steps),
                seconds: Some(*seconds),
                ..row(FINISHED, None)
            },
        }
    }

    fn cells(&self) -> [String; 7] {
        let Self { seed, state, final_return, solved, steps, seconds, error } = self;
        let number = |value: &Option<f64>| value.map_or(String::new(), |value| value.to_string());
        [
            seed.to_string(),
            (*state).to_owned(),
            number(final_return),
            solved.to_string(),
            steps.map_or(String::new(), |steps| steps.to_string()),
            number(seconds),
            error.unwrap_or_default().to_owned(),
        ]
    }
}

/// Returns a row of CSV (RFC 4180).
fn csv_row(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    };
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}
