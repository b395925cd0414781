//! Files of trainings and of the policies that came out.

use std::path::Path;

use super::config::{RoutingConfig, ValueKind};
use super::model::Model;
use super::network::Shape;
use super::policy::Greedy;
use super::rates::Rates;
use super::training::{Iteration, Training};
use super::value::Value;
use super::{ALGORITHM, RoutingError};
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::checkpoint::{ModelFile, Reader, check_algorithm};

/// A training as it was saved.
#[derive(Debug)]
pub struct Saved {
    file: ModelFile,
    config: RoutingConfig,
    rates: Rates,
}

impl Saved {
    /// The one in a run directory.
    ///
    /// # Errors
    /// If there is none, or the file is damaged or of something else.
    pub fn read(directory: &Path) -> Result<Self, RoutingError> {
        let file = ModelFile::read(directory)?;
        let (config, rates) = {
            let reader = file.reader()?;
            check_algorithm(&reader, ALGORITHM)?;
            let refuse =
                |error: &dyn std::fmt::Display| reader.refuse(format!("its hyper-parameters: {error}"));
            let config: RoutingConfig =
                serde_json::from_str(reader.text("config")?).map_err(|error| refuse(&error))?;
            config.check().map_err(|error| refuse(&error))?;
            let shape = config.shape()?;
            if config.value == ValueKind::Cnn {
                reader.check_parameters(config.network.parameters(shape).map_err(|error| refuse(&error))?)?;
            }
            let rates = Rates::new(shape, reader.doubles("rates", shape.links())?);
            (config, rates.map_err(|error| reader.refuse(error.to_string()))?)
        };
        Ok(Self { file, config, rates })
    }

    /// Its hyper-parameters.
    pub fn config(&self) -> &RoutingConfig {
        &self.config
    }

    /// The arrival rates of the network that it was trained on.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// All its iterations.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn history(&self) -> Result<Vec<Iteration>, RoutingError> {
        Ok(history(&self.file.reader()?)?)
    }

    /// Brings a fresh training with the same hyper-parameters to the saved state.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn restore(&self, training: &mut Training) -> Result<(), RoutingError> {
        training.restore(&self.file.reader()?)
    }

    /// The policy with the best test, for a network of this size. Ties between links are the draws of `seed`; matrix
    /// products take up to `threads`.
    ///
    /// # Errors
    /// If it is of another size, or nothing was tested yet.
    pub fn policy(
        &self,
        shape: Shape,
        seed: u64,
        threads: usize,
    ) -> Result<Greedy<Box<dyn Value>>, RoutingError> {
        let own = self.config.shape()?;
        let reader = self.file.reader()?;
        if shape != own {
            let name = |shape: Shape| format!("{} stages of {} switches", shape.stages(), shape.switches());
            return Err(reader.refuse(format!("it is of {}, not {}", name(own), name(shape))).into());
        }
        let model = Model::new(&self.config, threads)?;
        let best = reader.floats("best", model.parameters().len())?;
        Ok(model.into_policy(&self.config, shape, &best, seed))
    }
}

/// Iterations in a file.
pub(super) fn history(reader: &Reader<'_>) -> Result<Vec<Iteration>, TrainError> {
    let broken = |error| reader.refuse(format!("its history: {error}"));
    serde_json::from_str(reader.text("history")?).map_err(broken)
}
