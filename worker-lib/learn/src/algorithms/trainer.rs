//! The interface of every algorithm to its callers: the command line, checkpoints, and user programs.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::environments::EnvFactory;
use super::exact::all_gather_u64;
use super::halves::Halves;
use super::policy_graph::PolicyGraph;
use super::remote::{RemoteActor, RemoteHalves};
use super::synchronous::SynchronousTrainer;
use super::vector::VectorShape;
use crate::env::EnvSpec;
use crate::nn::Cell;
use iswitch::GradientAggregator;

/// The rank of a worker and the world size of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// Rank of this worker, starting from 0.
    pub rank: usize,
    /// Number of workers in the job.
    pub size: usize,
}

impl World {
    /// World of a job with a single worker.
    pub const ALONE: Self = Self { rank: 0, size: 1 };
}

/// Progress of a run; identical on all workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Number of calls of [`Trainer::advance`] so far, including those before the run was resumed.
    pub advances: u64,
    /// Number of environment steps so far, over all workers.
    pub steps: u64,
    /// Number of environment steps of the whole run.
    pub total_steps: u64,
    /// Number of gradients aggregated and applied so far.
    pub iterations: u64,
    /// Mean return of the last 100 episodes; `None` until the first episode has ended.
    pub mean_return: Option<f64>,
    /// Whether the run is complete.
    pub finished: bool,
}

/// Outcome of one call of [`Trainer::advance`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Mean return of the episodes that ended during the call, if any did.
    pub episodic_return: Option<f64>,
    /// Mean length, in steps, of the episodes that ended during the call, if any did.
    pub episodic_length: Option<f64>,
    /// Losses, averaged over the call, in the order of [`Trainer::loss_names`].
    pub losses: Vec<f64>,
    /// Duration of the call.
    pub elapsed: Duration,
    /// Whether a worker has requested a stop. If so, all workers stop after this call.
    pub stopped: bool,
}

/// A training run from the point of view of one worker: a state machine that is advanced until it is finished. All
/// workers of a job advance together.
pub trait Trainer {
    /// Returns the name of the algorithm, such as `ppo`.
    fn algorithm(&self) -> &'static str;

    /// Returns the hyper-parameters as JSON.
    fn config_json(&self) -> String;

    /// Returns the environment's specification, including the shapes of observations and actions.
    fn spec(&self) -> &EnvSpec;

    /// Returns the rank of this worker and the world size of the job.
    fn world(&self) -> World;

    /// Returns the aggregator that sums the gradients.
    fn aggregator(&mut self) -> &mut dyn GradientAggregator;

    /// Returns the durations of the gradient aggregations in the most recent call of [`Self::advance`].
    fn aggregation_times(&self) -> &[Duration];

    /// Returns the flag that, when set, makes all workers stop at the end of the current or the next call of
    /// [`Self::advance`].
    fn stop_handle(&self) -> Arc<AtomicBool>;

