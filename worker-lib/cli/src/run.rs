//! Options and behaviour shared by all training commands: the worker's rank, the run directory and restarts.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use clap::Args;
use iswitch_learn::algorithms::checkpoint;
use iswitch_learn::algorithms::trainer::World;
use iswitch_protocol::limits::MAX_MEMBERS;

use crate::config_file::CONFIG_FILE;
use crate::files::make_directory;
use crate::group::{Aggregator, GroupArgs, Host};
use crate::launch::{self, Ended, Failure};
use crate::signals;

/// Directory that contains the run directories, unless `--out` names a different one.
pub const RUNS: &str = "runs";
const PROGRESS_FILE: &str = "progress.csv";
/// Name of the file that contains the error that ended the job. After such an error, the job's workers are not
/// restarted.
const ERROR_FILE: &str = "error.txt";

/// Arguments shared by all training commands.
#[derive(Args)]
pub struct RunArgs {
    /// Number of workers in the job
    ///
    /// The default is 4 for `iswitch train` and `iswitch sweep train`, and 1 for all other commands. Batches are
    /// divided among the workers, so the number of workers does not change what is learned. If none of --switch,
    /// --server and --members is given, the command itself starts all workers and the switch, parameter server or ring
    /// that sums their gradients.
    #[arg(long, value_name = "N", overrides_with = "workers", value_parser = worker_count())]
    workers: Option<u16>,
    /// Number of workers in the configuration file. It is used if neither `--workers` nor a launcher specifies the
    /// number.
    #[arg(skip)]
    pub(crate) configured_workers: Option<u16>,
    /// Rank of this worker, starting at 0
    ///
    /// By default, the rank and the number of workers are read from a launcher's environment variables: RANK and
    /// WORLD_SIZE, OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, SLURM_PROCID and SLURM_NTASKS, or
    /// JOB_COMPLETION_INDEX together with --workers.
    #[arg(long, value_name = "R")]
    rank: Option<u16>,
    /// Run directory, for configuration, checkpoint, curves and TensorBoard events
    ///
    /// The default is a directory under `runs` that is named after the run; a number is appended if that directory
    /// already holds a run. To use --resume with workers on several machines, put the directory on a file system that
    /// they all share.
    #[arg(long, value_name = "DIR", overrides_with = "out")]
    pub out: Option<PathBuf>,
    /// Resume from the checkpoint in the run directory, with its hyper-parameters
    ///
    /// Without --out, the command resumes the newest run under `runs` that matches the other options.
    #[arg(long)]
    pub resume: bool,
    /// Discard the run that the run directory already holds
    #[arg(long, conflicts_with = "resume")]
    pub force: bool,
    /// Print the result as one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Maximum number of restarts of the job from its last checkpoint
    ///
    /// All workers are restarted if worker 0, the parameter server or any member of a ring fails. If another worker
    /// fails in a job with a switch, the job continues without that worker.
    #[arg(long, value_name = "N", default_value_t = 3)]
    restarts: u32,
    /// Passed by the parent process to its workers
    #[arg(long, hide = true)]
    pub supervised: bool,
    /// Resume from the checkpoint in the run directory, or start anew if there is none
    ///
    /// This option is for supervisors that restart a failed process with the same command line, as this command does
    /// with its own workers.
    #[arg(long, conflicts_with = "resume")]
    auto_resume: bool,
}

/// Returns the parser for the worker count, which must be between 1 and the maximum that a switch admits to one job.
fn worker_count() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=MAX_MEMBERS as i64)
}

/// Role of this process in the job.
pub enum Role {
    /// One worker.
    Worker(World),
    /// The parent process of the given number of workers.
    Parent(usize),
    /// The parameter server of the given number of workers, and the address on which it listens.
    Server(usize, SocketAddrV4),
}

impl Role {
    /// Returns the rank and the world size of this process. If it is not a worker, returns those of worker 0.
    pub fn world(&self) -> World {
        match *self {
            Self::Worker(world) => world,
            Self::Parent(workers) | Self::Server(workers, _) => World { rank: 0, size: workers },
        }
    }
}

