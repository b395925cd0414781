//! Code shared by the tests of `iswitch coflow`, `iswitch place` and `iswitch route`.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iswitch_harness::process::{Process, Signal, command, run};
use iswitch_harness::{binaries, scratch, wait};
use serde_json::Value;
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Study, identified by its subcommand of `iswitch`.
#[derive(Clone, Copy)]
pub(crate) struct Study(&'static str);

pub(crate) const COFLOW: Study = Study("coflow");
pub(crate) const PLACE: Study = Study("place");
pub(crate) const ROUTE: Study = Study("route");

impl Study {
    /// Returns a command that runs the study's program with the given arguments.
    pub(crate) fn command(self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binaries::iswitch());
        command.arg(self.0).args(arguments);
        command
    }

    /// Runs a command of the study, and returns the result that it prints as JSON.
    pub(crate) fn json(self, arguments: &[&str]) -> Value {
        let printed = run(self.command(arguments).args(["--json", "--quiet"]));
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    /// Runs a training whose run directory is `out`, and returns its result. `more` contains further arguments.
    pub(crate) fn train(self, out: &Path, more: &[&str]) -> Value {
        let out = out.to_str().expect("a path in UTF-8");
        self.json(&[&["train", "--out", out], more].concat())
    }

    /// Starts a command in the background.
    fn spawn(self, arguments: &[&str]) -> Process {
        let mut command = command(binaries::iswitch());
        Process::spawn(&format!("iswitch {}", self.0), command.arg(self.0).args(arguments))
    }

    /// Trains once in one process and then, for each kind of aggregator, with four workers. All runs must write the
    /// same learning curve. `check` receives the directory and the result of each training.
    pub(crate) fn check_curves(self, arguments: &[&str], check: impl Fn(&Path, &Value)) {
        let directory = scratch::directory();
        let train = |name: &str, more: &[&str]| {
            let out = directory.path().join(name);
            let result = self.train(&out, &[arguments, more].concat());
            assert_eq!(result["replicas_identical"], true, "{result}");
            check(&out, &result);
            (text(&out.join("progress.csv")), result)
        };
        let (one, result) = train("one", &[]);
        assert_eq!((&result["workers"], &result["aggregator"]), (&1.into(), &"loopback".into()));
        self.check_eval(&directory.path().join("one"));
        for aggregator in ["switch", "ps", "ring"] {
            let (four, result) = train(aggregator, &["--workers", "4", "--aggregator", aggregator]);
            assert_eq!(result["workers"], 4);
            assert_eq!(four, one, "{arguments:?}, {aggregator}");
        }
    }

    /// Checks that `iswitch eval` rejects a policy of the study, and that the error names the command that runs such a
    /// policy.
    fn check_eval(self, policy: &Path) {
        let output = Command::new(binaries::iswitch()).arg("eval").arg(policy).output().unwrap();
        let expected = format!("`iswitch {} evaluate` can run", self.0);
        assert!(String::from_utf8_lossy(&output.stderr).contains(&expected), "{output:?}");
    }

    /// Stops a training run with the options `arguments` after its first checkpoint, and resumes it with the options
    /// `resume`. The resumed run must continue after the last complete iteration.
    pub(crate) fn check_resumption(self, arguments: &[&str], resume: &[&str]) {
        let directory = scratch::directory();
        let out = directory.path().join("run");
        let process = self.spawn(&[&["train", "--out", out.to_str().unwrap()], arguments].concat());
        wait::until("a checkpoint", TIMEOUT, || out.join("model.safetensors").exists());
        let finished = process.stop(Signal::TERM, TIMEOUT);
        assert_eq!(finished.status.signal(), Some(Signal::TERM.as_raw()), "{finished:?}");
        let done = text(&out.join("progress.csv")).lines().count() - 1;
        let iterations = (done + 1).to_string();
        let result = self.train(&out, &[resume, &["--resume", "--iterations", &iterations]].concat());
        assert_eq!(result["iterations"], done + 1, "{result}");
        assert_eq!(text(&out.join("progress.csv")).lines().count(), done + 3);
    }

    /// Checks that each of the commands fails with an error that contains the text given with it.
    pub(crate) fn check_refusals<'a>(self, cases: impl IntoIterator<Item = (Vec<&'a str>, &'a str)>) {
        let directory = scratch::directory();
        for (arguments, expected) in cases {
            let output = self.command(&arguments).current_dir(directory.path()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{arguments:?}");
            assert!(printed.contains(expected), "{arguments:?}: {printed}");
            assert!(!printed.contains("panicked"), "{printed}");
        }
    }
}

/// Process that serves a policy on a Unix socket, and a connection to the process.
pub(crate) struct Agent {
    process: Process,
    socket: PathBuf,
    stream: UnixStream,
    answers: Lines<BufReader<UnixStream>>,
    _directory: TempDir,
}

impl Agent {
    /// Starts `serve` with the given arguments, and connects to it.
    pub(crate) fn serve(study: Study, arguments: &[&str]) -> Self {
        let directory = scratch::directory();
        let socket = directory.path().join("agent.sock");
        let serve = ["serve", "--socket", socket.to_str().expect("a path in UTF-8")];
        let process = study.spawn(&[&serve, arguments].concat());
        let connect = || UnixStream::connect(&socket).ok();
        let stream = wait::until_some("the agent's socket", TIMEOUT, connect);
        let answers = BufReader::new(stream.try_clone().unwrap()).lines();
        Self { process, socket, stream, answers, _directory: directory }
    }

    /// Sends a line to the agent and returns the answer.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        writeln!(&self.stream, "{line}").unwrap();
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    /// Checks that the agent does not yield its socket to a second agent. Also checks that the agent survives an
    /// invalid request, and a request that exceeds both the maximum length and the socket buffers.
    pub(crate) fn check_robustness(&mut self, study: Study, policy: &str) {
        let described = self.ask(r#"{"describe": true}"#);
        assert!(self.ask("nonsense")["error"].as_str().unwrap().starts_with("request is"));
        let second = study.command(&["serve", policy, "--socket"]).arg(&self.socket).output().unwrap();
        assert!(String::from_utf8_lossy(&second.stderr).contains("process is already listening there"));
        assert!(self.ask(&"x".repeat(4_000_000))["error"].as_str().unwrap().contains("longer than"));
        assert_eq!(self.ask(r#"{"describe": true}"#), described);
    }

    /// Checks that a service with a limit of one connection refuses a second client and still serves the first one.
    pub(crate) fn check_limit(study: Study, arguments: &[&str]) {
        let mut agent = Self::serve(study, &[arguments, &["--connections-max", "1"]].concat());
        let described = agent.ask(r#"{"describe": true}"#);
        let mut second = UnixStream::connect(&agent.socket).unwrap();
        writeln!(second, r#"{{"describe": true}}"#).unwrap();
        let mut answers = BufReader::new(second).lines();
        let refused: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains("maximum number of connections, 1 (--connections-max)"), "{error}");
        assert!(answers.next().is_none(), "the connection is closed");
        assert_eq!(agent.ask(r#"{"describe": true}"#), described);
        agent.stop();
    }

    /// Checks that the agent exits on request and removes its socket.
    pub(crate) fn stop(self) {
        let finished = self.process.stop(Signal::TERM, TIMEOUT);
        assert!(finished.status.success(), "{finished:?}");
        assert!(!self.socket.exists());
    }
}

/// Temporary directory that contains files. It is removed when this value is dropped.
pub(crate) struct Files(pub(crate) TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(scratch::directory())
    }

    /// Returns the path of a file or directory.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// Returns the text of a file.
pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fields of one row of a CSV file, by column name.
pub(crate) type Row = HashMap<String, String>;

/// Returns the rows of a CSV file.
pub(crate) fn rows(path: &Path) -> Vec<Row> {
    let text = text(path);
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

/// Returns the number in a column.
pub(crate) fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|error| panic!("{column}: {error} in {row:?}"))
}

/// Returns whether the difference between two numbers can be explained by rounding.
pub(crate) fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}
