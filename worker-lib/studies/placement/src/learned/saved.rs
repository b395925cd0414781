//! Files of trainings and of the policies that came out.

use std::path::Path;

use super::config::PlacementConfig;
use super::training::{Iteration, Training};
use super::{ALGORITHM, Trained};
use crate::PlacementError;
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::checkpoint::{ModelFile, Reader, check_algorithm};

/// A training as it was saved.
#[derive(Debug)]
pub struct Saved {
    file: ModelFile,
    config: PlacementConfig,
}

impl Saved {
    /// The one in a run directory.
    ///
    /// # Errors
    /// If there is none, or the file is damaged or of something else.
    pub fn read(directory: &Path) -> Result<Self, PlacementError> {
        let file = ModelFile::read(directory)?;
        let config = {
            let reader = file.reader()?;
            check_algorithm(&reader, ALGORITHM)?;
            let refuse =
                |error: &dyn std::fmt::Display| reader.refuse(format!("its hyper-parameters: {error}"));
            let config: PlacementConfig =
                serde_json::from_str(reader.text("config")?).map_err(|error| refuse(&error))?;
            config.check().map_err(|error| refuse(&error))?;
            reader.check_parameters(config.parameter_count())?;
            config
        };
        Ok(Self { file, config })
    }

    /// Its hyper-parameters.
    pub fn config(&self) -> &PlacementConfig {
        &self.config
    }

    /// All its iterations.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn history(&self) -> Result<Vec<Iteration>, PlacementError> {
        Ok(history(&self.file.reader()?)?)
    }

    /// Brings a fresh training with the same hyper-parameters to the saved state.
    ///
    /// # Errors
    /// If the file is damaged, or the training is of other jobs, GPUs or rules.
    pub fn restore(&self, training: &mut Training) -> Result<(), PlacementError> {
        training.restore(&self.file.reader()?)
    }

    /// The policy with the best test.
    ///
    /// # Errors
    /// If nothing was tested yet, or the file is damaged.
    pub fn policy(&self) -> Result<Trained, PlacementError> {
        let reader = self.file.reader()?;
        let parameters = reader.parameters("best.", self.config.tensors())?;
        if parameters.iter().any(|it| !it.is_finite()) {
            return Err(reader.refuse("its parameters are no numbers".to_owned()).into());
        }
        Ok(Trained::new(self.config.clone(), parameters.into()))
    }
}

/// Iterations in a file.
pub(super) fn history(reader: &Reader<'_>) -> Result<Vec<Iteration>, TrainError> {
    let broken = |error| reader.refuse(format!("its history: {error}"));
    serde_json::from_str(reader.text("history")?).map_err(broken)
}
