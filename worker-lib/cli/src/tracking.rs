//! Tracking of runs with Weights & Biases. The Python package of Weights & Biases runs in a child process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use clap::Args;
use iswitch_learn::env::GymnasiumOptions;
use serde::Deserialize;
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("track.py");
/// Environment variable that suppresses the output of wandb, which would disturb the progress bar.
const SILENT_VARIABLE: &str = "WANDB_SILENT";

/// Options for tracking a run.
#[derive(Args, Clone, Debug)]
pub struct TrackArgs {
    /// Track the run with Weights & Biases
    ///
    /// This requires `wandb login` and a Python interpreter with the package wandb: run `pip install wandb`, or set
    /// ISWITCH_PYTHON to an interpreter that has the package. With the environment variable WANDB_MODE=offline, the
    /// data remain in the run directory until they are uploaded with `wandb sync`.
    #[arg(long)]
    track: bool,
    /// Name of the Weights & Biases project
    #[arg(long, value_name = "NAME", default_value = "iswitch", requires = "track")]
    wandb_project_name: String,
    /// User or team at Weights & Biases [default: that of `wandb login`]
    #[arg(long, value_name = "NAME", requires = "track")]
    wandb_entity: Option<String>,
}

/// Weights & Biases project in which a run is tracked.
#[derive(Clone, Debug)]
pub struct Tracking {
    project: String,
    entity: Option<String>,
}

/// Reason why a run cannot be tracked.
#[derive(Debug)]
pub struct TrackingError(String);

impl std::fmt::Display for TrackingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--track: {}", self.0)
    }
}

impl std::error::Error for TrackingError {}

impl TrackArgs {
    /// Returns the project if the run is tracked.
    pub fn tracking(&self) -> Option<Tracking> {
        let Self { wandb_project_name: project, wandb_entity: entity, .. } = self;
        self.track.then(|| Tracking { project: project.clone(), entity: entity.clone() })
    }

    /// If the run is to be tracked, checks that the Python package is installed.
    ///
    /// # Errors
    /// Fails with a [`TrackingError`] if Python cannot be started or lacks the package.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.track {
            Tracker::start(&json!({ "kind": "check" }))?;
        }
        Ok(())
    }
}

/// Child process that sends values to Weights & Biases.
pub struct Tracker {
    child: Child,
    /// Address of the run's web page or, in offline mode, the run's directory.
    place: String,
}

/// Response of the child process to the first line that it receives.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Ready(String),
    Error(String),
}

impl Tracker {
    /// Begins to track a run that has the given settings and the run directory `out`. If `continues` is set, Weights &
    /// Biases treats the run as a continuation of the previously tracked one.
    ///
    /// # Errors
    /// Fails with a [`TrackingError`] if Python cannot be started, lacks the package, or cannot start tracking the run.
    pub fn begin(tracking: &Tracking, out: &Path, settings: &Value, continues: bool) -> anyhow::Result<Self> {
        let out = std::path::absolute(out).context("cannot determine the path of the run directory")?;
        let name = out.file_name().map(|name| name.to_string_lossy().into_owned());
        let Tracking { project, entity } = tracking;
        Self::start(&json!({
            "kind": "run", "project": project, "entity": entity, "name": name, "dir": out, "config": settings,
            "continues": continues,
        }))
    }

    fn start(request: &Value) -> anyhow::Result<Self> {
        let python = GymnasiumOptions::default().python;
        let mut command = Command::new(&python);
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if std::env::var_os(SILENT_VARIABLE).is_none() {
            command.env(SILENT_VARIABLE, "true");
        }
        let child = command.spawn().map_err(|error| {
            TrackingError(format!(
                "{} cannot be started ({error}); install Python with the package wandb, or set ISWITCH_PYTHON to an \
                 interpreter that has it",
                python.display()
            ))
        })?;
        let mut tracker = Self { child, place: String::new() };
        // The write fails only if the child process has exited. In that case, reading the response fails as well.
        let _ = tracker.send(request);
        let mut line = String::new();
        let answers = tracker.child.stdout.take().context("the process has no standard output")?;
        BufReader::new(answers).read_line(&mut line)?;
        match serde_json::from_str(&line) {
            Ok(Answer::Ready(place)) => {
                tracker.place = place;
                Ok(tracker)
            }
            Ok(Answer::Error(reason)) => Err(TrackingError(reason).into()),
            Err(_) => Err(TrackingError(format!(
                "{} exited before it started tracking the run; see its error message above",
                python.display()
            ))
            .into()),
        }
    }

    /// Returns the address of the run's web page or, in offline mode, the run's directory.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Logs the values of a step. `tags` contains their names. Absent values are omitted.
    ///
    /// # Errors
    /// Fails if the child process has exited.
    pub fn log(&mut self, step: u64, tags: &[&str], values: &[Option<f64>]) -> anyhow::Result<()> {
        let present =
            tags.iter().zip(values).filter_map(|(tag, value)| Some(((*tag).to_owned(), (*value)?.into())));
        let values: serde_json::Map<String, Value> = present.collect();
        self.send(&json!({ "step": step, "values": values }))
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let input = self.child.stdin.as_mut().context("the process has no standard input")?;
        input.write_all(format!("{message}\n").as_bytes()).context("the wandb process has ended")
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        // At the end of its input, the process uploads the remaining data and exits.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
