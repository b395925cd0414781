//! What every algorithm offers to those who drive it: the command line, checkpoints, a program of your own.

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
use super::remote::{RemoteActor, RemoteHalves};
use super::synchronous::SynchronousTrainer;
use crate::env::EnvSpec;
use iswitch::GradientAggregator;

/// One worker's place in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// This worker, from 0.
    pub rank: usize,
    /// Workers of the job.
    pub workers: usize,
}

impl Place {
    /// The only worker of its job.
    pub const ALONE: Self = Self { rank: 0, workers: 1 };
}

/// How far a run is; the same on all workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Calls of [`Trainer::advance`] so far, those before a checkpoint included.
    pub advances: u64,
    /// Environment steps so far, over all workers.
    pub steps: u64,
    /// Environment steps of the whole run.
    pub total_steps: u64,
    /// Gradients aggregated and applied so far.
    pub iterations: u64,
    /// Mean return of the last 100 episodes; nothing before the first has ended.
    pub mean_return: Option<f64>,
    /// The run is complete.
    pub finished: bool,
}

/// What one advance did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Mean return of the episodes that ended, if any did.
    pub episodic_return: Option<f64>,
    /// Their mean length, steps.
    pub episodic_length: Option<f64>,
    /// In the order of [`Trainer::loss_names`].
    pub losses: Vec<f64>,
    /// How long it took.
    pub elapsed: Duration,
    /// A worker asked to stop; all stop here.
    pub stopped: bool,
}

/// A run of one worker: a state machine that advances until it is finished. All workers of a job advance together.
pub trait Trainer {
    /// Such as `ppo`.
    fn algorithm(&self) -> &'static str;

    /// The hyper-parameters, as JSON.
    fn config_json(&self) -> String;

    /// The environment's shapes and limits.
    fn spec(&self) -> &EnvSpec;

    /// This worker's place.
    fn place(&self) -> Place;

    /// What sums the gradients.
    fn aggregator(&mut self) -> &mut dyn GradientAggregator;

    /// How long each aggregation of a gradient in the last advance took.
    fn aggregation_times(&self) -> &[Duration];

    /// Set it to make all workers stop at the end of an advance.
    fn stop_handle(&self) -> Arc<AtomicBool>;

    /// What [`Report::losses`] are, as names of curves.
    fn loss_names(&self) -> &'static [&'static str];

    /// Acts and learns for a while, together with the other workers.
    ///
    /// # Errors
    /// If an environment or an aggregation fails, or workers were started with different hyper-parameters or
    /// from different checkpoints. The trainer is then not to be used again; go on from a checkpoint.
    fn advance(&mut self) -> Result<Report, TrainError>;

    /// How far the run is.
    fn progress(&self) -> Progress;

    /// Digest of what all workers have alike: equal on two of them if and only if that is.
    fn digest(&self) -> u64;

    /// Something about the sizes that differs from what was asked for, in words.
    fn note(&self) -> Option<String> {
        None
    }

    /// Writes what all workers have alike.
    fn write_model(&self, writer: &mut Writer);

    /// Takes in what [`Self::write_model`] wrote.
    ///
    /// # Errors
    /// If it does not fit.
    fn read_model(&mut self, reader: &Reader<'_>) -> Result<(), TrainError>;

    /// Writes what only this worker has.
    fn write_worker(&self, writer: &mut Writer);

    /// Takes in what [`Self::write_worker`] wrote, of all workers; gives the environments of this worker that are
    /// in no file.
    ///
    /// # Errors
    /// If it does not fit.
    fn read_worker(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError>;
}

/// Gives the `values` of every worker to every worker, by rank; see [`all_gather_u64`].
///
/// # Errors
/// If the aggregation fails.
pub fn all_gather(trainer: &mut dyn Trainer, values: &[u64]) -> Result<Vec<Vec<u64>>, TrainError> {
    let Place { rank, workers } = trainer.place();
    all_gather_u64(trainer.aggregator(), rank, workers, values)
}

/// Whether what all workers should have alike is identical to the last bit. All must call it at the same time.
///
/// # Errors
/// If the aggregation fails.
pub fn replicas_identical(trainer: &mut dyn Trainer) -> Result<bool, TrainError> {
    let digest = trainer.digest();
    // A worker that was lost has written nothing.
    Ok(all_gather(trainer, &[digest])?.iter().all(|other| other[0] == digest || other[0] == 0))
}

/// Checks that all workers run the same job from the same state.
///
/// # Errors
/// If one does not; the text says which and in what.
pub(super) fn agree(trainer: &mut dyn Trainer) -> Result<(), TrainError> {
    let job = first_bytes(
        Sha256::new()
            .chain_update(trainer.algorithm())
            .chain_update(trainer.spec().id.as_bytes())
            .chain_update(trainer.config_json()),
    );
    let own = [job, trainer.progress().advances, trainer.digest()];
    let rank = trainer.place().rank;
    let all = all_gather(trainer, &own)?;
    for (other_rank, other) in all.iter().enumerate().filter(|(_, other)| other[0] != 0) {
        let difference = if other[0] != own[0] {
            "has another environment or other hyper-parameters"
        } else if other[1] != own[1] {
            "starts at another point of the run"
        } else if other[2] != own[2] {
            "starts from other weights"
        } else {
            continue;
        };
        return Err(TrainError::Disagreement(format!("worker {other_rank} {difference} than worker {rank}")));
    }
    Ok(())
}

/// The first 8 bytes of a hash, never 0, which stands for a worker that said nothing.
pub fn first_bytes(hash: Sha256) -> u64 {
    let digest = hash.finalize();
    digest.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte)).max(1)
}

