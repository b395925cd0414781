//! The three-stage pipeline of asynchronous training (section 4.1 and Algorithm 1 of the paper).
//!
//! ```text
//!   LGC  local gradient computing   copies the model of time t_w, computes, commits if t - t_w <= S
//!   GA   gradient aggregation       the network: sends gradients, receives sums (the thread of AsyncWorker)
//!   LWU  local weight update        applies each sum to the model, t = t + 1
//! ```
//!
//! The three stages run concurrently. All workers begin with the same model and apply the same sums in the same order,
//! so the models of all workers are identical at the same t, and no server needs to hold the weights. Every
//! [`PipelineConfig::digest_interval`] aggregates, the switch compares digests of the models.
//!
//! A learner has two halves, [`LocalGradient`] and [`LocalUpdate`], because two threads use it at the same time. The
//! halves share the *model*: the weights, and any other state that the update produces and the gradient computation
//! needs, such as a target network. State that only the update needs, such as the moments of an optimiser, belongs to
//! the second half. This state depends only on the sums, so it is also identical on all workers.

mod staleness;

use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::aggregate::AggregateError;
use crate::worker::asynchronous::{AsyncCounters, AsyncWorker};

pub use staleness::{Histogram, Staleness};

/// Error of a learner.
pub type LearnerError = Box<dyn Error + Send + Sync>;

/// The first half of a learner, which runs in the LGC thread.
pub trait LocalGradient: Send {
    /// Computes a gradient (`[gradient_len]`) for a model (`[model_len]`) based on the worker's own experience. The
    /// gradient is discarded if it is too stale by the time it would be committed.
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<(), LearnerError>;

    /// Called when a gradient was discarded because it was too stale. If the gradient carried other information, such
    /// as statistics, a later gradient must carry it again.
    fn skipped(&mut self, _gradient: &[f32]) {}
}

/// The second half of a learner, which runs in the LWU thread.
pub trait LocalUpdate {
    /// Applies a sum (`[gradient_len]`) of `contributions` gradients to the model (`[model_len]`). The result may
    /// depend only on the arguments and on the state that results from earlier calls; otherwise, the models of the
    /// workers diverge.
    ///
    /// `Break` ends the training. If this decision depends only on the sums, all workers end with the same model.
    fn update(
        &mut self,
        model: &mut [f32],
        sum: &[f32],
        contributions: u16,
    ) -> Result<ControlFlow<()>, LearnerError>;
}

/// Configuration of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct PipelineConfig {
    /// Staleness bound S: the maximum number of updates by which the model may be ahead of a gradient when that
    /// gradient is committed. The paper uses 3.
    pub staleness_bound: u32,
    /// Number of aggregates between successive digests of the model; 0 disables digests.
    pub digest_interval: u32,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self { staleness_bound: 3, digest_interval: 100 }
    }
}

/// Reason why a pipeline ended early.
#[non_exhaustive]
#[derive(Debug)]
pub enum PipelineError {
    /// Gradients or sums cannot be exchanged, or the models of two workers differ.
    Aggregate(AggregateError),
    /// The learner failed.
    Learner(LearnerError),
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aggregate(error) => error.fmt(f),
            Self::Learner(error) => error.fmt(f),
        }
    }
}

impl Error for PipelineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Aggregate(error) => Some(error),
            Self::Learner(_) => None,
        }
    }
}

impl From<AggregateError> for PipelineError {
    fn from(error: AggregateError) -> Self {
        Self::Aggregate(error)
    }
}

/// Result of a pipeline run.
#[derive(Clone, Debug)]
pub struct PipelineReport {
    /// Final model, `[model_len]`.
    pub model: Vec<f32>,
    /// The numbers of updates and of skipped gradients, and the staleness of the gradients that were committed.
    pub staleness: Staleness,
    /// Counters of the worker.
    pub counters: AsyncCounters,
    /// Duration of the run.
    pub elapsed: Duration,
}

