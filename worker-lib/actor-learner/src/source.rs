//! The experience source of a learner, which draws from the replay shards.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use iswitch_replay::client::blocking::ReplayClient;
use iswitch_replay::client::{ClientConfig, Drawn, ItemKey};
use serde::Serialize;

use super::items::ItemFormat;
use super::retry::ProblemReport;
use super::tables::{EPISODES, EXPERIENCE};
use super::{ActorLearnerError, Policy, Publisher, episodes, refusal};
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::algorithms::halves::{Counters, LocalHalf, Tail};
use iswitch_learn::algorithms::phases::Phase;
use iswitch_learn::algorithms::remote::{BatchLearner, Demand, RemoteLearner, RolloutLearner, batch_share};
use iswitch_learn::algorithms::replay::{Batch, Prioritisation};
use iswitch_learn::env::EnvSpec;

/// Options of a learner's experience source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceOptions {
    /// The configuration of the replay client, with the addresses of the shards and the credentials for them. The
    /// experience source overrides the timeouts and the seed.
    pub replay: ClientConfig,
    /// The algorithm's requirements for experience replay.
    pub demand: Demand,
    /// Number of learners of the job.
    pub learners: usize,
    /// Rank of this learner, starting at 0.
    pub rank: usize,
    /// Maximum age of the policy that generated a rollout, in updates. Rollouts of older policies are discarded.
    pub staleness: u64,
    /// Range of the model's floats that is published as the policy.
    pub acting: std::ops::Range<usize>,
}

/// Counters of an experience source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SourceStats {
    /// Number of items used for learning.
    pub items: u64,
    /// Number of rollouts that were discarded because the policies that generated them were too old.
    pub stale: u64,
    /// Number of discarded items that could not be decoded as items of this run.
    pub malformed: u64,
    /// Mean age, in updates, of the policies that generated the items.
    pub age_mean: f64,
    /// Time spent waiting for experience, in seconds.
    pub waited_s: f64,
    /// Part of `waited_s` that was spent before the first gradient, in seconds.
    pub waited_first_s: f64,
}

#[derive(Default)]
struct Shared {
    items: AtomicU64,
    stale: AtomicU64,
    malformed: AtomicU64,
    age_sum: AtomicU64,
    waited_us: AtomicU64,
    waited_first_us: AtomicU64,
    /// Episode statistics that actors have reported and that this learner has not sent with a gradient yet.
    reported: Mutex<Tail>,
    /// Reason why the shards reject this learner's credentials. It is set only if the shards have never accepted them.
    refused: OnceLock<String>,
}

impl Shared {
    fn reported(&self) -> MutexGuard<'_, Tail> {
        // Poisoning is harmless, because the statistics are plain sums.
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_access(&self) -> Result<(), TrainError> {
        self.refused.get().map_or(Ok(()), |why| Err(TrainError::Replay(why.clone())))
    }

    fn waited(&self, time: Duration) {
        let us = time.as_micros() as u64;
        if self.waited_us.fetch_add(us, Relaxed) == 0 {
            self.waited_first_us.store(us, Relaxed);
        }
    }
}

/// The local half of a learner, which computes gradients from replayed experience.
pub struct ReplaySource {
    spec: EnvSpec,
    options: SourceOptions,
    learner: Learner,
    publisher: Option<Arc<Mutex<Publisher>>>,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    updates: u64,
    steps: u64,
}

enum Learner {
    Batches { learner: Box<dyn BatchLearner>, batches: Batches },
    Rollouts { learner: Box<dyn RolloutLearner>, rollouts: Rollouts },
}

/// Maximum time for which a shard waits for items before it responds to a draw. After each response, the learner checks
/// `stop`.
const WAIT: Duration = Duration::from_millis(500);
/// Pause after a failed draw.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the learner draws episode statistics from the shards.
const EPISODES_EVERY: Duration = Duration::from_millis(100);
/// Maximum time for which a draw of episode statistics waits. It is short, because the learner needs only the
/// statistics that are already available.
const EPISODES_WAIT: Duration = Duration::from_millis(1);
/// Maximum number of episode messages in one draw.
const EPISODES_PER_DRAW: usize = 256;

