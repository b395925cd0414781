//! The `testbench mutants` subcommand: plants bugs in the protocol, which simulations or the core's tests must find.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iswitch_simulation::JobMode;
use iswitch_testbench::mutants::{Bench, Bug, Mutant, Outcome, Seeds, Trial, select};
use serde::Serialize;
use serde_json::json;

/// Maximum number of characters of a checker message that the table shows.
const SHOWN_CHARS: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Mutants to test, by name [default: all]
    ///
    /// The name of a mutant is the name of its file in testbench/mutants without .toml.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Number of seeds to search for each mutant
    ///
    /// A mutant must be detected within this number of seeds, unless the seed recorded in its file already reveals it.
    /// The default is 150000 for synchronous jobs, and 300 for asynchronous jobs, whose simulations take longer.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Time limit for the simulations of a mutant, or for its test, in seconds
    ///
    /// A mutant that hangs until the limit counts as undetected.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    time_limit_s: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    match test(options) {
        Ok(all_found) => ExitCode::from(u8::from(!all_found)),
        Err(error) => {
            eprintln!("testbench mutants: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Tests the mutants, and returns whether all of them were detected.
fn test(options: &Options) -> Result<bool> {
    let begin = Instant::now();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has no root")?;
    let mutants = select(Mutant::load_all(workspace)?, &options.names)?;
    let seeds = options.seeds.map_or_else(Seeds::default, Seeds::of_each);
    let bench = Bench::new(workspace, seeds, Duration::from_secs(options.time_limit_s))?;
    let progress = Progress::new(mutants.len());
    let control_seconds = run_controls(&bench, &mutants, &progress)?;
    let mut trials = Vec::new();
    for mutant in mutants {
        progress.begin(&mutant.name);
        let trial = bench.attempt(&mutant)?;
        progress.end(&format!("{}: {}", mutant.name, describe(&trial)));
        trials.push((mutant, trial));
    }
    progress.finish();
    let found = trials.iter().filter(|(_, trial)| trial.is_found()).count();
    let seconds = begin.elapsed().as_secs_f64();
    if options.json {
        let mutants: Vec<_> = trials.iter().map(Row::of).collect();
        let result = json!({
            "seeds": seeds, "seconds": seconds, "control_seconds": control_seconds, "found": found,
            "mutants": mutants,
        });
        println!("{result}");
    } else {
        print_table(&trials);
        println!("\n{found} of {} mutants detected, in {seconds:.0} s", trials.len());
        println!("without the mutants, the seeds that reveal them violate no rule");
    }
    Ok(found == trials.len())
}

/// Builds the simulation and runs the tests, both without a mutant; the tests must pass. Returns the time that this
/// took, in seconds.
fn run_controls(bench: &Bench, mutants: &[Mutant], progress: &Progress) -> Result<f64> {
    let mut seconds = 0.0;
    if mutants.iter().any(|mutant| mutant.bug.test.is_none()) {
        progress.begin("no mutant");
        seconds += bench.prepare_control().context("cannot build the simulation without a mutant")?;
        progress.note(&format!("no mutant: built in {seconds:.1} s"));
    }
    let tests: BTreeSet<_> = mutants.iter().filter_map(|mutant| mutant.bug.test.as_deref()).collect();
    for test in tests {
        progress.begin(&format!("no mutant, {test}"));
        let trial = bench.control_test(test).context("cannot test the code without a mutant")?;
        seconds += check_control("no mutant", &trial, progress)?;
    }
    Ok(seconds)
}

/// Returns the duration of a trial without a mutant, in seconds.
///
/// # Errors
/// Fails if the trial found a violation.
fn check_control(name: &str, trial: &Trial, progress: &Progress) -> Result<f64> {
    if !trial.is_clean() {
        bail!("the unmutated code already violates a rule: {}", describe(trial));
    }
    progress.note(&format!("{name}: {}", describe(trial)));
    Ok(trial.build_seconds + trial.run_seconds)
}

fn describe(trial: &Trial) -> String {
    let Trial { outcome, build_seconds, run_seconds } = trial;
    let times = format!("built in {build_seconds:.1} s, run in {run_seconds:.1} s");
    match outcome {
        Outcome::Found { seed, seeds, rule, detail } => {
            format!("{rule:?} at seed {seed}, after {seeds} seeds, {times}: {detail}")
        }
        Outcome::Survived { seeds } => format!("nothing found in {seeds} seeds, {times}"),
        Outcome::Failing { test } => format!("{test} fails, {times}"),
        Outcome::Passing { test } => format!("{test} passes, {times}"),
        Outcome::Failed { error } => format!("failed: {error}"),
    }
}

/// Row of the result: a mutant and its trial.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    what: &'a str,
    breaks: &'a str,
    mode: JobMode,
    file: &'a str,
    #[serde(flatten)]
    trial: &'a Trial,
}

impl<'a> Row<'a> {
    fn of((mutant, trial): &'a (Mutant, Trial)) -> Self {
        let Mutant { name, bug: Bug { what, breaks, mode, file, .. } } = mutant;
        Self { name, what, breaks, mode: *mode, file, trial }
    }
}

fn print_table(trials: &[(Mutant, Trial)]) {
    println!("| mutant | breaks | seed | message of the checker, or the test that fails | build time |");
    println!("|---|---|---|---|---|");
    for (Mutant { name, bug }, trial) in trials {
        let (seeds, finding) = match &trial.outcome {
            Outcome::Found { seed, rule, detail, .. } => {
                (seed.to_string(), format!("{rule:?}: {}", cut(detail)))
            }
            Outcome::Survived { seeds } => (format!("not in {seeds}"), "NOT DETECTED".to_owned()),
            Outcome::Failing { test } => ("-".to_owned(), format!("{test} fails")),
            Outcome::Passing { test } => ("-".to_owned(), format!("NOT DETECTED by {test}")),
            Outcome::Failed { error } => ("-".to_owned(), format!("FAILED: {}", cut(error))),
        };
        let Trial { build_seconds, .. } = trial;
        println!("| {name} | {} | {seeds} | {finding} | {build_seconds:.1} s |", bug.breaks);
    }
}

/// Returns at most the first [`SHOWN_CHARS`] characters of a text, on one line.
fn cut(text: &str) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Progress display: a bar on a terminal, otherwise one line per mutant.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn new(mutants: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} mutants, {elapsed}, {msg}");
        let bar = ProgressBar::with_draw_target(Some(mutants as u64), ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_secs(1));
        Self(Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))))
    }

    fn begin(&self, what: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(what.to_owned());
        }
    }

    fn note(&self, line: &str) {
        match &self.0 {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    fn end(&self, line: &str) {
        self.note(line);
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
