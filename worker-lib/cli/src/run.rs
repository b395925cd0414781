//! What every training on the command line has: a place among workers, a run directory, restarts.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use clap::Args;
use iswitch_learn::algorithms::checkpoint;
use iswitch_learn::algorithms::trainer::Place;
use iswitch_protocol::limits::MAX_MEMBERS;

use crate::files::make_directory;
use crate::group::{Aggregator, GroupArgs, Host};
use crate::launch::{self, Ended, Failure};

const PROGRESS_FILE: &str = "progress.csv";

/// Arguments of every training.
#[derive(Args)]
pub struct RunArgs {
    /// Workers of the job [default: 4; of `route train`, `coflow train` and `place train` 1]. Batches are divided over
    /// them, so their number does not change what is learned. Unless told where they meet this command starts all
    /// workers itself, and what sums their gradients.
    #[arg(long, value_name = "N", overrides_with = "workers", value_parser = worker_count())]
    workers: Option<u16>,
    /// This worker, from 0. By default RANK and WORLD_SIZE, OMPI_COMM_WORLD_RANK and _SIZE, SLURM_PROCID and
    /// SLURM_NTASKS, or JOB_COMPLETION_INDEX with --workers, if a launcher has set them.
    #[arg(long, value_name = "R")]
    rank: Option<u16>,
    /// Run directory: checkpoint, progress.csv and TensorBoard events [default: one under runs, named after the run,
    /// with a number behind it if that holds a run]. With workers on several machines and --resume it must be shared by
    /// all.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on from the checkpoint in the run directory, with the hyper-parameters saved there.
    #[arg(long)]
    pub resume: bool,
    /// Discard the run that the run directory holds.
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// Print the result as one JSON object on the standard output.
    #[arg(long)]
    pub json: bool,
    /// Show no progress.
    #[arg(long, short)]
    pub quiet: bool,
    /// When worker 0 fails, or the parameter server, or anyone of a ring: start all again, from the last checkpoint, at
    /// most so often. With a switch the others go on without a worker that fails.
    #[arg(long, value_name = "N", default_value_t = 3)]
    restarts: u32,
    /// Given by the parent process to its workers.
    #[arg(long, hide = true)]
    pub supervised: bool,
    /// Go on from the checkpoint in the run directory if there is one, else begin: for what starts a failed process
    /// again with the same command, as this one does with its workers.
    #[arg(long, conflicts_with = "resume")]
    auto_resume: bool,
}

/// As many workers as a switch counts in one job.
fn worker_count() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=MAX_MEMBERS as i64)
}

/// What this process is.
pub enum Role {
    /// One worker.
    Worker(Place),
    /// The parent of all, so many.
    Parent(usize),
    /// The parameter server of so many.
    Server(usize, SocketAddrV4),
}

impl Role {
    /// The place of this process, or of the first worker.
    pub fn place(&self) -> Place {
        match *self {
            Self::Worker(place) => place,
            Self::Parent(workers) | Self::Server(workers, _) => Place { rank: 0, workers },
        }
    }
}

impl RunArgs {
    /// What this process is, if nothing is said one of `default_workers` or their parent.
    pub fn role(&self, group: &GroupArgs, default_workers: u16) -> anyhow::Result<Role> {
        let lookup = |name: &str| std::env::var(name).ok();
        let rank = self.rank.map(usize::from);
        let place = launch::placement(rank, self.workers.map(usize::from), lookup)?;
        let workers = place.map_or(usize::from(self.workers.unwrap_or(default_workers)), |it| it.workers);
        group.check(workers)?;
        if let Some(address) = group.serve {
            return Ok(Role::Server(workers, address));
        }
        match place {
            Some(place) => match group.missing(place.workers).filter(|_| place.workers > 1) {
                Some(missing) => bail!(
                    "this process is worker {} of {}, by --rank or a launcher's variables: {missing} is needed",
                    place.rank,
                    place.workers
                ),
                None => Ok(Role::Worker(place)),
            },
            None if group.is_told() => bail!(
                "--switch, --server and --members need --rank and --workers, or a launcher that sets RANK, WORLD_SIZE"
            ),
            None if workers > 1 => Ok(Role::Parent(workers)),
            None => Ok(Role::Worker(Place::ALONE)),
        }
    }

