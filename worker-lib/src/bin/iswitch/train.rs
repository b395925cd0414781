//! `iswitch train`: one worker's run, or the parent of all.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use clap::Args;
use iswitch::aggregate::ParameterServer;
use iswitch::algorithms::async_server::AsyncServer;
use iswitch::algorithms::checkpoint::{self, ModelFile};
use iswitch::algorithms::trainer::{Algorithm, Mode, Place, Trainer};
use iswitch::env;
use iswitch_protocol::limits::MAX_MEMBERS;

use crate::asynchronous::{AsyncArgs, Run};
use crate::group::{Aggregator, AsyncHost, GroupArgs, Host};
use crate::hyper::{HyperParameters, OwnParameters};
use crate::launch::{self, Ended};
use crate::session::{Session, SessionOptions};

/// Arguments of `iswitch train ALGORITHM`.
#[derive(Args)]
pub(crate) struct TrainArgs<H: Args> {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    group: GroupArgs,
    #[command(flatten)]
    asynchronous: AsyncArgs,
    #[command(flatten)]
    hyper: HyperParameters,
    #[command(flatten)]
    own: H,
}

#[derive(Args)]
struct RunArgs {
    /// Environment: PlanarHopper-v0 (the default of ppo), CartPole-v1 (of dqn, a2c), Pendulum-v1 (of ddpg), Hopper-v5
    /// and HalfCheetah-v5, which need libmujoco (`pip install mujoco`, or MUJOCO_LIBRARY=FILE), or any id of Gymnasium,
    /// such as ALE/Pong-v5, which needs a Python that has it (`pip install gymnasium`, or ISWITCH_PYTHON=FILE).
    #[arg(long, value_name = "ID")]
    env: Option<String>,
    /// Workers of the job [default: 4]. Batches are divided over them, so their number does not change what is
    /// learned. Unless told where they meet this command starts all workers itself, and what sums their gradients.
    #[arg(long, value_name = "N", overrides_with = "workers", value_parser = worker_count())]
    workers: Option<u16>,
    /// This worker, from 0. By default RANK and WORLD_SIZE, OMPI_COMM_WORLD_RANK and _SIZE, SLURM_PROCID and
    /// SLURM_NTASKS, or JOB_COMPLETION_INDEX with --workers, if a launcher has set them.
    #[arg(long, value_name = "R")]
    rank: Option<u16>,
    /// Environment steps over all workers [default: the environment's preset; with --resume: those of the run].
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Seed of everything random [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run directory: checkpoint, progress.csv and TensorBoard events [default: runs/ALGORITHM-ENV-SEED, with a number
    /// behind it if that holds a run]. With workers on several machines and --resume it must be shared by all.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on from the checkpoint in the run directory, with the hyper-parameters saved there.
    #[arg(long)]
    resume: bool,
    /// Discard the run that the run directory holds.
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// Checkpoint after so many rollouts (ppo) or hundreds of gradients (others); 0 only at the end [default: 50 for
    /// ppo and a2c, 500 for dqn and ddpg, whose checkpoints hold their replay buffers].
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<u64>,
    /// Print the result as one JSON object on the standard output.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
    /// When worker 0 fails, or the parameter server, or anyone of a ring: start all again, from the last checkpoint, at
    /// most so often. With a switch the others go on without a worker that fails.
    #[arg(long, value_name = "N", default_value_t = 3)]
    restarts: u32,
    /// Given by the parent process to its workers.
    #[arg(long, hide = true)]
    supervised: bool,
    /// Given by the parent process to its workers when it starts them again.
    #[arg(long, hide = true)]
    restarted: bool,
}

/// As many workers as a switch counts in one job.
fn worker_count() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=MAX_MEMBERS as i64)
}

const DEFAULT_WORKERS: u16 = 4;
const DEFAULT_SEED: u64 = 1;
const PROGRESS_FILE: &str = "progress.csv";

/// What a run is, after defaults and checkpoint.
#[derive(Clone)]
struct Job<A> {
    env: String,
    config: A,
    out: PathBuf,
}

