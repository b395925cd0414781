//! Feed-forward networks.

use super::convolution::{Convolution, Image};
use super::{Activation, Layer, Operation};

/// A feed-forward network. The type holds only the shapes. Parameters and gradients are slices of the caller's flat
/// vectors, `[parameter_count]`, which contain the weight and then the bias of each layer in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    layers: Vec<Layer>,
    input: Image,
}

/// Intermediate results of one network, for batches of up to a maximum size.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Outputs of each layer, `[batch_max, outputs]`.
    results: Vec<Vec<f32>>,
    /// Values that each layer keeps for the backward pass.
    kept: Vec<Vec<f32>>,
    /// Gradients of the loss with respect to the outputs of the current layer and of the preceding one, `[batch_max,
    /// widest]`.
    deltas: [Vec<f32>; 2],
    batch_max: usize,
    threads: usize,
}

impl Network {
    /// Creates a network without layers, for inputs of `inputs` floats.
    pub fn flat(inputs: usize) -> Self {
        Self::image(Image { height: 1, width: 1, channels: inputs })
    }

    /// Creates a network without layers, for images.
    pub fn image(input: Image) -> Self {
        Self { layers: Vec::new(), input }
    }

    /// Creates a multi-layer perceptron. `widths[0]` is the number of inputs, and each element of `widths[1..]` is the
    /// number of outputs of a layer; `hidden` is the activation of all layers except the last.
    ///
    /// # Panics
    /// Panics if there are fewer than two widths.
    pub fn mlp(widths: &[usize], hidden: Activation) -> Self {
        assert!(widths.len() >= 2, "expected at least an input and an output width");
        let last = widths.len() - 1;
        widths[1..last]
            .iter()
            .fold(Self::flat(widths[0]), |network, width| network.dense(*width, hidden))
            .dense(widths[last], Activation::Identity)
    }

    /// Adds a dense layer of `outputs` units.
    #[must_use]
    pub fn dense(self, outputs: usize, activation: Activation) -> Self {
        let inputs = self.outputs();
        self.with(Operation::Dense { inputs, outputs }, activation)
    }

    /// Adds a convolution with a square window that moves by `stride`.
    ///
    /// # Panics
    /// Panics if the preceding layer does not produce an image, or if the window is larger than the image.
    #[must_use]
    pub fn convolution(self, channels: usize, kernel: usize, stride: usize, activation: Activation) -> Self {
        let input = match self.layers.last().map(|layer| layer.operation) {
            None => self.input,
            Some(Operation::Convolution(before)) => before.output(),
            Some(other) => panic!("expected an image before a convolution, found {other:?}"),
        };
        assert!(
            (1..=input.height.min(input.width)).contains(&kernel) && stride > 0,
            "expected a window that fits the image {input:?} and a stride above 0, found a window of {kernel} and a \
             stride of {stride}"
        );
        self.with(Operation::Convolution(Convolution { input, channels, kernel, stride }), activation)
    }

    /// Adds a layer normalisation.
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

    /// Returns the layers, from input to output.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the number of floats in the parameter and gradient slices.
    pub fn parameter_count(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.bias.end)
    }

    /// Returns the number of floats of one input.
    pub fn inputs(&self) -> usize {
        self.input.len()
    }

    /// Returns the number of floats of one output.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(self.input.len(), Layer::outputs)
    }

    /// Allocates a workspace for batches of up to `batch_max` samples, with one thread.
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

    /// Returns the outputs (`[batch, outputs]`) for `input` (`[batch, inputs]`).
    ///
    /// # Panics
    /// Panics if a length does not match the network, or if the batch is larger than the workspace's.
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

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of the loss with respect to the parameters. The
    /// caller must first call [`Self::forward`] with the same parameters and input, and fill
    /// [`Workspace::output_delta`].
    ///
    /// # Panics
    /// Panics if a length does not match the network, or if the batch is larger than the workspace's.
    pub fn backward(&self, parameters: &[f32], input: &[f32], work: &mut Workspace, gradient: &mut [f32]) {
        self.propagate(parameters, input, work, Some(gradient), None);
    }

    /// Does the same as [`Self::backward`], and also overwrites `by_input` (`[batch, inputs]`) with the gradient of the
    /// loss with respect to the inputs. If `gradient` is `None`, computes only `by_input`.
    ///
    /// # Panics
    /// Panics if a length does not match the network, or if the batch is larger than the workspace's.
    pub fn backward_to_input(
        &self,
        parameters: &[f32],
        input: &[f32],
        work: &mut Workspace,
        gradient: Option<&mut [f32]>,
        by_input: &mut [f32],
    ) {
        assert_eq!(by_input.len(), input.len(), "length of the gradient with respect to the input");
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
        assert_eq!(batch * self.inputs(), input.len(), "the input must consist of whole rows");
        assert!(batch <= work.batch_max, "the batch has {batch} rows, expected at most {}", work.batch_max);
        batch
    }
}

impl Workspace {
    /// Sets the number of threads per matrix product to `threads`, but at least one. A worker that shares its cores
    /// with other workers should use one thread.
    #[cfg(feature = "threads")]
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Returns the buffer for the gradient of the loss with respect to the network's outputs, `[batch, outputs]`. The
    /// caller must fill this buffer before it calls [`Network::backward`]. `len` is `batch * outputs`.
    pub fn output_delta(&mut self, len: usize) -> &mut [f32] {
        &mut self.deltas[0][..len]
    }

    /// Returns the outputs of the preceding [`Network::forward`] call, and the buffer for the gradient of the loss with
    /// respect to these outputs. Both have `len` floats.
    pub fn output_and_delta(&mut self, len: usize) -> (&[f32], &mut [f32]) {
        let output = self.results.last().expect("expected at least one layer");
        (&output[..len], &mut self.deltas[0][..len])
    }
}
