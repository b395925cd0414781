//! Supervision of all processes in an emulated network.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time after a termination request at which the remaining processes are killed.
const GRACE: Duration = Duration::from_secs(5);
/// Minimum time between two separate termination requests. The terminal sends a signal to each process of the lab, so
/// several signals may belong to the same request.
const SECOND_SIGNAL_AFTER: Duration = Duration::from_secs(1);

/// Name of the shell process in messages.
pub(crate) const SHELL: &str = "the shell";

/// Record of the user's termination requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    /// First signal that was received; 0 if no signal has been received.
    signal: Arc<AtomicI32>,
    requests: Arc<AtomicU32>,
}

impl Stop {
    /// Starts to record the signals SIGHUP, SIGINT and SIGTERM.
    pub(crate) fn on_signals() -> anyhow::Result<Self> {
        let stop = Self::default();
        let mut signals =
            Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot install the signal handlers")?;
        let noted = stop.clone();
        std::thread::spawn(move || {
            let mut last: Option<Instant> = None;
            for signal in signals.forever() {
                if last.is_none_or(|last| last.elapsed() > SECOND_SIGNAL_AFTER) {
                    last = Some(Instant::now());
                    let _ = noted.signal.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
                    noted.requests.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(stop)
    }

    fn requested(&self) -> Option<Signal> {
        Signal::from_named_raw(self.signal.load(Ordering::Relaxed))
    }

    fn is_urgent(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 1
    }
}

/// Process of the lab. Each process except the shell has its own process group.
#[derive(Debug)]
struct Member {
    name: String,
    id: Pid,
    /// Whether the lab keeps running until this process exits.
    is_worker: bool,
}

/// Running processes of the lab.
#[derive(Debug, Default)]
pub(crate) struct Group {
    members: Vec<Member>,
    /// Exit status of the first process that failed.
    failure: Option<u8>,
}

impl Group {
    /// Adds a process. The lab ends when the last worker exits or when the switch exits.
    pub(crate) fn add(&mut self, name: &str, id: u32, is_worker: bool) {
        let id = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process has an id");
        self.members.push(Member { name: name.to_owned(), id, is_worker });
    }

    /// Reaps the processes that have exited. Returns true if no process had exited.
    pub(crate) fn is_whole(&mut self) -> bool {
        let before = self.members.len();
        self.reap(false);
        self.members.len() == before
    }

    /// Waits for all workers, stops the switch, and returns the exit status of the first process that failed.
    pub(crate) fn supervise(mut self, stop: &Stop) -> u8 {
        let mut asked = None;
        while self.members.iter().any(|member| member.is_worker) {
            self.reap(asked.is_some());
            let request = stop.requested().or_else(|| self.failure.map(|_| Signal::TERM));
            if let (None, Some(signal)) = (asked, request) {
                self.signal(signal);
                asked = Some(Instant::now());
            }
            if stop.is_urgent() || asked.is_some_and(|asked: Instant| asked.elapsed() > GRACE) {
                self.signal(Signal::KILL);
            }
            sleep(POLL_INTERVAL);
        }
        self.end()
    }

    /// Terminates the remaining processes, and returns the exit status of the first process that failed, or 0.
    pub(crate) fn end(mut self) -> u8 {
        let begin = Instant::now();
        self.signal(Signal::TERM);
        while !self.members.is_empty() && begin.elapsed() < GRACE {
            self.reap(true);
            sleep(POLL_INTERVAL);
        }
        self.failure.unwrap_or(0)
    }

    fn signal(&self, signal: Signal) {
        for Member { id, .. } in &self.members {
            // The shell belongs to this process's group until it has created its own group.
            if kill_process_group(*id, signal).is_err() {
                let _ = rustix::process::kill_process(*id, signal);
            }
        }
    }

    /// Reaps processes that have exited: members of the group, and orphans. The kernel makes orphans children of the
    /// first process in the namespaces, which is this process.
    fn reap(&mut self, is_ending: bool) {
        while let Ok(Some((id, status))) = wait(WaitOptions::NOHANG) {
            let Some(at) = self.members.iter().position(|member| member.id == id) else { continue };
            let Member { name, is_worker, .. } = self.members.remove(at);
            let code = code(status);
            if is_ending && !is_worker {
                continue;
            }
            if code != 0 || !is_worker {
                // A shell ends with the status of its last command, which the user has already seen.
                if !is_ending && name != SHELL {
                    eprintln!("iswitch-lab: {name} ended with status {code}");
                }
                self.failure.get_or_insert(code.max(1));
            }
        }
    }
}

/// Returns the exit status that a shell would report for `status`.
fn code(status: WaitStatus) -> u8 {
    const SIGNALLED: i32 = 128;
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| SIGNALLED + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
