//! `iswitch learner`: learns from the experience that actors in other processes insert into the replay shards.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use iswitch_actor_learner::{Job as Described, Policy, Publisher, ReplaySource, SourceOptions, SourceStats};
use iswitch_learn::algorithms::checkpoint;
use iswitch_learn::algorithms::halves::Halves;
use iswitch_learn::algorithms::remote::{Demand, RemoteHalves};
use iswitch_learn::algorithms::synchronous::SynchronousTrainer;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, Trainer as _, World};
use iswitch_learn::algorithms::vector::VectorShape;
use iswitch_learn::env::{self, EnvSpec};
use iswitch_manual::print_line;
use iswitch_models::{Access, Listen};
use iswitch_replay::client::ClientConfig;
use serde::Serialize;

use super::ChildArgs;
use super::access::{PublishAccess, ReplayAccess};
use iswitch_cli::hyper::OwnParameters;
use iswitch_cli::launch::Failure;
use iswitch_cli::outcome::Outcome;
use iswitch_cli::run::Role;
use iswitch_cli::session::Session;
use iswitch_cli::signals;
use iswitch_cli::train::{Job, TrainArgs, default_name};

/// Default number of learners.
pub(super) const DEFAULT_LEARNERS: u16 = 1;
/// Interval between checkpoints, in units of one hundred gradients. It is short, because checkpoints are small and a
/// restarted learner repeats the updates since the last checkpoint.
const CHECKPOINT_EVERY: u64 = 10;
/// Interval at which the stop flag is checked.
const POLL: Duration = Duration::from_millis(50);

/// Arguments of `iswitch learner ALGORITHM`.
#[derive(Args)]
pub(crate) struct LearnerArgs<H: Args> {
    #[command(flatten)]
    pub(super) train: TrainArgs<H>,
    #[command(flatten)]
    pub(super) service: ServiceArgs,
    #[command(flatten)]
    child: ChildArgs,
}

/// Arguments for the replay shards and the policy server of a learner.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Actors and replay")]
pub(crate) struct ServiceArgs {
    /// Addresses of the replay shards
    ///
    /// Each address is http://HOST:PORT, https://HOST:PORT or unix:PATH. Actors and learners connect to the same
    /// addresses.
    #[arg(long = "replay", value_name = "ADDRESS,...", value_delimiter = ',', required = true)]
    shards: Vec<String>,
    /// Listening address of the policy server: ADDRESS:PORT or unix:PATH
    ///
    /// The first learner serves the policies and the description of the run at this address. Repeatable.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7720")]
    publish: Vec<Listen>,
    /// Minimum interval between published policies, in milliseconds
    ///
    /// The default is 100 for off-policy algorithms. For ppo and a2c, it is 0, so every update publishes a policy.
    #[arg(long, value_name = "MS")]
    publish_every_ms: Option<u64>,
    /// Time for which the first learner serves policies after the run, in seconds
    ///
    /// Actors find out that the run has ended only if they read a policy during this time.
    #[arg(long, value_name = "S", default_value_t = 3.0)]
    linger_s: f64,
    #[command(flatten)]
    replay_access: ReplayAccess,
    #[command(flatten)]
    publish_access: PublishAccess,
}

impl ServiceArgs {
    /// Returns the options of the replay client, and the access control settings of the policy server.
    fn access(&self) -> anyhow::Result<(ClientConfig, Access)> {
        Ok((self.replay_access.config(&self.shards)?, self.publish_access.read(&self.publish)?))
    }
}

/// Result of a run. Other programs rely on the keys of the JSON object and on their order.
#[derive(Serialize)]
struct LearnerOutcome<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// Counters of the first learner's experience source.
    replay: SourceStats,
}

