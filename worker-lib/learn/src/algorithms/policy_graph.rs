//! The deterministic policy of a trained agent as plain data, for programs that act without this library.

use super::normalise::{CLIP, Moments};
use crate::env::{ActionSpec, EnvSpec, PIXEL_MAX};
use crate::nn::{Activation, Image, Network, Operation, Recurrent};

/// The computation of an action from an observation: preprocessing, layers, and the meaning of the outputs.
///
/// Images are stored channels first, as in PyTorch and ONNX, whereas [`Network`] stores them channels last: the layers
/// take `[channels, height, width]`, and their weights are arranged accordingly.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyGraph {
    /// Preprocessing of observations.
    pub preprocessing: Preprocessing,
    /// Recurrent layer before the other layers, if the policy is recurrent.
    pub memory: Option<GraphMemory>,
    /// Layers, from input to output.
    pub layers: Vec<GraphLayer>,
    /// The layers of the value stream and those of the advantage stream, if the network is duelling. Both streams take
    /// the output of [`Self::layers`] as their input; the outputs are `value + advantages - mean(advantages)`.
    pub streams: Option<[Vec<GraphLayer>; 2]>,
    /// Meaning of the outputs.
    pub outputs: Outputs,
}

/// Preprocessing of an observation before the first layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Preprocessing {
    /// The layers take observations unchanged.
    None,
    /// Each value is divided by this number.
    Divide(f32),
    /// Each value is normalised to `clip((x - mean) / std, -limit, limit)`.
    Normalise {
        /// Mean of each element, `[dim]`.
        mean: Vec<f64>,
        /// Standard deviation of each element, `[dim]`.
        std: Vec<f64>,
        /// Bound on the absolute normalised values.
        limit: f64,
    },
}

impl Preprocessing {
    /// Returns the preprocessing that is equivalent to [`EnvSpec::scale_observation`].
    pub(super) fn of(env: &EnvSpec) -> Self {
        if env.image.is_some() { Self::Divide(PIXEL_MAX) } else { Self::None }
    }

    /// Returns the preprocessing that is equivalent to a [`Normaliser`](super::normalise::Normaliser).
    pub(super) fn normalise(moments: &Moments) -> Self {
        let std = moments.scale().iter().map(|scale| 1.0 / scale).collect();
        Self::Normalise { mean: moments.mean.clone(), std, limit: CLIP }
    }
}

/// Meaning of the outputs of the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// Values of the discrete actions; the policy takes the first action with the largest value.
    QValues,
    /// Unnormalised log-probabilities of the discrete actions; the policy takes the first of the most probable actions.
    Logits,
    /// The action itself. The environment clips it to [-1, 1].
    Action,
}

impl Outputs {
    /// Returns the meaning of the outputs of a stochastic policy: logits for discrete actions, and the means of a
    /// distribution for continuous ones.
    pub(super) fn of_policy(action: ActionSpec) -> Self {
        match action {
            ActionSpec::Discrete { .. } => Self::Logits,
            ActionSpec::Continuous { .. } => Self::Action,
        }
    }
}

/// A layer with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLayer {
    /// Operation of the layer.
    pub operation: Operation,
    /// Activation applied to each output.
    pub activation: Activation,
    /// Weight, with the shape [`Self::weight_shape`], in row-major order.
    pub weight: Vec<f32>,
    /// Bias, one float for each output, channel or element.
    pub bias: Vec<f32>,
}

impl GraphLayer {
    /// Returns the shape of the weight, as in PyTorch: `[outputs, inputs]`, `[channels, input channels, kernel,
    /// kernel]`, or `[len]` for layer normalisation.
    pub fn weight_shape(&self) -> Vec<usize> {
        match self.operation {
            Operation::Dense { inputs, outputs } => vec![outputs, inputs],
            Operation::Convolution(convolution) => {
                let kernel = convolution.kernel;
                vec![convolution.channels, convolution.input.channels, kernel, kernel]
            }
            Operation::LayerNorm { len } => vec![len],
        }
    }
}

