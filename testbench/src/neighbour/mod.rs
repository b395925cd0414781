//! Goodput of a job while a member of another job, or a client of the daemon, misbehaves. The job's rounds per second,
//! alone and under each attack, are measured in alternating turns, with a real daemon and network namespaces.

mod attack;
pub(crate) mod member;
pub mod table;

use std::fmt;
use std::io::{PipeReader, Write, pipe};
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::contest::{Contest, Progress};

pub use attack::Attack;
pub use table::Table;

use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON};
use iswitch_harness::netns::{SWITCH_ADDRESS, Star, StarOptions};
use iswitch_harness::process::Finished;

/// TCP port of the daemon's metrics.
const METRICS_PORT: u16 = 7790;
/// Job of the victim.
const VICTIM_JOB: u32 = 77;
/// Exit status of `all_reduce` for a wrong sum.
const WRONG_SUM: i32 = 1;
/// Time beyond the planned end after which the victim counts as starved.
const STARVED_AFTER: Duration = Duration::from_secs(20);
/// Interval at which the victim is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Number of bytes that are written to the log pipe before the daemon starts, so that the daemon soon fills the pipe.
const PREFILL_LEN_BYTES: usize = 56 << 10;

/// Size of the victim, and the duration of its aggregation.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of workers.
    pub workers: usize,
    /// Number of floats in the job's vector.
    pub floats: u32,
    /// Duration of the aggregation, in seconds.
    pub seconds: f64,
}

/// Results of the victim in one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Rounds per second; zero if a worker failed or did not finish.
    pub rounds_per_s: f64,
    /// Whether every delivered sum was exact.
    pub is_exact: bool,
    /// Number of packets or requests that the attacker sent per second.
    pub attacks_per_s: f64,
    /// Reason why the victim did not finish, if it did not.
    pub failure: Option<String>,
}

/// Namespaces for a victim and an attacker around a switch.
#[derive(Debug)]
pub struct Testbed {
    star: Star,
    kind: PortKind,
}

/// Addresses at which an attacker reaches the daemon.
#[derive(Clone, Debug)]
pub struct Target {
    /// Address at which workers reach the daemon.
    pub switch: SocketAddrV4,
    /// Address of the HTTP listener for metrics.
    pub metrics: SocketAddr,
    /// Path of the control socket.
    pub control: std::path::PathBuf,
}

impl Testbed {
    /// Creates the namespaces for the given number of workers of the victim.
    ///
    /// # Panics
    /// Panics if a step fails. Call [`iswitch_harness::requirements::networks_and`] first.
    pub fn new(workers: usize, kind: PortKind) -> Self {
        Self { star: Star::new(StarOptions { workers: workers + 1, ..StarOptions::default() }), kind }
    }

    /// Runs the victim with a new daemon, under an attack if one is given.
    ///
    /// # Errors
    /// Fails if the attack cannot be carried out.
    ///
    /// # Panics
    /// Panics if the daemon does not start or does not end.
    pub fn run(&self, attack: Option<Attack>, load: Load) -> Result<Run, String> {
        let (daemon, log) = self.start_daemon(attack);
        let target = Target {
            switch: daemon.address(),
            metrics: SocketAddr::from((SWITCH_ADDRESS, METRICS_PORT)),
            control: daemon.control_socket(),
        };
        let outcome = match attack {
            None => Ok(finish(self.start_victim(&daemon, load), load)),
            Some(attack) => self.run_both(attack, &daemon, &target, load),
        };
        daemon.stop();
        drop(log);
        outcome
    }

    /// Starts a daemon. If the attack targets the log, the read end of the log's pipe is returned too, and nothing
    /// reads from it.
    fn start_daemon(&self, attack: Option<Attack>) -> (Daemon, Option<PipeReader>) {
        let metrics = format!("{SWITCH_ADDRESS}:{METRICS_PORT}");
        let arguments = ["--metrics", &metrics];
        if attack != Some(Attack::Log) {
            return (Daemon::in_star(&self.star, self.kind, &arguments), None);
        }
        let (log, mut pipe) = pipe().expect("the pipe must be created");
        pipe.write_all(&vec![b'\n'; PREFILL_LEN_BYTES]).expect("the pipe must have room");
        (Daemon::in_star_logging_to(&self.star, self.kind, pipe, &arguments), Some(log))
    }