impl PipelineReport {
    /// Returns the number of model updates per second.
    pub fn updates_per_second(&self) -> f64 {
        self.staleness.updates() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Trains until the learner ends the training, then leaves the job. The initial model (`[model_len]`) must be the same
/// on all workers.
///
/// # Errors
/// Returns the first failure of any stage; the other stages are then stopped. A panic of the learner propagates to the
/// caller.
pub fn run<G: LocalGradient, U: LocalUpdate>(
    worker: AsyncWorker,
    config: PipelineConfig,
    model: Vec<f32>,
    mut gradients: G,
    mut updates: U,
) -> Result<PipelineReport, PipelineError> {
    let begin = Instant::now();
    let staleness = Staleness::new(config.staleness_bound);
    let shared = Shared { worker: &worker, learner: Mutex::new(Learner { model, staleness }) };
    std::thread::scope(|scope| {
        let computing = std::thread::Builder::new()
            .name("iswitch-lgc".into())
            .spawn_scoped(scope, || shared.closing(|| shared.compute(&mut gradients)))
            .map_err(AggregateError::from)?;
        let updated = shared.closing(|| shared.apply(&mut updates, config.digest_interval));
        let computed = computing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // If a stage fails because the worker is closed, the other stage has closed it; the outcome of that stage is
        // the cause.
        match (updated, computed) {
            (Err(PipelineError::Aggregate(AggregateError::Closed)), Err(error)) | (Err(error), _) => {
                Err(error)
            }
            (Ok(()), Err(error)) if !is_closed(&error) => Err(error),
            (Ok(()), _) => Ok(()),
        }
    })?;
    let counters = worker.counters();
    let Learner { model, staleness } = shared.learner.into_inner().unwrap_or_else(PoisonError::into_inner);
    drop(worker);
    Ok(PipelineReport { model, staleness, counters, elapsed: begin.elapsed() })
}

/// Returns a digest of a model (FNV-1a over the words). If two models differ in a single word, their digests differ.
pub fn digest(model: &[f32]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    model.iter().fold(OFFSET, |hash, x| (hash ^ u64::from(x.to_bits())).wrapping_mul(PRIME))
}

fn is_closed(error: &PipelineError) -> bool {
    matches!(error, PipelineError::Aggregate(AggregateError::Closed))
}

/// State that both stages of this worker share: the model, the clock t, and the staleness of the gradients.
struct Learner {
    model: Vec<f32>,
    staleness: Staleness,
}

struct Shared<'a> {
    worker: &'a AsyncWorker,
    learner: Mutex<Learner>,
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Learner> {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a stage. When the stage ends, even by a panic, closes the worker so that the other stage does not wait
    /// forever.
    fn closing<T>(&self, stage: impl FnOnce() -> T) -> T {
        struct Closing<'a>(&'a AsyncWorker);
        impl Drop for Closing<'_> {
            fn drop(&mut self) {
                self.0.close();
            }
        }
        let _closing = Closing(self.worker);
        stage()
    }

    /// Runs the LGC stage until the worker is closed.
    fn compute(&self, gradients: &mut impl LocalGradient) -> Result<(), PipelineError> {
        let mut gradient = vec![0.0; self.worker.gradient_len()];
        let mut model = self.lock().model.clone();
        loop {
            let made_at = {
                let learner = self.lock();
                model.copy_from_slice(&learner.model);
                learner.staleness.updates()
            };
            gradients.gradient(&model, &mut gradient).map_err(PipelineError::Learner)?;
            if !self.commit(&gradient, made_at)? {
                gradients.skipped(&gradient);
            }
        }
    }

    /// Commits a gradient once the previous one is part of an aggregate, unless the gradient has become too stale in
    /// the meantime. Returns whether it was committed.
    fn commit(&self, gradient: &[f32], made_at: u64) -> Result<bool, PipelineError> {
        loop {
            self.worker.wait_ready()?;
            // The lock is held from the check to the commit, so that t cannot advance in between.
            let mut learner = self.lock();
            self.note_admissions(&mut learner);
            if !learner.staleness.may_commit(made_at) {
                return Ok(false);
            }
            if let Some(sequence) = self.worker.try_submit(gradient)? {
                learner.staleness.committed(sequence, made_at);
                return Ok(true);
            }
        }
    }

    /// Runs the LWU stage until the learner ends the training.
    fn apply(&self, updates: &mut impl LocalUpdate, digest_interval: u32) -> Result<(), PipelineError> {
        let mut sum = vec![0.0; self.worker.gradient_len()];
        loop {
            let (aggregate, contributions) = self.worker.recv_sum(&mut sum)?;
            let mut learner = self.lock();
            let flow =
                updates.update(&mut learner.model, &sum, contributions).map_err(PipelineError::Learner)?;
            learner.staleness.applied(aggregate);
            self.note_admissions(&mut learner);
            if digest_interval > 0 && aggregate.is_multiple_of(digest_interval) {
                self.worker.send_digest(aggregate, digest(&learner.model));
            }
            if flow.is_break() {
                return Ok(());
            }
        }
    }

    fn note_admissions(&self, learner: &mut Learner) {
        while let Some(admission) = self.worker.poll_admission() {
            learner.staleness.admitted(admission.sequence, admission.aggregate);
        }
    }
}
