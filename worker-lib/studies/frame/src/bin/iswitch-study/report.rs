//! Report of a reproduction: the tables in the layout of the results page, and their differences from that page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use iswitch_cli::files::make_directory;
use iswitch_study::files::write;
use serde::Serialize;

use crate::page::{self, Page, Table};
use crate::recipe::{LeftOut, Pick, Recipe, Study, TableRecipe};
use crate::results::{Cell, Maker, Results};
use crate::run::Steps;

/// Report of a reproduction. The keys of the JSON object are part of the public interface and must not change.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) study: &'static str,
    /// Whether small versions of the commands ran.
    pub(crate) quick: bool,
    pub(crate) steps: Vec<StepState>,
    pub(crate) tables: Vec<Made>,
    pub(crate) figures: Vec<MadeFigure>,
    /// Tables and figures of the page that the command does not produce.
    pub(crate) left_out: Vec<Absent>,
}

/// State of a step.
#[derive(Debug, Serialize)]
pub(crate) struct StepState {
    pub(crate) name: String,
    /// Commands of the step, one for each input.
    pub(crate) commands: Vec<String>,
    /// Approximate duration on two cores with real data, in minutes.
    pub(crate) expected_minutes: f64,
    /// Whether the step runs only with `--long`.
    pub(crate) long: bool,
    /// State of the step: `complete`, `missing` or `failed`.
    pub(crate) state: &'static str,
    /// Measured duration in seconds, if the step is complete.
    pub(crate) seconds: Option<f64>,
    /// Data files that were not given and are replaced by synthetic data.
    pub(crate) synthetic: Vec<&'static str>,
    pub(crate) error: Option<String>,
}

/// Table produced by the reproduction.
#[derive(Debug, Serialize)]
pub(crate) struct Made {
    /// Heading above the table on the page.
    pub(crate) section: String,
    /// Number of the table in its section, from 1.
    pub(crate) number: usize,
    /// Steps whose results the table contains.
    pub(crate) steps: Vec<String>,
    /// Steps that are not complete.
    pub(crate) missing: Vec<String>,
    /// Data files that were not given and are replaced by synthetic data.
    pub(crate) synthetic: Vec<&'static str>,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Comparison with the page; null if the table is based on synthetic data or on quick commands.
    pub(crate) compared: Option<Compared>,
}

/// Comparison of a table with the page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Compared {
    /// Count of the numbers that were compared.
    pub(crate) numbers: usize,
    /// Count of the numbers that are the same to the last printed digit.
    pub(crate) equal: usize,
    /// Numbers that differ, in descending order of relative difference.
    pub(crate) differences: Vec<Difference>,
}

/// Number that differs from the page.
#[derive(Debug, Serialize)]
pub(crate) struct Difference {
    pub(crate) row: String,
    pub(crate) column: String,
    pub(crate) page: f64,
    /// New number; null if the policy has no such result.
    pub(crate) now: Option<f64>,
    /// Absolute difference divided by the magnitude of the page's number; null if there is no new number.
    pub(crate) relative: Option<f64>,
}

/// Figure produced by the reproduction.
#[derive(Debug, Serialize)]
pub(crate) struct MadeFigure {
    /// File name of the figure on the page.
    pub(crate) page: String,
    pub(crate) step: String,
    /// Path in the output directory; null if the step is not complete.
    pub(crate) file: Option<String>,
    /// Data files that were not given and are replaced by synthetic data.
    pub(crate) synthetic: Vec<&'static str>,
}

/// Table or figure that the command does not produce.
#[derive(Debug, Serialize)]
pub(crate) struct Absent {
    pub(crate) what: String,
    pub(crate) reason: String,
}

/// Maximum number of differences that the text of the report lists for each table.
const LISTED: usize = 5;

/// Produces all tables and figures from the results of the steps.
///
/// # Errors
/// Fails if the results lack numbers of a table, or if a figure cannot be copied.
pub(crate) fn make(
    study: Study,
    run: &Steps<'_>,
    results: &Results,
    steps: Vec<StepState>,
) -> anyhow::Result<Report> {
    let Steps { recipe, page, mode, .. } = *run;
    let maker = Maker { recipe, mode, results };
    let tables = recipe.tables.iter().map(|table| made(&maker, page, table));
    let tables = tables.collect::<anyhow::Result<Vec<_>>>()?;
    let figures = figures(run, recipe)?;
    let left_out = recipe.left_out.iter().map(Absent::of).collect();
    Ok(Report { study: study.name(), quick: mode.is_quick, steps, tables, figures, left_out })
}