    fn run_both(&self, attack: Attack, daemon: &Daemon, target: &Target, load: Load) -> Result<Run, String> {
        let attacker = &self.star.workers[self.star.workers.len() - 1];
        let (stop, (begin, begun)) = (&AtomicBool::new(false), channel());
        let early = attack.is_later().then(|| self.start_victim(daemon, load));
        if early.is_some() {
            daemon.wait_for_results();
        }
        std::thread::scope(|scope| {
            let attacking = scope.spawn(move || attacker.enter(|| attack.run(target, stop, &begin)));
            // The channel is closed without a message if the attack has failed.
            let begun = begun.recv().ok();
            let run = begun.map(|()| finish(early.unwrap_or_else(|| self.start_victim(daemon, load)), load));
            stop.store(true, Ordering::Relaxed);
            let attacks_per_s = attacking.join().expect("the attacker must not panic")?;
            run.map(|run| Run { attacks_per_s, ..run })
                .ok_or_else(|| format!("{attack}: the attack did not begin"))
        })
    }

    fn start_victim(&self, daemon: &Daemon, load: Load) -> Group {
        let Load { workers, floats, seconds } = load;
        let arguments =
            format!("--job {VICTIM_JOB} --floats {floats} --rounds 100000000 --seconds {seconds}");
        Group::of(&self.star.workers[..workers], daemon.address(), &arguments)
    }
}

/// Waits until the victim finishes, or until it counts as starved ([`STARVED_AFTER`]).
fn finish(mut victim: Group, load: Load) -> Run {
    let begin = Instant::now();
    let limit = Duration::from_secs_f64(load.seconds) + STARVED_AFTER;
    while victim.is_any_running() {
        if begin.elapsed() > limit {
            let failure = Some(format!("it did not finish within {STARVED_AFTER:?} of its planned end"));
            return Run { rounds_per_s: 0.0, is_exact: true, attacks_per_s: 0.0, failure };
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    of_workers(&victim.finish(SOON))
}

fn of_workers(workers: &[Finished]) -> Run {
    let is_exact = workers.iter().all(|worker| worker.status.code() != Some(WRONG_SUM));
    let failed = workers.iter().find(|worker| !worker.status.success());
    let failure = failed.map(|worker| worker.stderr.trim().to_owned());
    let first = workers.first().and_then(|worker| serde_json::from_str::<Value>(&worker.stdout).ok());
    let number = |field| first.as_ref().and_then(|first| first[field].as_f64()).unwrap_or_default();
    let seconds = number("seconds");
    let rounds_per_s = if failure.is_none() && seconds > 0.0 { number("rounds") / seconds } else { 0.0 };
    Run { rounds_per_s, is_exact, attacks_per_s: 0.0, failure }
}

/// Condition that the victim runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The victim runs alone.
    Nobody,
    /// The victim runs under an attack.
    Attacker(Attack),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("alone"),
            Self::Attacker(attack) => fmt::Display::fmt(attack, f),
        }
    }
}

/// Runs the victim alone and under each attack, in alternating turns.
///
/// # Errors
/// Fails if an attack cannot be carried out.
///
/// # Panics
/// Panics in the same cases as [`Testbed::run`].
pub fn measure(
    testbed: &Testbed,
    attacks: &[Attack],
    load: Load,
    turns: usize,
    progress: &Progress,
) -> Result<Table, String> {
    let row = |attack: &Attack| {
        let contest = Contest::new([Condition::Nobody, Condition::Attacker(*attack)], turns);
        let held = contest.titled(attack.name()).try_hold(progress, |condition, _| match condition {
            Condition::Nobody => testbed.run(None, load),
            Condition::Attacker(attack) => testbed.run(Some(*attack), load),
        });
        held.map(|standings| (*attack, standings))
    };
    let rows = attacks.iter().map(row).collect::<Result<_, _>>()?;
    Ok(Table { load, rows })
}
