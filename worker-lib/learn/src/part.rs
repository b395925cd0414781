//! A network whose parameters are a slice of a larger vector, and which accepts batches of any size.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use crate::algorithms::actor_critic::{NamedTensor, network_tensors};
use crate::nn::{Activation, Network, Workspace, orthogonal};

/// Maximum number of rows processed in one pass.
const CHUNK: usize = 256;

/// A multi-layer perceptron with hyperbolic tangent activations between its layers.
#[derive(Clone, Debug)]
pub struct Part {
    name: &'static str,
    network: Network,
    range: Range<usize>,
    work: Workspace,
    /// Gradient of one chunk.
    partial: Vec<f32>,
}

impl Part {
    /// Creates a network whose parameters begin at index `start` of the vector.
    pub fn new(name: &'static str, widths: &[usize], start: usize) -> Self {
        let network = Network::mlp(widths, Activation::Tanh);
        let count = network.parameter_count();
        let work = network.workspace(CHUNK);
        Self { name, range: start..start + count, network, work, partial: vec![0.0; count] }
    }

    /// Returns the index after the last parameter of this part, at which the next part's parameters may begin.
    pub fn end(&self) -> usize {
        self.range.end
    }

    /// Returns the number of inputs of the network.
    pub fn inputs(&self) -> usize {
        self.network.inputs()
    }

    /// Returns the number of outputs of the network.
    pub fn outputs(&self) -> usize {
        self.network.outputs()
    }

    /// Initialises the weights randomly. If `ends_at_zero` is true, leaves the last layer at zero, so that the network
    /// initially returns 0.
    pub fn initialise(&self, parameters: &mut [f32], ends_at_zero: bool, rng: &mut ChaCha8Rng) {
        let own = &mut parameters[self.range.clone()];
        let last = self.network.layers().len() - 1;
        for (at, layer) in self.network.layers().iter().enumerate() {
            if at < last || !ends_at_zero {
                let [rows, columns] = layer.weight_shape();
                orthogonal(&mut own[layer.weight.clone()], rows, columns, 1.0, rng);
            }
        }
    }

    /// Returns the names of the tensors, in PyTorch's style, and their ranges in the whole vector.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        network_tensors(self.name, &self.network, self.range.start)
    }

    /// Overwrites `output` (`[rows, outputs]`) with the network's output for `input` (`[rows, inputs]`). `parameters`
    /// is the whole vector, which contains the parameters of all parts.
    pub fn forward(&mut self, parameters: &[f32], input: &[f32], output: &mut Vec<f32>) {
        output.clear();
        let own = &parameters[self.range.clone()];
        for input in input.chunks(CHUNK * self.network.inputs()) {
            output.extend_from_slice(self.network.forward(own, input, &mut self.work));
        }
    }

    /// Backpropagates `deltas` (`[rows, outputs]`), the gradient of the loss with respect to the outputs. Adds the
    /// gradient with respect to the parameters to `gradient`, which covers the whole vector, and overwrites `by_input`
    /// (`[rows, inputs]`) with the gradient with respect to the inputs.
    pub fn backward(
        &mut self,
        parameters: &[f32],
        input: &[f32],
        deltas: &[f32],
        gradient: &mut [f32],
        by_input: &mut Vec<f32>,
    ) {
        by_input.clear();
        by_input.resize(input.len(), 0.0);
        let own = &parameters[self.range.clone()];
        let (inputs, outputs) = (self.network.inputs(), self.network.outputs());
        let chunks = input.chunks(CHUNK * inputs).zip(deltas.chunks(CHUNK * outputs));
        for ((input, deltas), by_input) in chunks.zip(by_input.chunks_mut(CHUNK * inputs)) {
            self.network.forward(own, input, &mut self.work);
            self.work.output_delta(deltas.len()).copy_from_slice(deltas);
            let partial = Some(self.partial.as_mut_slice());
            self.network.backward_to_input(own, input, &mut self.work, partial, by_input);
            let sums = gradient[self.range.clone()].iter_mut();
            sums.zip(&self.partial).for_each(|(sum, slope)| *sum += slope);
        }
    }
}

/// Returns the names of all parts' parameter tensors and their ranges in the whole vector.
pub fn tensors<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Vec<NamedTensor> {
    parts.into_iter().flat_map(Part::tensors).collect()
}
