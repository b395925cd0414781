//! Actors and learners of an algorithm, run in separate processes.
//!
//! Off-policy algorithms learn from single transitions, each of which may be drawn repeatedly; on-policy algorithms
//! learn from rollouts, each of which is used once. An actor has environments and a slightly stale copy of the model; a
//! learner has no environments and does not control when the actors act. The crate `iswitch-actor-learner` connects the
//! two.

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
use super::vector::VectorShape;
use super::vector_env::TransitionSink;
use crate::env::EnvSpec;

/// An algorithm's requirements for the experience replay between actors and learners. Sizes are totals over all
/// learners.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "items", rename_all = "snake_case", deny_unknown_fields)]
pub enum Demand {
    /// Single transitions, drawn at random.
    Transitions {
        /// Maximum number of transitions kept.
        capacity: u64,
        /// Number of transitions per gradient.
        batch_size: usize,
        /// Number of transitions collected before the first gradient is computed.
        learning_starts: u64,
        /// Mean number of times that each transition is drawn.
        samples_per_insert: f64,
        /// Settings of prioritised replay; `None` for uniform sampling.
        prioritisation: Option<Prioritisation>,
    },
    /// Rollouts, each of a single environment; each rollout is drawn once, in order.
    Rollouts {
        /// Number of rollouts per update, divided among the learners.
        per_update: usize,
        /// Number of environment steps in each rollout.
        steps: usize,
        /// Number of floats in the statistics that [`RolloutActor::roll_out`] writes.
        statistics: usize,
    },
}

/// An actor that acts in its environments one step at a time.
pub trait StepActor: Send {
    /// Returns the environment's specification, including the shapes of observations and actions.
    fn spec(&self) -> &EnvSpec;

    /// Takes one step in each environment. `model` is the part of the learner's model that acting requires; `steps` is
    /// the number of environment steps that the run had taken when the learner produced this model.
    ///
    /// # Errors
    /// Fails if an environment fails.
    fn step(&mut self, model: &[f32], steps: u64, sink: &mut TransitionSink<'_>) -> Result<(), TrainError>;

    /// Returns the statistics collected since the previous call.
    fn take_tail(&mut self) -> Tail;
}

/// An actor that acts in its environments one rollout at a time.
pub trait RolloutActor: Send {
    /// Returns the environment's specification, including the shapes of observations and actions.
    fn spec(&self) -> &EnvSpec;

    /// Returns the number of floats in the state of a recurrent policy; 0 if the policy is not recurrent.
    fn state_len(&self) -> usize {
        0
    }

    /// Acts for one rollout and records it in `buffer`, except for advantages and returns. Overwrites `statistics` with
    /// the statistics of the rollout.
    ///
    /// # Errors
    /// Fails if an environment fails.
    fn roll_out(
        &mut self,
        model: &[f32],
        buffer: &mut RolloutBuffer,
        statistics: &mut [f32],
    ) -> Result<Tail, TrainError>;
}

/// A learner that learns from transitions.
pub trait BatchLearner: Send {
    /// Overwrites `gradient` with the gradient of the mean loss of a batch. Returns the components of the loss.
    fn gradient(&mut self, model: &[f32], batch: &Batch, gradient: &mut [f32]) -> [f32; LOSSES];

    /// Returns the temporal-difference errors of the most recent batch, `[batch]`.
    fn errors(&self) -> &[f32];

    /// Writes the state of the learner to a checkpoint.
    fn write(&self, _writer: &mut Writer) {}

    /// Restores the state that [`Self::write`] wrote.
    ///
    /// # Errors
    /// Fails if the saved state does not match this learner.
    fn read(&mut self, _files: &[Reader<'_>]) -> Result<(), TrainError> {
        Ok(())
    }
}

/// A learner that learns from rollouts.
pub trait RolloutLearner: Send {
    /// Returns whether the next gradient requires a new rollout.
    fn wants_rollout(&self) -> bool;

    /// Returns the buffer for the next rollout, which the caller fills except for advantages and returns.
    fn buffer_mut(&mut self) -> &mut RolloutBuffer;

    /// Starts learning, with the current `model`, from the rollout that the caller has written to the buffer.
    /// `statistics` are the sums of the statistics that [`RolloutActor::roll_out`] wrote.
    fn begin(&mut self, model: &[f32], statistics: &[f32]);

    /// Overwrites `gradient` with the next gradient from the rollout. Returns the components of the loss.
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> [f32; LOSSES];

    /// Notifies the learner that its most recent gradient was not aggregated.
    fn skipped(&mut self) {}
}

/// The acting part of an algorithm.
pub enum RemoteActor {
    /// An off-policy actor.
    Steps(Box<dyn StepActor>),
    /// An on-policy actor.
    Rollouts(Box<dyn RolloutActor>),
}

/// The learning part of an algorithm.
pub enum RemoteLearner {
    /// An off-policy learner.
    Batches(Box<dyn BatchLearner>),
    /// An on-policy learner.
    Rollouts(Box<dyn RolloutLearner>),
}

/// A learner without its source of experience.
pub struct RemoteHalves {
    /// The learning part.
    pub learner: RemoteLearner,
    /// Range of the model's parameters that acting requires.
    pub acting: Range<usize>,
    /// Requirements for the experience replay.
    pub demand: Demand,
    /// Specification of the environment, such as the shapes of observations and actions.
    pub spec: EnvSpec,
    /// Fields of [`Halves`] other than the local half, which [`Self::with_source`] adds.
    pub(super) rest: Rest,
}

/// The fields of [`Halves`] except for the local half.
pub(super) struct Rest {
    pub(super) algorithm: &'static str,
    pub(super) config: String,
    pub(super) model: Vec<f32>,
    pub(super) shape: VectorShape,
    pub(super) replica: Replica,
}

impl Rest {
    /// Creates the fields at the start of a run, from the shared half and the model to which it applies gradients.
    pub(super) fn new<A: Algorithm>(
        config: &mut A,
        shape: VectorShape,
        model: Vec<f32>,
        shared: Box<dyn SharedHalf>,
    ) -> Self {
        let replica = Replica::new(shared, *config.common().total_steps);
        Self { algorithm: A::NAME, config: to_json(config), model, shape, replica }
    }

    /// Completes the halves with a local half.
    pub(super) fn with(self, local: Box<dyn LocalHalf>) -> Halves {
        let Self { algorithm, config, model, shape, replica } = self;
        Halves { algorithm, config, model, shape, local, replica }
    }
}

impl RemoteHalves {
    /// Returns the name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        self.rest.algorithm
    }

    /// Returns the hyper-parameters as JSON.
    pub fn config(&self) -> &str {
        &self.rest.config
    }

    /// Creates both halves of a learner. `source` takes the learner and the specification of the environment, and
    /// returns a local half that computes gradients from the experience of remote actors.
    ///
    /// # Errors
    /// Fails if `source` fails.
    pub fn with_source<E>(
        self,
        source: impl FnOnce(RemoteLearner, EnvSpec) -> Result<Box<dyn LocalHalf>, E>,
    ) -> Result<Halves, E> {
        let Self { learner, spec, rest, .. } = self;
        Ok(rest.with(source(learner, spec)?))
    }
}

/// Returns the number of samples that each of `workers` workers contributes to a batch: at least 1.
pub fn batch_share(batch_size: usize, workers: usize) -> usize {
    batch_size.div_ceil(workers.max(1)).max(1)
}