impl RunArgs {
    /// Determines the role of this process. The number of workers is `default_workers` if neither `--workers` nor a
    /// launcher specifies it.
    pub fn role(&self, group: &GroupArgs, default_workers: u16) -> anyhow::Result<Role> {
        let lookup = |name: &str| std::env::var(name).ok();
        let rank = self.rank.map(usize::from);
        let configured = self.configured_workers.filter(|_| rank.is_some());
        let world = launch::world(rank, self.workers.or(configured).map(usize::from), lookup)?;
        let workers = world.map_or(usize::from(self.workers_or(default_workers)), |it| it.size);
        group.check(workers)?;
        if let Some(address) = group.serve {
            return Ok(Role::Server(workers, address));
        }
        match world {
            Some(world) => match group.missing(world.size).filter(|_| world.size > 1) {
                Some(missing) => bail!(
                    "this process is worker {} of {} (from --rank or a launcher's variables): {missing} is required",
                    world.rank,
                    world.size
                ),
                None => Ok(Role::Worker(world)),
            },
            None if group.is_configured() => bail!(
                "--switch, --server and --members require --rank and --workers, or a launcher that sets RANK and \
                 WORLD_SIZE"
            ),
            None if workers > 1 => Ok(Role::Parent(workers)),
            None => Ok(Role::Worker(World::ALONE)),
        }
    }

    /// Returns the run directory: the value of `--out`, or `default` if the option is not given. If `default` already
    /// holds a run, a number is appended to it, unless `--force` is given or this process is one of several workers.
    /// With `--resume`, returns the newest run directory among `default` and those with an appended number.
    pub fn directory(&self, default: PathBuf, group: &GroupArgs) -> PathBuf {
        let is_alone = !group.is_configured() && !self.supervised;
        match &self.out {
            Some(out) => out.clone(),
            None if self.resume => {
                newest_run(RUNS.as_ref(), |run| is_numbered(run, &default)).unwrap_or(default)
            }
            None if is_alone && !self.force => unused(&default),
            None => default,
        }
    }

    /// Creates the run directory, and refuses to overwrite a run in it. Only worker 0 or the parent process does so; in
    /// other processes, this function has no effect.
    pub fn prepare(&self, out: &Path, world: World) -> anyhow::Result<()> {
        if self.supervised || world.rank > 0 {
            return Ok(());
        }
        if holds_run(out) && !self.goes_on() && !self.force {
            bail!(
                "{} already holds a run: resume it with --resume, discard it with --force, or choose another \
                 directory with --out",
                out.display()
            );
        }
        if self.force && !self.goes_on() {
            discard_run(out)?;
        }
        make_directory(out)
    }

    /// Returns the number of workers in the job: the value of `--workers` if given, otherwise the value in the
    /// configuration file if present, and otherwise `default`.
    pub fn workers_or(&self, default: u16) -> u16 {
        self.workers.or(self.configured_workers).unwrap_or(default)
    }

    /// Starts all workers with the options of this process and the `further` options, and restarts them after a failure
    /// of the kind `fatal`. `host` starts the aggregator that the workers join; its argument is true on a restart.
    pub fn lead(
        &self,
        out: &Path,
        workers: usize,
        fatal: Failure,
        further: &[OsString],
        host: impl Fn(bool) -> anyhow::Result<Host>,
    ) -> anyhow::Result<ExitCode> {
        let stop = Arc::new(AtomicBool::new(false));
        signals::stop_on_signal(&stop)?;
        let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
        arguments.extend(["--out".into(), out.into()]);
        arguments.extend_from_slice(further);
        let mut restarts = 0;
        // The file exists only if an earlier invocation failed.
        let _ = std::fs::remove_file(out.join(ERROR_FILE));
        loop {
            let host = host(restarts > 0)?;
            let code = match launch::run_workers(workers, &arguments, &host, &stop, fatal)? {
                Ended::Well => return Ok(ExitCode::SUCCESS),
                Ended::Failed(code) => code,
                Ended::FailedPermanently(code) => return Ok(code),
            };
            if restarts == self.restarts || stop.load(Ordering::Relaxed) {
                return Ok(code);
            }
            restarts += 1;
            let from = if holds_checkpoint(out) { "its last checkpoint" } else { "its start" };
            eprintln!("iswitch: restarting the job from {from} (restart {restarts} of {})", self.restarts);
            if restarts == 1 && !self.auto_resume {
                arguments.push("--auto-resume".into());
            }
        }
    }

