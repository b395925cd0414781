//! Asynchronous training through the switch. The two halves of a learner run in a three-stage pipeline (section 4 of
//! the iSwitch paper, Algorithm 1).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::TrainError;
use super::halves::{Halves, LocalHalf, Tail};
use super::replica::Replica;
use super::trainer::Report;
use super::vector::VectorCodec;
use iswitch::pipeline::{
    self, LearnerError, LocalGradient, LocalUpdate, PipelineConfig, PipelineError, PipelineReport,
};
use iswitch::worker::asynchronous::AsyncWorker;

/// Number of updates between two reports of the training statistics.
pub const REPORT_EVERY: u64 = 100;

/// Callback that is called after every [`REPORT_EVERY`] updates and after the last update. It receives a report on the
/// updates since the previous call.
pub type Observer<'a> = dyn FnMut(&Replica, &[f32], &Report) -> Result<(), TrainError> + Send + 'a;

/// Trains until the run is complete or a worker has requested a stop. `worker` is one of the `workers` workers of the
/// job, and sums vectors of [`VectorShape::summed_len`](super::vector::VectorShape::summed_len) floats. After each
/// update, including the last one, the model is identical on all workers.
///
/// # Errors
/// Fails if an environment, the network or the observer fails, or if the packets' element types cannot hold exact sums
/// over this number of workers.
pub fn train(
    halves: Halves,
    worker: AsyncWorker,
    workers: usize,
    config: PipelineConfig,
    stop: Arc<AtomicBool>,
    observe: &mut Observer<'_>,
) -> Result<PipelineReport, TrainError> {
    let codec = VectorCodec::new(halves.shape, worker.element_types(), workers)?;
    let replica = halves.replica;
    let shared = SharedSide { replica, codec: codec.clone(), observe, since: Instant::now() };
    let local = SwitchedSide { local: LocalSide::new(halves.local, stop), codec };
    pipeline::run(worker, config, halves.model, local, shared).map_err(|error| match error {
        PipelineError::Learner(error) => match error.downcast::<TrainError>() {
            Ok(error) => *error,
            Err(error) => PipelineError::Learner(error).into(),
        },
        other => other.into(),
    })
}

/// The local half of a worker, with the statistics of gradients that were not aggregated. The worker sends these
/// statistics with the next vector.
pub(super) struct LocalSide {
    local: Box<dyn LocalHalf>,
    unreported: Tail,
    stop: Arc<AtomicBool>,
}

impl LocalSide {
    pub(super) fn new(local: Box<dyn LocalHalf>, stop: Arc<AtomicBool>) -> Self {
        Self { local, unreported: Tail::default(), stop }
    }

    /// Overwrites `vector` with a gradient, followed by the tail of statistics.
    pub(super) fn fill(&mut self, model: &[f32], vector: &mut [f32]) -> Result<(), TrainError> {
        let unreported = std::mem::take(&mut self.unreported);
        let gradient_len = vector.len() - Tail::LEN;
        let mut tail = self.local.gradient(model, &mut vector[..gradient_len])?;
        tail.add_experience(&unreported);
        tail.stop = if self.stop.load(Ordering::Relaxed) { 1.0 } else { 0.0 };
        tail.write(vector);
        Ok(())
    }

    /// Keeps the statistics in the tail of a vector that was not aggregated. They are sent with the next vector.
    pub(super) fn keep_tail(&mut self, vector: &[f32]) {
        self.unreported = Tail::read(vector);
        self.local.skipped();
    }
}

/// The local half of a worker whose vectors a switch sums. It encodes them for the switch.
struct SwitchedSide {
    local: LocalSide,
    codec: VectorCodec,
}

impl LocalGradient for SwitchedSide {
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<(), LearnerError> {
        let Self { local, codec } = self;
        Ok(codec.encode(gradient, |vector| local.fill(model, vector))?)
    }

    fn skipped(&mut self, gradient: &[f32]) {
        self.local.keep_tail(self.codec.encoded(gradient));
    }
}

struct SharedSide<'a, 'b> {
    replica: Replica,
    codec: VectorCodec,
    observe: &'a mut Observer<'b>,
    since: Instant,
}

impl LocalUpdate for SharedSide<'_, '_> {
    fn update(
        &mut self,
        model: &mut [f32],
        sum: &[f32],
        contributions: u16,
    ) -> Result<ControlFlow<()>, LearnerError> {
        // Each aggregate covers whole vectors, so all of its values sum the same contributions.
        let sum = self.codec.decode(sum, contributions, true);
        self.replica.apply(model, sum, contributions);
        let is_over = self.replica.is_over();
        if is_over || self.replica.counters().iterations.is_multiple_of(REPORT_EVERY) {
            let report = self.replica.report(self.since.elapsed());
            self.since = Instant::now();
            (self.observe)(&self.replica, model, &report)?;
        }
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
