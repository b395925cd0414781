//! The actor, which acts with the newest policy and inserts its experience into the replay shards.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use iswitch_replay::client::blocking::{ReplayClient, Ticket, Writer};
use iswitch_replay::table::NewItem;
use serde::Serialize;

use super::items::ItemFormat;
use super::retry::ProblemReport;
use super::tables::{EPISODES, EXPERIENCE};
use super::{ActorLearnerError, Job, Policy, PolicyFeed, episodes, refusal};
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::environments::EnvFactory;
use iswitch_learn::algorithms::halves::Tail;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::remote::{Demand, RemoteActor, RolloutActor, StepActor};
use iswitch_learn::algorithms::rollout::RolloutBuffer;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::td3::Td3Config;
use iswitch_learn::algorithms::trainer::Algorithm;

/// Approximate number of items that an actor sends in one insert request.
const ITEMS_PER_REQUEST: usize = 32;
/// Maximum number of requests in flight before an actor waits.
const REQUESTS_IN_FLIGHT: usize = 2;
/// Interval at which an actor sends its episode statistics.
const EPISODES_EVERY: Duration = Duration::from_millis(200);

/// The index of an actor, and the number of its environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActorOptions {
    /// Index of the actor among all actors of the run.
    pub actor: usize,
    /// Number of environments of the actor.
    pub environments: usize,
}

/// Counters of the work that an actor has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ActorCounts {
    /// Number of environment steps.
    pub steps: u64,
    /// Number of completed episodes.
    pub episodes: u64,
    /// Number of stored items.
    pub items: u64,
    /// Number of insert requests in which at least one item could not be stored.
    pub failures: u64,
}

impl ActorCounts {
    /// Adds the counters of another actor.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.episodes += other.episodes;
        self.items += other.items;
        self.failures += other.failures;
    }

    fn count(&mut self, tail: &Tail) {
        self.steps += tail.steps as u64;
        self.episodes += tail.episodes as u64;
    }
}

/// Actor of a distributed run.
pub struct Actor {
    acting: RemoteActor,
    demand: Demand,
    format: ItemFormat,
    environments: usize,
    inserts: Inserts,
    episodes: Writer,
    counts: ActorCounts,
}

impl Actor {
    /// Creates an actor and resets its environments.
    ///
    /// # Errors
    /// Fails if this program does not know the run's algorithm or hyper-parameters, or if an environment cannot be
    /// created.
    pub fn new(
        job: &Job,
        options: ActorOptions,
        factory: &EnvFactory,
        replay: &ReplayClient,
    ) -> Result<Self, ActorLearnerError> {
        let first = options.actor * options.environments;
        let acting = acting(job, first..first + options.environments, factory)?;
        let spec = match &acting {
            RemoteActor::Steps(actor) => actor.spec(),
            RemoteActor::Rollouts(actor) => actor.spec(),
        };
        let actor = options.actor as u64;
        Ok(Self {
            format: ItemFormat::new(spec),
            acting,
            demand: job.demand,
            environments: options.environments,
            inserts: Inserts::new(replay.writer(EXPERIENCE, actor)),
            episodes: replay.writer(EPISODES, actor),
            counts: ActorCounts::default(),
        })
    }

    /// Acts until the run is over or `stop` is set. Calls `each` regularly to report the progress.
    ///
    /// # Errors
    /// Fails if an environment fails, or if the credentials are rejected and have never been accepted before.
    pub fn run(
        &mut self,
        policies: &PolicyFeed,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&ActorCounts),
    ) -> Result<ActorCounts, ActorLearnerError> {
        let Self { acting, demand, format, environments, inserts, episodes, counts } = self;
        let next = || policies.newest(stop).filter(|policy| !policy.finished && !stop.load(Relaxed));
        match (acting, *demand) {
            (RemoteActor::Steps(actor), _) => {
                let mut reporter = StatisticsReporter {
                    writer: episodes,
                    reported_at: Instant::now(),
                    unreported: Tail::default(),
                };
                let steps = ITEMS_PER_REQUEST.div_ceil(*environments);
                while let Some(policy) = next() {
                    let items = step(actor.as_mut(), &policy, steps, format)?;
                    let tail = actor.take_tail();
                    counts.count(&tail);
                    inserts.submit(items, counts)?;
                    reporter.tell(&tail);
                    each(counts);
                }
            }
            (RemoteActor::Rollouts(actor), Demand::Rollouts { steps, statistics, .. }) => {
                let mut rollouts = RolloutsOfActor::new(actor.as_ref(), *environments, steps, statistics);
                while let Some(policy) = next() {
                    let (items, tail) = rollouts.items(actor.as_mut(), &policy, format)?;
                    counts.count(&tail);
                    inserts.submit(items, counts)?;
                    // Wait until the items are stored. The next rollout then uses the policy that is the newest at that
                    // time.
                    inserts.wait(counts)?;
                    each(counts);
                }
            }
            (RemoteActor::Rollouts(_), Demand::Transitions { .. }) => {
                return Err(super::error::malformed("demand", "transitions", "rollouts"));
            }
        }
        Ok(*counts)
    }
}