/// What runs of all algorithms have.
#[derive(Debug)]
pub struct CommonParameters<'a> {
    /// Environment steps of the run.
    pub total_steps: &'a mut u64,
    /// Seed of all random streams.
    pub seed: &'a mut u64,
    /// Environments of the job; by default chosen by the number of workers.
    pub environments: &'a mut Option<usize>,
}

/// How the algorithms of a family are put together from their parts: [`OnPolicy`](super::on_policy::OnPolicy) and
/// [`OffPolicy`](super::off_policy::OffPolicy). Hyper-parameters have been checked.
pub trait Family<A> {
    /// See [`Algorithm::halves`].
    ///
    /// # Errors
    /// If an environment cannot be made or sizes do not fit.
    fn halves(config: A, place: Place, factory: &EnvFactory, mode: Mode) -> Result<Halves, TrainError>;

    /// See [`Algorithm::remote_learner`].
    ///
    /// # Errors
    /// If the environment is not one for this algorithm or sizes do not fit.
    fn remote_learner(config: A, place: Place, spec: &EnvSpec) -> Result<RemoteHalves, TrainError>;

    /// See [`Algorithm::remote_actor`].
    ///
    /// # Errors
    /// As [`Self::halves`].
    fn remote_actor(
        config: &A,
        environments: Range<usize>,
        factory: &EnvFactory,
    ) -> Result<RemoteActor, TrainError>;
}

/// The accessors of [`Algorithm`] to hyper-parameters that all algorithms have under the same names.
macro_rules! common_accessors {
    () => {
        fn hidden(&self) -> &[usize] {
            &self.hidden
        }

        fn common(&mut self) -> $crate::algorithms::trainer::CommonParameters<'_> {
            let Self { total_steps, seed, environments, .. } = self;
            $crate::algorithms::trainer::CommonParameters { total_steps, seed, environments }
        }
    };
}

pub(super) use common_accessors;

/// An algorithm, by its hyper-parameters.
pub trait Algorithm: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// As on the command line.
    const NAME: &'static str;

    /// The environment that is trained in if none is named.
    const DEFAULT_ENV: &'static str;

    /// Advances between checkpoints, unless asked for otherwise.
    const CHECKPOINT_EVERY: u64;

    /// Whether it learns from rollouts or from replayed transitions.
    type Family: Family<Self>;

    /// Tuned values for an environment, general ones where it has none of its own.
    fn preset(env: &str) -> Self;

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`TrainError::Config`] names what is out of range.
    fn check(&self) -> Result<(), TrainError>;

    /// Widths of hidden layers.
    fn hidden(&self) -> &[usize];

    /// What all algorithms have.
    fn common(&mut self) -> CommonParameters<'_>;

    /// Floats in the vectors that the workers of a job sum.
    ///
    /// # Errors
    /// If the environment is not one for this algorithm.
    fn vector_len(&self, env: &EnvSpec, mode: Mode) -> Result<usize, TrainError>;

    /// Both halves of a learner, at the start of a run.
    ///
    /// # Errors
    /// If a hyper-parameter is out of range or an environment cannot be made.
    fn halves(self, place: Place, factory: &EnvFactory, mode: Mode) -> Result<Halves, TrainError> {
        self.check()?;
        Self::Family::halves(self, place, factory, mode)
    }

    /// What learns, as one of `place.workers` learners, from experience of actors elsewhere.
    ///
    /// # Errors
    /// If a hyper-parameter is out of range or the environment is not one for this algorithm.
    fn remote_learner(self, place: Place, spec: &EnvSpec) -> Result<RemoteHalves, TrainError> {
        self.check()?;
        Self::Family::remote_learner(self, place, spec)
    }

    /// What acts, in the environments with these numbers, for learners elsewhere.
    ///
    /// # Errors
    /// As [`Self::remote_learner`], or if an environment cannot be made.
    fn remote_actor(
        &self,
        environments: Range<usize>,
        factory: &EnvFactory,
    ) -> Result<RemoteActor, TrainError> {
        Self::Family::remote_actor(self, environments, factory)
    }

    /// A run from its start. `aggregator` must sum vectors of [`Self::vector_len`] floats.
    ///
    /// # Errors
    /// If a hyper-parameter is out of range, an environment cannot be made, or the aggregator's vectors have
    /// another length.
    fn trainer(
        self,
        place: Place,
        factory: &EnvFactory,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Box<dyn Trainer>, TrainError> {
        let halves = self.halves(place, factory, Mode::Synchronous)?;
        Ok(Box::new(SynchronousTrainer::new(halves, place, aggregator)?))
    }

    /// The trained agent of a model file.
    ///
    /// # Errors
    /// If the file does not fit.
    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError>;
}

/// Whether workers wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All gradients of an update are made at the same parameters.
    Synchronous,
    /// Each worker goes at its own pace.
    Asynchronous,
}

/// A trained agent that only acts.
pub trait Policy {
    /// Chooses an action (`[action_dim]`; a discrete action is its index) for an observation as the environment gives
    /// it. With `rng` it is drawn as in training where the policy is stochastic.
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]);
}
