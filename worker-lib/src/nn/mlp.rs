//! Dense layers one after the other.

use std::ops::Range;

use super::{Activation, MatrixMut, MatrixRef, matmul};

/// One dense layer: `y = activation(x W^T + b)`, with W `[outputs, inputs]` row-major as in PyTorch.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Length of x.
    pub inputs: usize,
    /// Length of y.
    pub outputs: usize,
    /// Applied to each output.
    pub activation: Activation,
    /// Where the weight lies in the network's parameters.
    pub weight: Range<usize>,
    /// Where the bias lies in the network's parameters.
    pub bias: Range<usize>,
}

/// A multi-layer perceptron. Holds shapes only: parameters and gradients are slices of the caller's flat
/// vectors, `[parameter_count]`, layer by layer, each its weight and then its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    layers: Vec<Dense>,
}

/// Intermediate results of one network for batches up to a largest size.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Results of each layer, `[batch_max, outputs]`.
    results: Vec<Vec<f32>>,
    /// Loss gradient by the results of the current layer and by those of the one before, `[batch_max, widest]`.
    deltas: [Vec<f32>; 2],
    batch_max: usize,
}

impl Mlp {
    /// A network with layers of `widths[0]` inputs and `widths[1..]` outputs; `hidden` after all but the last.
    ///
    /// # Panics
    /// With fewer than two widths.
    pub fn new(widths: &[usize], hidden: Activation) -> Self {
        assert!(widths.len() >= 2, "a network has an input and an output");
        let mut offset = 0;
        let mut take = |len: usize| {
            offset += len;
            offset - len..offset
        };
        let last = widths.len() - 2;
        let layer = |(i, pair): (usize, &[usize])| Dense {
            inputs: pair[0],
            outputs: pair[1],
            activation: if i == last { Activation::Identity } else { hidden },
            weight: take(pair[0] * pair[1]),
            bias: take(pair[1]),
        };
        Self { layers: widths.windows(2).enumerate().map(layer).collect() }
    }

    /// The layers, from input to output.
    pub fn layers(&self) -> &[Dense] {
        &self.layers
    }

    /// Floats in the parameter and gradient slices.
    pub fn parameter_count(&self) -> usize {
        self.last().bias.end
    }

    /// Floats of one input.
    pub fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    /// Floats of one output.
    pub fn outputs(&self) -> usize {
        self.last().outputs
    }

    /// Room for batches of up to `batch_max`.
    pub fn workspace(&self, batch_max: usize) -> Workspace {
        let widest = self.layers.iter().map(|layer| layer.outputs).max().unwrap_or(0);
        Workspace {
            results: self.layers.iter().map(|layer| vec![0.0; layer.outputs * batch_max]).collect(),
            deltas: [vec![0.0; widest * batch_max], vec![0.0; widest * batch_max]],
            batch_max,
        }
    }

    /// Outputs `[batch, outputs]` for `input` `[batch, inputs]`.
    ///
    /// # Panics
    /// If a length does not fit the network, or the batch is larger than the workspace's.
    pub fn forward<'w>(&self, parameters: &[f32], input: &[f32], work: &'w mut Workspace) -> &'w [f32] {
        let batch = self.batch_of(input, work);
        for (i, layer) in self.layers.iter().enumerate() {
            let (before, after) = work.results.split_at_mut(i);
            let x = before.last().map_or(input, |results| &results[..batch * layer.inputs]);
            layer.forward(parameters, x, &mut after[0][..batch * layer.outputs]);
        }
        &work.results[self.layers.len() - 1][..batch * self.outputs()]
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the loss gradient by the parameters. Call
    /// [`Self::forward`] with the same parameters and input before, and fill [`Workspace::output_delta`].
    ///
    /// # Panics
    /// If a length does not fit the network, or the batch is larger than the workspace's.
    pub fn backward(&self, parameters: &[f32], input: &[f32], work: &mut Workspace, gradient: &mut [f32]) {
        assert_eq!(gradient.len(), self.parameter_count(), "gradient");
        let batch = self.batch_of(input, work);
        for (i, layer) in self.layers.iter().enumerate().rev() {
            let [current, previous] = &mut work.deltas;
            let delta = &mut current[..batch * layer.outputs];
            layer.activation.backward(&work.results[i][..batch * layer.outputs], delta);
            let x = if i == 0 { input } else { &work.results[i - 1][..batch * layer.inputs] };
            layer.parameter_gradient(x, delta, gradient);
            if i > 0 {
                layer.input_gradient(parameters, delta, &mut previous[..batch * layer.inputs]);
            }
            work.deltas.swap(0, 1);
        }
    }

    fn last(&self) -> &Dense {
        self.layers.last().expect("a network has layers")
    }

    fn batch_of(&self, input: &[f32], work: &Workspace) -> usize {
        let batch = input.len() / self.inputs();
        assert_eq!(batch * self.inputs(), input.len(), "input of whole rows");
        assert!(batch <= work.batch_max, "a batch of {batch}, room for {}", work.batch_max);
        batch
    }
}