impl ReplaySource {
    /// Creates the experience source of one learner. Only the first learner passes a `publisher`, through which its
    /// source publishes policies. Once `stop` is set, the source stops waiting for experience.
    ///
    /// # Errors
    /// Fails if an address is invalid or a thread cannot be started.
    pub fn new(
        learner: RemoteLearner,
        spec: EnvSpec,
        options: SourceOptions,
        publisher: Option<Arc<Mutex<Publisher>>>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ActorLearnerError> {
        let shared = Arc::new(Shared::default());
        let client = client(&options, WAIT)?;
        let format = ItemFormat::new(&spec);
        let learner = match (learner, options.demand) {
            (RemoteLearner::Batches(learner), Demand::Transitions { batch_size, prioritisation, .. }) => {
                follow_episodes(self::client(&options, EPISODES_WAIT)?, &shared)?;
                let count = batch_share(batch_size, options.learners);
                let batches = Batches::start(client, format, count, prioritisation, &shared)?;
                Learner::Batches { learner, batches }
            }
            (RemoteLearner::Rollouts(learner), Demand::Rollouts { per_update, statistics, .. }) => {
                let count = per_update / options.learners.max(1);
                Learner::Rollouts { learner, rollouts: Rollouts::new(client, format, count, statistics) }
            }
            (_, demand) => {
                return Err(super::error::malformed("demand", format!("{demand:?}"), "the learner's demand"));
            }
        };
        Ok(Self { spec, options, learner, publisher, shared, stop, updates: 0, steps: 0 })
    }

    /// Returns a function that reads the counters while the source is in use.
    pub fn stats(&self) -> impl Fn() -> SourceStats + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move || {
            let items = shared.items.load(Relaxed);
            SourceStats {
                items,
                stale: shared.stale.load(Relaxed),
                malformed: shared.malformed.load(Relaxed),
                age_mean: shared.age_sum.load(Relaxed) as f64 / items.max(1) as f64,
                waited_s: shared.waited_us.load(Relaxed) as f64 / 1e6,
                waited_first_s: shared.waited_first_us.load(Relaxed) as f64 / 1e6,
            }
        }
    }
}

/// Data for publishing the policy of a model to actors.
struct Publication<'a> {
    publisher: Option<&'a Mutex<Publisher>>,
    floats: &'a [f32],
    updates: u64,
    steps: u64,
    priority_max: f32,
}

impl Publication<'_> {
    fn publish_if_due(&self) {
        let Some(publisher) = self.publisher else { return };
        let mut publisher = publisher.lock().unwrap_or_else(PoisonError::into_inner);
        let Self { floats, updates, steps, priority_max, .. } = *self;
        if publisher.is_due(updates) {
            publisher.offer(Policy {
                updates,
                steps,
                priority_max,
                finished: false,
                floats: floats.to_vec(),
            });
        }
    }
}

impl LocalHalf for ReplaySource {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<Tail, TrainError> {
        let Self { learner, publisher, shared, stop, updates, steps, options, .. } = self;
        let mut publication = Publication {
            publisher: publisher.as_deref(),
            floats: &model[options.acting.clone()],
            updates: *updates,
            steps: *steps,
            priority_max: 1.0,
        };
        let losses = match learner {
            Learner::Batches { learner, batches } => {
                publication.priority_max = batches.priority_max;
                publication.publish_if_due();
                let Some(drawn) = batches.next(*updates, stop, shared)? else {
                    gradient.fill(0.0);
                    return Ok(Tail::default());
                };
                let losses = learner.gradient(model, &drawn.batch, gradient);
                batches.tell_errors(drawn, learner.errors());
                *updates += 1;
                losses
            }
            Learner::Rollouts { learner, rollouts } => {
                if learner.wants_rollout() {
                    let wanted = Wanted { publication, staleness: options.staleness };
                    if !rollouts.fill(learner.as_mut(), &wanted, stop, shared)? {
                        gradient.fill(0.0);
                        return Ok(Tail::default());
                    }
                    learner.begin(model, &rollouts.statistics);
                    *updates += 1;
                }
                learner.gradient(model, gradient)
            }
        };
        let reported = std::mem::take(&mut *shared.reported());
        Ok(Tail { losses, ..reported })
    }

