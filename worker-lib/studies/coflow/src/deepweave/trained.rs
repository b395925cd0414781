//! Files of trainings and of the policies that came out.

use std::path::Path;

use super::agent::DeepWeave;
use super::config::DeepWeaveConfig;
use super::training::{Iteration, Training};
use super::{ALGORITHM, CoflowError};
use crate::workload::Job;
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::checkpoint::{ModelFile, Reader, check_algorithm};

/// A training as it was saved.
#[derive(Debug)]
pub struct Saved {
    file: ModelFile,
    config: DeepWeaveConfig,
}

impl Saved {
    /// The one in a run directory.
    ///
    /// # Errors
    /// If there is none, or the file is damaged or of something else.
    pub fn read(directory: &Path) -> Result<Self, CoflowError> {
        let file = ModelFile::read(directory)?;
        let config = {
            let reader = file.reader()?;
            check_algorithm(&reader, ALGORITHM)?;
            let refuse =
                |error: &dyn std::fmt::Display| reader.refuse(format!("its hyper-parameters: {error}"));
            let config: DeepWeaveConfig =
                serde_json::from_str(reader.text("config")?).map_err(|error| refuse(&error))?;
            config.check().map_err(|error| refuse(&error))?;
            reader.check_parameters(config.net().parameter_count())?;
            config
        };
        Ok(Self { file, config })
    }

    /// Its hyper-parameters.
    pub fn config(&self) -> &DeepWeaveConfig {
        &self.config
    }

    /// All its iterations.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn history(&self) -> Result<Vec<Iteration>, CoflowError> {
        Ok(history(&self.file.reader()?)?)
    }

    /// Brings a fresh training with the same hyper-parameters to the saved state.
    ///
    /// # Errors
    /// If the file is damaged, or the training is of other coflows or shapes.
    pub fn restore(&self, training: &mut Training) -> Result<(), CoflowError> {
        training.restore(&self.file.reader()?)
    }

    /// The policy with the best test, for these jobs.
    ///
    /// # Errors
    /// If nothing was tested yet, or a job has more coflows than the network has room for.
    pub fn policy(&self, jobs: &[Job]) -> Result<DeepWeave, CoflowError> {
        let net = self.config.net();
        net.check(jobs)?;
        let best = self.file.reader()?.parameters("best.", net.tensors())?;
        Ok(DeepWeave::new(net, best.into()))
    }
}

/// Iterations in a file.
pub(super) fn history(reader: &Reader<'_>) -> Result<Vec<Iteration>, TrainError> {
    let broken = |error| reader.refuse(format!("its history: {error}"));
    serde_json::from_str(reader.text("history")?).map_err(broken)
}
