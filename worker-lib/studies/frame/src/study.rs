//! The interface between a study and the frame.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

use crate::StudyError;
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::group::Group;

/// Hyper-parameters that every study has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// Seed of all random streams.
    pub seed: u64,
    /// Iterations of the training, without the first test.
    pub iterations: u64,
    /// Environments or agents of an iteration, which the workers divide among them.
    pub shares: usize,
}

/// All hyper-parameters of a study. [`common_hyperparameters`](crate::common_hyperparameters) implements everything but
/// [`Self::check`].
pub trait Hyperparameters: Clone + Debug + Serialize + DeserializeOwned {
    /// Name of the hyper-parameter that the workers divide, such as `environments`.
    const SHARES: &'static str;

    /// Checks all hyper-parameters.
    ///
    /// # Errors
    /// The first one that is out of range.
    fn check(&self) -> Result<(), StudyError>;

    /// The hyper-parameters that every study has.
    fn common(&self) -> Common;

    /// Replaces the hyper-parameters that every study has.
    fn set_common(&mut self, common: Common);
}

/// Implements the part of [`Hyperparameters`] that accesses `seed`, `iterations` and the named field of the shares.
#[macro_export]
macro_rules! common_hyperparameters {
    ($shares:ident) => {
        const SHARES: &'static str = stringify!($shares);

        fn common(&self) -> $crate::Common {
            $crate::Common { seed: self.seed, iterations: self.iterations, shares: self.$shares }
        }

        fn set_common(&mut self, common: $crate::Common) {
            $crate::Common { seed: self.seed, iterations: self.iterations, shares: self.$shares } = common;
        }
    };
}

/// What the frame needs to know of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Number of the iteration, from 0.
    pub iteration: u64,
    /// Whether the policy was tested after the iteration.
    pub is_tested: bool,
    /// A number that all workers must agree on, if the iteration has one.
    pub result: Option<f64>,
}

/// The record of one iteration. Its fields are keys of the checkpoint and of the outcome.
pub trait Record: Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// What the frame needs to know of the iteration.
    fn mark(&self) -> Mark;

    /// The record without the time that the iteration took, which differs between runs.
    #[must_use]
    fn without_time(self) -> Self;
}

/// A progress report from within an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Current activity, such as `simulating`.
    pub name: &'static str,
    /// Units of it that are complete.
    pub done: u64,
    /// Units in all.
    pub total: u64,
}

/// Receives progress reports.
pub type OnStage<'a> = &'a mut dyn FnMut(Stage);

/// One iteration: what a study needs besides its own state.
pub struct Step<'a, C> {
    /// Hyper-parameters of the training.
    pub config: &'a C,
    /// Number of the iteration; iteration 0 is the test of the policy before any learning.
    pub iteration: u64,
    /// The workers of the training.
    pub group: &'a mut Group,
    /// Parameters of the best policy so far.
    pub best: Option<&'a [f32]>,
    /// Set when the iteration is to end early.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) begin: Instant,
    pub(crate) on_stage: OnStage<'a>,
}

impl<C: Hyperparameters> Step<'_, C> {
    /// Whether the policy is tested after this iteration, with a test every `interval` iterations and after the last.
    pub fn is_tested(&self, interval: u64) -> bool {
        self.iteration.is_multiple_of(interval) || self.iteration == self.config.common().iterations
    }

    /// Whether this worker was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether any worker was asked to stop: all of them must then leave the same iteration.
    ///
    /// # Errors
    /// If the aggregation fails.
    pub fn is_stopped_anywhere(&mut self) -> Result<bool, StudyError> {
        let mut sums = [i128::from(self.is_stopped())];
        self.group.sum(&mut sums)?;
        Ok(sums[0] > 0)
    }

    /// Seconds since the iteration began.
    pub fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Reports progress.
    pub fn show(&mut self, name: &'static str, done: u64, total: u64) {
        (self.on_stage)(Stage { name, done, total });
    }
}

/// A study: a task, and a policy for it that is trained.
pub trait Study: Sized {
    /// Algorithm named by its checkpoints.
    const ALGORITHM: &'static str;
    /// Hyper-parameters.
    type Config: Hyperparameters;
    /// Data that the policy is trained on. Checkpoints hold at most its digest.
    type Task;
    /// Record of an iteration.
    type Iteration: Record;
    /// State that an iteration changes. The frame restores it after an iteration that was stopped.
    type State: Clone;

    /// Number of floats in the vectors that the workers sum. The hyper-parameters have been checked.
    ///
    /// # Errors
    /// If there is no such network.
    fn vector_len(config: &Self::Config) -> Result<usize, StudyError>;

    /// The study before any learning.
    ///
    /// # Errors
    /// If the task does not fit the hyper-parameters.
    fn new(config: &Self::Config, task: Self::Task) -> Result<Self, StudyError>;

    /// State that an iteration changes.
    fn state(&mut self) -> &mut Self::State;

    /// Parameters of the present policy.
    fn parameters(&self) -> &[f32];

    /// Runs an iteration together with the other workers. Returns `None` if it was stopped before its end.
    ///
    /// # Errors
    /// If an aggregation fails or the task cannot be simulated.
    fn iterate(&mut self, step: &mut Step<'_, Self::Config>) -> Result<Option<Self::Iteration>, StudyError>;

    /// Whether the policy of a new iteration replaces the best one so far.
    fn is_better(config: &Self::Config, new: &Self::Iteration, best: Option<&Self::Iteration>) -> bool;

    /// Description of the task for the checkpoint, such as `coflows`.
    fn environment(&self) -> String;

    /// Adds what identifies the task.
    fn hash_task(&self, hash: &mut Sha256);

    /// Adds what all workers have alike besides the parameters and the records.
    fn hash_state(&self, _hash: &mut Sha256) {}

    /// Writes the task's digest and the state.
    fn write(&self, config: &Self::Config, writer: &mut Writer);

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// If the file is damaged or belongs to another task.
    fn read(&mut self, config: &Self::Config, reader: &Reader<'_>) -> Result<(), StudyError>;

    /// Writes the parameters of the best policy.
    fn write_best(config: &Self::Config, parameters: &[f32], writer: &mut Writer);

    /// Reads what [`Self::write_best`] wrote.
    ///
    /// # Errors
    /// If the file is damaged or holds no best policy.
    fn read_best(config: &Self::Config, reader: &Reader<'_>) -> Result<Vec<f32>, StudyError>;

    /// Checks a checkpoint before it is used.
    ///
    /// # Errors
    /// If the file is damaged or does not fit its hyper-parameters.
    fn check_file(config: &Self::Config, reader: &Reader<'_>) -> Result<(), StudyError>;
}
