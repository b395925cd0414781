//! Programs that a test runs: their output in files, shown when the test fails, and never left behind.

use std::ffi::OsStr;
use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

use crate::{scratch, wait};

pub use rustix::process::Signal;

/// Lines of each output that a failed test shows.
const SHOWN_LINES: usize = 40;

/// A command that the kernel kills when the calling thread ends, even if that is killed itself.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = iswitch_lab::process::command(program);
    command.stdin(Stdio::null());
    command
}

/// The same for a command that root runs as an ordinary user, `nobody`.
pub fn command_of_nobody(program: impl AsRef<OsStr>) -> Command {
    let mut command = command("setpriv");
    // A change of the user takes the first one's signal away.
    command.args("--reuid 65534 --regid 65534 --clear-groups --pdeathsig KILL --".split(' ')).arg(program);
    command
}

/// Runs a command to its end and returns what it printed.
///
/// # Panics
/// If the command fails.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const PEAK_RSS: &str = "VmHWM:";

/// The most memory of the calling process that was resident, in KiB.
///
/// # Panics
/// If the operating system does not tell.
pub fn own_peak_rss_kib() -> u64 {
    memory_kib("self", PEAK_RSS)
}

fn memory_kib(process: &str, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a live process");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("a number of KiB")
}

/// A running program. Dropping kills it, and if a test has failed shows the end of its output and keeps the
/// files.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    /// Of the files with its output. `None` once they are to be kept.
    directory: Option<TempDir>,
}

/// What a program has left.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it printed as errors and logs.
    pub stderr: String,
}

impl Process {
    /// Starts a command; `name` stands for it in messages.
    ///
    /// # Panics
    /// If the command cannot be started.
    pub fn spawn(name: &str, command: &mut Command) -> Self {
        Self::start(name, command, None)
    }

    /// Starts a command whose errors and logs go elsewhere: [`Self::stderr`] is empty.
    ///
    /// # Panics
    /// If the command cannot be started.
    pub fn spawn_logging_to(name: &str, command: &mut Command, stderr: impl Into<Stdio>) -> Self {
        Self::start(name, command, Some(stderr.into()))
    }

    fn start(name: &str, command: &mut Command, stderr: Option<Stdio>) -> Self {
        let directory = scratch::directory();
        let file = |name| File::create(directory.path().join(name)).expect("a file for the output");
        command.stdout(file("stdout")).stderr(stderr.unwrap_or_else(|| file("stderr").into()));
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { name: name.to_owned(), child, ended: None, directory: Some(directory) }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its memory that is resident, in KiB.
    ///
    /// # Panics
    /// If it has ended.
    pub fn rss_kib(&self) -> u64 {
        memory_kib(&self.id().to_string(), "VmRSS:")
    }

    /// The most memory that was resident, in KiB.
    ///
    /// # Panics
    /// If it has ended.
    pub fn peak_rss_kib(&self) -> u64 {
        memory_kib(&self.id().to_string(), PEAK_RSS)
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    /// What it has printed as errors and logs so far.
    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    /// Whether it is running.
    ///
    /// # Panics
    /// If the operating system does not tell.
    pub fn is_running(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("the state of a child");
        }
        self.ended.is_none()
    }

    /// Waits until one of its outputs contains `needle`.
    ///
    /// # Panics
    /// If it ends before, or does not print that in time.
    pub fn wait_for(&mut self, needle: &str, timeout: Duration) {
        let what = format!("{} to print {needle:?}", self.name);
        wait::until(&what, timeout, || {
            // Asked first: what it prints before its end counts.
            let is_running = self.is_running();
            let is_printed = self.stdout().contains(needle) || self.stderr().contains(needle);
            assert!(is_running || is_printed, "{} ended before it printed {needle:?}", self.name);
            is_printed
        });
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn wait(mut self, timeout: Duration) -> Finished {
        self.wait_end(timeout);
        let status = self.ended.expect("it has ended");
        Finished { status, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Waits for its end and returns what it printed.
    ///
    /// # Panics
    /// If it does not end in time, or fails.
    pub fn wait_success(self, timeout: Duration) -> String {
        let name = self.name.clone();
        let finished = self.wait(timeout);
        assert!(
            finished.status.success(),
            "{name}: {}\n{}\n{}",
            finished.status,
            finished.stdout,
            finished.stderr
        );
        finished.stdout
    }

    /// Sends a signal to this process and no other.
    ///
    /// # Panics
    /// If the signal cannot be sent.
    pub fn signal(&mut self, signal: Signal) {
        // An ended child that was waited for no longer owns its id.
        if self.is_running() {
            kill_process(Pid::from_child(&self.child), signal)
                .unwrap_or_else(|error| panic!("cannot signal {}: {error}", self.name));
        }
    }

    /// Kills it and waits for the end.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn kill(&mut self, timeout: Duration) {
        self.signal(Signal::KILL);
        self.wait_end(timeout);
    }

    /// Sends a signal and waits for the end.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn stop(mut self, signal: Signal, timeout: Duration) -> Finished {
        self.signal(signal);
        self.wait(timeout)
    }

    fn wait_end(&mut self, timeout: Duration) {
        let what = format!("the end of {}", self.name);
        wait::until(&what, timeout, || !self.is_running());
    }

    fn read(&self, name: &str) -> String {
        let Some(directory) = &self.directory else { return String::new() };
        let bytes = std::fs::read(directory.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn show(&mut self) {
        for output in ["stdout", "stderr"] {
            let text = self.read(output);
            let lines: Vec<_> = text.lines().collect();
            let end = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            if !end.is_empty() {
                eprintln!("--- end of {output} of {}:\n{}", self.name, end.join("\n"));
            }
        }
        if let Some(directory) = self.directory.take() {
            // Under this name the next test process lets it be.
            let kept = std::env::temp_dir().join(format!("iswitch-failed-{}", self.child.id()));
            if std::fs::rename(directory.path(), &kept).is_ok() {
                eprintln!("--- all output of {}: {}", self.name, kept.display());
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            self.show();
        }
    }
}
