//! Training run of one worker.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use crate::StudyError;
use crate::saved::history;
use crate::study::{Hyperparameters, OnStage, Record, Step, Study};
use iswitch::GradientAggregator;
use iswitch_learn::algorithms::checkpoint::{self, Reader, RunKind, Writer};
use iswitch_learn::algorithms::trainer::{World, first_bytes};
use iswitch_learn::group::Group;

/// Best policy so far.
#[derive(Clone, Debug)]
struct Best {
    iteration: u64,
    parameters: Vec<f32>,
}

/// Training run of one worker.
pub struct Training<S: Study> {
    config: S::Config,
    study: S,
    group: Group,
    best: Option<Best>,
    history: Vec<S::Iteration>,
    stop: Arc<AtomicBool>,
    has_agreed: bool,
}

impl<S: Study> Training<S> {
    /// Returns the number of floats in the vectors that the workers of a training run sum.
    ///
    /// # Errors
    /// Fails if a hyper-parameter is out of range.
    pub fn vector_len(config: &S::Config) -> Result<usize, StudyError> {
        config.check()?;
        S::vector_len(config)
    }

    /// Creates a training run before its first iteration. `aggregator` must sum vectors of [`Self::vector_len`] floats.
    ///
    /// # Errors
    /// Fails if a hyper-parameter is out of range, if the task does not fit the hyper-parameters, or if the length of
    /// the aggregator's vectors is not [`Self::vector_len`].
    pub fn new(
        config: S::Config,
        task: S::Task,
        world: World,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, StudyError> {
        let group = Group::new(world, config.common().shares, Self::vector_len(&config)?, aggregator)?;
        let study = S::new(&config, task)?;
        Ok(Self {
            config,
            study,
            group,
            best: None,
            history: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            has_agreed: false,
        })
    }

    /// Returns the hyper-parameters of the training run.
    pub fn config(&self) -> &S::Config {
        &self.config
    }

    /// Returns the study, which contains the current policy.
    pub fn study(&self) -> &S {
        &self.study
    }

    /// Returns the rank of this worker and the number of workers.
    pub fn world(&self) -> World {
        self.group.world()
    }

    /// Returns the aggregator that sums the vectors of the workers.
    pub fn aggregator(&self) -> &dyn GradientAggregator {
        self.group.aggregator()
    }

    /// Returns a flag. Setting it ends the current iteration early, and the results of that iteration are discarded.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns the records of all iterations so far.
    pub fn history(&self) -> &[S::Iteration] {
        &self.history
    }

    /// Returns the record of the iteration with the best test result so far, or `None` before the first test.
    pub fn best(&self) -> Option<&S::Iteration> {
        let best = self.best.as_ref()?;
        self.history.iter().find(|record| record.mark().iteration == best.iteration)
    }

    /// Returns the parameters of the policy with the best test result so far, or `None` before the first test.
    pub fn best_parameters(&self) -> Option<&[f32]> {
        self.best.as_ref().map(|best| best.parameters.as_slice())
    }

    /// Returns whether all iterations are complete.
    pub fn is_finished(&self) -> bool {
        self.history.len() as u64 > self.config.common().iterations
    }

    /// Runs the next iteration together with the other workers. The first iteration only tests the policy before any
    /// learning. Returns `None` if the iteration was stopped before its end.
    ///
    /// # Errors
    /// Fails if an aggregation fails, or if the workers were started with different settings.
    pub fn advance(&mut self) -> Result<Option<&S::Iteration>, StudyError> {
        self.advance_with(&mut |_| {})
    }

    /// Runs the next iteration as [`Self::advance`] does, and reports the progress within it to `on_stage`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::advance`].
    pub fn advance_with(&mut self, on_stage: OnStage<'_>) -> Result<Option<&S::Iteration>, StudyError> {
        if !self.has_agreed {
            self.group.agree([self.job_digest(), self.digest()])?;
            self.has_agreed = true;
        }
        let before = self.study.state().clone();
        let mut step = Step {
            config: &self.config,
            iteration: self.history.len() as u64,
            group: &mut self.group,
            best: self.best.as_ref().map(|best| best.parameters.as_slice()),
            stop: &self.stop,
            begin: Instant::now(),
            on_stage,
        };
        let Some(record) = self.study.iterate(&mut step)? else {
            *self.study.state() = before;
            return Ok(None);
        };
        if S::is_better(&self.config, &record, self.best()) {
            let parameters = self.study.parameters().to_vec();
            self.best = Some(Best { iteration: record.mark().iteration, parameters });
        }
        self.history.push(record);
        Ok(self.history.last())
    }

    /// Returns a digest of the part of the state that is identical on all workers.
    pub fn digest(&self) -> u64 {
        let mut hash = Sha256::new();
        hash.update(bytemuck::cast_slice::<f32, u8>(self.study.parameters()));
        self.study.hash_state(&mut hash);
        hash.update(self.history.len().to_le_bytes());
        let results = self.history.iter().filter_map(|record| record.mark().result);
        results.for_each(|result| hash.update(result.to_le_bytes()));
        first_bytes(hash)
    }

    /// Returns whether all workers have the same state. All workers must call this function at the same time.
    ///
    /// # Errors
    /// Fails if the aggregation fails.
    pub fn replicas_identical(&mut self) -> Result<bool, StudyError> {
        Ok(self.group.is_identical(self.digest())?)
    }

    /// Returns a digest of the settings that must be identical on all workers.
    fn job_digest(&self) -> u64 {
        let mut hash = Sha256::new().chain_update(self.config_json());
        self.study.hash_task(&mut hash);
        first_bytes(hash)
    }

    fn config_json(&self) -> String {
        serde_json::to_string(&self.config).expect("hyper-parameters can be written as JSON")
    }

    /// Saves the state after the most recent complete iteration. The saved state is identical on all workers.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn save(&self, directory: &Path) -> Result<(), StudyError> {
        let (config, environment) = (self.config_json(), self.study.environment());
        let run = RunKind { algorithm: S::ALGORITHM, env: &environment, config: &config };
        checkpoint::save_model(directory, &run, self.history.len() as u64, &|writer| self.write(writer))?;
        Ok(())
    }

    fn write(&self, writer: &mut Writer) {
        writer.text("history", serde_json::to_string(&self.history).expect("records can be written as JSON"));
        self.study.write(&self.config, writer);
        if let Some(best) = &self.best {
            S::write_best(&self.config, &best.parameters, writer);
            writer.text("best_iteration", best.iteration.to_string());
        }
    }

    /// Restores the state that [`Self::save`] wrote; see [`Saved`](crate::Saved).
    pub(crate) fn restore(&mut self, reader: &Reader<'_>) -> Result<(), StudyError> {
        self.study.read(&self.config, reader)?;
        self.history = history::<S>(reader)?;
        self.best = None;
        // The first iteration is always tested, so only a training run before its first iteration has no best policy.
        if !self.history.is_empty() {
            let iteration = reader.number("best_iteration")?;
            let mut marks = self.history.iter().map(Record::mark);
            if !marks.any(|mark| mark.iteration == iteration && mark.is_tested) {
                return Err(reader.refuse("its best iteration was not tested".to_owned()).into());
            }
            self.best = Some(Best { iteration, parameters: S::read_best(&self.config, reader)? });
        }
        Ok(())
    }
}