    /// Returns the names of the losses in [`Report::losses`], as used in training curves.
    fn loss_names(&self) -> &'static [&'static str];

    /// Acts and learns for one rollout or a fixed number of updates, together with the other workers.
    ///
    /// # Errors
    /// Fails if an environment or an aggregation fails, or if the workers were started with different hyper-parameters
    /// or from different checkpoints. The trainer is then unusable; resume from a checkpoint.
    fn advance(&mut self) -> Result<Report, TrainError>;

    /// Returns the progress of the run.
    fn progress(&self) -> Progress;

    /// Returns a digest of the replicated state. Workers compare their digests to check that their states are equal.
    fn digest(&self) -> u64;

    /// Returns a description of the sizes that were rounded, or `None` if all sizes are as requested.
    fn note(&self) -> Option<String> {
        None
    }

    /// Writes the state that is replicated on all workers.
    fn write_model(&self, writer: &mut Writer);

    /// Restores the state that [`Self::write_model`] wrote.
    ///
    /// # Errors
    /// Fails if the saved state does not match this trainer.
    fn read_model(&mut self, reader: &Reader<'_>) -> Result<(), TrainError>;

    /// Writes the state that belongs to this worker only.
    fn write_worker(&self, writer: &mut Writer);

    /// Restores the state that [`Self::write_worker`] wrote, given the files of all workers. Returns the indices of
    /// this worker's environments that are in none of the files.
    ///
    /// # Errors
    /// Fails if the saved state does not match this trainer.
    fn read_worker(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError>;
}

/// Exchanges `values` among all workers and returns them by rank; see [`all_gather_u64`].
///
/// # Errors
/// Fails if the aggregation fails.
pub fn all_gather(trainer: &mut dyn Trainer, values: &[u64]) -> Result<Vec<Vec<u64>>, TrainError> {
    let World { rank, size: workers } = trainer.world();
    all_gather_u64(trainer.aggregator(), rank, workers, values)
}

/// Returns whether the replicated state is bit-identical on all workers. All workers must call this function at the
/// same time.
///
/// # Errors
/// Fails if the aggregation fails.
pub fn replicas_identical(trainer: &mut dyn Trainer) -> Result<bool, TrainError> {
    let digest = trainer.digest();
    // The entry of a lost worker is 0.
    Ok(all_gather(trainer, &[digest])?.iter().all(|other| other[0] == digest || other[0] == 0))
}

/// Checks that all workers run the same job from the same state.
///
/// # Errors
/// Fails if a worker has different settings or starts from a different state; the message names the worker and
/// describes the difference.
pub(super) fn agree(trainer: &mut dyn Trainer) -> Result<(), TrainError> {
    let job = first_bytes(
        Sha256::new()
            .chain_update(trainer.algorithm())
            .chain_update(trainer.spec().id.as_bytes())
            .chain_update(trainer.config_json()),
    );
    let own = [job, trainer.progress().advances, trainer.digest()];
    let rank = trainer.world().rank;
    let all = all_gather(trainer, &own)?;
    for (other_rank, other) in all.iter().enumerate().filter(|(_, other)| other[0] != 0) {
        let difference = if other[0] != own[0] {
            "has a different environment or different hyper-parameters"
        } else if other[1] != own[1] {
            "starts at a different point of the run"
        } else if other[2] != own[2] {
            "starts from different weights"
        } else {
            continue;
        };
        return Err(TrainError::Disagreement(format!("worker {other_rank} {difference} than worker {rank}")));
    }
    Ok(())
}

/// Returns the first 8 bytes of a hash as a number. The number is never 0, because 0 represents a worker that sent
/// nothing.
pub fn first_bytes(hash: Sha256) -> u64 {
    let digest = hash.finalize();
    digest.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte)).max(1)
}

/// Hyper-parameters that all algorithms have.
#[derive(Debug)]
pub struct CommonParameters<'a> {
    /// Total number of environment steps.
    pub total_steps: &'a mut u64,
    /// Seed of all random streams.
    pub seed: &'a mut u64,
    /// Number of environments in the job. If absent, the number depends on the world size.
    pub environments: &'a mut Option<usize>,
}

/// A family of algorithms. It assembles the learners and actors of an algorithm from the algorithm's parts. The
/// families are [`OnPolicy`](super::on_policy::OnPolicy) and [`OffPolicy`](super::off_policy::OffPolicy). The caller
/// must have checked the hyper-parameters of the algorithm.
pub trait Family<A> {
    /// Assembles both halves of a learner; see [`Algorithm::halves`].
    ///
    /// # Errors
    /// Fails if an environment cannot be created, or if the sizes do not fit the number of workers.
    fn halves(config: A, world: World, factory: &EnvFactory, mode: Mode) -> Result<Halves, TrainError>;

    /// Assembles a remote learner; see [`Algorithm::remote_learner`].
    ///
    /// # Errors
    /// Fails if the algorithm does not support the environment, or if the sizes do not fit the number of learners.
    fn remote_learner(config: A, world: World, spec: &EnvSpec) -> Result<RemoteHalves, TrainError>;

    /// Assembles a remote actor; see [`Algorithm::remote_actor`].
    ///
    /// # Errors
    /// See [`Self::halves`].
    fn remote_actor(
        config: &A,
        environments: Range<usize>,
        factory: &EnvFactory,
    ) -> Result<RemoteActor, TrainError>;
}

/// Defines the accessors of [`Algorithm`] for the hyper-parameters whose names are the same in all algorithms.
macro_rules! common_accessors {
    () => {
        fn hidden(&self) -> &[usize] {
            &self.hidden
        }

        fn descriptions() -> &'static [(&'static str, &'static str)] {
            Self::DESCRIPTIONS
        }

        fn common(&mut self) -> $crate::algorithms::trainer::CommonParameters<'_> {
            let Self { total_steps, seed, environments, .. } = self;
            $crate::algorithms::trainer::CommonParameters { total_steps, seed, environments }
        }
    };
}

pub(super) use common_accessors;

