//! Parameters with their optimiser, and sums over all workers.
//!
//! Workers sum integers, so the result is identical, bit for bit, for any number of workers.

use crate::StudyError;
use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::algorithms::exact::{add_fixed, from_fixed};
use iswitch_learn::group::Group;
use iswitch_learn::nn::Adam;

/// Adam epsilon (PyTorch's default).
pub const ADAM_EPSILON: f32 = 1e-8;

/// Parameters of a network, with the state of its Adam optimiser.
#[derive(Clone, Debug)]
pub struct Weights {
    /// Parameters of the network.
    pub parameters: Vec<f32>,
    adam: Adam,
}

impl Weights {
    /// Creates weights with these initial parameters and Adam in its initial state.
    pub fn new(parameters: Vec<f32>) -> Self {
        Self { adam: Adam::new(parameters.len(), ADAM_EPSILON), parameters }
    }

    /// Returns a zero gradient in the fixed-point representation that the workers sum.
    pub fn no_gradient(&self) -> Vec<i128> {
        vec![0; self.parameters.len()]
    }

    /// Sums `numbers`, this worker's part of the gradient in fixed-point representation, over all workers, and applies
    /// an optimiser step for the sum.
    ///
    /// # Errors
    /// Fails if the aggregation fails.
    pub fn step(
        &mut self,
        numbers: &mut [i128],
        group: &mut Group,
        learning_rate: f32,
    ) -> Result<(), StudyError> {
        let gradient = group.sum_exactly(numbers)?;
        self.adam.step(&mut self.parameters, &gradient, learning_rate);
        Ok(())
    }

    /// Writes the parameters and the state of the Adam optimiser.
    pub fn write(&self, tensors: Vec<NamedTensor>, writer: &mut Writer) {
        writer.parameters("", tensors, &self.parameters);
        writer.adam("adam", &self.adam);
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// Fails if the file is damaged.
    pub fn read(&mut self, tensors: Vec<NamedTensor>, reader: &Reader<'_>) -> Result<(), StudyError> {
        self.parameters = reader.parameters("", tensors)?;
        reader.adam("adam", self.parameters.len(), &mut self.adam)?;
        Ok(())
    }
}

/// Totals of several values over the episodes of all workers.
#[derive(Clone, Copy, Debug)]
pub struct Totals<const N: usize>([i128; N]);

impl<const N: usize> Default for Totals<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Totals<N> {
    /// Adds the values of an episode.
    pub fn add(&mut self, numbers: [f64; N]) {
        add_fixed(&mut self.0, numbers);
    }

    /// Returns the totals over all workers.
    ///
    /// # Errors
    /// Fails if the aggregation fails.
    pub fn sum(mut self, group: &mut Group) -> Result<[f64; N], StudyError> {
        group.sum(&mut self.0)?;
        Ok(self.0.map(from_fixed))
    }
}
