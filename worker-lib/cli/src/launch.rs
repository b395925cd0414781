//! Launching of workers. This module determines whether a launcher has started this process as one worker of a job. If
//! no launcher has, this process starts all workers.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};

use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::trainer::World;
use iswitch_learn::env::EnvError;

use crate::group::Host;
use crate::signals;
use crate::tracking::TrackingError;

/// Environment variables in which launchers pass a process its rank and the number of processes: those of torchrun
/// (also used by most other launchers), Open MPI and Slurm.
const LAUNCHERS: [(&str, &str); 3] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// Environment variable that contains the index of a pod in a Kubernetes indexed Job. Kubernetes does not pass the
/// number of pods.
const KUBERNETES: &str = "JOB_COMPLETION_INDEX";

/// Determines the rank of this process and the world size from `--rank` and `--workers`, or otherwise from the
/// environment variables of a launcher, which `lookup` reads. Returns `None` if neither the options nor the variables
/// are set; in that case, this process launches the workers itself.
///
/// # Errors
/// Fails if a setting is incomplete, is not a number, is out of range, or conflicts with another setting. The error
/// names the setting.
pub fn world(
    rank: Option<usize>,
    workers: Option<usize>,
    lookup: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<World>> {
    if let Some(rank) = rank {
        let workers = workers.context("--rank requires --workers")?;
        return in_range(rank, workers, "--rank").map(Some);
    }
    let mut found: Option<(World, &str)> = None;
    for (rank_name, workers_name) in LAUNCHERS {
        let Some(rank) = number(rank_name, &lookup)? else { continue };
        let Some(size) = number(workers_name, &lookup)? else {
            bail!("{rank_name} is set but {workers_name} is not; set both, or give --rank and --workers");
        };
        if let Some(workers) = workers.filter(|workers| *workers != size) {
            bail!(
                "--workers {workers} conflicts with {workers_name}={size}; omit --workers, or also give --rank"
            );
        }
        let world = in_range(rank, size, rank_name)?;
        match found {
            Some((other, name)) if other != world => {
                bail!("{rank_name} and {workers_name} conflict with {name}; give --rank and --workers");
            }
            _ => found = Some((world, rank_name)),
        }
    }
    if let (None, Some(rank)) = (found, number(KUBERNETES, &lookup)?) {
        let workers = workers.with_context(|| format!("{KUBERNETES} is set, so --workers is required"))?;
        return in_range(rank, workers, KUBERNETES).map(Some);
    }
    Ok(found.map(|(world, _)| world))
}

/// Returns the rank of this process from the environment variables of a launcher. The variable that contains the number
/// of processes need not be set.
///
/// # Errors
/// Fails if a variable is not a number.
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
    text.trim().parse().map(Some).with_context(|| format!("{name} is {text:?}, expected a whole number"))
}

fn in_range(rank: usize, workers: usize, name: &str) -> anyhow::Result<World> {
    if rank >= workers {
        bail!("{name} is {rank}, expected 0 to {} for {workers} workers", workers.saturating_sub(1));
    }
    Ok(World { rank, size: workers })
}

/// Watches standard input, through which the parent process controls this worker. A byte requests a stop. The end of
/// the input means that the parent has exited, and that the switch embedded in it no longer exists; this process then
/// exits.
pub fn obey_parent(stop: Arc<AtomicBool>) {
    signals::end_well_on_signal();
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {
            stop.store(true, Ordering::Relaxed);
        }
        std::process::exit(1);
    });
}

/// Exit code of a worker whose failure would recur if the job were restarted.
const PERMANENT_FAILURE: u8 = 3;

/// Returns whether a restarted run would fail in the same way: either the environment's code caused the error, or the
/// run cannot be tracked.
pub fn is_permanent(error: &anyhow::Error) -> bool {
    error.is::<TrackingError>()
        || matches!(error.downcast_ref(), Some(TrainError::Env(EnvError::Raised { .. })))
}

/// Returns the exit code of a process that exits because of this error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if is_permanent(error) { ExitCode::from(PERMANENT_FAILURE) } else { ExitCode::FAILURE }
}

/// Worker processes that this process has started, by rank; `None` for a process that has exited.
struct Workers {
    children: Vec<Option<Child>>,
}

/// Interval between checks of the worker processes.
const POLL: Duration = Duration::from_millis(20);

/// Failures that end a group of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Only a failure of worker 0 ends the group. After any other failure, the remaining workers continue.
    OfFirst,
    /// A failure of any worker ends the group.
    OfAny,
}

/// Outcome of a group of workers.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// All workers completed the run, or stopped on request.
    Well,
    /// A fatal failure of a worker ended the group. The variant contains the worker's exit code.
    Failed(ExitCode),
    /// A worker failed, and would fail in the same way after a restart. The variant contains the worker's exit code.
    FailedPermanently(ExitCode),
}