/// Creates the part of the run's algorithm that acts in the environments.
fn acting(
    job: &Job,
    environments: Range<usize>,
    factory: &EnvFactory,
) -> Result<RemoteActor, ActorLearnerError> {
    fn of<A: Algorithm>(
        job: &Job,
        environments: Range<usize>,
        factory: &EnvFactory,
    ) -> Result<RemoteActor, ActorLearnerError> {
        let config: A = serde_json::from_str(&job.config)
            .map_err(|error| TrainError::Config(format!("invalid hyper-parameters of the run: {error}")))?;
        Ok(config.remote_actor(environments, factory)?)
    }
    match job.algorithm.as_str() {
        DqnConfig::NAME => of::<DqnConfig>(job, environments, factory),
        DdpgConfig::NAME => of::<DdpgConfig>(job, environments, factory),
        Td3Config::NAME => of::<Td3Config>(job, environments, factory),
        SacConfig::NAME => of::<SacConfig>(job, environments, factory),
        A2cConfig::NAME => of::<A2cConfig>(job, environments, factory),
        PpoConfig::NAME => of::<PpoConfig>(job, environments, factory),
        other => Err(super::error::malformed("algorithm", other, "dqn, ddpg, td3, sac, a2c or ppo")),
    }
}

/// Advances each environment by `steps` steps, and returns the resulting items.
fn step(
    actor: &mut dyn StepActor,
    policy: &Policy,
    steps: usize,
    format: &ItemFormat,
) -> Result<Vec<NewItem>, TrainError> {
    let mut items = Vec::new();
    let (priority, version) = (f64::from(policy.priority_max), policy.updates);
    for _ in 0..steps {
        actor.step(&policy.floats, policy.steps, &mut |_, transition| {
            let payload = format.transition(transition).into();
            items.push(NewItem { priority, version, payload });
        })?;
    }
    Ok(items)
}

struct RolloutsOfActor {
    buffer: RolloutBuffer,
    statistics: Vec<f32>,
    nothing: Vec<f32>,
}

impl RolloutsOfActor {
    fn new(actor: &dyn RolloutActor, environments: usize, steps: usize, statistics: usize) -> Self {
        let spec = actor.spec();
        let buffer = RolloutBuffer::new(environments, steps, spec.observation_dim, spec.action.stored_dim())
            .with_states(actor.state_len());
        Self { buffer, statistics: vec![0.0; statistics], nothing: vec![0.0; statistics] }
    }

    /// Returns one item for each environment. Only the first item carries the actor's episode statistics.
    fn items(
        &mut self,
        actor: &mut dyn RolloutActor,
        policy: &Policy,
        format: &ItemFormat,
    ) -> Result<(Vec<NewItem>, Tail), TrainError> {
        let tail = actor.roll_out(&policy.floats, &mut self.buffer, &mut self.statistics)?;
        let item = |env: usize| {
            let silent = (Tail::default(), &self.nothing);
            let (tail, statistics) = if env == 0 { (tail, &self.statistics) } else { silent };
            let payload = format.rollout(&self.buffer, env, &tail, statistics).into();
            NewItem { priority: 1.0, version: policy.updates, payload }
        };
        Ok(((0..self.buffer.last_values.len()).map(item).collect(), tail))
    }
}

/// Insert requests in flight.
struct Inserts {
    writer: Writer,
    tickets: VecDeque<(Ticket, u64)>,
    problem_report: ProblemReport,
    /// Whether an item has been stored. If it has, the shards have accepted the credentials.
    is_proven: bool,
}

impl Inserts {
    fn new(writer: Writer) -> Self {
        Self { writer, tickets: VecDeque::new(), problem_report: ProblemReport::default(), is_proven: false }
    }

    /// Submits items. If too many requests are in flight, waits until one has completed, which applies backpressure to
    /// the actor.
    fn submit(&mut self, items: Vec<NewItem>, counts: &mut ActorCounts) -> Result<(), ActorLearnerError> {
        while self.tickets.len() >= REQUESTS_IN_FLIGHT {
            self.wait_for_oldest(counts)?;
        }
        let len = items.len() as u64;
        self.tickets.push_back((self.writer.submit(items), len));
        Ok(())
    }

    /// Waits until no request is in flight.
    fn wait(&mut self, counts: &mut ActorCounts) -> Result<(), ActorLearnerError> {
        while !self.tickets.is_empty() {
            self.wait_for_oldest(counts)?;
        }
        Ok(())
    }

    fn wait_for_oldest(&mut self, counts: &mut ActorCounts) -> Result<(), ActorLearnerError> {
        let Some((ticket, len)) = self.tickets.pop_front() else { return Ok(()) };
        match ticket.stored() {
            Ok(_) => {
                counts.items += len;
                self.is_proven = true;
                self.problem_report.over("items are being stored again");
            }
            Err(error) => {
                counts.failures += 1;
                match refusal::of_replay(&error) {
                    Some(refusal) if !self.is_proven => return Err(refusal),
                    // Credentials that were accepted before may be rejected for a short time while the operator
                    // replaces the token, because some processes then still use the old one.
                    Some(refusal) => self.problem_report.about("cannot store items", &refusal),
                    None => self.problem_report.about("cannot store items", &error),
                }
            }
        }
        Ok(())
    }
}

/// Reporter that sends episode statistics at regular intervals.
struct StatisticsReporter<'a> {
    writer: &'a Writer,
    reported_at: Instant,
    unreported: Tail,
}

impl StatisticsReporter<'_> {
    fn tell(&mut self, tail: &Tail) {
        self.unreported.add_experience(tail);
        if self.reported_at.elapsed() >= EPISODES_EVERY {
            self.reported_at = Instant::now();
            let payload = episodes::to_bytes(&std::mem::take(&mut self.unreported)).into();
            // Learning does not depend on the statistics, so a failed insert is ignored.
            drop(self.writer.submit(vec![NewItem { priority: 1.0, version: 0, payload }]));
        }
    }
}
