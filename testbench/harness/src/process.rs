//! Programs that a test runs. Their output goes to files, which are shown if the test fails, and no program outlives
//! the test.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

use crate::{scratch, wait};

pub use rustix::process::Signal;

/// Number of lines of each output that a failed test shows.
const SHOWN_LINES: usize = 40;

/// Creates a command whose process the kernel kills when the calling thread ends, even if that thread is itself killed.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = iswitch_lab::process::command(program);
    command.stdin(Stdio::null());
    command
}

/// Creates a command that root runs as the ordinary user `nobody`. The kernel kills the process when the calling thread
/// ends.
pub fn command_of_nobody(program: impl AsRef<OsStr>) -> Command {
    let mut command = command("setpriv");
    // A change of user clears the parent-death signal set before it, so setpriv sets it again.
    command.args("--reuid 65534 --regid 65534 --clear-groups --pdeathsig KILL --".split(' ')).arg(program);
    command
}

/// Runs a command to completion and returns its standard output.
///
/// # Panics
/// Panics if the command fails.
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

/// Returns the peak resident memory of the calling process, in KiB.
///
/// # Panics
/// Panics if the operating system does not report it.
pub fn own_peak_rss_kib() -> u64 {
    memory_kib("self", PEAK_RSS)
}

fn memory_kib(process: &str, field: &str) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process must be running");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .expect("the status must contain a number of KiB")
}

/// A running program. Dropping the value kills the program; if a test has failed, dropping it also shows the end of the
/// output and keeps the files.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    /// Directory of the output files; `None` once the files are to be kept.
    directory: Option<TempDir>,
}

/// Outcome of a program that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error, which contains errors and logs.
    pub stderr: String,
}

impl Process {
    /// Starts a command; `name` identifies it in messages.
    ///
    /// # Panics
    /// Panics if the command cannot be started.
    pub fn spawn(name: &str, command: &mut Command) -> Self {
        Self::start(name, command, None)
    }

    /// Starts a command whose standard error goes to `stderr`; the text of [`Self::stderr`] is then empty.
    ///
    /// # Panics
    /// Panics if the command cannot be started.
    pub fn spawn_logging_to(name: &str, command: &mut Command, stderr: impl Into<Stdio>) -> Self {
        Self::start(name, command, Some(stderr.into()))
    }

    fn start(name: &str, command: &mut Command, stderr: Option<Stdio>) -> Self {
        let directory = scratch::directory();
        let file =
            |name| File::create(directory.path().join(name)).expect("the output file must be creatable");
        command.stdout(file("stdout")).stderr(stderr.unwrap_or_else(|| file("stderr").into()));
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { name: name.to_owned(), child, ended: None, directory: Some(directory) }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the resident memory of the process, in KiB.
    ///
    /// # Panics
    /// Panics if the process has ended.
    pub fn rss_kib(&self) -> u64 {
        memory_kib(&self.id().to_string(), "VmRSS:")
    }

    /// Returns the peak resident memory of the process, in KiB.
    ///
    /// # Panics
    /// Panics if the process has ended.
    pub fn peak_rss_kib(&self) -> u64 {
        memory_kib(&self.id().to_string(), PEAK_RSS)
    }

    /// Returns the standard output so far.
    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    /// Returns the standard error so far.
    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    /// Returns whether the process is running.
    ///
    /// # Panics
    /// Panics if the operating system does not report the state.
    pub fn is_running(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("the state of a child process must be readable");
        }
        self.ended.is_none()
    }

    /// Waits until the standard output or the standard error contains `needle`.
    ///
    /// # Panics
    /// Panics if the process ends first or does not print `needle` in time.
    pub fn wait_for(&mut self, needle: &str, timeout: Duration) {
        let what = format!("{} to print {needle:?}", self.name);
        wait::until(&what, timeout, || {
            // The state is queried before the output, so that output printed just before the end is still found.
            let is_running = self.is_running();
            let is_printed = self.stdout().contains(needle) || self.stderr().contains(needle);
            assert!(is_running || is_printed, "{} ended before it printed {needle:?}", self.name);
            is_printed
        });
    }

    /// Writes to the standard input of the process, which must be a pipe, and closes it.
    ///
    /// # Panics
    /// Panics if the standard input is not a pipe, is already closed, or cannot be written to.
    pub fn feed(&mut self, text: &str) {
        let mut input = self.child.stdin.take().expect("the standard input must be an open pipe");
        input
            .write_all(text.as_bytes())
            .unwrap_or_else(|error| panic!("cannot write to {}: {error}", self.name));
    }

    /// Waits until the process has ended.
    ///
    /// # Panics
    /// Panics if the process does not end in time.
    pub fn wait(mut self, timeout: Duration) -> Finished {
        self.wait_end(timeout);
        let status = self.ended.expect("the process must have ended");
        Finished { status, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Waits until the process has ended and returns its standard output.
    ///
    /// # Panics
    /// Panics if the process fails or does not end in time.
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

    /// Sends a signal to this process only.
    ///
    /// # Panics
    /// Panics if the signal cannot be sent.
    pub fn signal(&mut self, signal: Signal) {
        // A child that has been reaped no longer owns its process id.
        if self.is_running() {
            kill_process(Pid::from_child(&self.child), signal)
                .unwrap_or_else(|error| panic!("cannot signal {}: {error}", self.name));
        }
    }

    /// Kills the process and waits until it has ended.
    ///
    /// # Panics
    /// Panics if the process does not end in time.
    pub fn kill(&mut self, timeout: Duration) {
        self.signal(Signal::KILL);
        self.wait_end(timeout);
    }

    /// Sends a signal and waits until the process has ended.
    ///
    /// # Panics
    /// Panics if the process does not end in time.
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
            // Later test processes do not delete a directory with this prefix.
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
