//! The three-stage pipeline of asynchronous training (section 4.1 and Algorithm 1 of the paper).
//!
//! ```text
//!   LGC  local gradient computing   copies the model of time t_w, computes, commits if t - t_w <= S
//!   GA   gradient aggregation       the network: sends gradients, receives sums (the thread of AsyncWorker)
//!   LWU  local weight update        applies each sum to the model, t = t + 1
//! ```
//!
//! The three run at once. All workers begin with the same model and apply the same sums in the same order, so
//! their models are the same at the same t: there is no server that holds the weights. Every
//! [`PipelineConfig::digest_interval`] aggregates the switch compares digests of the models.
//!
//! A learner comes in two halves, because two threads need it at once: [`LocalGradient`] and [`LocalUpdate`]. What
//! both need is the *model*: the weights, and whatever else the first half has to see of the second, such as a target
//! network. What only an update needs, such as the moments of an optimiser, is a field of the second half; as it
//! follows from the sums, it too is the same on all workers.

mod staleness;

use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::aggregate::AggregateError;
use crate::worker::asynchronous::{AsyncCounters, AsyncWorker};

pub use staleness::{Histogram, Staleness};

/// What a learner may fail with.
pub type LearnerError = Box<dyn Error + Send + Sync>;

/// The first half of a learner, in the thread LGC.
pub trait LocalGradient: Send {
    /// Computes a gradient (`[gradient_len]`) for a model (`[model_len]`), from experience of its own. It may turn out
    /// too stale to be used; the next call may be with a newer model.
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<(), LearnerError>;

    /// The last gradient was too stale, and nobody will see it: what else it told is to be told again.
    fn skipped(&mut self, _gradient: &[f32]) {}
}

/// The second half of a learner, in the thread LWU.
pub trait LocalUpdate {
    /// Applies a sum (`[gradient_len]`) of `contributions` gradients to the model (`[model_len]`). May depend on
    /// nothing but its arguments and on what earlier calls have left, or the workers' models differ.
    ///
    /// `Break` ends the training. If it follows from the sums, all workers end with the same model.
    fn update(
        &mut self,
        model: &mut [f32],
        sum: &[f32],
        contributions: u16,
    ) -> Result<ControlFlow<()>, LearnerError>;
}

/// How a pipeline runs.
#[derive(Clone, Copy, Debug)]
pub struct PipelineConfig {
    /// S: the most updates that the model may be ahead of a gradient when that is committed. 3 in the paper.
    pub staleness_bound: u32,
    /// Aggregates between two digests of the model; 0 for none.
    pub digest_interval: u32,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self { staleness_bound: 3, digest_interval: 100 }
    }
}

/// Why a pipeline has ended early.
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

/// What a pipeline has done.
#[derive(Clone, Debug)]
pub struct PipelineReport {
    /// The model at the end, `[model_len]`.
    pub model: Vec<f32>,
    /// Updates, gradients that were skipped, staleness.
    pub staleness: Staleness,
    /// What the worker counted.
    pub counters: AsyncCounters,
    /// How long it ran.
    pub elapsed: Duration,
}

impl PipelineReport {
    /// Updates of the model per second.
    pub fn updates_per_second(&self) -> f64 {
        self.staleness.updates() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Trains until the learner ends it, then leaves the job. The model (`[model_len]`) must be the same on all workers.
///
/// # Errors
/// The first failure of any stage; the others are stopped. A panic of the learner goes on in the caller.
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
        // Who finds the worker closed has been stopped by the other, who knows why.
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

/// A digest of a model: that of two workers differs if a single bit does (FNV-1a over the words).
pub fn digest(model: &[f32]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    model.iter().fold(OFFSET, |hash, x| (hash ^ u64::from(x.to_bits())).wrapping_mul(PRIME))
}

fn is_closed(error: &PipelineError) -> bool {
    matches!(error, PipelineError::Aggregate(AggregateError::Closed))
}

/// The model and its time t.
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

    /// However a stage ends, the other is not left waiting.
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

    /// LGC: until the worker is closed.
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

    /// Commits a gradient when the one before is part of an aggregate, unless it is too stale then. Gives whether it
    /// was committed.
    fn commit(&self, gradient: &[f32], made_at: u64) -> Result<bool, PipelineError> {
        loop {
            self.worker.wait_ready()?;
            // Held from the check to the commit: t stands still.
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

    /// LWU: until the learner ends it.
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
                self.worker.tell_digest(aggregate, digest(&learner.model));
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