    fn observe(&mut self, counters: &Counters) {
        self.steps = counters.steps;
    }

    fn skipped(&mut self) {
        if let Learner::Rollouts { learner, .. } = &mut self.learner {
            learner.skipped();
        }
    }

    fn write(&self, writer: &mut Writer) {
        writer.text("updates", self.updates.to_string());
        if let Learner::Batches { learner, .. } = &self.learner {
            learner.write(writer);
        }
    }

    fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        if let Some(file) = files.first() {
            self.updates = file.number("updates")?;
        }
        if let Learner::Batches { learner, .. } = &mut self.learner {
            learner.read(files)?;
        }
        // This half of the learner has no environments.
        Ok(Vec::new())
    }
}

fn client(options: &SourceOptions, wait: Duration) -> Result<ReplayClient, ActorLearnerError> {
    // The client skips a failed shard once it has detected the failure, so a longer timeout would have no benefit.
    let patience = Duration::from_secs(1);
    let seed = options.rank as u64;
    Ok(ReplayClient::new(ClientConfig { wait, patience, seed, ..options.replay.clone() })?)
}

/// Starts a thread that draws the actors' episode statistics from the shards and adds them to `shared`. The thread ends
/// when all other references to `shared` have been dropped.
fn follow_episodes(client: ReplayClient, shared: &Arc<Shared>) -> Result<(), ActorLearnerError> {
    let wanted = Arc::downgrade(shared);
    let follow = move || {
        while let Some(shared) = wanted.upgrade() {
            // Failures are reported by the thread that draws transitions.
            for item in client.sample(EPISODES, EPISODES_PER_DRAW).unwrap_or_default() {
                match episodes::from_bytes(&item.payload) {
                    Ok(tail) => {
                        shared.reported().add_experience(&tail);
                    }
                    Err(_) => _ = shared.malformed.fetch_add(1, Relaxed),
                }
            }
            drop(shared);
            std::thread::sleep(EPISODES_EVERY);
        }
    };
    spawn("episodes", follow)
}

fn spawn(name: &'static str, run: impl FnOnce() + Send + 'static) -> Result<(), ActorLearnerError> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(|_| ()).map_err(|source| ActorLearnerError::Io {
        what: "cannot start a thread that samples from the replay shards",
        source,
    })
}

/// A batch of transitions, with the keys of its items.
struct DrawnBatch {
    batch: Batch,
    keys: Vec<ItemKey>,
    version_sum: u64,
}

/// New priorities, with the keys of their items.
type Priorities = Vec<(ItemKey, f64)>;

/// Source of batches of transitions. It draws the next batch while the learner uses the current one.
struct Batches {
    ready: Receiver<DrawnBatch>,
    errors: Option<(SyncSender<Priorities>, Prioritisation)>,
    /// Greatest priority that an item has had so far.
    priority_max: f32,
}

/// Maximum number of queued priority updates. Further updates are dropped.
const ERRORS_WAITING: usize = 16;