fn made(maker: &Maker<'_>, page: &Page, recipe: &TableRecipe) -> anyhow::Result<Made> {
    let TableRecipe { section, number, .. } = recipe;
    let table = page.table(section, *number).context("the page has no such table")?;
    let mut made = Made::new(table);
    let mut compared = Compared::default();
    for (row, cells) in recipe.rows.iter().zip(&table.rows) {
        let mut texts = vec![cells[0].clone()];
        for (at, column) in recipe.columns.iter().enumerate() {
            let (pick, model) = (row.pick(at).or(column).or(&recipe.cells), &cells[at + 1]);
            let cell = maker.cell(&pick, model);
            let cell = cell.with_context(|| {
                format!(
                    "table {number} of {section:?}, row {:?}, column {:?}",
                    cells[0],
                    table.header[at + 1]
                )
            })?;
            if !matches!(cell, Cell::Same | Cell::Skipped) {
                made.add_steps(&pick);
            }
            texts.push(match cell {
                Cell::Same => model.clone(),
                Cell::Skipped => "-".to_owned(),
                Cell::Missing(step) => {
                    made.missing.push(step);
                    "...".to_owned()
                }
                Cell::Made(text, values) => {
                    compared.add(&cells[0], &table.header[at + 1], model, &text, &values);
                    text
                }
            });
        }
        made.rows.push(texts);
    }
    made.finish(maker, compared);
    Ok(made)
}

impl Made {
    fn new(table: &Table) -> Self {
        Self {
            section: table.section.clone(),
            number: table.number,
            steps: Vec::new(),
            missing: Vec::new(),
            synthetic: Vec::new(),
            header: table.header.clone(),
            rows: Vec::new(),
            compared: None,
        }
    }

    /// Adds the steps whose results a cell contains.
    fn add_steps(&mut self, pick: &Pick) {
        let parts = pick.parts.iter().flatten().map(|part| part.or(pick));
        let picks = parts.chain([pick.clone()]);
        let over = |pick: Pick| [pick.step.clone(), pick.over.and_then(|over| over.step)];
        self.steps.extend(picks.flat_map(over).flatten());
    }

    fn finish(&mut self, maker: &Maker<'_>, mut compared: Compared) {
        for names in [&mut self.steps, &mut self.missing] {
            names.sort();
            names.dedup();
        }
        self.synthetic = synthetic(maker, &self.steps);
        if self.synthetic.is_empty() && !maker.mode.is_quick && compared.numbers > 0 {
            let size = |it: &Difference| it.relative.unwrap_or(f64::INFINITY);
            compared.differences.sort_by(|a, b| size(b).total_cmp(&size(a)));
            self.compared = Some(compared);
        }
    }

    /// Appends the table, its origin and its differences from the table on the results page.
    fn describe(&self, text: &mut String) {
        let _ = writeln!(text, "{} Steps: {}.", origin(&self.synthetic), self.steps.join(", "));
        if !self.missing.is_empty() {
            let _ = writeln!(text, "Not complete: {}.", self.missing.join(", "));
        }
        let line = |text: &mut String, cells: &[String]| _ = writeln!(text, "| {} |", cells.join(" | "));
        text.push('\n');
        line(text, &self.header);
        let _ = writeln!(text, "|{}", "---|".repeat(self.header.len()));
        self.rows.iter().for_each(|row| line(text, row));
        let Some(compared) = &self.compared else { return };
        let Compared { numbers, equal, differences } = compared;
        let _ = writeln!(text, "\n{equal} of {numbers} numbers are equal to those on the page.");
        for it in differences.iter().take(LISTED) {
            let now = it.now.map_or("-".to_owned(), |now| now.to_string());
            let _ = writeln!(text, "- {}, {}: {now} instead of {}", it.row, it.column, it.page);
        }
        if differences.len() > LISTED {
            let _ = writeln!(text, "- and {} more in report.json", differences.len() - LISTED);
        }
    }
}