    /// The run directory: what was asked for, or `default`; that with a number behind it if it holds a run and nobody
    /// asked for that one.
    pub fn directory(&self, default: PathBuf, group: &GroupArgs) -> PathBuf {
        let may_choose = self.out.is_none() && !self.resume && !self.force;
        let is_alone = !group.is_told() && !self.supervised;
        match &self.out {
            Some(out) => out.clone(),
            None if may_choose && is_alone => unused(&default),
            None => default,
        }
    }

    /// Makes the run directory, and refuses to overwrite a run. Worker 0's, or the parent's, task.
    pub fn prepare(&self, out: &Path, place: Place) -> anyhow::Result<()> {
        if self.supervised || place.rank > 0 {
            return Ok(());
        }
        if holds_run(out) && !self.goes_on() && !self.force {
            bail!(
                "{} already holds a run: --resume goes on with it, --force discards it, --out takes another directory",
                out.display()
            );
        }
        if self.force && !self.goes_on() {
            discard_run(out)?;
        }
        make_directory(out)
    }

    /// Workers of the job, by default so many.
    pub fn workers_or(&self, default: u16) -> u16 {
        self.workers.unwrap_or(default)
    }

    /// Starts all workers, and starts them again after a `fatal` failure. `host` gives what they meet at; it is told
    /// whether they are started again.
    pub fn lead(
        &self,
        out: &Path,
        workers: usize,
        fatal: Failure,
        host: impl Fn(bool) -> anyhow::Result<Host>,
    ) -> anyhow::Result<ExitCode> {
        let stop = Arc::new(AtomicBool::new(false));
        launch::stop_on_signal(&stop)?;
        let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
        if self.out.is_none() {
            arguments.extend(["--out".into(), out.into()]);
        }
        let mut restarts = 0;
        loop {
            let host = host(restarts > 0)?;
            let code = match launch::run_workers(workers, &arguments, &host, &stop, fatal)? {
                Ended::Well => return Ok(ExitCode::SUCCESS),
                Ended::Failed(code) => code,
            };
            if restarts == self.restarts || stop.load(Ordering::Relaxed) {
                return Ok(code);
            }
            restarts += 1;
            let from = if holds_checkpoint(out) { "its last checkpoint" } else { "its start" };
            eprintln!("iswitch: starting the job again from {from}, {restarts} of {} times", self.restarts);
            if restarts == 1 && !self.auto_resume {
                arguments.push("--auto-resume".into());
            }
        }
    }

    /// Whether the command says to go on.
    pub fn goes_on(&self) -> bool {
        self.resume || self.auto_resume
    }

    /// Whether there is a state to go on from.
    pub fn resumes(&self, out: &Path) -> bool {
        self.resume || (self.auto_resume && holds_checkpoint(out))
    }

    /// Sets the flag when a signal, or the parent, asks to stop.
    pub fn stop_when_told(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
        launch::stop_on_signal(stop)?;
        if self.supervised {
            launch::obey_parent(Arc::clone(stop));
        }
        Ok(())
    }
}

/// Whether it is a ring that sums.
pub fn is_ring(group: &GroupArgs, role: &Role) -> bool {
    group.aggregator(role.place().workers) == Aggregator::Ring
}

fn holds_run(out: &Path) -> bool {
    holds_checkpoint(out) || out.join(PROGRESS_FILE).exists()
}

/// Whether a run directory holds a state to go on from.
pub fn holds_checkpoint(out: &Path) -> bool {
    out.join(checkpoint::MODEL_FILE).exists()
}

/// The directory, or the first of DIR-2, DIR-3 and so on, that holds no run: so that a command can be repeated.
fn unused(out: &Path) -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", out.display())));
    std::iter::once(out.to_owned())
        .chain(numbered)
        .find(|out| !holds_run(out))
        .expect("there is no end of numbers")
}

/// Removes the files of a run, and nothing else, from its directory.
fn discard_run(out: &Path) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ours = name == PROGRESS_FILE
            || name == checkpoint::MODEL_FILE
            || (name.starts_with("worker-") && name.ends_with(".safetensors"))
            || name.starts_with("events.out.tfevents.");
        if is_ours {
            std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}