impl Batches {
    fn start(
        client: ReplayClient,
        format: ItemFormat,
        count: usize,
        prioritisation: Option<Prioritisation>,
        shared: &Arc<Shared>,
    ) -> Result<Self, ActorLearnerError> {
        let (sender, ready) = sync_channel(1);
        let draws = Draws::new(client.clone(), "transitions");
        let mut drawing = Drawing { draws, format, count, prioritisation };
        let malformed = Arc::downgrade(shared);
        spawn("batches", move || {
            while let Some(shared) = malformed.upgrade() {
                let drawn = drawing.draw(&shared);
                drop(shared);
                if drawn.is_some_and(|drawn| sender.send(drawn).is_err()) {
                    return;
                }
            }
        })?;
        let errors = prioritisation.map(|how| -> Result<_, ActorLearnerError> {
            let (sender, errors) = sync_channel::<Priorities>(ERRORS_WAITING);
            spawn("priorities", move || {
                for updates in errors {
                    // Ignore failures: after an outage, a shard continues with the items' previous priorities.
                    let _ = client.update_priorities(EXPERIENCE, &updates);
                }
            })?;
            Ok((sender, how))
        });
        Ok(Self { ready, errors: errors.transpose()?, priority_max: 1.0 })
    }

    /// Waits for a batch. Returns `None` if `stop` is set first.
    fn next(
        &self,
        updates: u64,
        stop: &AtomicBool,
        shared: &Shared,
    ) -> Result<Option<DrawnBatch>, TrainError> {
        let _phase = Phase::Sample.enter();
        let began = Instant::now();
        let drawn = loop {
            shared.check_access()?;
            match self.ready.recv_timeout(PAUSE) {
                Ok(drawn) => break Some(drawn),
                Err(RecvTimeoutError::Timeout) if !stop.load(Relaxed) => {}
                Err(_) => break None,
            }
        };
        shared.waited(began.elapsed());
        if let Some(drawn) = &drawn {
            let count = drawn.keys.len() as u64;
            shared.items.fetch_add(count, Relaxed);
            shared.age_sum.fetch_add((updates * count).saturating_sub(drawn.version_sum), Relaxed);
        }
        Ok(drawn)
    }

    fn tell_errors(&mut self, drawn: DrawnBatch, errors: &[f32]) {
        let Some((sender, how)) = &self.errors else { return };
        let priorities = errors.iter().map(|error| f64::from(error.abs() + how.epsilon));
        let updates: Vec<_> = drawn.keys.into_iter().zip(priorities).filter(|it| it.1.is_finite()).collect();
        self.priority_max = updates.iter().fold(self.priority_max, |max, it| max.max(it.1 as f32));
        // The queue is full if the shards cannot keep up with the learner. The items then keep their previous
        // priorities.
        let _ = sender.try_send(updates);
    }
}

/// A client that draws items, with a queue of the drawn items that the learner has not used yet.
struct Draws {
    client: ReplayClient,
    /// Plural noun for the items in messages, such as `rollouts`.
    what: &'static str,
    waiting: VecDeque<Drawn>,
    problem_report: ProblemReport,
    /// Whether a shard has responded. If one has, the shards have accepted the credentials.
    is_proven: bool,
}

impl Draws {
    fn new(client: ReplayClient, what: &'static str) -> Self {
        Self {
            client,
            what,
            waiting: VecDeque::new(),
            problem_report: ProblemReport::default(),
            is_proven: false,
        }
    }

