//! Pool of processes that train the runs of a sweep concurrently.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::record::{Run, State};

/// Interval at which the processes are checked.
const POLL: Duration = Duration::from_millis(50);

/// Pool of processes, each of which trains one run.
pub(crate) struct Pool<'a> {
    /// Maximum number of processes.
    pub(crate) jobs: usize,
    /// Whether earlier runs in the run directories are discarded.
    pub(crate) discards: bool,
    /// Locked file, which the run processes keep open so that the lock is held until they exit.
    pub(crate) lock: &'a File,
    /// Flag that, once set, makes all active runs save a checkpoint and exit, and prevents further runs from starting.
    pub(crate) stop: &'a AtomicBool,
}

impl Pool<'_> {
    /// Trains the runs with the indices `waiting`, and calls `ended` with the index and the state of each run whose
    /// process has exited. A failed run does not affect the others.
    pub(crate) fn train(&self, runs: &[Run], waiting: Vec<usize>, ended: &mut dyn FnMut(usize, State)) {
        let mut waiting = waiting.into_iter().peekable();
        let mut running: Vec<Running> = Vec::new();
        let mut is_stopping = false;
        while !running.is_empty() || (waiting.peek().is_some() && !is_stopping) {
            if !is_stopping && self.stop.load(Ordering::Relaxed) {
                is_stopping = true;
                running.iter().for_each(Running::ask_to_stop);
            }
            while !is_stopping && running.len() < self.jobs {
                let Some(at) = waiting.next() else { break };
                match self.start(&runs[at]) {
                    Ok(child) => running.push(Running { at, child }),
                    Err(error) => ended(at, State::Failed(iswitch_manual::describe(error.as_ref()))),
                }
            }
            running.retain_mut(|Running { at, child }| match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) => {
                    ended(*at, runs[*at].state_after(status));
                    false
                }
                Err(error) => {
                    ended(*at, State::Failed(format!("cannot wait for the process: {error}")));
                    false
                }
            });
            std::thread::sleep(POLL);
        }
    }

    /// Starts the process of a run in its own process group, so that Ctrl-C reaches only the sweep process.
    fn start(&self, run: &Run) -> anyhow::Result<Child> {
        let mut command = run.command(self.discards)?;
        let lock = self.lock.try_clone().context("cannot duplicate the file descriptor of the lock")?;
        command.stdin(lock).process_group(0).spawn().context("cannot start the process")
    }
}

/// Process of a run.
struct Running {
    /// Index of the run.
    at: usize,
    child: Child,
}

impl Running {
    /// Signals the run to save a checkpoint and exit.
    fn ask_to_stop(&self) {
        // The child has not been waited for, so its process id cannot have been reused.
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // The call fails only if the process has just ended.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}