impl Workspace {
    /// Where the caller puts the loss gradient by the network's outputs, `[batch, outputs]`, before
    /// [`Mlp::backward`]; `len` = batch * outputs.
    pub fn output_delta(&mut self, len: usize) -> &mut [f32] {
        &mut self.deltas[0][..len]
    }

    /// Outputs of the last [`Mlp::forward`], and where their gradient goes; both the first `len` floats.
    pub fn output_and_delta(&mut self, len: usize) -> (&[f32], &mut [f32]) {
        let output = self.results.last().expect("a network has layers");
        (&output[..len], &mut self.deltas[0][..len])
    }
}

impl Dense {
    fn forward(&self, parameters: &[f32], x: &[f32], y: &mut [f32]) {
        let batch = y.len() / self.outputs;
        let weight = MatrixRef::row_major(&parameters[self.weight.clone()], self.outputs, self.inputs);
        y.chunks_exact_mut(self.outputs).for_each(|row| row.copy_from_slice(&parameters[self.bias.clone()]));
        let x = MatrixRef::row_major(x, batch, self.inputs);
        matmul(MatrixMut::row_major(y, batch, self.outputs), true, x, weight.transposed());
        self.activation.forward(y);
    }

    fn parameter_gradient(&self, x: &[f32], delta: &[f32], gradient: &mut [f32]) {
        let batch = delta.len() / self.outputs;
        let by_bias = &mut gradient[self.bias.clone()];
        by_bias.fill(0.0);
        for row in delta.chunks_exact(self.outputs) {
            by_bias.iter_mut().zip(row).for_each(|(sum, d)| *sum += d);
        }
        let delta = MatrixRef::row_major(delta, batch, self.outputs);
        let x = MatrixRef::row_major(x, batch, self.inputs);
        let by_weight = MatrixMut::row_major(&mut gradient[self.weight.clone()], self.outputs, self.inputs);
        matmul(by_weight, false, delta.transposed(), x);
    }

