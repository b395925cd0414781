//! The types of layers: dense, convolution and layer normalisation, each followed by an activation.

use std::ops::Range;

use super::convolution::Convolution;
use super::layer_norm;
use super::{Activation, MatrixMut, MatrixRef, matmul};

/// Operation of a layer on the outputs of the preceding layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `y = x W^T + b`, where W is `[outputs, inputs]`, row-major, as in PyTorch.
    Dense {
        /// Length of x.
        inputs: usize,
        /// Length of y.
        outputs: usize,
    },
    /// A two-dimensional convolution.
    Convolution(Convolution),
    /// `y = W * (x - mean) / sqrt(variance + 1e-5) + b`, with mean and variance over the row (Ba et al., 2016).
    LayerNorm {
        /// Number of elements of x, y, W and b.
        len: usize,
    },
}

/// A layer, with the ranges of its weight and bias in the network's flat vectors. Every layer has a weight and a bias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Operation of the layer.
    pub operation: Operation,
    /// Activation applied to each output.
    pub activation: Activation,
    /// Range of the weight.
    pub weight: Range<usize>,
    /// Range of the bias.
    pub bias: Range<usize>,
}

impl Layer {
    /// Returns the number of floats of one input.
    pub fn inputs(&self) -> usize {
        match self.operation {
            Operation::Dense { inputs, .. } => inputs,
            Operation::Convolution(convolution) => convolution.input.len(),
            Operation::LayerNorm { len } => len,
        }
    }

    /// Returns the number of floats of one output.
    pub fn outputs(&self) -> usize {
        match self.operation {
            Operation::Dense { outputs, .. } => outputs,
            Operation::Convolution(convolution) => convolution.output().len(),
            Operation::LayerNorm { len } => len,
        }
    }

    /// Returns the shape `[rows, columns]` of the weight. It has one row for each output unit or channel, or a single
    /// row for layer normalisation.
    pub fn weight_shape(&self) -> [usize; 2] {
        match self.operation {
            Operation::Dense { inputs, outputs } => [outputs, inputs],
            Operation::Convolution(convolution) => [convolution.channels, convolution.patch_len()],
            Operation::LayerNorm { len } => [1, len],
        }
    }

    /// Returns the number of floats, other than inputs and outputs, that the layer keeps from the forward to the
    /// backward pass of a batch.
    pub(super) fn kept_len(&self, batch: usize) -> usize {
        match self.operation {
            Operation::Dense { .. } => 0,
            Operation::Convolution(convolution) => convolution.patches_len(batch),
            Operation::LayerNorm { len } => batch * (len + 1),
        }
    }

    /// Computes the outputs `y` (`[batch, outputs]`) for `x` (`[batch, inputs]`); `kept` has [`Self::kept_len`]
    /// floats.
    pub(super) fn forward(
        &self,
        parameters: &[f32],
        x: &[f32],
        y: &mut [f32],
        kept: &mut [f32],
        threads: usize,
    ) {
        let (weight, bias) = (&parameters[self.weight.clone()], &parameters[self.bias.clone()]);
        match self.operation {
            Operation::Dense { inputs, outputs } => {
                affine([outputs, inputs], weight, bias, x, y, threads);
            }
            Operation::Convolution(convolution) => {
                convolution.gather(x, kept);
                affine(self.weight_shape(), weight, bias, kept, y, threads);
            }
            Operation::LayerNorm { len } => layer_norm::forward(len, weight, bias, x, y, kept),
        }
        self.activation.forward(y);
    }

    /// Overwrites the layer's part of `gradient`. `delta` (`[batch, outputs]`) is the gradient of the loss with respect
    /// to the outputs before the activation; `x` and `kept` must be those of the forward pass.
    pub(super) fn parameter_gradient(
        &self,
        x: &[f32],
        delta: &[f32],
        kept: &[f32],
        gradient: &mut [f32],
        threads: usize,
    ) {
        let (by_weight, by_bias) = parts(gradient, &self.weight, &self.bias);
        match self.operation {
            Operation::Dense { .. } => {
                affine_gradient(self.weight_shape(), x, delta, by_weight, by_bias, threads);
            }
            Operation::Convolution(_) => {
                affine_gradient(self.weight_shape(), kept, delta, by_weight, by_bias, threads);
            }
            Operation::LayerNorm { len } => {
                layer_norm::parameter_gradient(len, delta, kept, by_weight, by_bias);
            }
        }
    }

    /// Overwrites `by_input` (`[batch, inputs]`) with the gradient of the loss with respect to the inputs. Also
    /// overwrites `kept`, which must hold the values that the forward pass kept.
    pub(super) fn input_gradient(
        &self,
        parameters: &[f32],
        delta: &[f32],
        kept: &mut [f32],
        by_input: &mut [f32],
        threads: usize,
    ) {
        let weight = &parameters[self.weight.clone()];
        match self.operation {
            Operation::Dense { .. } => {
                affine_input_gradient(self.weight_shape(), weight, delta, by_input, threads);
            }
            Operation::Convolution(convolution) => {
                affine_input_gradient(self.weight_shape(), weight, delta, kept, threads);
                convolution.scatter(kept, by_input);
            }
            Operation::LayerNorm { len } => layer_norm::input_gradient(len, weight, delta, kept, by_input),
        }
    }
}

/// Returns the weight and the bias of a layer, which are adjacent in the flat vector.
fn parts<'a>(
    vector: &'a mut [f32],
    weight: &Range<usize>,
    bias: &Range<usize>,
) -> (&'a mut [f32], &'a mut [f32]) {
    vector[weight.start..bias.end].split_at_mut(weight.len())
}

/// Computes `y = x W^T + b` for all rows of `x`.
fn affine(
    [outputs, inputs]: [usize; 2],
    weight: &[f32],
    bias: &[f32],
    x: &[f32],
    y: &mut [f32],
    threads: usize,
) {
    let rows = y.len() / outputs;
    y.chunks_exact_mut(outputs).for_each(|row| row.copy_from_slice(bias));
    let x = MatrixRef::row_major(x, rows, inputs);
    let weight = MatrixRef::row_major(weight, outputs, inputs);
    matmul(MatrixMut::row_major(y, rows, outputs), true, x, weight.transposed(), threads);
}

fn affine_gradient(
    [outputs, inputs]: [usize; 2],
    x: &[f32],
    delta: &[f32],
    by_weight: &mut [f32],
    by_bias: &mut [f32],
    threads: usize,
) {
    let rows = delta.len() / outputs;
    by_bias.fill(0.0);
    for row in delta.chunks_exact(outputs) {
        by_bias.iter_mut().zip(row).for_each(|(sum, d)| *sum += d);
    }
    let delta = MatrixRef::row_major(delta, rows, outputs);
    let x = MatrixRef::row_major(x, rows, inputs);
    matmul(MatrixMut::row_major(by_weight, outputs, inputs), false, delta.transposed(), x, threads);
}

fn affine_input_gradient(
    [outputs, inputs]: [usize; 2],
    weight: &[f32],
    delta: &[f32],
    by_input: &mut [f32],
    threads: usize,
) {
    let rows = delta.len() / outputs;
    let weight = MatrixRef::row_major(weight, outputs, inputs);
    let delta = MatrixRef::row_major(delta, rows, outputs);
    matmul(MatrixMut::row_major(by_input, rows, inputs), false, delta, weight, threads);
}
