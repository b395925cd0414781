//! Layers one after the other.

use super::convolution::{Convolution, Image};
use super::{Activation, Layer, Operation};

/// A feed-forward network. Holds shapes only: parameters and gradients are slices of the caller's flat vectors,
/// `[parameter_count]`, layer by layer, each its weight and then its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    layers: Vec<Layer>,
    input: Image,
}

/// Intermediate results of one network for batches up to a largest size.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Results of each layer, `[batch_max, outputs]`.
    results: Vec<Vec<f32>>,
    /// What each layer keeps for the backward pass.
    kept: Vec<Vec<f32>>,
    /// Loss gradient by the results of the current layer and by those of the one before, `[batch_max, widest]`.
    deltas: [Vec<f32>; 2],
    batch_max: usize,
    threads: usize,
}

impl Network {
    /// No layers yet, for inputs of so many floats.
    pub fn flat(inputs: usize) -> Self {
        Self::image(Image { height: 1, width: 1, channels: inputs })
    }

    /// No layers yet, for images.
    pub fn image(input: Image) -> Self {
        Self { layers: Vec::new(), input }
    }

    /// A multi-layer perceptron of `widths[0]` inputs and `widths[1..]` outputs; `hidden` after all but the last.
    ///
    /// # Panics
    /// With fewer than two widths.
    pub fn mlp(widths: &[usize], hidden: Activation) -> Self {
        assert!(widths.len() >= 2, "a network has an input and an output");
        let last = widths.len() - 1;
        widths[1..last]
            .iter()
            .fold(Self::flat(widths[0]), |network, width| network.dense(*width, hidden))
            .dense(widths[last], Activation::Identity)
    }

    /// With one more layer: `outputs` units, each connected with all that comes before.
    #[must_use]
    pub fn dense(self, outputs: usize, activation: Activation) -> Self {
        let inputs = self.outputs();
        self.with(Operation::Dense { inputs, outputs }, activation)
    }

    /// With one more layer: a convolution with a square window that moves by `stride`.
    ///
    /// # Panics
    /// If no image comes before it, or the window is larger than the image.
    #[must_use]
    pub fn convolution(self, channels: usize, kernel: usize, stride: usize, activation: Activation) -> Self {
        let input = match self.layers.last().map(|layer| layer.operation) {
            None => self.input,
            Some(Operation::Convolution(before)) => before.output(),
            Some(other) => panic!("a convolution after {other:?}"),
        };
        assert!(
            (1..=input.height.min(input.width)).contains(&kernel) && stride > 0,
            "a window of {kernel} by {stride} on {input:?}"
        );
        self.with(Operation::Convolution(Convolution { input, channels, kernel, stride }), activation)
    }

    /// With one more layer: layer normalisation.
    #[must_use]
    pub fn layer_norm(self, activation: Activation) -> Self {
        let len = self.outputs();
        self.with(Operation::LayerNorm { len }, activation)
    }

    fn with(mut self, operation: Operation, activation: Activation) -> Self {
        let start = self.parameter_count();
        let mut layer = Layer { operation, activation, weight: 0..0, bias: 0..0 };
        let [rows, columns] = layer.weight_shape();
        let biases = if matches!(operation, Operation::LayerNorm { .. }) { columns } else { rows };
        layer.weight = start..start + rows * columns;
        layer.bias = layer.weight.end..layer.weight.end + biases;
        self.layers.push(layer);
        self
    }