/// What this process is.
enum Role {
    /// One worker.
    Worker(Place),
    /// The parent of all, so many.
    Parent(usize),
    /// The parameter server of so many.
    Server(usize, SocketAddrV4),
}

/// Trains as one worker, or starts all workers and what sums their gradients.
pub(crate) fn run<A: Algorithm, H: OwnParameters>(args: &TrainArgs<H>) -> anyhow::Result<ExitCode> {
    let mut job = args.job::<A>()?;
    if args.hyper.list_parameters {
        println!("{}", serde_json::to_string_pretty(&job.config)?);
        return Ok(ExitCode::SUCCESS);
    }
    let role = args.role()?;
    let is_alone = !args.group.is_told() && !args.run.supervised;
    if is_alone && args.run.out.is_none() && !args.run.resume && !args.run.force {
        job.out = unused(&job.out);
    }
    match role {
        Role::Worker(place) => {
            args.prepare(&job, place)?;
            args.work(job, place)?;
            Ok(ExitCode::SUCCESS)
        }
        Role::Parent(workers) => {
            args.prepare(&job, Place { rank: 0, workers })?;
            args.lead(&job, workers)
        }
        Role::Server(workers, address) => {
            args.prepare(&job, Place { rank: 0, workers })?;
            args.serve(job, workers, address)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl<A: Algorithm> Job<A> {
    fn vector_len(&self, mode: Mode) -> anyhow::Result<usize> {
        Ok(self.config.vector_len(env::make(&self.env)?.spec(), mode)?)
    }
}

impl<H: OwnParameters> TrainArgs<H> {
    fn role(&self) -> anyhow::Result<Role> {
        let lookup = |name: &str| std::env::var(name).ok();
        let rank = self.run.rank.map(usize::from);
        let place = launch::placement(rank, self.run.workers.map(usize::from), lookup)?;
        let workers = place.map_or(usize::from(self.run.workers.unwrap_or(DEFAULT_WORKERS)), |it| it.workers);
        self.group.check(workers)?;
        let is_ring = self.group.aggregator(workers) == Aggregator::Ring;
        if self.asynchronous.is_async && is_ring {
            bail!("--async: a ring waits for all its members; give --aggregator switch or ps");
        }
        if let Some(address) = self.group.serve {
            return Ok(Role::Server(workers, address));
        }
        match place {
            Some(place) => match self.group.missing(place.workers).filter(|_| place.workers > 1) {
                Some(missing) => bail!(
                    "this process is worker {} of {}, by --rank or a launcher's variables: {missing} is needed",
                    place.rank,
                    place.workers
                ),
                None => Ok(Role::Worker(place)),
            },
            None if self.group.is_told() => bail!(
                "--switch, --server and --members need --rank and --workers, or a launcher that sets RANK, WORLD_SIZE"
            ),
            None if workers > 1 => Ok(Role::Parent(workers)),
            None => Ok(Role::Worker(Place::ALONE)),
        }
    }

    fn job<A: Algorithm>(&self) -> anyhow::Result<Job<A>> {
        let RunArgs { env, seed, out, steps, resume, .. } = &self.run;
        let wanted_env = env.clone().unwrap_or_else(|| A::DEFAULT_ENV.to_owned());
        let wanted_seed = seed.unwrap_or(DEFAULT_SEED);
        let default_out = || {
            let env = wanted_env.replace(['/', ':'], "-");
            PathBuf::from(format!("runs/{}-{env}-{wanted_seed}", A::NAME))
        };
        let out = out.clone().unwrap_or_else(default_out);
        if !resume {
            let mut preset = A::preset(&wanted_env);
            *preset.common().seed = wanted_seed;
            if let Some(steps) = steps {
                *preset.common().total_steps = *steps;
            }
            let config = self.hyper.apply(preset, &self.own)?;
            return Ok(Job { env: wanted_env, config, out });
        }
        let file = ModelFile::read(&out).context("nothing to resume")?;
        let (saved_env, mut config) = checkpoint::job::<A>(&file.reader()?).context("nothing to resume")?;
        if env.is_some() && saved_env != wanted_env {
            bail!(
                "{} holds a run of {saved_env}, not {wanted_env}; leave out --env, or name another run by --out",
                out.display()
            );
        }
        let common = config.common();
        if seed.is_some() && *common.seed != wanted_seed {
            bail!("{} holds a run with seed {}, not {wanted_seed}", out.display(), common.seed);
        }
        *common.total_steps = steps.unwrap_or(*common.total_steps);
        Ok(Job { env: saved_env, config, out })
    }

    /// Makes the run directory, and refuses to overwrite a run. Worker 0's, or the parent's, task.
    fn prepare<A: Algorithm>(&self, job: &Job<A>, place: Place) -> anyhow::Result<()> {
        if self.run.supervised || place.rank > 0 {
            return Ok(());
        }
        // A wrong id or a missing library is best told before anything is started.
        job.vector_len(self.mode())?;
        let out = &job.out;
        if holds_run(out) && !self.run.resume && !self.run.force {
            bail!(
                "{} already holds a run: --resume goes on with it, --force discards it, --out takes another directory",
                out.display()
            );
        }
        if self.run.force {
            discard_run(out)?;
        }
        std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))
    }

    fn mode(&self) -> Mode {
        if self.asynchronous.is_async { Mode::Asynchronous } else { Mode::Synchronous }
    }

    /// How the run is shown and kept.
    fn session_options<A: Algorithm>(&self, out: &Path, is_first: bool) -> SessionOptions {
        SessionOptions {
            out: out.to_owned(),
            checkpoint_every: self.run.checkpoint_every.unwrap_or(A::CHECKPOINT_EVERY),
            quiet: self.run.quiet,
            resume: self.resumes(out),
            is_first,
        }
    }

    /// An asynchronous run of a worker or of a server.
    fn asynchronous_run<A: Algorithm>(
        &self,
        job: Job<A>,
        place: Place,
        options: SessionOptions,
    ) -> anyhow::Result<Run> {
        let id = job.env;
        let make = move |count: usize| env::make_vector(&id, count);
        let halves = job.config.halves(place, &make, Mode::Asynchronous)?;
        Run::new(halves, place, self.asynchronous.staleness, options, self.run.json)
    }

    /// Starts all workers, and starts them again if they fail.
    fn lead<A: Algorithm>(&self, job: &Job<A>, workers: usize) -> anyhow::Result<ExitCode> {
        let stop = Arc::new(AtomicBool::new(false));
        launch::stop_on_signal(&stop)?;
        let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
        if self.run.out.is_none() {
            arguments.extend(["--out".into(), job.out.clone().into()]);
        }
        let mut restarts = 0;
        loop {
            let host = self.host(job.clone(), workers, restarts > 0)?;
            let code = match launch::run_workers(workers, &arguments, &host, &stop)? {
                Ended::Well => return Ok(ExitCode::SUCCESS),
                Ended::Failed(code) => code,
            };
            if restarts == self.run.restarts || stop.load(Ordering::Relaxed) {
                return Ok(code);
            }
            restarts += 1;
            let from = if holds_checkpoint(&job.out) { "its last checkpoint" } else { "its start" };
            eprintln!(
                "iswitch: starting the job again from {from}, {restarts} of {} times",
                self.run.restarts
            );
            if restarts == 1 {
                arguments.push("--restarted".into());
            }
        }
    }

    /// Whether there is a state to go on from.
    fn resumes(&self, out: &Path) -> bool {
        self.run.resume || (self.run.restarted && holds_checkpoint(out))
    }

    /// What the children of this process meet at.
    fn host<A: Algorithm>(&self, job: Job<A>, workers: usize, restarted: bool) -> anyhow::Result<Host> {
        if self.asynchronous.is_async && self.group.aggregator(workers) == Aggregator::Ps {
            let mut options = self.session_options::<A>(&job.out, true);
            options.resume |= restarted && holds_checkpoint(&job.out);
            let run = self.asynchronous_run(job, Place { rank: 0, workers }, options)?;
            return Ok(Host::AsyncServer(AsyncHost::start(run)?));
        }
        self.group.host(workers, job.vector_len(self.mode())?)
    }

    /// Is the parameter server of a job until its workers are done.
    fn serve<A: Algorithm>(&self, job: Job<A>, workers: usize, address: SocketAddrV4) -> anyhow::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        launch::stop_on_signal(&stop)?;
        if self.asynchronous.is_async {
            let options = self.session_options::<A>(&job.out, true);
            let run = self.asynchronous_run(job, Place { rank: 0, workers }, options)?;
            let server = AsyncServer::bind(address, run.vector_len(), run.staleness())?;
            return run.serve(server, &stop);
        }
        let options = self.group.server_options(address, workers, job.vector_len(Mode::Synchronous)?)?;
        let rounds = ParameterServer::bind(options)?.run(&stop)?;
        eprintln!("iswitch: {rounds} sums");
        Ok(())
    }

    /// One worker's run.
    fn work<A: Algorithm>(&self, job: Job<A>, place: Place) -> anyhow::Result<()> {
        if self.asynchronous.is_async {
            return self.work_asynchronously(job, place);
        }
        let aggregator = self.group.join(place, job.vector_len(Mode::Synchronous)?, self.run.supervised)?;
        let Job { env: id, config, out } = job;
        let make = move |count: usize| env::make_vector(&id, count);
        let mut trainer = config.trainer(place, &make, aggregator)?;
        if self.resumes(&out) {
            let missing = checkpoint::resume(trainer.as_mut(), &out)?;
            if !missing.is_empty() {
                eprintln!(
                    "iswitch: the checkpoint lacks environments {missing:?} of a lost worker; they start anew"
                );
            }
        }
        self.stop_when_told(&trainer.stop_handle())?;
        let options = self.session_options::<A>(&out, place.rank == 0);
        let mut session = Session::new(options, &trainer.progress(), trainer.loss_names())?;
        let outcome = session.run(trainer.as_mut())?;
        if place.rank == 0 {
            outcome.print(self.run.json)?;
            note_stop(&session, trainer.as_ref(), &out);
        }
        Ok(())
    }

    /// One worker's run, without waiting for the others.
    fn work_asynchronously<A: Algorithm>(&self, job: Job<A>, place: Place) -> anyhow::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        self.stop_when_told(&stop)?;
        let by_server = self.group.server.filter(|_| self.group.aggregator(place.workers) == Aggregator::Ps);
        let options = self.session_options::<A>(&job.out, place.rank == 0 && by_server.is_none());
        let run = self.asynchronous_run(job, place, options)?;
        if let Some(server) = by_server {
            return run.with_server(server, stop);
        }
        if self.group.switch.is_none() {
            bail!("--async with a single worker: give --switch ADDR:PORT, or more --workers");
        }
        let join = self.group.switch_options(place, run.vector_len(), self.run.supervised)?;
        run.with_switch(join, stop)
    }

    fn stop_when_told(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
        launch::stop_on_signal(stop)?;
        if self.run.supervised {
            launch::obey_parent(Arc::clone(stop));
        }
        Ok(())
    }
}

/// Tells how to go on with a run that was stopped.
fn note_stop(session: &Session, trainer: &dyn Trainer, out: &Path) {
    let at = trainer.progress();
    if at.finished {
        return;
    }
    session.note(&format!(
        "stopped after {} of {} steps; go on with: iswitch train {} --resume --out {} --workers {}",
        at.steps,
        at.total_steps,
        trainer.algorithm(),
        out.display(),
        trainer.place().workers
    ));
}

fn holds_run(out: &Path) -> bool {
    holds_checkpoint(out) || out.join(PROGRESS_FILE).exists()
}

fn holds_checkpoint(out: &Path) -> bool {
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
