//! Synchronous training: each worker's gradient, their sum, the same update on all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::halves::{Counters, Halves, LocalHalf, SharedHalf, Tail};
use super::trainer::{Place, Progress, Report, Trainer, agree, first_bytes};
use crate::env::EnvSpec;
use crate::{AggregateError, GradientAggregator};

/// Gradients in one advance.
const ITERATIONS: u64 = 100;

/// A run of both halves around an aggregator.
pub struct SynchronousTrainer {
    algorithm: &'static str,
    config: String,
    total_steps: u64,
    place: Place,
    model: Vec<f32>,
    local: Box<dyn LocalHalf>,
    shared: Box<dyn SharedHalf>,
    counters: Counters,
    advances: u64,
    aggregator: Box<dyn GradientAggregator>,
    vector: Vec<f32>,
    aggregation_times: Vec<Duration>,
    stop: Arc<AtomicBool>,
    agreed: bool,
}

impl SynchronousTrainer {
    /// From the start of a run. `aggregator` sums vectors of the gradient and its tail.
    ///
    /// # Errors
    /// If its vectors have another length.
    pub fn new(
        halves: Halves,
        place: Place,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, TrainError> {
        let Halves { algorithm, config, total_steps, model, gradient_len, local, shared } = halves;
        let (actual, expected) = (gradient_len + Tail::LEN, aggregator.gradient_len());
        if actual != expected {
            return Err(AggregateError::WrongLength { actual, expected }.into());
        }
        Ok(Self {
            algorithm,
            config,
            total_steps,
            place,
            model,
            local,
            shared,
            counters: Counters::default(),
            advances: 0,
            aggregator,
            vector: vec![0.0; actual],
            aggregation_times: Vec::with_capacity(ITERATIONS as usize),
            stop: Arc::default(),
            agreed: false,
        })
    }

    /// The parameters and whatever else gradients depend on.
    pub fn model(&self) -> &[f32] {
        &self.model
    }

    fn iterate(&mut self) -> Result<(), TrainError> {
        let gradient_len = self.vector.len() - Tail::LEN;
        let mut tail = self.local.gradient(&self.model, &mut self.vector[..gradient_len])?;
        tail.stop = if self.stop.load(Ordering::Relaxed) { 1.0 } else { 0.0 };
        tail.write(&mut self.vector);
        let begin = Instant::now();
        let round = self.aggregator.all_reduce(&mut self.vector)?;
        self.aggregation_times.push(begin.elapsed());
        self.counters.absorb(&Tail::read(&self.vector), round.contributors);
        let scale = 1.0 / f32::from(round.contributors.max(1));
        let gradient = &mut self.vector[..gradient_len];
        gradient.iter_mut().for_each(|x| *x *= scale);
        self.shared.update(&mut self.model, gradient, &self.counters);
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

    fn place(&self) -> Place {
        self.place
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
        self.shared.loss_names()
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
            if self.counters.stop || self.progress().finished {
                break;
            }
        }
        self.advances += 1;
        let recent = self.counters.take_recent();
        Ok(Report {
            episodic_return: recent.episodic_return,
            episodic_length: recent.episodic_length,
            losses: recent.losses[..self.loss_names().len()].to_vec(),
            elapsed: begin.elapsed(),
            stopped: std::mem::take(&mut self.counters.stop),
        })
    }

    fn progress(&self) -> Progress {
        Progress {
            advances: self.advances,
            steps: self.counters.steps,
            total_steps: self.total_steps,
            iterations: self.counters.iterations,
            mean_return: self.counters.returns.mean(),
            finished: self.counters.steps >= self.total_steps,
        }
    }

    fn digest(&self) -> u64 {
        let mut hash = Sha256::new();
        hash.update(bytemuck::cast_slice::<f32, u8>(&self.model));
        hash.update(bytemuck::cast_slice::<u64, u8>(&[self.counters.steps, self.counters.iterations]));
        first_bytes(hash)
    }

    fn write_model(&self, writer: &mut Writer) {
        self.counters.write(writer);
        self.shared.write(&self.model, writer);
    }

    fn read_model(&mut self, reader: &Reader<'_>) -> Result<(), TrainError> {
        self.shared.read(&mut self.model, reader)?;
        self.counters = Counters::read(reader)?;
        self.advances = reader.number("advances")?;
        Ok(())
    }

    fn write_worker(&self, writer: &mut Writer) {
        self.local.write(writer);
    }

    fn read_worker(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        self.local.read(files)
    }
}