    /// Draws up to `count` further items. Returns within a bounded time, even if it has drawn fewer items.
    fn draw(&mut self, count: usize, shared: &Shared) {
        match self.client.sample(EXPERIENCE, count) {
            Ok(drawn) => {
                self.is_proven = true;
                self.waiting.extend(drawn);
                self.problem_report.over(&format!("{} are being received again", self.what));
            }
            Err(error) if error.is_timeout() => self.is_proven = true,
            Err(error) => {
                let refusal = refusal::of_replay(&error);
                let text = refusal.as_ref().map_or_else(|| error.to_string(), ToString::to_string);
                self.problem_report.about(&format!("cannot draw {}", self.what), &text);
                // Credentials that were accepted before may be rejected for a short time while the operator replaces
                // the token, because some processes then still use the old one.
                if refusal.is_some() && !self.is_proven {
                    let _ = shared.refused.set(text);
                }
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Counts and reports an item that cannot be decoded as an item of this run.
    fn refuse(&mut self, error: &ActorLearnerError, shared: &Shared) {
        shared.malformed.fetch_add(1, Relaxed);
        self.problem_report.about("discarded an invalid item", error);
    }
}

/// State of the thread that draws batches.
struct Drawing {
    draws: Draws,
    format: ItemFormat,
    count: usize,
    prioritisation: Option<Prioritisation>,
}

impl Drawing {
    /// Returns a batch, or `None` if too few items are available at the moment.
    fn draw(&mut self, shared: &Shared) -> Option<DrawnBatch> {
        self.draws.draw(self.count - self.draws.waiting.len(), shared);
        if self.draws.waiting.len() < self.count {
            return None;
        }
        let mut drawn = DrawnBatch { batch: Batch::default(), keys: Vec::new(), version_sum: 0 };
        while let Some(item) = self.draws.waiting.pop_front() {
            match self.format.read_transition(&item.payload, &mut drawn.batch) {
                Ok(()) => drawn.add(&item, self.prioritisation),
                Err(error) => self.draws.refuse(&error, shared),
            }
        }
        drawn.batch.normalise_weights();
        (!drawn.keys.is_empty()).then_some(drawn)
    }
}

impl DrawnBatch {
    fn add(&mut self, item: &Drawn, prioritisation: Option<Prioritisation>) {
        self.batch.indices.push(self.keys.len());
        self.batch.weights.push(
            prioritisation.map_or(1.0, |how| {
                how.weight(item.table_size as f64, item.probability.max(f64::MIN_POSITIVE))
            }),
        );
        self.keys.push(item.key);
        self.version_sum += item.version;
    }
}

/// Criteria that a rollout must satisfy.
struct Wanted<'a> {
    publication: Publication<'a>,
    staleness: u64,
}

/// Source of rollouts. It draws a rollout only on demand, because a rollout drawn in advance would become older before
/// it is used.
struct Rollouts {
    draws: Draws,
    format: ItemFormat,
    count: usize,
    statistics: Vec<f32>,
}

impl Rollouts {
    fn new(client: ReplayClient, format: ItemFormat, count: usize, statistics: usize) -> Self {
        Self { draws: Draws::new(client, "rollouts"), format, count, statistics: vec![0.0; statistics] }
    }

    /// Fills the learner's buffer with the rollouts for one update. Returns false if `stop` is set before the buffer is
    /// full.
    fn fill(
        &mut self,
        learner: &mut dyn RolloutLearner,
        wanted: &Wanted<'_>,
        stop: &AtomicBool,
        shared: &Shared,
    ) -> Result<bool, TrainError> {
        let _phase = Phase::Sample.enter();
        let began = Instant::now();
        self.statistics.fill(0.0);
        let mut filled = 0;
        while filled < self.count && !stop.load(Relaxed) {
            // Repeat this in the loop, because actors need a newer policy if all of their rollouts are too old.
            wanted.publication.publish_if_due();
            shared.check_access()?;
            let Some(item) = self.next(self.count - filled, shared) else { continue };
            let age = wanted.publication.updates.saturating_sub(item.version);
            let buffer = learner.buffer_mut();
            match self.format.read_rollout(&item.payload, buffer, filled, &mut self.statistics) {
                Ok(tail) => {
                    shared.reported().add_experience(&tail);
                    if age > wanted.staleness {
                        shared.stale.fetch_add(1, Relaxed);
                        continue;
                    }
                    shared.items.fetch_add(1, Relaxed);
                    shared.age_sum.fetch_add(age, Relaxed);
                    filled += 1;
                }
                Err(error) => self.draws.refuse(&error, shared),
            }
        }
        shared.waited(began.elapsed());
        Ok(filled == self.count)
    }

    fn next(&mut self, missing: usize, shared: &Shared) -> Option<Drawn> {
        if self.draws.waiting.is_empty() {
            self.draws.draw(missing, shared);
        }
        self.draws.waiting.pop_front()
    }
}
