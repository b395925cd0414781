//! Files of a run, by which a repeated sweep recognises finished runs.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, bail};
use iswitch_cli::files::make_directory;
use iswitch_sweep::curves::{self, Curve};
use rustix::process::Signal;
use serde::Deserialize;

/// File with the arguments of the run, written before the run starts.
const ARGUMENTS_FILE: &str = "arguments.json";
/// File with the standard output of the run: the result as one JSON object.
const RESULT_FILE: &str = "result.json";
/// File with the standard error of the run.
const LOG_FILE: &str = "log.txt";

/// One run of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Index of the run's configuration in the plan.
    pub(crate) configuration: usize,
    pub(crate) seed: u64,
    /// Number of environment steps.
    pub(crate) total_steps: u64,
    /// Run directory.
    pub(crate) directory: PathBuf,
    /// Arguments of `iswitch train`.
    pub(crate) arguments: Vec<String>,
}

/// State of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// The run has never been started.
    New,
    /// The run was interrupted.
    Unfinished,
    /// The process of the run failed. The value is the reason.
    Failed(String),
    /// The run is complete.
    Finished(Outcome),
}

/// Result of a run: part of the JSON object that `iswitch train --json` prints.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(crate) struct Outcome {
    /// Number of environment steps.
    pub(crate) steps: u64,
    /// Mean return of the last 100 episodes.
    pub(crate) final_return: Option<f64>,
    pub(crate) solved: bool,
    /// Duration of the last invocation, in seconds.
    pub(crate) seconds: f64,
}

impl State {
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self, Self::Finished(_))
    }
}

impl Run {
    /// Returns the state of the run as determined from the files in its directory. If the sweep `discards` earlier
    /// runs, the state is always [`State::New`].
    ///
    /// # Errors
    /// Fails if the directory contains a run with different arguments.
    pub(crate) fn state(&self, discards: bool) -> anyhow::Result<State> {
        let path = self.directory.join(ARGUMENTS_FILE);
        if discards || !path.exists() {
            return Ok(State::New);
        }
        let read = || -> anyhow::Result<Vec<String>> { Ok(serde_json::from_slice(&fs::read(&path)?)?) };
        let arguments = read().with_context(|| format!("cannot read {}", path.display()))?;
        if arguments != self.arguments {
            bail!(
                "{} holds a run of `iswitch train {}`, not of `iswitch train {}`; choose another directory with --out, \
                 or discard its runs with --force",
                self.directory.display(),
                arguments.join(" "),
                self.arguments.join(" ")
            );
        }
        Ok(self.outcome().map_or(State::Unfinished, State::Finished))
    }

    /// Returns the result of the run if it is complete.
    fn outcome(&self) -> Option<Outcome> {
        let outcome: Outcome =
            serde_json::from_slice(&fs::read(self.directory.join(RESULT_FILE)).ok()?).ok()?;
        (outcome.steps >= self.total_steps).then_some(outcome)
    }

    /// Records the arguments of the run and returns the command that trains it.
    pub(crate) fn command(&self, discards: bool) -> anyhow::Result<Command> {
        make_directory(&self.directory)?;
        let is_begun = self.directory.join(ARGUMENTS_FILE).exists() && !discards;
        let create = |name: &str| {
            let path = self.directory.join(name);
            File::create(&path).with_context(|| format!("cannot create {}", path.display()))
        };
        serde_json::to_writer(create(ARGUMENTS_FILE)?, &self.arguments).context(ARGUMENTS_FILE)?;
        let mut command =
            Command::new(std::env::current_exe().context("cannot determine the path of this program")?);
        command.arg("run").args(&self.arguments).args(["--json", "--quiet", "--out"]).arg(&self.directory);
        if is_begun {
            command.arg("--auto-resume");
        } else if discards {
            command.arg("--force");
        }
        command.stdout(create(RESULT_FILE)?).stderr(create(LOG_FILE)?);
        Ok(command)
    }

    /// Returns the state of the run after its process has exited.
    pub(crate) fn state_after(&self, status: ExitStatus) -> State {
        // The pool stops a run with SIGTERM. The run saves its state and then terminates itself with the same signal.
        let is_stopped = status.signal() == Some(Signal::TERM.as_raw());
        match self.outcome() {
            _ if is_stopped => State::Unfinished,
            _ if !status.success() => State::Failed(format!("{status}: {}", self.last_error())),
            Some(outcome) => State::Finished(outcome),
            None => State::Unfinished,
        }
    }

    /// Returns the last line of the run's log.
    fn last_error(&self) -> String {
        let path = self.directory.join(LOG_FILE);
        let log = fs::read_to_string(&path).unwrap_or_default();
        let last = log.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(|| format!("{} is empty", path.display()), str::to_owned)
    }

    /// Returns the learning curve of the run; empty if the run has not written one.
    pub(crate) fn curve(&self) -> Curve {
        curves::read(&self.directory).unwrap_or_default()
    }
}
