//! Model that a learner trains: a value function together with the state of its fitting method.

use std::ops::Range;

use super::config::{RoutingConfig, ValueKind};
use super::network::Shape;
use super::policy::Greedy;
use super::value::{ConvolutionalValue, LinearFit, LinearValue, Value};
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::nn::Adam;
use iswitch_study::StudyError;
use iswitch_study::weights::ADAM_EPSILON;

/// Value function, together with the state of its fitting method.
#[derive(Clone, Debug)]
pub(super) enum Model {
    /// Linear value function, with the least-squares sums over the data of the most recent iteration or, with
    /// `pool_data`, of all iterations so far.
    Linear {
        value: LinearValue,
        fit: LinearFit,
    },
    Cnn(Box<CnnModel>),
}

/// Convolutional network with its optimiser. Its output is the offset of the value from `mean`, in units of
/// `deviation`.
#[derive(Clone, Debug)]
pub(super) struct CnnModel {
    pub(super) value: ConvolutionalValue,
    pub(super) adam: Adam,
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

impl Model {
    /// Creates the model at the start of a run. Matrix products use up to `threads` threads.
    pub(super) fn new(config: &RoutingConfig, threads: usize) -> Result<Self, StudyError> {
        let shape = config.shape()?;
        Ok(match config.value {
            ValueKind::Linear => Self::Linear { value: LinearValue::flat(shape), fit: LinearFit::new(shape) },
            ValueKind::Cnn => {
                let mut rng = stream(config.seed, Purpose::Weights, 0);
                let value = ConvolutionalValue::new(shape, &config.network, threads, &mut rng)?;
                let adam = Adam::new(value.parameters().len(), ADAM_EPSILON);
                Self::Cnn(Box::new(CnnModel { value, adam, mean: 0.0, deviation: 1.0 }))
            }
        })
    }

    /// Returns the length of [`Self::parameters`].
    pub(super) fn parameter_count(config: &RoutingConfig) -> Result<usize, StudyError> {
        let shape = config.shape()?;
        match config.value {
            ValueKind::Linear => Ok(LinearValue::flat(shape).marginals().len()),
            ValueKind::Cnn => config.network.parameters(shape),
        }
    }

    /// Returns a copy of the value function for a policy.
    pub(super) fn value(&self) -> Box<dyn Value> {
        match self {
            Self::Linear { value, .. } => Box::new(value.clone()),
            Self::Cnn(model) => Box::new(model.value.clone()),
        }
    }

    /// Returns the parameters of the value function.
    pub(super) fn parameters(&self) -> &[f32] {
        match self {
            Self::Linear { value, .. } => value.marginals(),
            Self::Cnn(model) => model.value.parameters(),
        }
    }

    /// Replaces the parameters of the value function with those that [`Self::parameters`] returned.
    pub(super) fn set_parameters(&mut self, shape: Shape, parameters: &[f32]) {
        match self {
            Self::Linear { value, .. } => {
                *value = LinearValue::from_marginals(shape, parameters.to_vec())
                    .expect("the number of parameters must fit the network");
            }
            Self::Cnn(model) => model.value.parameters_mut().copy_from_slice(parameters),
        }
    }

    /// Returns the policy that uses the value function with these parameters. `seed` is the seed of the random choices
    /// between links of equal value.
    pub(super) fn into_policy(
        mut self,
        config: &RoutingConfig,
        shape: Shape,
        parameters: &[f32],
        seed: u64,
    ) -> Greedy<Box<dyn Value>> {
        self.set_parameters(shape, parameters);
        Greedy::new(shape, self.value(), config.exits_first, vec![stream(seed, Purpose::Actions, 0)])
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        match self {
            Self::Linear { value, fit } => {
                writer.floats("value.marginals", vec![value.marginals().len()], value.marginals());
                writer.doubles("fit", &fit.sums().collect::<Vec<_>>());
            }
            Self::Cnn(model) => model.write(writer),
        }
    }

    pub(super) fn read(&mut self, shape: Shape, reader: &Reader<'_>) -> Result<(), StudyError> {
        match self {
            Self::Linear { fit, .. } => {
                let sums = reader.doubles("fit", fit.sums_len())?;
                fit.sums_mut().zip(sums).for_each(|(sum, saved)| *sum = saved);
                let marginals = reader.floats("value.marginals", self.parameters().len())?;
                self.set_parameters(shape, &marginals);
                Ok(())
            }
            Self::Cnn(model) => model.read(reader),
        }
    }
}

impl CnnModel {
    /// Returns the name, shape and range of each tensor, named as PyTorch would name them.
    fn tensors(&self) -> impl Iterator<Item = (String, Vec<usize>, Range<usize>)> {
        self.value.layers().iter().enumerate().flat_map(|(i, layer)| {
            let weight = (format!("value.{i}.weight"), layer.weight_shape().to_vec(), layer.weight.clone());
            [weight, (format!("value.{i}.bias"), vec![layer.bias.len()], layer.bias.clone())]
        })
    }

    fn write(&self, writer: &mut Writer) {
        for (name, shape, range) in self.tensors() {
            writer.floats(&name, shape, &self.value.parameters()[range]);
        }
        writer.adam("adam", &self.adam);
        writer.doubles("scale", &[self.mean, self.deviation]);
    }

    fn read(&mut self, reader: &Reader<'_>) -> Result<(), StudyError> {
        let tensors: Vec<_> = self.tensors().collect();
        for (name, _, range) in tensors {
            let saved = reader.floats(&name, range.len())?;
            self.value.parameters_mut()[range].copy_from_slice(&saved);
        }
        reader.adam("adam", self.value.parameters().len(), &mut self.adam)?;
        let scale = reader.doubles("scale", 2)?;
        (self.mean, self.deviation) = (scale[0], scale[1]);
        Ok(())
    }
}
