//! `iswitch train`: runs one worker, or the parent process that starts all workers.

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use clap::Args;
use iswitch::ElementTypes;
use iswitch_learn::algorithms::async_server::AsyncServer;
use iswitch_learn::algorithms::checkpoint::{self, ModelFile};
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, Trainer, World};
use iswitch_learn::algorithms::vector::VectorShape;
use iswitch_learn::env;
use iswitch_manual::{output, print_line};

use crate::asynchronous::{AsyncArgs, Run};
use crate::config_file::{CONFIG_FILE, ConfigFile, Configuration};
use crate::group::{Aggregator, AsyncHost, GroupArgs, Host, Vectors};
use crate::hyper::{HyperParameters, OwnParameters};
use crate::launch::Failure;
use crate::number;
use crate::run::{RUNS, Role, RunArgs, holds_checkpoint, is_ring, newest_run};
use crate::session::{Session, SessionOptions};
use crate::signals;
use crate::tracking::TrackArgs;

/// Arguments of `iswitch train ALGORITHM`.
#[derive(Args)]
pub struct TrainArgs<H: Args> {
    #[command(flatten)]
    task: TaskArgs,
    /// Options for the run directory, the workers and the output.
    #[command(flatten)]
    pub run: RunArgs,
    /// Options for the aggregation of gradients.
    #[command(flatten)]
    pub group: GroupArgs,
    /// Element types of packets: f32, bf16, f16, bf16-f32 or f16-f32 [default: f32]
    ///
    /// With 16-bit elements, a gradient takes half as many bytes as with f32. The switch sums in 32 bits and rounds
    /// each sum once. With bf16-f32 and f16-f32, the packets to the workers have 32-bit elements. Numbers that must not
    /// be rounded, such as step counts, are exact with every type. All workers of the job must use the same types.
    #[arg(long, value_name = "TYPES")]
    wire: Option<ElementTypes>,
    /// Options for asynchronous training.
    #[command(flatten)]
    pub asynchronous: AsyncArgs,
    #[command(flatten)]
    track: TrackArgs,
    /// Options for the hyper-parameters.
    #[command(flatten)]
    pub hyper: HyperParameters,
    #[command(flatten)]
    own: H,
    /// Parsed file of `--config`.
    #[arg(skip)]
    file: Option<ConfigFile>,
}

#[derive(Args)]
struct TaskArgs {
    /// Configuration file in TOML, such as the config.toml of a run directory
    ///
    /// To repeat a run, pass the config.toml of its run directory. --list-parameters prints such a file. Options on the
    /// command line override the file.
    #[arg(long, value_name = "FILE", overrides_with = "config", conflicts_with = "resume")]
    config: Option<PathBuf>,
    /// Id of the environment
    ///
    /// The built-in environments are PlanarHopper-v0 (the default of ppo), CartPole-v1 (the default of dqn and a2c),
    /// Pendulum-v1 (the default of ddpg, td3 and sac), Acrobot-v1, MountainCarContinuous-v0, PlanarWalker-v0,
    /// PlanarHalfCheetah-v0, PlanarLander-v0, PlanarLanderContinuous-v0 and, without velocities, CartPoleNoVel-v1 and
    /// PendulumNoVel-v1. Hopper-v5 and HalfCheetah-v5 require libmujoco (`pip install mujoco`, or MUJOCO_LIBRARY=FILE).
    /// Any other id, such as ALE/Pong-v5, names a Gymnasium environment and requires a Python interpreter with the
    /// package gymnasium (`pip install gymnasium`, or ISWITCH_PYTHON=FILE). With the prefix `envpool:`, as in
    /// envpool:Pong-v5, the id names an EnvPool environment (`pip install envpool`).
    #[arg(long, value_name = "ID")]
    env: Option<String>,
    /// Number of threads that step the environments of a worker [default: 1]
    ///
    /// For Gymnasium environments, this is the number of Python processes instead; for EnvPool environments, it is the
    /// number of threads in a single process. The result of the run does not depend on this number. More threads can
    /// help if the worker has an idle core for each of them and spends much of its time stepping environments, as with
    /// ppo and a2c on Hopper-v5, HalfCheetah-v5 and slow Gymnasium environments. Threads in excess of the worker's
    /// environments have no effect.
    #[arg(long, value_name = "N", value_parser = env_threads())]
    env_threads: Option<u16>,
    /// Number of threads in the configuration file. It is used if `--env-threads` is not given.
    #[arg(skip)]
    configured_env_threads: Option<u16>,
    /// Total number of environment steps over all workers
    ///
    /// The default is that of the environment's preset or, with --resume, that of the resumed run.
    #[arg(long, visible_alias = "total-timesteps", value_name = "N", value_parser = number::whole::<u64>)]
    steps: Option<u64>,
    /// Seed of all random number generators [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Interval between checkpoints; 0 saves one only when the run ends
    ///
    /// The unit is one rollout for ppo without --async, and one hundred gradients otherwise. The default is 50 for ppo
    /// and a2c, and 500 for dqn, ddpg, td3 and sac, whose checkpoints include the replay buffer. For `iswitch learner`
    /// and `iswitch actor-learner`, the unit is always one hundred gradients, and the default is 10.
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    checkpoint_every: Option<u64>,
}

