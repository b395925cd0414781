//! The `simulate` command, which runs random scenarios on all cores.

use std::fmt::Debug;
use std::io::IsTerminal;
use std::num::NonZero;
use std::ops::AddAssign;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::{Failure, JobMode, asynchronous};

/// Interval between progress lines if there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Number of seeds that a thread takes at a time.
const BATCH: u64 = 16;

/// Command-line options of a search.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Mode of the simulated job
    ///
    /// The same seed produces different scenarios in the two modes.
    #[arg(long, default_value_t = JobMode::Synchronous)]
    mode: JobMode,
    /// Number of seeds to run
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run only this seed, to reproduce a violation
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// Give the workers a standby switch, which takes over when the first one fails
    ///
    /// Both switches may be alive while links to them are cut.
    #[arg(long)]
    standby: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs the scenario of one seed.
type Simulate<S, R> = fn(u64) -> Result<R, Box<Failure<S>>>;

/// State shared by the threads. `S` is the scenario type, `R` the type of the counts.
struct Shared<S, R> {
    simulate: Simulate<S, R>,
    next: AtomicU64,
    end: u64,
    has_failed: AtomicBool,
    failure: Mutex<Option<Box<Failure<S>>>>,
    total: Mutex<R>,
    progress: Progress,
}

/// Runs scenarios until one violates a rule and prints the result. Fails if a rule was violated.
pub fn run(options: &Options) -> ExitCode {
    match (options.mode, options.standby) {
        (JobMode::Synchronous, false) => search(options, crate::simulate),
        (JobMode::Synchronous, true) => search(options, crate::simulate_with_standby),
        (JobMode::Asynchronous, false) => search(options, asynchronous::simulate),
        (JobMode::Asynchronous, true) => search(options, asynchronous::simulate_with_standby),
    }
}

fn search<S, R>(options: &Options, simulate: Simulate<S, R>) -> ExitCode
where
    S: Debug + Serialize + Send,
    R: AddAssign + Debug + Default + Serialize + Send,
{
    let (first, seeds) = options.seed.map_or((options.first, options.seeds), |seed| (seed, 1));
    let begin = Instant::now();
    let shared = Shared {
        simulate,
        next: AtomicU64::new(first),
        end: first.saturating_add(seeds),
        has_failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        total: Mutex::new(R::default()),
        progress: Progress::new(seeds, options.json),
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&shared));
        }
    });
    shared.progress.finish();
    let done = seeds.min(shared.progress.done.load(Ordering::Relaxed));
    let failure = shared.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let total = shared.total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(failure) = &failure {
        explain(failure, options);
    }
    if options.json {
        let violation = failure.as_ref().map(|failure| {
            let rule = &failure.violation.rule;
            serde_json::json!({ "seed": failure.seed, "rule": rule, "detail": failure.violation.detail })
        });
        let seconds = begin.elapsed().as_secs_f64();
        let result = serde_json::json!({
            "mode": options.mode, "first": first, "seeds": done, "seconds": seconds, "violation": violation,
            "total": total,
        });
        println!("{result}");
    } else if failure.is_none() {
        println!("ran {done} seeds, starting from {first}, in {:.1?}; no rule was violated", begin.elapsed());
        println!("{total:#?}");
    }
    ExitCode::from(u8::from(failure.is_some()))
}

/// Runs seeds until none are left or one has failed. If several seeds fail, only the lowest is kept.
fn work<S, R: AddAssign + Default>(shared: &Shared<S, R>) {
    while !shared.has_failed.load(Ordering::Relaxed) {
        let first = shared.next.fetch_add(BATCH, Ordering::Relaxed);
        let batch = first..shared.end.min(first.saturating_add(BATCH));
        if batch.is_empty() {
            return;
        }
        let mut report = R::default();
        for seed in batch.clone() {
            match (shared.simulate)(seed) {
                Ok(one) => report += one,
                Err(failure) => {
                    shared.has_failed.store(true, Ordering::Relaxed);
                    let mut kept = shared.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    if kept.as_ref().is_none_or(|kept| failure.seed < kept.seed) {
                        *kept = Some(failure);
                    }
                    break;
                }
            }
        }
        *shared.total.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += report;
        shared.progress.advance(batch.end - batch.start);
    }
}

/// Prints to standard error everything that is needed to reproduce a violation.
fn explain<S: Debug + Serialize>(failure: &Failure<S>, options: &Options) {
    let Failure { seed, scenario, violation, transcript } = failure;
    eprintln!("{transcript}");
    match serde_json::to_string(scenario) {
        Ok(scenario) => eprintln!("scenario: {scenario}"),
        Err(error) => eprintln!("scenario: {scenario:?} ({error})"),
    }
    eprintln!("seed {seed} at commit {}: {violation}", commit());
    let standby = if options.standby { " --standby" } else { "" };
    eprintln!("to reproduce: testbench simulate --mode {}{standby} --seed {seed}", options.mode);
}

/// Returns the commit of the working directory.
fn commit() -> String {
    let output = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    let commit = output.ok().filter(|output| output.status.success());
    commit.map_or_else(
        || "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// Progress display: a bar on a terminal, otherwise a line at regular intervals.
struct Progress {
    bar: Option<ProgressBar>,
    done: AtomicU64,
    seeds: u64,
    last_line: Mutex<Instant>,
}

impl Progress {
    fn new(seeds: u64, quiet: bool) -> Self {
        let bar = if quiet {
            Some(ProgressBar::hidden())
        } else if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} seeds, {per_sec}, {eta} left");
            let bar = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr());
            Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
        } else {
            None
        };
        Self { bar, done: AtomicU64::new(0), seeds, last_line: Mutex::new(Instant::now()) }
    }

    fn advance(&self, by: u64) {
        let done = self.done.fetch_add(by, Ordering::Relaxed) + by;
        if let Some(bar) = &self.bar {
            bar.inc(by);
            return;
        }
        let mut last_line = self.last_line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last_line.elapsed() >= LINE_INTERVAL {
            *last_line = Instant::now();
            eprintln!("{done}/{} seeds", self.seeds);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