/// A recurrent layer with its parameters in PyTorch's layout. The gates are in PyTorch's order: input, forget, cell and
/// output gate for an LSTM; reset gate, update gate and candidate for a GRU. The state is zero at the start of an
/// episode.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphMemory {
    /// Shapes of the layer.
    pub layer: Recurrent,
    /// Input weights, `[gates width, inputs]`.
    pub weight_ih: Vec<f32>,
    /// Recurrent weights, `[gates width, width]`.
    pub weight_hh: Vec<f32>,
    /// Input biases (PyTorch's `bias_ih`), `[gates width]`.
    pub bias_ih: Vec<f32>,
    /// Recurrent biases (PyTorch's `bias_hh`), `[gates width]`.
    pub bias_hh: Vec<f32>,
}

impl GraphMemory {
    /// Copies the parameters (`[parameter_count]`) of a layer.
    pub(super) fn new(layer: Recurrent, parameters: &[f32]) -> Self {
        let [weight_ih, weight_hh, bias] = layer.tensors().map(|(_, shape, start)| {
            let len = shape.iter().product::<usize>();
            parameters[start..start + len].to_vec()
        });
        // PyTorch has two biases for each gate. Where only their sum is stored, the sum becomes the first bias, and the
        // second is 0. Only a GRU has a second stored bias, for its candidate.
        let (first, second) = bias.split_at(layer.cell().gates() * layer.width());
        let mut bias_hh = vec![0.0; first.len() - second.len()];
        bias_hh.extend_from_slice(second);
        Self { layer, weight_ih, weight_hh, bias_ih: first.to_vec(), bias_hh }
    }