/// Default number of workers of a job. It is used if neither `--workers` nor a launcher specifies the number.
pub const DEFAULT_WORKERS: u16 = 4;
const DEFAULT_SEED: u64 = 1;

/// Returns the name that a job has in the status of the switch if the user chooses none, such as `ppo-Hopper-v5`.
pub fn default_name<A: Algorithm>(env: &str) -> String {
    format!("{}-{env}", A::NAME)
}

/// Returns the parser for the number of environment threads or processes, which must be at least 1.
pub fn env_threads() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}

/// Definition of a run. It includes the defaults and, if the run is resumed, the values from the checkpoint.
#[derive(Clone)]
pub struct Job<A> {
    /// Id of the environment.
    pub env: String,
    /// Hyper-parameters.
    pub config: A,
    /// Run directory.
    pub out: PathBuf,
}

/// Trains as one worker, serves as the parameter server, or starts all workers and their aggregator.
pub fn run<A: Algorithm, H: OwnParameters>(args: &TrainArgs<H>) -> anyhow::Result<ExitCode> {
    let job = args.job::<A>()?;
    if args.lists_parameters(&job, DEFAULT_WORKERS)? {
        return Ok(ExitCode::SUCCESS);
    }
    args.asynchronous.check()?;
    let role = args.run.role(&args.group, DEFAULT_WORKERS)?;
    if args.asynchronous.is_async() && is_ring(&args.group, &role) {
        bail!(
            "--async cannot be used with --aggregator ring, which waits for all members; use switch or ps instead"
        );
    }
    args.check_wire(role.world().size)?;
    if !args.run.supervised && role.world().rank == 0 {
        args.track.check()?;
    }
    // Report an invalid environment id or a missing library before starting any process.
    if !args.run.supervised && role.world().rank == 0 {
        args.vectors(job.vector_shape(args.mode())?, role.world())?;
    }
    args.run.prepare(&job.out, role.world())?;
    args.write_config(&job, role.world())?;
    let out = job.out.clone();
    match role {
        Role::Worker(world) => {
            let outcome = args.work(job, world).map(|()| ExitCode::SUCCESS);
            outcome.or_else(|error| args.run.report_once(&out, error))
        }
        Role::Parent(workers) => {
            let host = |restarted| args.host(job.clone(), workers, restarted);
            args.run.lead(&out, workers, Failure::OfFirst, &args.further(&out), host)
        }
        Role::Server(workers, address) => args.serve(job, workers, address).map(|()| ExitCode::SUCCESS),
    }
}

impl<A: Algorithm> Job<A> {
    fn vector_shape(&self, mode: Mode) -> anyhow::Result<VectorShape> {
        Ok(self.config.vector_shape(env::make(&self.env)?.spec(), mode)?)
    }
}

impl<H: OwnParameters> TrainArgs<H> {
    /// Reads the file of `--config`, and uses its entries for options that are not given on the command line. If a run
    /// is resumed, uses the file in its run directory instead, but takes the hyper-parameters from the checkpoint.
    pub fn read_config<A: Algorithm>(&mut self) -> anyhow::Result<()> {
        let path = if self.run.resume {
            let out = self.run.out.clone().map_or_else(|| self.newest_run::<A>(), Ok)?;
            let path = out.join(CONFIG_FILE);
            self.run.out = Some(out);
            path.exists().then_some(path)
        } else {
            self.task.config.clone()
        };
        let Some(path) = path else { return Ok(()) };
        let file = ConfigFile::read(&path)?;
        file.check_algorithm(A::NAME)?;
        self.run.configured_workers = file.workers()?;
        self.wire = self.wire.or(file.wire()?);
        self.asynchronous.set_defaults(file.is_async(), file.staleness()?);
        self.task.checkpoint_every = self.task.checkpoint_every.or(file.checkpoint_every());
        self.task.configured_env_threads = file.env_threads()?;
        let (aggregator, paper_style) = file.aggregator();
        self.group.aggregator = self.group.aggregator.or(aggregator);
        self.group.paper_style = self.group.paper_style.or(paper_style);
        if !self.run.resume {
            self.task.env = self.task.env.take().or_else(|| file.env().map(str::to_owned));
            self.file = Some(file);
        }
        Ok(())
    }