    /// Returns the error of a worker. If another worker of the job has already reported an error, returns only the exit
    /// code. An error in an environment's code usually occurs in all workers, and should be reported only once.
    pub fn report_once(&self, out: &Path, error: anyhow::Error) -> anyhow::Result<ExitCode> {
        let report = || {
            File::create_new(out.join(ERROR_FILE))?
                .write_all(format!("{}\n", iswitch_manual::describe(error.as_ref())).as_bytes())
        };
        let may_be_repeated = self.supervised && launch::is_permanent(&error);
        let is_repeated = may_be_repeated
            && report().is_err_and(|failure: std::io::Error| failure.kind() == ErrorKind::AlreadyExists);
        if is_repeated {
            return Ok(launch::exit_code(&error));
        }
        Err(error)
    }

    /// Returns whether the command line requests that an earlier run be resumed.
    pub fn goes_on(&self) -> bool {
        self.resume || self.auto_resume
    }

    /// Returns whether this invocation resumes the run from a checkpoint in `out`.
    pub fn resumes(&self, out: &Path) -> bool {
        self.resume || (self.auto_resume && holds_checkpoint(out))
    }

    /// Sets the flag when a signal or the parent process requests that the run be stopped.
    pub fn stop_on_request(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
        signals::stop_on_signal(stop)?;
        if self.supervised {
            launch::obey_parent(Arc::clone(stop));
        }
        Ok(())
    }
}

/// Returns whether the gradients are summed by a ring of workers.
pub fn is_ring(group: &GroupArgs, role: &Role) -> bool {
    group.aggregator(role.world().size) == Aggregator::Ring
}

fn holds_run(out: &Path) -> bool {
    holds_checkpoint(out) || out.join(PROGRESS_FILE).exists()
}

/// Returns whether a run directory holds a checkpoint.
pub fn holds_checkpoint(out: &Path) -> bool {
    out.join(checkpoint::MODEL_FILE).exists()
}

/// Returns the first of the directories DIR, DIR-2, DIR-3 and so on that does not hold a run. As a result, a command
/// can be repeated without `--force`.
fn unused(out: &Path) -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", out.display())));
    std::iter::once(out.to_owned())
        .chain(numbered)
        .find(|out| !holds_run(out))
        .expect("the numbers are unbounded, so one of the directories holds no run")
}

/// Returns whether `run` is `default`, or `default` with an appended number.
fn is_numbered(run: &Path, default: &Path) -> bool {
    let suffix = run.to_str().zip(default.to_str()).and_then(|(run, default)| run.strip_prefix(default));
    suffix.is_some_and(|suffix| {
        suffix.is_empty() || suffix.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// Returns the run directory with the newest checkpoint, among the directories in `parent` for which `matches` returns
/// true.
///
/// # Errors
/// Fails if there is no such directory.
pub fn newest_run(parent: &Path, matches: impl Fn(&Path) -> bool) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let saved_at = |run: &PathBuf| run.join(checkpoint::MODEL_FILE).metadata().ok()?.modified().ok();
    let mut runs: Vec<_> = entries.filter_map(|run| Some((saved_at(&run)?, run))).collect();
    runs.sort();
    runs.into_iter().rev().map(|(_, run)| run).find(|run| matches(run)).with_context(|| {
        format!(
            "nothing to resume: {} holds no checkpoint that matches the options; name the run directory with --out",
            parent.display()
        )
    })
}

/// Removes the files of a run from its directory. Does not remove other files.
fn discard_run(out: &Path) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ours = name == PROGRESS_FILE
            || name == ERROR_FILE
            || name == CONFIG_FILE
            || name == checkpoint::MODEL_FILE
            || (name.starts_with("worker-") && name.ends_with(".safetensors"))
            || name.starts_with("events.out.tfevents.");
        if is_ours {
            std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}
