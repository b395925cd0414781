//! Execution of steps, and the files that store their results.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use iswitch_cli::files::make_directory;
use iswitch_cli::subcommand;
use iswitch_study::files::write;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::page::Page;
use crate::recipe::{Mode, Recipe, Step};
use crate::results::Results;

/// Interval at which a running command is checked.
const POLL: Duration = Duration::from_millis(50);
/// Number of bytes at the end of a log that are searched for its last line.
const LOG_TAIL_BYTES: u64 = 4096;
/// First word of a command that runs a program of the page.
const PYTHON: &str = "python3";

/// Steps, their results and their directory.
pub(crate) struct Steps<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) page: &'a Page,
    pub(crate) mode: &'a Mode,
    /// Directory that contains a subdirectory for each step; all commands run in this directory.
    pub(crate) out: PathBuf,
    /// Directory of the programs; `None` stands for the directory of this program and `PATH`.
    pub(crate) programs: Option<PathBuf>,
}

/// One command of a step.
#[derive(Clone, Debug)]
pub(crate) struct Task<'a> {
    pub(crate) step: &'a Step,
    /// Input of the command, if the step has inputs.
    pub(crate) input: Option<String>,
    words: Vec<String>,
}

/// File with the command and the result of a task. It is written without a result when the command starts.
#[derive(Debug, Deserialize, Serialize)]
struct Record {
    command: String,
    version: String,
    seconds: Option<f64>,
    result: Option<Value>,
}

/// Reason why a command has not been completed.
#[derive(Debug)]
pub(crate) enum Incomplete {
    /// The process was asked to stop.
    Stopped,
    /// The command failed.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Incomplete {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl Task<'_> {
    /// Returns the command as a user would type it.
    pub(crate) fn command(&self) -> String {
        let words = self.words.join(" ");
        match &self.step.program {
            None => format!("iswitch {words}"),
            Some(section) => format!("{words} (the program in the section \"{section}\" of the page)"),
        }
    }

    /// Returns the name of the task in progress reports and errors.
    pub(crate) fn name(&self) -> String {
        match &self.input {
            None => self.step.name.clone(),
            Some(input) => format!("{} ({input})", self.step.name),
        }
    }

    fn file(&self, suffix: &str) -> String {
        match &self.input {
            None => format!("result{suffix}"),
            Some(input) => format!("result-{input}{suffix}"),
        }
    }
}

impl<'a> Steps<'a> {
    /// Returns the commands of a step.
    pub(crate) fn tasks(&self, step: &'a Step) -> Vec<Task<'a>> {
        let of = |input: Option<String>| {
            let words = self.mode.words(&self.recipe.quick, step, input.as_deref());
            Task { step, input, words }
        };
        self.mode.inputs(step).into_iter().map(of).collect()
    }

    fn directory(&self, step: &Step) -> PathBuf {
        self.out.join(&step.name)
    }

    /// Returns the recorded duration and result of a task; `None` if the task is not complete.
    ///
    /// # Errors
    /// Fails if the directory contains the record of another command, or if the record cannot be read.
    pub(crate) fn result(&self, task: &Task<'_>) -> anyhow::Result<Option<(f64, Value)>> {
        let path = self.directory(task.step).join(task.file(".json"));
        if !path.exists() {
            return Ok(None);
        }
        let read = || -> anyhow::Result<Record> { Ok(serde_json::from_slice(&fs::read(&path)?)?) };
        let record = read().with_context(|| format!("cannot read {}", path.display()))?;
        if record.command != task.command() {
            bail!(
                "{} holds the result of `{}`, not of `{}`; choose another directory with --out, or discard the \
                 results with --force",
                path.display(),
                record.command,
                task.command()
            );
        }
        Ok(record.seconds.zip(record.result))
    }

    /// Returns the results of all complete steps, and the total duration of each in seconds.
    ///
    /// # Errors
    /// See [`Self::result`].
    pub(crate) fn results(&self) -> anyhow::Result<(Results, Vec<Option<f64>>)> {
        let (mut results, mut durations) = (Results::new(), Vec::new());
        for step in &self.recipe.steps {
            let tasks = self.tasks(step);
            let found = tasks.iter().map(|task| self.result(task)).collect::<anyhow::Result<Vec<_>>>()?;
            let seconds: Option<Vec<f64>> = found.iter().map(|it| it.as_ref().map(|it| it.0)).collect();
            durations.push(seconds.map(|seconds| seconds.iter().sum()));
            let complete = tasks.into_iter().zip(found);
            let complete = complete.filter_map(|(task, it)| it.map(|(_, result)| (task.input, result)));
            results.insert(step.name.clone(), complete.collect());
        }
        Ok((results, durations))
    }

    /// Discards the files of a step.
    ///
    /// # Errors
    /// Fails if a file cannot be deleted.
    pub(crate) fn discard(&self, step: &Step) -> anyhow::Result<()> {
        let directory = self.directory(step);
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot delete {}", directory.display()))?;
        }
        Ok(())
    }

