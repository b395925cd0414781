//! Interface between a study and the common framework.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

use crate::StudyError;
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::group::Group;

/// Hyper-parameters common to all studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of training iterations, not counting the initial test.
    pub iterations: u64,
    /// Number of environments or agents in each iteration. They are divided among the workers.
    pub shares: usize,
}

/// All hyper-parameters of a study. The macro [`common_hyperparameters`](crate::common_hyperparameters) implements
/// everything except [`Self::check`].
pub trait Hyperparameters: Clone + Debug + Serialize + DeserializeOwned {
    /// Name of the hyper-parameter that determines [`Common::shares`], such as `environments`.
    const SHARES: &'static str;

    /// Checks all hyper-parameters.
    ///
    /// # Errors
    /// Names the first hyper-parameter that is out of range.
    fn check(&self) -> Result<(), StudyError>;

    /// Returns the hyper-parameters common to all studies.
    fn common(&self) -> Common;

    /// Replaces the hyper-parameters common to all studies.
    fn set_common(&mut self, common: Common);
}

/// Implements the methods of [`Hyperparameters`] except `check`, for a type with the fields `seed`, `iterations` and
/// `$shares`, which is the number that is divided among the workers.
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

/// Properties of an iteration that the framework uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Number of the iteration, starting from 0.
    pub iteration: u64,
    /// Whether the policy was tested after the iteration.
    pub is_tested: bool,
    /// Value on which all workers must agree; `None` if the iteration has no such value.
    pub result: Option<f64>,
}

/// Record of one iteration. The names of its fields are used as keys in checkpoints and in results.
pub trait Record: Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// Returns the properties of the iteration that the framework uses.
    fn mark(&self) -> Mark;

    /// Returns the record without the duration of the iteration, so that records of different runs can be compared.
    #[must_use]
    fn without_time(self) -> Self;
}

/// Report on the progress within an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Current activity, such as `simulating`.
    pub name: &'static str,
    /// Number of units of this activity that are complete.
    pub done: u64,
    /// Total number of units.
    pub total: u64,
}

/// Receiver of progress reports.
pub type OnStage<'a> = &'a mut dyn FnMut(Stage);

/// Context of one iteration: the inputs that a study receives in addition to its own state.
pub struct Step<'a, C> {
    /// Hyper-parameters of the training run.
    pub config: &'a C,
    /// Number of the iteration. Iteration 0 tests the policy before any learning.
    pub iteration: u64,
    /// Group of workers that train together; it sums values over these workers.
    pub group: &'a mut Group,
    /// Parameters of the best policy so far; `None` before the first test.
    pub best: Option<&'a [f32]>,
    /// Flag with which another thread requests that the iteration end early.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) begin: Instant,
    pub(crate) on_stage: OnStage<'a>,
}

impl<C: Hyperparameters> Step<'_, C> {
    /// Returns whether the policy is tested after this iteration. It is tested every `interval` iterations and after
    /// the last one.
    pub fn is_tested(&self, interval: u64) -> bool {
        self.iteration.is_multiple_of(interval) || self.iteration == self.config.common().iterations
    }

    /// Returns whether this worker has been asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether any worker has been asked to stop. If so, all workers must abandon this iteration. All workers
    /// must therefore call this function at the same point of the iteration.
    ///
    /// # Errors
    /// Fails if the aggregation fails.
    pub fn is_stopped_anywhere(&mut self) -> Result<bool, StudyError> {
        let mut sums = [i128::from(self.is_stopped())];
        self.group.sum(&mut sums)?;
        Ok(sums[0] > 0)
    }

    /// Returns the number of seconds since the start of the iteration.
    pub fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Reports that `done` of `total` units of the activity `name` are complete.
    pub fn show(&mut self, name: &'static str, done: u64, total: u64) {
        (self.on_stage)(Stage { name, done, total });
    }
}

/// A study: a task, and a policy that is trained for this task.
pub trait Study: Sized {
    /// Name of the algorithm in checkpoints.
    const ALGORITHM: &'static str;
    /// Type of the hyper-parameters.
    type Config: Hyperparameters;
    /// Data on which the policy is trained. Checkpoints do not contain the data, but may contain its digest.
    type Task;
    /// Record of an iteration.
    type Iteration: Record;
    /// State that an iteration changes. If an iteration is stopped early, the framework restores the state before that
    /// iteration.
    type State: Clone;

    /// Returns the number of floats in the vectors that the workers sum. The caller must have checked the
    /// hyper-parameters.
    ///
    /// # Errors
    /// Fails if the hyper-parameters do not describe a valid network.
    fn vector_len(config: &Self::Config) -> Result<usize, StudyError>;

    /// Creates the study in its state before any learning.
    ///
    /// # Errors
    /// Fails if the task does not fit the hyper-parameters.
    fn new(config: &Self::Config, task: Self::Task) -> Result<Self, StudyError>;

    /// Returns the state that an iteration changes.
    fn state(&mut self) -> &mut Self::State;

    /// Returns the parameters of the current policy.
    fn parameters(&self) -> &[f32];

    /// Runs an iteration together with the other workers. Returns `None` if the iteration was stopped before its end.
    ///
    /// # Errors
    /// Fails if an aggregation fails or the task cannot be simulated.
    fn iterate(&mut self, step: &mut Step<'_, Self::Config>) -> Result<Option<Self::Iteration>, StudyError>;

    /// Returns whether the policy after iteration `new` is better than the best policy so far.
    fn is_better(config: &Self::Config, new: &Self::Iteration, best: Option<&Self::Iteration>) -> bool;

    /// Returns a description of the task for the checkpoint, such as `coflows`.
    fn environment(&self) -> String;

    /// Hashes the data that identifies the task.
    fn hash_task(&self, hash: &mut Sha256);

    /// Hashes the part of the state that is identical on all workers, other than the parameters and the records.
    fn hash_state(&self, _hash: &mut Sha256) {}

    /// Writes the task's digest and the state.
    fn write(&self, config: &Self::Config, writer: &mut Writer);

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// Fails if the file is damaged, or if its task is not that of this study.
    fn read(&mut self, config: &Self::Config, reader: &Reader<'_>) -> Result<(), StudyError>;

    /// Writes the parameters of the best policy.
    fn write_best(config: &Self::Config, parameters: &[f32], writer: &mut Writer);

    /// Reads what [`Self::write_best`] wrote.
    ///
    /// # Errors
    /// Fails if the file is damaged or contains no best policy.
    fn read_best(config: &Self::Config, reader: &Reader<'_>) -> Result<Vec<f32>, StudyError>;

    /// Checks the content of a checkpoint before it is used.
    ///
    /// # Errors
    /// Fails if the file is damaged or does not fit its hyper-parameters.
    fn check_file(config: &Self::Config, reader: &Reader<'_>) -> Result<(), StudyError>;
}