/// Starts `workers` processes of this executable, and waits until they exit. Their command line consists of `arguments`
/// and the options that make them workers of the aggregator `host`. Each worker has its own process group, so that
/// Ctrl-C reaches only this process. Once `stop` is set, this process asks the workers to stop.
///
/// # Errors
/// Fails if a worker cannot be started.
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
            spawn(rank, workers, host, arguments).with_context(|| format!("cannot start worker {rank}"))?;
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
    Ok(match code {
        Some(PERMANENT_FAILURE) => Ended::FailedPermanently(ExitCode::from(PERMANENT_FAILURE)),
        _ => Ended::Failed(code.map_or(ExitCode::FAILURE, ExitCode::from)),
    })
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
            // The write fails if the worker has just ended. In that case, reap() reports its exit status.
            let _ = stdin.write_all(b"s");
        }
    }

    /// Collects the workers that have exited, and reports those that failed. If the failure of a worker ends the group,
    /// returns the exit status of that worker.
    fn reap(&mut self, fatal: Failure) -> std::io::Result<Option<ExitStatus>> {
        let mut first = None;
        for (rank, slot) in self.children.iter_mut().enumerate() {
            let Some(child) = slot else { continue };
            let Some(status) = child.try_wait()? else { continue };
            let is_permanent = status.code() == Some(i32::from(PERMANENT_FAILURE));
            // A worker with a permanent failure has already reported the reason.
            if !status.success() && !is_permanent {
                eprintln!("iswitch: worker {rank} failed: {status}");
            }
            if rank == 0 || is_permanent || (fatal == Failure::OfAny && !status.success()) {
                first = Some(status);
            }
            *slot = None;
        }
        Ok(first)
    }

    /// Waits until the remaining workers exit, which they do soon after worker 0 has completed.
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
            // A worker exits when its standard input is closed.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(
        rank: Option<usize>,
        workers: Option<usize>,
        variables: &[(&str, &str)],
    ) -> Result<Option<(usize, usize)>, String> {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let found = super::world(rank, workers, lookup).map_err(|error| format!("{error:#}"))?;
        Ok(found.map(|world| (world.rank, world.size)))
    }

    #[test]
    fn no_rank_is_set_without_options_or_launcher_variables() {
        assert_eq!(world(None, None, &[]), Ok(None));
        assert_eq!(world(None, Some(4), &[]), Ok(None));
        // Batch scripts often set only the number of processes, which does not make this process a worker.
        assert_eq!(world(None, Some(4), &[("SLURM_NTASKS", "8")]), Ok(None));
    }

    #[test]
    fn launcher_variables_are_recognised() {
        for (rank, size) in LAUNCHERS {
            assert_eq!(world(None, None, &[(rank, "2"), (size, "8")]), Ok(Some((2, 8))));
            assert_eq!(world(None, Some(8), &[(rank, "2"), (size, "8")]), Ok(Some((2, 8))));
        }
        assert_eq!(world(None, Some(3), &[(KUBERNETES, "2")]), Ok(Some((2, 3))));
    }

    #[test]
    fn options_override_launcher_variables() {
        assert_eq!(world(Some(1), Some(2), &[("RANK", "7"), ("WORLD_SIZE", "8")]), Ok(Some((1, 2))));
        assert_eq!(world(Some(1), Some(2), &[("RANK", "7")]), Ok(Some((1, 2))));
    }

    #[test]
    fn incomplete_settings_are_reported_by_name() {
        let error = |rank, workers, variables: &[(&str, &str)]| world(rank, workers, variables).unwrap_err();
        assert_eq!(error(Some(1), None, &[]), "--rank requires --workers");
        assert!(error(None, None, &[("RANK", "1")]).starts_with("RANK is set but WORLD_SIZE is not"));
        assert_eq!(
            error(None, None, &[(KUBERNETES, "1")]),
            "JOB_COMPLETION_INDEX is set, so --workers is required"
        );
        assert!(
            error(None, None, &[("RANK", "one"), ("WORLD_SIZE", "2")])
                .starts_with("RANK is \"one\", expected a whole number")
        );
    }

    #[test]
    fn contradictory_settings_are_reported_by_name() {
        let error = |workers, variables: &[(&str, &str)]| world(None, workers, variables).unwrap_err();
        assert_eq!(
            error(Some(4), &[("RANK", "1"), ("WORLD_SIZE", "2")]),
            "--workers 4 conflicts with WORLD_SIZE=2; omit --workers, or also give --rank"
        );
        assert_eq!(
            error(None, &[("RANK", "2"), ("WORLD_SIZE", "2")]),
            "RANK is 2, expected 0 to 1 for 2 workers"
        );
        let both = [("RANK", "1"), ("WORLD_SIZE", "2"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")];
        assert_eq!(
            error(None, &both),
            "SLURM_PROCID and SLURM_NTASKS conflict with RANK; give --rank and --workers"
        );
    }
}
