//! Actors in several processes that begin at the same moment.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use iswitch_harness::process::Process;

use super::Latencies;

/// Line that a process prints on standard error once its actors are ready.
const READY: &str = "ready";
/// Time between the announcement of the start time and the start, so that all processes learn the start time before it
/// has passed.
const HEAD_START: Duration = Duration::from_millis(200);

/// Actors, and the processes that run them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActorPool {
    /// Number of actors.
    pub(crate) actors: usize,
    /// Number of processes.
    pub(crate) processes: usize,
    /// Timeout for the actors to get ready, and again for the rest of the run.
    pub(crate) timeout: Duration,
}

impl ActorPool {
    /// Runs the command in each process, with the additional options `--actors` and `--first`. Each process must call
    /// [`wait_for_start`].
    ///
    /// # Panics
    /// Panics if a process fails, does not get ready or prints no latencies.
    pub(crate) fn run(self, command: impl Fn() -> Command) -> Latencies {
        let spawn = |process: usize| {
            let (first, end) = (self.first_of(process), self.first_of(process + 1));
            let mut command = command();
            command.args(["--actors", &(end - first).to_string(), "--first", &first.to_string()]);
            Process::spawn("actors", command.stdin(Stdio::piped()))
        };
        let mut processes: Vec<_> = (0..self.processes).map(spawn).collect();
        processes.iter_mut().for_each(|process| process.wait_for(READY, self.timeout));
        let start = SystemTime::now() + HEAD_START;
        let start_ms = start.duration_since(UNIX_EPOCH).expect("the clock must be after 1970").as_millis();
        processes.iter_mut().for_each(|process| process.feed(&format!("{start_ms}\n")));
        Latencies::printed(processes.into_iter().map(|process| process.wait_success(self.timeout)))
    }

    /// Returns the number of the first actor of a process.
    fn first_of(self, process: usize) -> usize {
        self.actors * process / self.processes
    }
}

/// Reports on standard error that the actors of this process are ready, reads from standard input the time at which
/// all actors begin (in milliseconds since the Unix epoch), and returns the time left until then.
///
/// # Errors
/// Fails if standard input contains no such time, or if this time has passed.
pub fn wait_for_start() -> anyhow::Result<Duration> {
    eprintln!("{READY}");
    let mut line = String::new();
    io::stdin().read_line(&mut line).context("cannot read the start time from standard input")?;
    let start_ms = line.trim().parse().with_context(|| {
        format!("standard input is {line:?}, expected a start time in milliseconds since the Unix epoch")
    })?;
    let start = UNIX_EPOCH + Duration::from_millis(start_ms);
    let late = || format!("the start time {start_ms} had passed before this process read it");
    start.duration_since(SystemTime::now()).with_context(late)
}
