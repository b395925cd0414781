//! A learner whose actors are other processes: what an algorithm does on either side.
//!
//! Off-policy algorithms learn from single transitions that are drawn again and again; on-policy ones from rollouts,
//! each once. An actor has a model that is a little old and the environments, a learner has neither environments nor
//! a say in when they act. What lies between them is in the crate `iswitch-actor-learner`.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::config::to_json;
use super::halves::{Halves, LOSSES, LocalHalf, SharedHalf, Tail};
use super::replay::{Batch, Prioritisation};
use super::replica::Replica;
use super::rollout::RolloutBuffer;
use super::trainer::Algorithm;
use super::vector_env::TransitionSink;
use crate::env::EnvSpec;

/// What an algorithm wants of the replay between actors and learners. Sizes are global, over all learners.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "items", rename_all = "snake_case", deny_unknown_fields)]
pub enum Demand {
    /// Single transitions, drawn at random.
    Transitions {
        /// That are kept.
        capacity: u64,
        /// Of one gradient.
        batch_size: usize,
        /// Before the first gradient.
        learning_starts: u64,
        /// How often each is drawn, in the mean.
        samples_per_insert: f64,
        /// Drawn by error.
        prioritisation: Option<Prioritisation>,
    },
    /// Rollouts of one environment each, drawn once and in order.
    Rollouts {
        /// Of one update; the learners divide it.
        per_update: usize,
        /// Environment steps of each.
        steps: usize,
        /// Floats of [`RolloutActor::roll_out`]'s statistics.
        statistics: usize,
    },
}

/// Acts in environments, a step at a time.
pub trait StepActor: Send {
    /// The environment's shapes and limits.
    fn spec(&self) -> &EnvSpec;

    /// One step of each environment. `model` is the part of the learner's that acting needs, from after `steps`
    /// environment steps of the run.
    ///
    /// # Errors
    /// If an environment fails.
    fn step(&mut self, model: &[f32], steps: u64, sink: &mut TransitionSink<'_>) -> Result<(), TrainError>;

    /// What has happened since the last call.
    fn take_tail(&mut self) -> Tail;
}

/// Acts in environments, a rollout at a time.
pub trait RolloutActor: Send {
    /// The environment's shapes and limits.
    fn spec(&self) -> &EnvSpec;

    /// Fills `buffer`, but for advantages and returns, and overwrites the `statistics` that go with it.
    ///
    /// # Errors
    /// If an environment fails.
    fn roll_out(
        &mut self,
        model: &[f32],
        buffer: &mut RolloutBuffer,
        statistics: &mut [f32],
    ) -> Result<Tail, TrainError>;
}

/// Learns from transitions.
pub trait BatchLearner: Send {
    /// Overwrites `gradient` with that of the mean loss of a batch; gives parts of the loss.
    fn gradient(&mut self, model: &[f32], batch: &Batch, gradient: &mut [f32]) -> [f32; LOSSES];

    /// Errors of the values of the last batch, `[batch]`.
    fn errors(&self) -> &[f32];

    /// For a checkpoint.
    fn write(&self, _writer: &mut Writer) {}

    /// What [`Self::write`] wrote.
    ///
    /// # Errors
    /// If it does not fit.
    fn read(&mut self, _files: &[Reader<'_>]) -> Result<(), TrainError> {
        Ok(())
    }
}

/// Learns from rollouts.
pub trait RolloutLearner: Send {
    /// Whether the next gradient needs another rollout.
    fn wants_rollout(&self) -> bool;

    /// Where it is to be written, but for advantages and returns.
    fn buffer_mut(&mut self) -> &mut RolloutBuffer;

    /// The buffer has another rollout, with sums of these statistics.
    fn begin(&mut self, statistics: &[f32]);

    /// Overwrites `gradient`; gives parts of the loss.
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> [f32; LOSSES];

    /// Nobody has seen the last gradient.
    fn skipped(&mut self) {}
}

/// The part of an algorithm that acts.
pub enum RemoteActor {
    /// Off-policy.
    Steps(Box<dyn StepActor>),
    /// On-policy.
    Rollouts(Box<dyn RolloutActor>),
}

/// The part of an algorithm that learns.
pub enum RemoteLearner {
    /// Off-policy.
    Batches(Box<dyn BatchLearner>),
    /// On-policy.
    Rollouts(Box<dyn RolloutLearner>),
}

/// A learner without the source of its experience.
pub struct RemoteHalves {
    /// What learns.
    pub learner: RemoteLearner,
    /// Where in the model lies what actors need.
    pub acting: Range<usize>,
    /// What the replay is to hold.
    pub demand: Demand,
    /// The environment's shapes and limits.
    pub spec: EnvSpec,
    /// Everything else, for [`Self::with_source`].
    pub(super) rest: Rest,
}

/// The fields of [`Halves`] but the local one.
pub(super) struct Rest {
    pub(super) algorithm: &'static str,
    pub(super) config: String,
    pub(super) model: Vec<f32>,
    pub(super) gradient_len: usize,
    pub(super) replica: Replica,
}

impl Rest {
    /// At the start of a run: the shared half with what it gives gradients of.
    pub(super) fn new<A: Algorithm>(
        config: &mut A,
        gradient_len: usize,
        model: Vec<f32>,
        shared: Box<dyn SharedHalf>,
    ) -> Self {
        let replica = Replica::new(shared, *config.common().total_steps);
        Self { algorithm: A::NAME, config: to_json(config), model, gradient_len, replica }
    }

    /// With a local half.
    pub(super) fn with(self, local: Box<dyn LocalHalf>) -> Halves {
        let Self { algorithm, config, model, gradient_len, replica } = self;
        Halves { algorithm, config, model, gradient_len, local, replica }
    }
}

impl RemoteHalves {
    /// Name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        self.rest.algorithm
    }

    /// Hyper-parameters, as JSON.
    pub fn config(&self) -> &str {
        &self.rest.config
    }

    /// Both halves of a trainer. `source` makes of the learner, and the environment's shapes, what gives gradients of
    /// experience that comes from elsewhere.
    ///
    /// # Errors
    /// Those of `source`.
    pub fn with_source<E>(
        self,
        source: impl FnOnce(RemoteLearner, EnvSpec) -> Result<Box<dyn LocalHalf>, E>,
    ) -> Result<Halves, E> {
        let Self { learner, spec, rest, .. } = self;
        Ok(rest.with(source(learner, spec)?))
    }
}

/// So many samples of a batch for each of `workers`, at least one.
pub fn batch_share(batch_size: usize, workers: usize) -> usize {
    batch_size.div_ceil(workers.max(1)).max(1)
}