    /// The layers, from input to output.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Floats in the parameter and gradient slices.
    pub fn parameter_count(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.bias.end)
    }

    /// Floats of one input.
    pub fn inputs(&self) -> usize {
        self.input.len()
    }

    /// Floats of one output.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(self.input.len(), Layer::outputs)
    }

    /// Room for batches of up to `batch_max`, one thread.
    pub fn workspace(&self, batch_max: usize) -> Workspace {
        let widest = self.layers.iter().map(Layer::outputs).max().unwrap_or(0);
        let room = |len: fn(&Layer, usize) -> usize| -> Vec<_> {
            self.layers.iter().map(|layer| vec![0.0; len(layer, batch_max)]).collect()
        };
        Workspace {
            results: room(|layer, batch| layer.outputs() * batch),
            kept: room(Layer::kept_len),
            deltas: [vec![0.0; widest * batch_max], vec![0.0; widest * batch_max]],
            batch_max,
            threads: 1,
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
            let x = before.last().map_or(input, |results| &results[..batch * layer.inputs()]);
            let y = &mut after[0][..batch * layer.outputs()];
            layer.forward(parameters, x, y, &mut work.kept[i][..layer.kept_len(batch)], work.threads);
        }
        work.results.last().map_or(&[], |results| &results[..batch * self.outputs()])
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the loss gradient by the parameters. Call
    /// [`Self::forward`] with the same parameters and input before, and fill [`Workspace::output_delta`].
    ///
    /// # Panics
    /// If a length does not fit the network, or the batch is larger than the workspace's.
    pub fn backward(&self, parameters: &[f32], input: &[f32], work: &mut Workspace, gradient: &mut [f32]) {
        self.propagate(parameters, input, work, Some(gradient), None);
    }

    /// As [`Self::backward`], and overwrites `by_input` (`[batch, inputs]`) with the loss gradient by the inputs.
    /// Without `gradient` only that.
    ///
    /// # Panics
    /// If a length does not fit the network, or the batch is larger than the workspace's.
    pub fn backward_to_input(
        &self,
        parameters: &[f32],
        input: &[f32],
        work: &mut Workspace,
        gradient: Option<&mut [f32]>,
        by_input: &mut [f32],
    ) {
        assert_eq!(by_input.len(), input.len(), "gradient by the input");
        self.propagate(parameters, input, work, gradient, Some(by_input));
    }

    fn propagate(
        &self,
        parameters: &[f32],
        input: &[f32],
        work: &mut Workspace,
        mut gradient: Option<&mut [f32]>,
        mut by_input: Option<&mut [f32]>,
    ) {
        if let Some(gradient) = &gradient {
            assert_eq!(gradient.len(), self.parameter_count(), "gradient");
        }
        let batch = self.batch_of(input, work);
        let Workspace { results, kept, deltas, threads, .. } = work;
        for (i, layer) in self.layers.iter().enumerate().rev() {
            let [current, previous] = deltas;
            let delta = &mut current[..batch * layer.outputs()];
            layer.activation.backward(&results[i][..batch * layer.outputs()], delta);
            let x = if i == 0 { input } else { &results[i - 1][..batch * layer.inputs()] };
            let kept = &mut kept[i][..layer.kept_len(batch)];
            if let Some(gradient) = gradient.as_deref_mut() {
                layer.parameter_gradient(x, delta, kept, gradient, *threads);
            }
            if i > 0 {
                let by_input = &mut previous[..batch * layer.inputs()];
                layer.input_gradient(parameters, delta, kept, by_input, *threads);
            } else if let Some(by_input) = by_input.as_deref_mut() {
                layer.input_gradient(parameters, delta, kept, by_input, *threads);
            }
            deltas.swap(0, 1);
        }
    }

    fn batch_of(&self, input: &[f32], work: &Workspace) -> usize {
        let batch = input.len() / self.inputs();
        assert_eq!(batch * self.inputs(), input.len(), "input of whole rows");
        assert!(batch <= work.batch_max, "a batch of {batch}, room for {}", work.batch_max);
        batch
    }
}

impl Workspace {
    /// Uses `threads` threads for each matrix product, at least one. One is best for a worker that shares its cores.
    #[cfg(feature = "threads")]
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Where the caller puts the loss gradient by the network's outputs, `[batch, outputs]`, before
    /// [`Network::backward`]; `len` = batch * outputs.
    pub fn output_delta(&mut self, len: usize) -> &mut [f32] {
        &mut self.deltas[0][..len]
    }

    /// Outputs of the last [`Network::forward`], and where their gradient goes; both the first `len` floats.
    pub fn output_and_delta(&mut self, len: usize) -> (&[f32], &mut [f32]) {
        let output = self.results.last().expect("a network has layers");
        (&output[..len], &mut self.deltas[0][..len])
    }
}