    /// Runs a task and records its result. `show` receives the last line that the command has printed.
    ///
    /// # Errors
    /// Fails if the command fails or `stop` is set.
    pub(crate) fn run(
        &self,
        task: &Task<'_>,
        stop: &AtomicBool,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), Incomplete> {
        let directory = self.directory(task.step);
        make_directory(&directory)?;
        self.record(task, None, None)?;
        let create = |suffix: &str| {
            let path = directory.join(task.file(suffix));
            File::create(&path).with_context(|| format!("cannot create {}", path.display()))
        };
        let (output, log) = (directory.join(task.file(".out")), directory.join(task.file(".log")));
        let mut command = self.process(task)?;
        // Each command runs in its own process group, so that Ctrl-C does not reach it; only this process stops it.
        command.current_dir(&self.out).stdin(Stdio::null()).process_group(0);
        command.stdout(create(".out")?).stderr(create(".log")?);
        let begin = Instant::now();
        let child =
            command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let status = wait(child, stop, &mut || show(&last_line(&log).unwrap_or_default()))?;
        if stop.load(Ordering::Relaxed) {
            return Err(Incomplete::Stopped);
        }
        if !status.success() {
            let reason = last_line(&log).unwrap_or_else(|| format!("{} is empty", log.display()));
            return Err(Incomplete::Failed(anyhow::anyhow!("{status}: {reason}")));
        }
        let result = self.read(task, &output).with_context(|| format!("cannot read {}", output.display()))?;
        Ok(self.record(task, Some(begin.elapsed().as_secs_f64()), Some(result))?)
    }

    fn record(&self, task: &Task<'_>, seconds: Option<f64>, result: Option<Value>) -> anyhow::Result<()> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let record = Record { command: task.command(), version, seconds, result };
        let path = self.directory(task.step).join(task.file(".json"));
        write(&path, &(serde_json::to_string_pretty(&record)? + "\n"))
    }

    /// Returns the process that runs a task.
    fn process(&self, task: &Task<'_>) -> anyhow::Result<Command> {
        let (first, arguments) = task.words.split_first().context("the command is empty")?;
        if let Some(section) = &task.step.program {
            let program = self.page.program(section).context("the page has no such program")?;
            let mut command = Command::new(PYTHON);
            command.arg("-c").arg(program).args(arguments);
            return Ok(command);
        }
        let name = format!("iswitch-{first}");
        let program = match &self.programs {
            Some(directory) => directory.join(&name),
            None => subcommand::find(&name)?,
        };
        let mut command = Command::new(program);
        command.args(arguments).arg("--json");
        if arguments.first().is_some_and(|argument| argument == "train") {
            // A training run that was interrupted continues from its checkpoint.
            command.arg("--auto-resume");
        }
        Ok(command)
    }

    /// Reads the result of a command from its standard output.
    fn read(&self, task: &Task<'_>, output: &Path) -> anyhow::Result<Value> {
        if let Some(file) = &task.step.output {
            let file = file.replace("$EACH", task.input.as_deref().unwrap_or(""));
            fs::rename(output, self.directory(task.step).join(file))?;
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let mut result: Value = serde_json::from_slice(&fs::read(output)?)?;
        if let Some(run) = &task.step.curve {
            let run = run.replace("$EACH", task.input.as_deref().unwrap_or(""));
            result["curve"] = curve(&self.directory(task.step).join(run).join("progress.csv"))?;
        }
        Ok(result)
    }
}

/// Reads the learning curve of a training run: an array with an object for each iteration.
fn curve(path: &Path) -> anyhow::Result<Value> {
    let mut reader = csv::Reader::from_path(path).with_context(|| path.display().to_string())?;
    let header = reader.headers()?.clone();
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row?;
        let fields = header.iter().zip(&row);
        let values = fields.map(|(name, value)| (name.to_owned(), value.parse::<f64>().ok().into()));
        rows.push(Value::Object(values.collect()));
    }
    Ok(Value::Array(rows))
}

/// Waits for a process to exit. If `stop` is set, signals the process to stop and still waits for it to exit, so that
/// a training run can save its checkpoint.
fn wait(mut child: Child, stop: &AtomicBool, show: &mut dyn FnMut()) -> anyhow::Result<ExitStatus> {
    let mut is_stopping = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the process")? {
            return Ok(status);
        }
        if !is_stopping && stop.load(Ordering::Relaxed) {
            is_stopping = true;
            if let Some(pid) = Pid::from_raw(child.id() as i32) {
                // The call fails only if the process has just exited.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        show();
        std::thread::sleep(POLL);
    }
}

/// Returns the last non-empty line of a log, or `None` if there is no such line.
fn last_line(path: &Path) -> Option<String> {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}
