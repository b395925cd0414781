//! The shared half of a learner, with the counters of the run. It applies aggregated sums to the model.

use std::time::Duration;

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::halves::{Counters, SharedHalf, Tail};
use super::phases::Phase;
use super::trainer::{Progress, Report};

/// Replicated state of a run. In a synchronous job and in a job that uses a switch, each worker has an instance; in a
/// job with an asynchronous parameter server, only the server has one.
pub struct Replica {
    shared: Box<dyn SharedHalf>,
    counters: Counters,
    total_steps: u64,
    advances: u64,
    gradient: Vec<f32>,
}

impl Replica {
    /// Creates the replica at the start of a run of `total_steps` environment steps.
    pub fn new(shared: Box<dyn SharedHalf>, total_steps: u64) -> Self {
        Self { shared, counters: Counters::default(), total_steps, advances: 0, gradient: Vec::new() }
    }

    /// Applies `sum`, the sum of `contributions` gradients with their tails, to the model.
    pub fn apply(&mut self, model: &mut [f32], sum: &[f32], contributions: u16) {
        let _phase = Phase::Update.enter();
        self.counters.absorb(&Tail::read(sum), contributions);
        let scale = 1.0 / f32::from(contributions.max(1));
        self.gradient.clear();
        self.gradient.extend(sum[..sum.len() - Tail::LEN].iter().map(|x| x * scale));
        self.shared.update(model, &mut self.gradient, &self.counters);
    }

    /// Returns the counters of the run.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the names of the losses, as used in training curves.
    pub fn loss_names(&self) -> &'static [&'static str] {
        self.shared.loss_names()
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> Progress {
        Progress {
            advances: self.advances,
            steps: self.counters.steps,
            total_steps: self.total_steps,
            iterations: self.counters.iterations,
            mean_return: self.counters.returns.mean(),
            finished: self.counters.steps >= self.total_steps,
        }
    }

    /// Returns whether the run is complete or a worker has requested a stop.
    pub fn is_over(&self) -> bool {
        self.counters.stop || self.counters.steps >= self.total_steps
    }

    /// Counts one advance of the run, which took `elapsed`. Returns a report on the time since the previous report.
    pub fn report(&mut self, elapsed: Duration) -> Report {
        self.advances += 1;
        let recent = self.counters.take_recent();
        Report {
            episodic_return: recent.episodic_return,
            episodic_length: recent.episodic_length,
            losses: recent.losses[..self.loss_names().len()].to_vec(),
            elapsed,
            stopped: std::mem::take(&mut self.counters.stop),
        }
    }

    /// Writes the replica and the model to a checkpoint.
    pub fn write(&self, model: &[f32], writer: &mut Writer) {
        self.counters.write(writer);
        self.shared.write(model, writer);
    }

    /// Restores the state that [`Self::write`] wrote, including the number of advances.
    ///
    /// # Errors
    /// Fails if the saved state does not match this replica.
    pub fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError> {
        self.shared.read(model, reader)?;
        self.counters = Counters::read(reader)?;
        self.advances = reader.number("advances")?;
        Ok(())
    }
}