/// An algorithm, represented by its hyper-parameters.
pub trait Algorithm: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// Name of the algorithm on the command line.
    const NAME: &'static str;

    /// Default environment.
    const DEFAULT_ENV: &'static str;

    /// Default number of calls of [`Trainer::advance`] between checkpoints.
    const CHECKPOINT_EVERY: u64;

    /// The family of the algorithm, which determines whether it learns from rollouts or from replayed transitions.
    type Family: Family<Self>;

    /// Returns tuned hyper-parameters for the environment, or general-purpose ones if the environment has no preset.
    fn preset(env: &str) -> Self;

    /// Checks that all hyper-parameters are in range.
    ///
    /// # Errors
    /// [`TrainError::Config`] names the hyper-parameter that is out of range.
    fn check(&self) -> Result<(), TrainError>;

    /// Returns the widths of the hidden layers.
    fn hidden(&self) -> &[usize];

    /// Returns the names and descriptions of the hyper-parameters.
    fn descriptions() -> &'static [(&'static str, &'static str)];

    /// Returns the kind and the width of the recurrent layer before each network, or `None` if the networks have no
    /// recurrent layer.
    fn memory(&self) -> Option<(Cell, usize)> {
        None
    }

    /// Returns the hyper-parameters that all algorithms have.
    fn common(&mut self) -> CommonParameters<'_>;

    /// Returns the lengths of the vectors that the workers of a job sum.
    ///
    /// # Errors
    /// Fails if the algorithm does not support the environment.
    fn vector_shape(&self, env: &EnvSpec, mode: Mode) -> Result<VectorShape, TrainError>;

    /// Creates both halves of a learner at the start of a run.
    ///
    /// # Errors
    /// Fails if a hyper-parameter is out of range or an environment cannot be created.
    fn halves(self, world: World, factory: &EnvFactory, mode: Mode) -> Result<Halves, TrainError> {
        self.check()?;
        Self::Family::halves(self, world, factory, mode)
    }

    /// Creates one of `world.size` learners that learn from the experience of remote actors.
    ///
    /// # Errors
    /// Fails if a hyper-parameter is out of range or the algorithm does not support the environment.
    fn remote_learner(self, world: World, spec: &EnvSpec) -> Result<RemoteHalves, TrainError> {
        self.check()?;
        Self::Family::remote_learner(self, world, spec)
    }

    /// Creates an actor for remote learners. It acts in the environments with the given indices.
    ///
    /// # Errors
    /// Fails if [`Self::remote_learner`] would fail, or if an environment cannot be created.
    fn remote_actor(
        &self,
        environments: Range<usize>,
        factory: &EnvFactory,
    ) -> Result<RemoteActor, TrainError> {
        Self::Family::remote_actor(self, environments, factory)
    }

    /// Creates a trainer at the start of a run. `aggregator` must sum vectors of [`VectorShape::summed_len`] floats,
    /// where the shape is that of [`Self::vector_shape`].
    ///
    /// # Errors
    /// Fails if a hyper-parameter is out of range, if an environment cannot be created, or if the aggregator's vectors
    /// do not have this length.
    fn trainer(
        self,
        world: World,
        factory: &EnvFactory,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Box<dyn Trainer>, TrainError> {
        let halves = self.halves(world, factory, Mode::Synchronous)?;
        Ok(Box::new(SynchronousTrainer::new(halves, world, aggregator)?))
    }

    /// Loads the trained agent from a model file.
    ///
    /// # Errors
    /// Fails if the file does not match the hyper-parameters or the environment.
    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError>;
}

/// How the workers' updates are synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All gradients in an update are computed with the same parameters.
    Synchronous,
    /// Each worker computes gradients at its own pace, possibly with slightly stale parameters.
    Asynchronous,
}

/// A trained agent that only acts.
pub trait Policy {
    /// Begins an episode. A recurrent policy resets its state.
    fn begin_episode(&mut self) {}

    /// Chooses the action for an observation, which is in the environment's units, and writes it to `action`
    /// (`[action_dim]`; a discrete action is represented by its index). If `rng` is given and the policy is stochastic,
    /// the action is sampled as in training.
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]);

    /// Returns the scores by which the policy ranks discrete actions: values or logits, `[n]`. The slice is empty if
    /// the actions are continuous; the default implementation always returns an empty slice.
    fn scores(&mut self, _observation: &[f32]) -> &[f32] {
        &[]
    }

    /// Returns, as plain data, the computation that [`Self::act`] performs without a random generator.
    fn graph(&self) -> PolicyGraph;
}