    /// Returns the run directory of the newest run of this algorithm. If the user has given an environment or a seed,
    /// considers only runs with that environment or seed.
    fn newest_run<A: Algorithm>(&self) -> anyhow::Result<PathBuf> {
        let TaskArgs { env, seed, .. } = &self.task;
        let matches = |run: &Path| -> anyhow::Result<bool> {
            let (saved_env, mut config) = checkpoint::job::<A>(&ModelFile::read(run)?.reader()?)?;
            let is_env = env.as_ref().is_none_or(|env| *env == saved_env);
            Ok(is_env && seed.is_none_or(|seed| seed == *config.common().seed))
        };
        newest_run(RUNS.as_ref(), |run| matches(run).unwrap_or(false))
    }

    /// Returns the configuration of the run.
    fn configuration<'a, A: Algorithm>(&self, job: &'a Job<A>, workers: usize) -> Configuration<'a, A> {
        Configuration {
            env: &job.env,
            hyper_parameters: &job.config,
            workers,
            aggregator: self.group.aggregator,
            paper_style: self.group.paper_style.unwrap_or(false),
            wire: self.wire(),
            staleness: self.asynchronous.is_async().then(|| self.asynchronous.staleness()),
            checkpoint_every: self.task.checkpoint_every,
            env_threads: self.task.env_threads.or(self.task.configured_env_threads),
        }
    }

    /// Writes the configuration to the run directory. Only worker 0 or the parent process does so; in other processes,
    /// this function has no effect.
    fn write_config<A: Algorithm>(&self, job: &Job<A>, world: World) -> anyhow::Result<()> {
        if self.run.supervised || world.rank > 0 {
            return Ok(());
        }
        self.configuration(job, world.size).write(&job.out)
    }

    /// Returns the options that the parent process adds to those of its workers. They name the configuration file that
    /// the parent has written, because the user may change the original file before a restart.
    fn further(&self, out: &Path) -> Vec<OsString> {
        let written = self.file.as_ref().map(|_| ["--config".into(), out.join(CONFIG_FILE).into()]);
        written.into_iter().flatten().collect()
    }

    /// Prints the configuration file if `--list-parameters` is given, and returns whether it is given. If the user has
    /// not given the number of workers, the job has `default_workers` workers.
    pub fn lists_parameters<A: Algorithm>(&self, job: &Job<A>, default_workers: u16) -> anyhow::Result<bool> {
        if self.hyper.list_parameters && self.run.json {
            print_line!("{}", serde_json::to_string_pretty(&job.config)?)?;
        } else if self.hyper.list_parameters {
            let workers = usize::from(self.run.workers_or(default_workers));
            output::print(format_args!("{}", self.configuration(job, workers).text()?))?;
        }
        Ok(self.hyper.list_parameters)
    }

    /// Returns the number of threads or processes that step a worker's environments.
    pub fn env_threads(&self) -> usize {
        self.task.env_threads.or(self.task.configured_env_threads).map_or(1, usize::from)
    }

    /// Rejects `--env-threads`, for commands whose learners do not step environments.
    ///
    /// # Errors
    /// Fails if the option is given.
    pub fn refuse_env_threads(&self) -> anyhow::Result<()> {
        if self.task.env_threads.is_some() {
            bail!(
                "--env-threads is not supported here: learners do not step environments; remove --env-threads"
            );
        }
        Ok(())
    }

    /// Returns the element types of the packets.
    fn wire(&self) -> ElementTypes {
        self.wire.unwrap_or(ElementTypes::F32)
    }

    /// Returns the definition of the run, which consists of its environment, hyper-parameters and run directory.
    pub fn job<A: Algorithm>(&self) -> anyhow::Result<Job<A>> {
        self.job_with(&[])
    }

    /// Returns the definition of the run with the given `--set` settings in addition to those on the command line.
    pub fn job_with<A: Algorithm>(&self, settings: &[String]) -> anyhow::Result<Job<A>> {
        if self.run.resume {
            return self.resumed_job();
        }
        let TaskArgs { env, seed, .. } = &self.task;
        let env = env.clone().unwrap_or_else(|| A::DEFAULT_ENV.to_owned());
        let mut preset = A::preset(&env);
        *preset.common().seed = DEFAULT_SEED;
        if let Some(file) = &self.file {
            preset = file.apply(&preset)?;
        }
        let seed = seed.unwrap_or(*preset.common().seed);
        *preset.common().seed = seed;
        let default_out = format!("{RUNS}/{}-{}-{seed}", A::NAME, env.replace(['/', ':'], "-"));
        let out = self.run.directory(PathBuf::from(default_out), &self.group);
        Ok(Job { config: self.configure(preset, settings)?, env, out })
    }

    /// Returns the definition of the run whose checkpoint is in the run directory. If `--steps` is given, its value
    /// replaces the number of steps of that run.
    fn resumed_job<A: Algorithm>(&self) -> anyhow::Result<Job<A>> {
        let TaskArgs { env, seed, steps, .. } = &self.task;
        let out = self.run.out.clone().map_or_else(|| self.newest_run::<A>(), Ok)?;
        let file = ModelFile::read(&out).context("nothing to resume")?;
        let (saved_env, mut config) = checkpoint::job::<A>(&file.reader()?).context("nothing to resume")?;
        if let Some(env) = env.as_ref().filter(|env| **env != saved_env) {
            bail!(
                "{} holds a run of {saved_env}, not of {env}; omit --env, or name another run with --out",
                out.display()
            );
        }
        let common = config.common();
        if let Some(seed) = seed.filter(|seed| *seed != *common.seed) {
            bail!("{} holds a run with seed {}, not {seed}; omit --seed", out.display(), common.seed);
        }
        *common.total_steps = steps.unwrap_or(*common.total_steps);
        Ok(Job { env: saved_env, config, out })
    }

    /// Applies the options to a preset and checks the result.
    fn configure<A: Algorithm>(&self, preset: A, settings: &[String]) -> anyhow::Result<A> {
        let apply = |preset| self.hyper.with_settings(settings).apply(preset, &self.own);
        let Some(steps) = self.task.steps else { return apply(preset) };
        let mut shortened = preset.clone();
        *shortened.common().total_steps = steps;
        apply(shortened).map_err(|error| {
            // If only the number of steps is invalid, the error names its option.
            if apply(preset).is_ok() { error.context(format!("--steps {steps}")) } else { error }
        })
    }

    /// Rejects 16-bit elements if the job does not use a switch.
    pub fn check_wire(&self, workers: usize) -> anyhow::Result<()> {
        let aggregator = self.group.aggregator(workers);
        let wire = self.wire();
        if wire != ElementTypes::F32 && aggregator != Aggregator::Switch {
            bail!("--wire {wire} requires --aggregator switch, but this job uses {aggregator}");
        }
        Ok(())
    }

    /// Returns the vectors that the workers of a job sum, for a learner whose vectors have the given lengths.
    pub fn vectors(&self, shape: VectorShape, world: World) -> anyhow::Result<Vectors> {
        let elements = self.wire();
        Ok(Vectors { len: shape.summed_len(elements, world.size)?, elements })
    }

    fn mode(&self) -> Mode {
        if self.asynchronous.is_async() { Mode::Asynchronous } else { Mode::Synchronous }
    }

    /// Returns the options for the display and the checkpoints of the run. `checkpoint_every` is the default interval
    /// between checkpoints.
    pub fn session_options(&self, out: &Path, is_first: bool, checkpoint_every: u64) -> SessionOptions {
        SessionOptions {
            out: out.to_owned(),
            checkpoint_every: self.task.checkpoint_every.unwrap_or(checkpoint_every),
            quiet: self.run.quiet,
            resume: self.run.resumes(out),
            tracking: self.track.tracking(),
            is_first,
        }
    }

    /// Prepares an asynchronous run for a worker or for the parameter server.
    fn asynchronous_run<A: Algorithm>(
        &self,
        job: Job<A>,
        world: World,
        options: SessionOptions,
    ) -> anyhow::Result<Run> {
        let (id, threads) = (job.env, self.env_threads());
        let make = move |count: usize| env::make_parallel(&id, count, threads);
        let halves = job.config.halves(world, &make, Mode::Asynchronous)?;
        Run::new(halves, world, self.asynchronous.staleness(), options, self.run.json)
    }

    /// Starts the aggregator that the child processes join.
    fn host<A: Algorithm>(&self, job: Job<A>, workers: usize, restarted: bool) -> anyhow::Result<Host> {
        if self.asynchronous.is_async() && self.group.aggregator(workers) == Aggregator::Ps {
            let mut options = self.session_options(&job.out, true, A::CHECKPOINT_EVERY);
            options.resume |= restarted && holds_checkpoint(&job.out);
            let run = self.asynchronous_run(job, World { rank: 0, size: workers }, options)?;
            return Ok(Host::AsyncServer(AsyncHost::start(run)?));
        }
        self.group.host(workers, job.vector_shape(self.mode())?.len())
    }

    /// Serves as the parameter server of a job until all workers have left.
    fn serve<A: Algorithm>(&self, job: Job<A>, workers: usize, address: SocketAddrV4) -> anyhow::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        signals::stop_on_signal(&stop)?;
        if self.asynchronous.is_async() {
            let options = self.session_options(&job.out, true, A::CHECKPOINT_EVERY);
            let run = self.asynchronous_run(job, World { rank: 0, size: workers }, options)?;
            let server = AsyncServer::bind(address, run.vector_shape().len(), run.staleness())?;
            return run.serve(server, &stop);
        }
        self.group.serve_sums(address, workers, job.vector_shape(Mode::Synchronous)?.len(), &stop)
    }

    /// Runs one worker.
    fn work<A: Algorithm>(&self, job: Job<A>, world: World) -> anyhow::Result<()> {
        if self.asynchronous.is_async() {
            return self.work_asynchronously(job, world);
        }
        let vectors = self.vectors(job.vector_shape(Mode::Synchronous)?, world)?;
        let group = self.group.with_default_name(&default_name::<A>(&job.env));
        let aggregator = group.join(world, vectors, self.run.supervised)?;
        let Job { env: id, config, out } = job;
        let threads = self.env_threads();
        let make = move |count: usize| env::make_parallel(&id, count, threads);
        let mut trainer = config.trainer(world, &make, aggregator)?;
        if self.run.resumes(&out) {
            let missing = checkpoint::resume(trainer.as_mut(), &out)?;
            if !missing.is_empty() {
                eprintln!(
                    "iswitch: the checkpoint lacks environments {missing:?} of a lost worker; they were reset"
                );
            }
        }
        self.run.stop_on_request(&trainer.stop_handle())?;
        let options = self.session_options(&out, world.rank == 0, A::CHECKPOINT_EVERY);
        let mut session = Session::of(trainer.as_ref(), options)?;
        let outcome = session.run(trainer.as_mut())?;
        if world.rank == 0 {
            outcome.print(self.run.json)?;
            note_stop(&session, trainer.as_ref(), &out);
        }
        Ok(())
    }

    /// Runs one worker of an asynchronous job.
    fn work_asynchronously<A: Algorithm>(&self, job: Job<A>, world: World) -> anyhow::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        self.run.stop_on_request(&stop)?;
        let by_server = self.group.server.filter(|_| self.group.aggregator(world.size) == Aggregator::Ps);
        let options =
            self.session_options(&job.out, world.rank == 0 && by_server.is_none(), A::CHECKPOINT_EVERY);
        let group = self.group.with_default_name(&default_name::<A>(&job.env));
        let run = self.asynchronous_run(job, world, options)?;
        if let Some(server) = by_server {
            return run.with_server(server, stop);
        }
        if !self.group.has_switch() {
            bail!(
                "--async with a single worker requires --switch ADDR:PORT; without it, use --workers 2 or more"
            );
        }
        let vectors = self.vectors(run.vector_shape(), world)?;
        let join = group.switch_options(world, vectors, self.run.supervised)?;
        run.with_switch(join, stop)
    }
}

/// If the run has been stopped before its end, prints the command that resumes it.
fn note_stop(session: &Session, trainer: &dyn Trainer, out: &Path) {
    let at = trainer.progress();
    if at.finished {
        return;
    }
    session.note(&format!(
        "stopped after {} of {} steps; resume with: iswitch train --resume --out {}",
        at.steps,
        at.total_steps,
        out.display(),
    ));
}