/// Runs one learner, serves as the parameter server, or starts all learners and their aggregator.
pub(super) fn run<A: Algorithm, H: OwnParameters>(args: &mut LearnerArgs<H>) -> anyhow::Result<ExitCode> {
    args.train.read_config::<A>()?;
    args.train.refuse_env_threads()?;
    let TrainArgs { run, group, .. } = &args.train;
    let job = args.train.job::<A>()?;
    if args.train.lists_parameters(&job, DEFAULT_LEARNERS)? {
        return Ok(ExitCode::SUCCESS);
    }
    if args.train.asynchronous.is_async() {
        bail!(
            "--async is not supported here: learners must be synchronous, and only the actors run asynchronously; \
             remove --async"
        );
    }
    // Report an unusable file before any process starts.
    let access = args.service.access()?;
    if !run.supervised {
        args.child.follow_parent(&Arc::default());
    }
    let role = run.role(group, DEFAULT_LEARNERS)?;
    args.train.check_wire(role.world().size)?;
    run.prepare(&job.out, role.world())?;
    match role {
        Role::Worker(world) => args.learn(&job, world, access)?,
        Role::Parent(learners) => {
            let len = vector_shape(&job.config, &spec(&job)?)?.len();
            // If one learner fails, all of them are restarted. This is fast, because each learner holds little state.
            return run.lead(&job.out, learners, Failure::OfAny, &[], |_| group.host(learners, len));
        }
        Role::Server(learners, address) => {
            let stop = Arc::default();
            signals::stop_on_signal(&stop)?;
            let len = vector_shape(&job.config, &spec(&job)?)?.len();
            group.serve_sums(address, learners, len, &stop)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the environment's shapes and limits. Creates the environment only for this purpose, because a learner does
/// not step environments.
fn spec<A: Algorithm>(job: &Job<A>) -> anyhow::Result<EnvSpec> {
    Ok(env::make(&job.env)?.spec().clone())
}

/// Returns the lengths of the vectors that the learners sum. They are the same as in asynchronous training: like an
/// asynchronous worker, a learner never has the data of all environments when it computes a gradient.
fn vector_shape<A: Algorithm>(config: &A, spec: &EnvSpec) -> anyhow::Result<VectorShape> {
    Ok(config.vector_shape(spec, Mode::Asynchronous)?)
}

impl<H: OwnParameters> LearnerArgs<H> {
    fn learn<A: Algorithm>(
        &self,
        job: &Job<A>,
        world: World,
        (replay, access): (ClientConfig, Access),
    ) -> anyhow::Result<()> {
        let Self { train, service, .. } = self;
        let (spec, is_first) = (spec(job)?, world.rank == 0);
        let vectors = train.vectors(vector_shape(&job.config, &spec)?, world)?;
        let stop: Arc<AtomicBool> = Arc::default();
        train.run.stop_on_request(&stop)?;
        let halves = job.config.clone().remote_learner(world, &spec)?;
        let acting = halves.acting.clone();
        let publisher = if is_first { Some(self.publisher(&job.env, &halves, access)?) } else { None };
        let group = train.group.with_default_name(&default_name::<A>(&job.env));
        let aggregator = group.join(world, vectors, train.run.supervised)?;
        let (halves, stats) = self.with_source(halves, world, replay, publisher.clone(), &stop)?;
        let mut trainer =
            SynchronousTrainer::new(halves, world, aggregator)?.with_stop(Arc::clone(&stop)).all_or_none();
        if train.run.resumes(&job.out) {
            checkpoint::resume(&mut trainer, &job.out)?;
        }
        let options = train.session_options(&job.out, is_first, CHECKPOINT_EVERY);
        let mut session = Session::of(&trainer, options)?;
        let outcome = session.run(&mut trainer)?;
        let Some(publisher) = publisher else { return Ok(()) };
        self.print(&outcome, stats())?;
        let at = trainer.progress();
        if !at.finished {
            let out = job.out.display();
            session.note(&format!(
                "stopped after {} of {} steps; to resume, pass --resume --out {out}",
                at.steps, at.total_steps
            ));
            return Ok(());
        }
        let floats = trainer.model()[acting].to_vec();
        let last =
            Policy { updates: at.iterations, steps: at.steps, priority_max: 1.0, finished: true, floats };
        publisher.lock().unwrap_or_else(PoisonError::into_inner).finish(&last)?;
        linger(Duration::try_from_secs_f64(service.linger_s)?, &stop);
        Ok(())
    }

    /// Starts the policy server.
    fn publisher(
        &self,
        env: &str,
        halves: &RemoteHalves,
        access: Access,
    ) -> anyhow::Result<Arc<Mutex<Publisher>>> {
        let every = self.service.publish_every_ms.unwrap_or(match halves.demand {
            Demand::Transitions { .. } => 100,
            Demand::Rollouts { .. } => 0,
        });
        let described = Described::new(
            (halves.algorithm(), env, halves.config()),
            halves.acting.len(),
            halves.demand,
            self.service.shards.clone(),
        );
        let every = Duration::from_millis(every);
        let publisher = Publisher::start(&self.service.publish, access, &described, every)?;
        Ok(Arc::new(Mutex::new(publisher)))
    }

    /// Creates both halves of a learner, including its experience source. Also returns a function that reads the
    /// counters of the source.
    fn with_source(
        &self,
        halves: RemoteHalves,
        world: World,
        replay: ClientConfig,
        publisher: Option<Arc<Mutex<Publisher>>>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<(Halves, impl Fn() -> SourceStats + use<H>)> {
        let options = SourceOptions {
            replay,
            demand: halves.demand,
            learners: world.size,
            rank: world.rank,
            staleness: u64::from(self.train.asynchronous.staleness()),
            acting: halves.acting.clone(),
        };
        let mut stats = None;
        let halves = halves.with_source(|learner, spec| {
            let source = ReplaySource::new(learner, spec, options, publisher, Arc::clone(stop))?;
            stats = Some(source.stats());
            anyhow::Ok(Box::new(source) as _)
        })?;
        Ok((halves, stats.expect("with_source has just created the source")))
    }

    fn print(&self, outcome: &Outcome, replay: SourceStats) -> anyhow::Result<()> {
        if self.train.run.json {
            print_line!("{}", serde_json::to_string(&LearnerOutcome { outcome, replay })?)?;
            return Ok(());
        }
        outcome.print(false)?;
        print_line!(
            "replay: {} items, mean age {:.1} updates, {} too old, {} malformed; waited {:.1} s",
            replay.items,
            replay.age_mean,
            replay.stale,
            replay.malformed,
            replay.waited_s
        )?;
        Ok(())
    }
}

fn linger(time: Duration, stop: &AtomicBool) {
    let end = Instant::now() + time;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(POLL);
    }
}
