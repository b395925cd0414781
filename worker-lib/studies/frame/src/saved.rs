//! Checkpoints of training runs.

use std::fmt::Display;
use std::path::Path;

use crate::study::{Hyperparameters, Study};
use crate::{StudyError, Training};
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::checkpoint::{ModelFile, Reader, check_algorithm};

/// Checkpoint of a training run.
#[derive(Debug)]
pub struct Saved<S: Study> {
    file: ModelFile,
    config: S::Config,
}

impl<S: Study> Saved<S> {
    /// Reads the checkpoint of a run directory.
    ///
    /// # Errors
    /// Fails if there is no checkpoint, or if the file is damaged or belongs to another study.
    pub fn read(directory: &Path) -> Result<Self, StudyError> {
        let file = ModelFile::read(directory)?;
        let config = {
            let reader = file.reader()?;
            check_algorithm(&reader, S::ALGORITHM)?;
            let refuse = |error: &dyn Display| reader.refuse(format!("its hyper-parameters: {error}"));
            let config: S::Config =
                serde_json::from_str(reader.text("config")?).map_err(|error| refuse(&error))?;
            config.check().map_err(|error| refuse(&error))?;
            S::check_file(&config, &reader)?;
            config
        };
        Ok(Self { file, config })
    }

    /// Returns the hyper-parameters of the training run.
    pub fn config(&self) -> &S::Config {
        &self.config
    }

    /// Returns a reader of the checkpoint's content.
    ///
    /// # Errors
    /// Fails if the file is damaged.
    pub fn reader(&self) -> Result<Reader<'_>, StudyError> {
        Ok(self.file.reader()?)
    }

    /// Returns the records of all iterations.
    ///
    /// # Errors
    /// Fails if the file is damaged.
    pub fn history(&self) -> Result<Vec<S::Iteration>, StudyError> {
        Ok(history::<S>(&self.file.reader()?)?)
    }

    /// Returns the parameters of the policy with the best test result.
    ///
    /// # Errors
    /// Fails if no policy has been tested, or if the file is damaged.
    pub fn best_parameters(&self) -> Result<Vec<f32>, StudyError> {
        S::read_best(&self.config, &self.file.reader()?)
    }

    /// Restores the saved state into a fresh training run with the same hyper-parameters.
    ///
    /// # Errors
    /// Fails if the file is damaged, or if the task of `training` is not that of the saved run.
    pub fn restore(&self, training: &mut Training<S>) -> Result<(), StudyError> {
        training.restore(&self.file.reader()?)
    }
}

/// Reads the records of all iterations from a checkpoint.
pub(crate) fn history<S: Study>(reader: &Reader<'_>) -> Result<Vec<S::Iteration>, TrainError> {
    let broken = |error| reader.refuse(format!("its history: {error}"));
    serde_json::from_str(reader.text("history")?).map_err(broken)
}
