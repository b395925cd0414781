//! Plan of a sweep: its configurations and runs, and their execution.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iswitch_cli::files::{lock, make_directory};
use iswitch_cli::progress::Steps;
use iswitch_cli::signals;

use crate::grid::{self, Settings};
use crate::pool::Pool;
use crate::record::{Run, State};
use crate::report::Report;

/// Programs that may have locked the output directory, and the next step for the user.
const HOLDER: &str = "another sweep or one of its runs";

/// Plan of a sweep.
pub(crate) struct Plan {
    pub(crate) algorithm: &'static str,
    /// Id of the environment.
    pub(crate) env: String,
    /// Number of workers of each run.
    pub(crate) workers: usize,
    /// Return at which the environment counts as solved; infinite if the environment does not define one.
    pub(crate) solved_return: f64,
    /// Directory of the sweep.
    pub(crate) out: PathBuf,
    /// Options of `iswitch train` that are the same for all runs.
    pub(crate) arguments: Vec<String>,
    /// Configurations, each of which is trained with each seed.
    pub(crate) configurations: Vec<Configuration>,
    pub(crate) seeds: RangeInclusive<u64>,
    /// Number of concurrent runs.
    pub(crate) jobs: usize,
    /// Whether existing runs in the directory are discarded.
    pub(crate) discards: bool,
}

/// One combination of hyper-parameters.
pub(crate) struct Configuration {
    pub(crate) settings: Settings,
    /// Number of environment steps of a run.
    pub(crate) total_steps: u64,
}

impl Plan {
    /// Trains all runs that are not finished, writes the results to the directory of the sweep, and prints them.
    pub(crate) fn execute(&self, is_quiet: bool, is_json: bool) -> anyhow::Result<ExitCode> {
        let stop = Arc::new(AtomicBool::new(false));
        signals::stop_on_signal(&stop)?;
        make_directory(&self.out)?;
        let lock = lock(&self.out, HOLDER)?;
        let runs = self.runs();
        let states = runs.iter().map(|run| run.state(self.discards)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut progress = Progress::new(&runs, states, is_quiet);
        let waiting: Vec<_> = progress.unfinished().collect();
        let pool = Pool { jobs: self.jobs, discards: self.discards, lock: &lock, stop: &stop };
        pool.train(&runs, waiting, &mut |at, state| progress.record(at, state));
        progress.steps.finish();
        let report = Report::new(self, &runs, &progress.states);
        report.write(&self.out)?;
        report.print(&self.out, is_json)?;
        if stop.load(Ordering::Relaxed) {
            eprintln!("iswitch sweep: stopped; repeat the command to continue");
        }
        Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Returns all runs, ordered by seed and then by configuration, so that an interrupted sweep has trained all
    /// configurations about equally often.
    fn runs(&self) -> Vec<Run> {
        let of_seed = |seed: u64| (0..self.configurations.len()).map(move |at| self.run(at, seed));
        self.seeds.clone().flat_map(of_seed).collect()
    }

    fn run(&self, configuration: usize, seed: u64) -> Run {
        let Configuration { settings, total_steps } = &self.configurations[configuration];
        let settings_given = settings.iter().map(|(name, value)| format!("--set={name}={value}"));
        let first = [self.algorithm.to_owned()].into_iter().chain(self.arguments.iter().cloned());
        Run {
            configuration,
            seed,
            total_steps: *total_steps,
            directory: self.out.join(grid::directory(settings)).join(format!("seed-{seed}")),
            arguments: first.chain(settings_given).chain([format!("--seed={seed}")]).collect(),
        }
    }
}

/// States of all runs, and the progress display.
struct Progress {
    states: Vec<State>,
    steps: Steps,
    begin: Instant,
    /// Number of runs that have been completed since this process started.
    completed: u32,
    names: Vec<String>,
}

impl Progress {
    fn new(runs: &[Run], states: Vec<State>, is_quiet: bool) -> Self {
        let mut steps = Steps::new("runs", runs.len() as u64, is_quiet);
        steps.set(states.iter().filter(|state| state.is_finished()).count() as u64);
        let names = runs.iter().map(|run| run.directory.display().to_string()).collect();
        Self { states, steps, begin: Instant::now(), completed: 0, names }
    }

    fn unfinished(&self) -> impl Iterator<Item = usize> {
        self.states.iter().enumerate().filter(|(_, state)| !state.is_finished()).map(|(at, _)| at)
    }

    /// Records and shows the state of a run whose process has exited.
    fn record(&mut self, at: usize, state: State) {
        match &state {
            State::Failed(reason) => {
                self.steps.note(&format!("iswitch sweep: {} failed: {reason}", self.names[at]));
            }
            State::Finished(_) => self.completed += 1,
            State::New | State::Unfinished => {}
        }
        self.states[at] = state;
        let count = |is: fn(&State) -> bool| self.states.iter().filter(|state| is(state)).count();
        let solved = count(|state| matches!(state, State::Finished(outcome) if outcome.solved));
        let finished = count(State::is_finished);
        let failed = count(|state| matches!(state, State::Failed(_)));
        self.steps.set((finished + failed) as u64);
        let left =
            self.left().map_or(String::new(), |left| format!(", {} min left", left.as_secs().div_ceil(60)));
        self.steps.show(&format!("{solved} solved, {} unsolved, {failed} failed{left}", finished - solved));
    }

    /// Returns the estimated time until all runs are finished.
    fn left(&self) -> Option<Duration> {
        let each = self.begin.elapsed().checked_div(self.completed)?;
        Some(each * self.unfinished().count() as u32)
    }
}