    /// Returns the names, shapes and values of the parameters.
    pub fn tensors(&self) -> [(&'static str, Vec<usize>, &[f32]); 4] {
        let rows = self.bias_ih.len();
        [
            ("weight_ih", vec![rows, self.layer.inputs()], &self.weight_ih[..]),
            ("weight_hh", vec![rows, self.layer.width()], &self.weight_hh),
            ("bias_ih", vec![rows], &self.bias_ih),
            ("bias_hh", vec![rows], &self.bias_hh),
        ]
    }
}

/// Returns the layers of a network with the given `parameters`. If the network's input is the output of a convolution,
/// `image` is the shape of that output; otherwise, `image` is `None`.
pub(super) fn graph_layers(network: &Network, parameters: &[f32], image: Option<Image>) -> Vec<GraphLayer> {
    let mut preceding = image;
    let mut layers = Vec::with_capacity(network.layers().len());
    for layer in network.layers() {
        let weight = &parameters[layer.weight.clone()];
        let weight = match (layer.operation, preceding) {
            (Operation::Convolution(convolution), _) => {
                let kernel = convolution.kernel;
                let window = Image { height: kernel, width: kernel, channels: convolution.input.channels };
                channels_first(weight, window)
            }
            (Operation::Dense { .. }, Some(image)) => channels_first(weight, image),
            _ => weight.to_vec(),
        };
        preceding = output_image(layer.operation);
        layers.push(GraphLayer {
            operation: layer.operation,
            activation: layer.activation,
            weight,
            bias: parameters[layer.bias.clone()].to_vec(),
        });
    }
    layers
}

/// Returns the shape of the network's output if its last layer is a convolution, otherwise `None`.
pub(super) fn last_image(network: &Network) -> Option<Image> {
    network.layers().last().and_then(|layer| output_image(layer.operation))
}

/// Removes all but the first `count` outputs of a network that ends with a dense layer.
pub(super) fn keep_outputs(layers: &mut [GraphLayer], count: usize) {
    let Some(last) = layers.last_mut() else { return };
    if let Operation::Dense { inputs, outputs } = &mut last.operation {
        *outputs = count;
        last.weight.truncate(count * *inputs);
        last.bias.truncate(count);
    }
}

fn output_image(operation: Operation) -> Option<Image> {
    match operation {
        Operation::Convolution(convolution) => Some(convolution.output()),
        Operation::Dense { .. } | Operation::LayerNorm { .. } => None,
    }
}

/// Converts each of the consecutive `images` from `[height, width, channels]` to `[channels, height, width]`. Trailing
/// floats that do not make up a whole image are dropped.
pub fn channels_first(images: &[f32], image: Image) -> Vec<f32> {
    let rearranged = images.chunks_exact(image.len()).flat_map(|values| {
        (0..image.channels).flat_map(|channel| values[channel..].iter().step_by(image.channels))
    });
    rearranged.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the outputs of layers for one input, with the channels of images first.
    fn outputs(layers: &[GraphLayer], input: &[f32]) -> Vec<f32> {
        let mut x = input.to_vec();
        for layer in layers {
            let affine = |unit: usize, patch: &[f32]| {
                let weight = layer.weight[unit * patch.len()..].iter();
                layer.bias[unit] + weight.zip(patch).map(|(w, x)| w * x).sum::<f32>()
            };
            x = match layer.operation {
                Operation::Dense { outputs, .. } => (0..outputs).map(|unit| affine(unit, &x)).collect(),
                Operation::Convolution(convolution) => {
                    let (input, output) = (convolution.input, convolution.output());
                    let patch = |row: usize, column: usize| -> Vec<f32> {
                        let at = |channel: usize, y: usize, x: usize| {
                            (channel * input.height + row * convolution.stride + y) * input.width
                                + column * convolution.stride
                                + x
                        };
                        let kernel = convolution.kernel;
                        let places = (0..input.channels)
                            .flat_map(|channel| (0..kernel).map(move |y| (channel, y)))
                            .flat_map(|(channel, y)| (0..kernel).map(move |x| (channel, y, x)));
                        places.map(|(channel, row, column)| x[at(channel, row, column)]).collect()
                    };
                    let places = (0..output.channels)
                        .flat_map(|unit| (0..output.height).map(move |row| (unit, row)))
                        .flat_map(|(unit, row)| (0..output.width).map(move |column| (unit, row, column)));
                    places.map(|(unit, row, column)| affine(unit, &patch(row, column))).collect()
                }
                Operation::LayerNorm { .. } => panic!("no layer normalisation in this test"),
            };
            layer.activation.forward(&mut x);
        }
        x
    }

    fn noise(len: usize, salt: f32) -> Vec<f32> {
        (0..len).map(|i| (i as f32 * 0.7 + salt).sin() * 0.4).collect()
    }

    #[test]
    fn weights_of_images_are_rearranged_for_channels_first() {
        let image = Image { height: 9, width: 7, channels: 3 };
        let trunk = Network::image(image).convolution(4, 3, 2, Activation::Relu).convolution(
            5,
            2,
            1,
            Activation::Tanh,
        );
        let head = Network::flat(trunk.outputs()).dense(6, Activation::Relu).dense(2, Activation::Identity);
        let (of_trunk, of_head) = (noise(trunk.parameter_count(), 0.1), noise(head.parameter_count(), 0.2));
        let observation = noise(image.len(), 0.3);
        let (mut trunk_work, mut head_work) = (trunk.workspace(1), head.workspace(1));
        let features = trunk.forward(&of_trunk, &observation, &mut trunk_work);
        let expected = head.forward(&of_head, features, &mut head_work);
        let mut layers = graph_layers(&trunk, &of_trunk, None);
        layers.extend(graph_layers(&head, &of_head, last_image(&trunk)));
        let actual = outputs(&layers, &channels_first(&observation, image));
        for (actual, expected) in actual.iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-5, "{actual} {expected}");
        }
        assert_eq!(layers[1].weight_shape(), [5, 4, 2, 2]);
    }

    #[test]
    fn surplus_outputs_are_removed() {
        let network = Network::mlp(&[3, 4, 5], Activation::Tanh);
        let parameters = noise(network.parameter_count(), 0.4);
        let input = noise(3, 0.5);
        let mut layers = graph_layers(&network, &parameters, None);
        let all = outputs(&layers, &input);
        keep_outputs(&mut layers, 2);
        assert_eq!(layers[1].weight_shape(), [2, 4]);
        assert_eq!(outputs(&layers, &input), all[..2]);
    }
}
