//! Synchronous training: the gradients of all workers are summed, and all workers apply the same update.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::halves::{Halves, LocalHalf, Tail};
use super::phases::Phase;
use super::replica::Replica;
use super::trainer::{Progress, Report, Trainer, World, agree, first_bytes};
use super::vector::VectorCodec;
use crate::env::EnvSpec;
use iswitch::{AggregateError, GradientAggregator};

/// Number of gradients aggregated per call of [`Trainer::advance`].
const ITERATIONS: u64 = 100;

/// A synchronous training run: the two halves of a learner, and the aggregator that sums the gradients between them.
pub struct SynchronousTrainer {
    algorithm: &'static str,
    config: String,
    world: World,
    model: Vec<f32>,
    local: Box<dyn LocalHalf>,
    replica: Replica,
    aggregator: Box<dyn GradientAggregator>,
    vector: Vec<f32>,
    codec: VectorCodec,
    aggregation_times: Vec<Duration>,
    stop: Arc<AtomicBool>,
    agreed: bool,
    all_or_none: bool,
}

impl SynchronousTrainer {
    /// Creates a trainer at the start of a run. `aggregator` sums vectors that consist of the gradient and its tail.
    ///
    /// # Errors
    /// Fails if the length of the aggregator's vectors does not match the algorithm, or if the aggregator's elements
    /// cannot hold exact sums.
    pub fn new(
        halves: Halves,
        world: World,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, TrainError> {
        let Halves { algorithm, config, model, shape, local, replica } = halves;
        let codec = VectorCodec::new(shape, aggregator.element_types(), world.size)?;
        let (actual, expected) = (codec.summed_len(), aggregator.gradient_len());
        if actual != expected {
            return Err(AggregateError::WrongLength { actual, expected }.into());
        }
        Ok(Self {
            algorithm,
            config,
            world,
            model,
            local,
            replica,
            aggregator,
            vector: vec![0.0; actual],
            codec,
            aggregation_times: Vec::with_capacity(ITERATIONS as usize),
            stop: Arc::default(),
            agreed: false,
            all_or_none: false,
        })
    }

    /// Replaces the trainer's own stop flag with `stop`.
    #[must_use]
    pub fn with_stop(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop, ..self }
    }

    /// Makes training fail if a worker is lost; by default, training continues with the remaining workers. After the
    /// failure, the supervisor of the workers can restart all of them from the last checkpoint.
    #[must_use]
    pub fn all_or_none(self) -> Self {
        Self { all_or_none: true, ..self }
    }

    /// Returns the model: the parameters and everything else that gradients depend on.
    pub fn model(&self) -> &[f32] {
        &self.model
    }

    fn iterate(&mut self) -> Result<(), TrainError> {
        let (local, model, stop) = (&mut self.local, &self.model, &self.stop);
        self.codec.encode(&mut self.vector, |vector| -> Result<(), TrainError> {
            let gradient_len = vector.len() - Tail::LEN;
            let mut tail = local.gradient(model, &mut vector[..gradient_len])?;
            tail.stop = if stop.load(Ordering::Relaxed) { 1.0 } else { 0.0 };
            tail.write(vector);
            Ok(())
        })?;
        let aggregating = Phase::Aggregation.enter();
        let begin = Instant::now();
        let round = self.aggregator.all_reduce(&mut self.vector)?;
        self.aggregation_times.push(begin.elapsed());
        drop(aggregating);
        let (contributors, workers) = (usize::from(round.contributors), self.world.size);
        if self.all_or_none && contributors < workers {
            return Err(TrainError::Lost { contributors, workers });
        }
        let sum = self.codec.decode(&self.vector, round.contributors, round.uniform);
        self.replica.apply(&mut self.model, sum, round.contributors);
        self.local.observe(self.replica.counters());
        Ok(())
    }
}

impl Trainer for SynchronousTrainer {
    fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    fn config_json(&self) -> String {
        self.config.clone()
    }

    fn spec(&self) -> &EnvSpec {
        self.local.spec()
    }

    fn world(&self) -> World {
        self.world
    }

    fn aggregator(&mut self) -> &mut dyn GradientAggregator {
        self.aggregator.as_mut()
    }

    fn aggregation_times(&self) -> &[Duration] {
        &self.aggregation_times
    }

    fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    fn loss_names(&self) -> &'static [&'static str] {
        self.replica.loss_names()
    }

    fn advance(&mut self) -> Result<Report, TrainError> {
        if !self.agreed {
            agree(self)?;
            self.agreed = true;
        }
        let begin = Instant::now();
        self.aggregation_times.clear();
        for _ in 0..ITERATIONS {
            self.iterate()?;
            if self.replica.is_over() {
                break;
            }
        }
        Ok(self.replica.report(begin.elapsed()))
    }

    fn progress(&self) -> Progress {
        self.replica.progress()
    }

    fn digest(&self) -> u64 {
        let counters = self.replica.counters();
        let mut hash = Sha256::new();
        hash.update(bytemuck::cast_slice::<f32, u8>(&self.model));
        hash.update(bytemuck::cast_slice::<u64, u8>(&[counters.steps, counters.iterations]));
        first_bytes(hash)
    }

    fn write_model(&self, writer: &mut Writer) {
        self.replica.write(&self.model, writer);
    }

    fn read_model(&mut self, reader: &Reader<'_>) -> Result<(), TrainError> {
        self.replica.read(&mut self.model, reader)?;
        self.local.observe(self.replica.counters());
        Ok(())
    }

    fn write_worker(&self, writer: &mut Writer) {
        self.local.write(writer);
    }

    fn read_worker(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        self.local.read(files)
    }
}
