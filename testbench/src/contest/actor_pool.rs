//! Actors in several processes that begin at the same moment.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iswitch_harness::process::Process;

use super::Latencies;

/// Actors, and the processes that run them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActorPool {
    /// Number of actors.
    pub(crate) actors: usize,
    /// Number of processes that the actors are divided among.
    pub(crate) processes: usize,
    /// Time for the processes to start.
    pub(crate) head_start: Duration,
    /// Timeout of the processes.
    pub(crate) timeout: Duration,
}

impl ActorPool {
    /// Runs the command in each process, with the additional options `--actors`, `--first` and `--start-unix-ms`.
    ///
    /// # Panics
    /// Panics if a process fails or prints no latencies.
    pub(crate) fn run(self, command: impl Fn() -> Command) -> Latencies {
        let start = SystemTime::now() + self.head_start;
        let start_ms = start.duration_since(UNIX_EPOCH).expect("the clock must be after 1970").as_millis();
        let spawn = |process: usize| {
            let (first, end) = (self.first_of(process), self.first_of(process + 1));
            let mut command = command();
            command.args(["--actors", &(end - first).to_string(), "--first", &first.to_string()]);
            command.args(["--start-unix-ms", &start_ms.to_string()]);
            Process::spawn("actors", &mut command)
        };
        let processes: Vec<_> = (0..self.processes).map(spawn).collect();
        Latencies::printed(processes.into_iter().map(|process| process.wait_success(self.timeout)))
    }

    /// Returns the number of the first actor of a process.
    fn first_of(self, process: usize) -> usize {
        self.actors * process / self.processes
    }
}