    fn input_gradient(&self, parameters: &[f32], delta: &[f32], by_input: &mut [f32]) {
        let batch = delta.len() / self.outputs;
        let weight = MatrixRef::row_major(&parameters[self.weight.clone()], self.outputs, self.inputs);
        let delta = MatrixRef::row_major(delta, batch, self.outputs);
        matmul(MatrixMut::row_major(by_input, batch, self.inputs), false, delta, weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between -0.5 and 0.5 that any language reproduces: an integer hash, then one division.
    fn noise(len: usize, salt: u32) -> Vec<f32> {
        (0..len as u32)
            .map(|i| {
                let hash =
                    (i.wrapping_mul(2_654_435_761) ^ salt.wrapping_mul(40_503)).wrapping_mul(2_246_822_519);
                (hash >> 8) as f32 / 16_777_216.0 - 0.5
            })
            .collect()
    }

    fn squared_error(output: &[f32], target: &[f32]) -> f64 {
        output.iter().zip(target).map(|(y, t)| f64::from(y - t).powi(2)).sum::<f64>() / output.len() as f64
    }

    /// Outputs, loss and gradient of the mean squared error.
    fn run(net: &Mlp, parameters: &[f32], input: &[f32], target: &[f32]) -> (Vec<f32>, f64, Vec<f32>) {
        let mut work = net.workspace(target.len() / net.outputs());
        let output = net.forward(parameters, input, &mut work).to_vec();
        let delta = work.output_delta(target.len());
        for (d, (y, t)) in delta.iter_mut().zip(output.iter().zip(target)) {
            *d = 2.0 * (y - t) / target.len() as f32;
        }
        let mut gradient = vec![0.0; net.parameter_count()];
        net.backward(parameters, input, &mut work, &mut gradient);
        let loss = squared_error(&output, target);
        (output, loss, gradient)
    }

    #[test]
    fn gradient_agrees_with_finite_differences() {
        for hidden in [Activation::Tanh, Activation::Relu, Activation::Identity] {
            let net = Mlp::new(&[5, 16, 9, 2], hidden);
            let parameters = noise(net.parameter_count(), 1);
            let (input, target) = (noise(7 * 5, 2), noise(7 * 2, 3));
            let (_, _, gradient) = run(&net, &parameters, &input, &target);
            let mut outliers = 0;
            for i in 0..net.parameter_count() {
                let loss_at = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[i] += step;
                    run(&net, &moved, &input, &target).1
                };
                let numeric = (loss_at(2e-3) - loss_at(-2e-3)) / 4e-3;
                let error = (f64::from(gradient[i]) - numeric).abs();
                outliers += usize::from(error > 1e-4 + 2e-3 * numeric.abs());
            }
            // The rectifier has a kink; where a difference straddles it, it is not the derivative.
            let allowed = if hidden == Activation::Relu { net.parameter_count() / 50 } else { 0 };
            assert!(outliers <= allowed, "{hidden:?}: {outliers} of {}", net.parameter_count());
        }
    }

    /// `fixtures/nn/mlp_tanh.csv`: `kind,index,value` computed once in float64 by an independent numpy program
    /// with the network, inputs and targets of this test (numpy.tanh, weights `[outputs, inputs]`).
    #[test]
    fn agrees_with_numbers_of_an_independent_float64_program() {
        let net = Mlp::new(&[11, 64, 64, 3], Activation::Tanh);
        let parameters = noise(net.parameter_count(), 1);
        let (input, target) = (noise(4 * 11, 2), noise(4 * 3, 3));
        let (output, loss, gradient) = run(&net, &parameters, &input, &target);
        let fixture = include_str!("../../../fixtures/nn/mlp_tanh.csv");
        let mut checked = 0;
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split(',');
            let (kind, index, value) = (fields.next(), fields.next(), fields.next());
            let index: usize = index.unwrap().parse().unwrap();
            let want: f64 = value.unwrap().parse().unwrap();
            let got = match kind.unwrap() {
                "output" => f64::from(output[index]),
                "loss" => loss,
                "gradient" => f64::from(gradient[index]),
                other => panic!("unknown kind {other}"),
            };
            assert!((got - want).abs() < 2e-6 * want.abs().max(0.1), "{line}: {got}");
            checked += 1;
        }
        assert!(checked > 200);
    }

    #[test]
    fn the_batch_does_not_change_a_row() {
        let net = Mlp::new(&[11, 64, 64, 3], Activation::Tanh);
        let parameters = noise(net.parameter_count(), 1);
        let input = noise(64 * 11, 2);
        let mut work = net.workspace(64);
        let all = net.forward(&parameters, &input, &mut work).to_vec();
        for row in 0..64 {
            let one = net.forward(&parameters, &input[row * 11..(row + 1) * 11], &mut work);
            for (a, b) in one.iter().zip(&all[row * 3..]) {
                assert!((a - b).abs() < 2e-6);
            }
        }
    }
}
