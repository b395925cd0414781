//! Who this process is: one worker of a job that something else launched, or the parent that launches all.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use iswitch_learn::algorithms::trainer::Place;

use crate::group::Host;

/// Variables in which launchers tell a process its rank and the number of processes: torchrun and most others,
/// Open MPI, Slurm.
const LAUNCHERS: [(&str, &str); 3] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// The index of a Kubernetes indexed Job, which does not tell how many there are.
const KUBERNETES: &str = "JOB_COMPLETION_INDEX";

/// Finds this process's place from `--rank` and `--workers`, else from a launcher's variables, which `lookup`
/// reads. Nothing if neither says anything: then this process launches the workers itself.
///
/// # Errors
/// If a setting is partial, not a number, out of range, or contradicts another; the text names it.
pub fn placement(
    rank: Option<usize>,
    workers: Option<usize>,
    lookup: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Place>> {
    if let Some(rank) = rank {
        let workers = workers.context("--rank needs --workers")?;
        return in_range(rank, workers, "--rank").map(Some);
    }
    let mut found: Option<(Place, &str)> = None;
    for (rank_name, workers_name) in LAUNCHERS {
        let Some(rank) = number(rank_name, &lookup)? else { continue };
        let Some(size) = number(workers_name, &lookup)? else {
            bail!("{rank_name} is set but {workers_name} is not; set both, or give --rank and --workers");
        };
        if let Some(workers) = workers.filter(|workers| *workers != size) {
            bail!("--workers {workers} contradicts {workers_name}={size}");
        }
        let placement = in_range(rank, size, rank_name)?;
        match found {
            Some((other, name)) if other != placement => {
                bail!("{rank_name} and {workers_name} contradict {name}; give --rank and --workers");
            }
            _ => found = Some((placement, rank_name)),
        }
    }
    if let (None, Some(rank)) = (found, number(KUBERNETES, &lookup)?) {
        let workers = workers.with_context(|| format!("{KUBERNETES} is set, so --workers is needed"))?;
        return in_range(rank, workers, KUBERNETES).map(Some);
    }
    Ok(found.map(|(placement, _)| placement))
}

/// This process's rank by a launcher's variables, whatever the number of processes.
///
/// # Errors
/// If a variable is not a number.
pub fn rank(lookup: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<usize>> {
    let names = LAUNCHERS.iter().map(|(rank, _)| *rank).chain([KUBERNETES]);
    Ok(names
        .map(|name| number(name, &lookup))
        .collect::<anyhow::Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .next())
}

fn number(name: &str, lookup: &impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<usize>> {
    let Some(text) = lookup(name) else { return Ok(None) };
    text.trim().parse().map(Some).with_context(|| format!("{name}={text} is not a number"))
}

fn in_range(rank: usize, workers: usize, name: &str) -> anyhow::Result<Place> {
    if rank >= workers {
        bail!("{name} is {rank}, but there are {workers} workers, ranks 0 to {}", workers.saturating_sub(1));
    }
    Ok(Place { rank, workers })
}

/// Signals that come together, as from `timeout` or a shell script, are one request.
const SECOND_SIGNAL_AFTER: Duration = Duration::from_secs(1);

/// Sets the flag at the first SIGINT or SIGTERM; a second one, later, ends the process at once.
pub fn stop_on_signal(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    const INTERRUPTED: i32 = 130;
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    let stop = Arc::clone(stop);
    let wait = move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            stop.store(true, Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() > SECOND_SIGNAL_AFTER {
                std::process::exit(INTERRUPTED);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

/// Obeys the parent: a byte on the standard input asks to stop, its end means that the parent is gone and the
/// switch inside it too.
pub fn obey_parent(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {
            stop.store(true, Ordering::Relaxed);
        }
        std::process::exit(1);
    });
}

/// Workers of this process.
struct Workers {
    children: Vec<Option<Child>>,
}

/// How often the workers are looked after.
const POLL: Duration = Duration::from_millis(20);

/// Which failures end a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// That of worker 0; the others go on without any other.
    OfFirst,
    /// That of any.
    OfAny,
}

/// How a group of workers ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// Its run is complete, or was stopped on request.
    Well,
    /// Worker 0 has failed, and with it the group.
    Failed(ExitCode),
}

/// Starts `workers` processes of this executable with `arguments` and the settings that make them workers that meet at
/// `host`; waits for them. They are in process groups of their own, so that a Ctrl-C reaches them through this process
/// only, which has set `stop` then.
///
/// # Errors
/// If a worker cannot be started.
pub fn run_workers(
    workers: usize,
    arguments: &[OsString],
    host: &Host,
    stop: &AtomicBool,
    fatal: Failure,
) -> anyhow::Result<Ended> {
    let mut group = Workers { children: Vec::with_capacity(workers) };
    for rank in 0..workers {
        let child =
            spawn(rank, workers, host, arguments).with_context(|| format!("starting worker {rank}"))?;
        group.children.push(Some(child));
    }
    let mut asked = false;
    let status = loop {
        if stop.load(Ordering::Relaxed) && !asked {
            group.ask_to_stop();
            asked = true;
        }
        if let Some(status) = group.reap(fatal)? {
            break status;
        }
        std::thread::sleep(POLL);
    };
    if status.success() {
        group.wait_for_all()?;
        return Ok(Ended::Well);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Ended::Failed(code.map_or(ExitCode::FAILURE, ExitCode::from)))
}

fn spawn(rank: usize, workers: usize, host: &Host, arguments: &[OsString]) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(arguments)
        .arg("--supervised")
        .args(host.arguments())
        .args(["--rank", &rank.to_string(), "--workers", &workers.to_string()])
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
}

impl Workers {
    fn ask_to_stop(&mut self) {
        for stdin in self.children.iter_mut().flatten().filter_map(|child| child.stdin.as_mut()) {
            // A worker that has just ended does not read any more; reap() tells how it ended.
            let _ = stdin.write_all(b"s");
        }
    }

    /// Takes note of workers that ended and reports those that failed; gives the status with which the group ends once
    /// there is one.
    fn reap(&mut self, fatal: Failure) -> std::io::Result<Option<ExitStatus>> {
        let mut first = None;
        for (rank, place) in self.children.iter_mut().enumerate() {
            let Some(child) = place else { continue };
            let Some(status) = child.try_wait()? else { continue };
            if !status.success() {
                eprintln!("iswitch: worker {rank} failed: {status}");
            }
            if rank == 0 || (fatal == Failure::OfAny && !status.success()) {
                first = Some(status);
            }
            *place = None;
        }
        Ok(first)
    }

    /// Waits until the others have ended as well, which after worker 0's good end they are about to.
    fn wait_for_all(&mut self) -> std::io::Result<()> {
        while self.children.iter().any(Option::is_some) {
            self.reap(Failure::OfFirst)?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            // The end of its standard input ends a worker; then it is only waited for.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(
        rank: Option<usize>,
        workers: Option<usize>,
        variables: &[(&str, &str)],
    ) -> Result<Option<(usize, usize)>, String> {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let found = placement(rank, workers, lookup).map_err(|error| format!("{error:#}"))?;
        Ok(found.map(|placement| (placement.rank, placement.workers)))
    }

    #[test]
    fn nobody_says_anything() {
        assert_eq!(place(None, None, &[]), Ok(None));
        assert_eq!(place(None, Some(4), &[]), Ok(None));
        // A size alone is common in batch scripts and means nothing.
        assert_eq!(place(None, Some(4), &[("SLURM_NTASKS", "8")]), Ok(None));
    }

    #[test]
    fn launchers_are_understood() {
        for (rank, size) in LAUNCHERS {
            assert_eq!(place(None, None, &[(rank, "2"), (size, "8")]), Ok(Some((2, 8))));
            assert_eq!(place(None, Some(8), &[(rank, "2"), (size, "8")]), Ok(Some((2, 8))));
        }
        assert_eq!(place(None, Some(3), &[(KUBERNETES, "2")]), Ok(Some((2, 3))));
    }

    #[test]
    fn options_win_over_launchers() {
        assert_eq!(place(Some(1), Some(2), &[("RANK", "7"), ("WORLD_SIZE", "8")]), Ok(Some((1, 2))));
        assert_eq!(place(Some(1), Some(2), &[("RANK", "7")]), Ok(Some((1, 2))));
    }

    #[test]
    fn partial_settings_are_named() {
        let error = |rank, workers, variables: &[(&str, &str)]| place(rank, workers, variables).unwrap_err();
        assert_eq!(error(Some(1), None, &[]), "--rank needs --workers");
        assert!(error(None, None, &[("RANK", "1")]).starts_with("RANK is set but WORLD_SIZE is not"));
        assert_eq!(
            error(None, None, &[(KUBERNETES, "1")]),
            "JOB_COMPLETION_INDEX is set, so --workers is needed"
        );
        assert!(
            error(None, None, &[("RANK", "one"), ("WORLD_SIZE", "2")])
                .starts_with("RANK=one is not a number")
        );
    }

    #[test]
    fn contradictions_are_named() {
        let error = |workers, variables: &[(&str, &str)]| place(None, workers, variables).unwrap_err();
        assert_eq!(
            error(Some(4), &[("RANK", "1"), ("WORLD_SIZE", "2")]),
            "--workers 4 contradicts WORLD_SIZE=2"
        );
        assert_eq!(
            error(None, &[("RANK", "2"), ("WORLD_SIZE", "2")]),
            "RANK is 2, but there are 2 workers, ranks 0 to 1"
        );
        let both = [("RANK", "1"), ("WORLD_SIZE", "2"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")];
        assert_eq!(
            error(None, &both),
            "SLURM_PROCID and SLURM_NTASKS contradict RANK; give --rank and --workers"
        );
    }
}