/// Returns the data files that are missing for these steps, or for other steps whose files these steps use.
fn synthetic(maker: &Maker<'_>, names: &[String]) -> Vec<&'static str> {
    let mut missing = Vec::new();
    let mut waiting = names.to_vec();
    while let Some(step) = waiting.pop().and_then(|name| maker.recipe.step(&name)) {
        missing.extend(maker.mode.missing(step));
        waiting.extend(maker.recipe.needed(step));
    }
    missing.sort_unstable();
    missing.dedup();
    missing
}

impl Compared {
    fn add(&mut self, row: &str, column: &str, model: &str, text: &str, values: &[Option<f64>]) {
        let numbers = page::numbers(model);
        self.numbers += numbers.len();
        if model == text {
            self.equal += numbers.len();
            return;
        }
        for (number, value) in numbers.iter().zip(values) {
            let places = number.decimals;
            if value.is_some_and(|value| format!("{value:.places$}") == format!("{:.places$}", number.value))
            {
                self.equal += 1;
                continue;
            }
            let relative = value.map(|value| (value - number.value).abs() / number.value.abs());
            let (row, column) = (row.to_owned(), column.to_owned());
            self.differences.push(Difference { row, column, page: number.value, now: *value, relative });
        }
    }
}

impl Absent {
    fn of(left_out: &LeftOut) -> Self {
        let LeftOut { section, number, figure, reason } = left_out;
        let what = match (figure, section) {
            (Some(figure), _) => format!("figure {figure}"),
            (None, section) => format!("table {number} of \"{}\"", section.as_deref().unwrap_or("")),
        };
        Self { what, reason: reason.clone() }
    }
}

/// Copies the figures of complete steps to the directory `figures`, under the names that they have on the page.
fn figures(run: &Steps<'_>, recipe: &Recipe) -> anyhow::Result<Vec<MadeFigure>> {
    let directory = run.out.join("figures");
    let maker = Maker { recipe, mode: run.mode, results: &Results::new() };
    let mut made = Vec::new();
    for figure in &recipe.figures {
        let from = run.out.join(&figure.step).join(&figure.file);
        let file = from.exists().then(|| format!("figures/{}", figure.page));
        if let Some(file) = &file {
            make_directory(&directory)?;
            fs::copy(&from, run.out.join(file)).with_context(|| format!("cannot copy {}", from.display()))?;
        }
        let (page, step) = (figure.page.clone(), figure.step.clone());
        let synthetic = synthetic(&maker, std::slice::from_ref(&step));
        made.push(MadeFigure { page, step, file, synthetic });
    }
    Ok(made)
}

impl Report {
    /// Returns whether all steps are complete, except long ones that were not requested.
    pub(crate) fn is_complete(&self) -> bool {
        self.steps.iter().all(|step| step.state == "complete" || step.state == "not requested")
    }

    /// Writes the report to the output directory, as Markdown and as JSON.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub(crate) fn write(&self, out: &Path) -> anyhow::Result<()> {
        write(&out.join("report.md"), &self.text())?;
        write(&out.join("report.json"), &(serde_json::to_string_pretty(self)? + "\n"))
    }

    /// Returns the report as Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("# Reproduction of docs/results/{}.md\n\n", self.study);
        if self.quick {
            text += "**Quick run**: the commands are smaller than those of the page, so the numbers are not \
                     comparable.\n\n";
        }
        text += &self.summary();
        for table in &self.tables {
            let _ = write!(text, "\n## {}, table {}\n\n", table.section, table.number);
            table.describe(&mut text);
        }
        text += "\n## Figures\n\n";
        for figure in &self.figures {
            let data = origin(&figure.synthetic);
            let _ = match &figure.file {
                Some(file) => writeln!(text, "![{}]({file}) {data}\n", figure.page),
                None => writeln!(
                    text,
                    "{}: missing, because the step {} is not complete.\n",
                    figure.page, figure.step
                ),
            };
        }
        text += "## Not reproduced\n\n";
        self.left_out.iter().for_each(|it| _ = writeln!(text, "- {}: {}", it.what, it.reason));
        text += "\n## Commands\n\n";
        for step in &self.steps {
            let seconds = step.seconds.map_or(step.state.to_owned(), |seconds| format!("{seconds:.1} s"));
            let _ = writeln!(text, "- {} ({seconds}):", step.name);
            step.commands.iter().for_each(|command| _ = writeln!(text, "  - `{command}`"));
        }
        text
    }

    /// Returns a table of all tables with their data and differences.
    pub(crate) fn summary(&self) -> String {
        let mut text =
            "| table | data | numbers | as on the page | greatest relative difference |\n".to_owned();
        text += "|---|---|---|---|---|\n";
        for table in &self.tables {
            let data = if table.synthetic.is_empty() { "as on the page" } else { "synthetic" };
            let state = if table.missing.is_empty() { "" } else { ", incomplete" };
            let name = format!("{}, table {}", table.section, table.number);
            let _ = match &table.compared {
                None => writeln!(text, "| {name} | {data}{state} | | not compared | |"),
                Some(Compared { numbers, equal, differences }) => {
                    let greatest = differences.first().map_or("0".to_owned(), |it| {
                        it.relative
                            .map_or("no number".to_owned(), |relative| format!("{:.2} %", relative * 100.0))
                    });
                    writeln!(text, "| {name} | {data}{state} | {numbers} | {equal} | {greatest} |")
                }
            };
        }
        text
    }
}

/// Returns a sentence that describes the data of a table or figure.
fn origin(synthetic: &[&'static str]) -> String {
    if synthetic.is_empty() {
        return "Data: as on the page.".to_owned();
    }
    let names: Vec<_> = synthetic.iter().map(|name| format!("${name}")).collect();
    format!(
        "**Synthetic data** instead of the page's data, because these files were not given: {}.",
        names.join(", ")
    )
}
