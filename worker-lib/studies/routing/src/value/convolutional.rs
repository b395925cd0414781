//! The paper's convolutional network (table 1), whose input is the lengths of all queues.
//!
//! Convolutions have no padding. The six convolutions of table 1 reduce a network of 20 switches to 2 x 2 positions. A
//! network of 16 switches is reduced to this size by four convolutions, so the paper omits the last two for 16
//! switches. The last layer is linear: with the rectifier in table 1, learning would stop as soon as the rectifier's
//! input is negative for all states.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Value;
use crate::network::{Queues, Shape};
use crate::policy::Lane;
use iswitch_learn::nn::{Activation, Image, Layer, Network, Workspace, orthogonal};
use iswitch_study::StudyError;

/// Number of states in one forward pass. The patches of 8 states fit in a core's cache, so a pass with 8 states takes a
/// fifth less time per state than one with 32 states.
const CHUNK: usize = 8;

/// Maximum number of kernels of a convolution, or of units of a layer.
const WIDTH_MAX: usize = 4096;

/// Layer sizes of the convolutional network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalOptions {
    /// Edge lengths of the kernels, layer by layer.
    pub kernels: Vec<usize>,
    /// Number of kernels of each convolution.
    pub channels: usize,
    /// Number of units of the dense layer.
    pub hidden: usize,
}

impl ConvolutionalOptions {
    /// Returns the sizes of table 1 for 16 and for 20 switches, and analogous sizes for other numbers of switches. The
    /// kernels are 7, 5 and then 3 (below 12 switches, only 3), and layers are added for as long as at least 2 x 2
    /// positions remain.
    pub fn paper(switches: usize) -> Self {
        let mut kernels = Vec::new();
        let mut left = switches;
        let first: &[usize] = if switches >= 12 { &[7, 5] } else { &[] };
        for kernel in first.iter().copied().chain(std::iter::repeat(3)) {
            if left < kernel + 1 {
                break;
            }
            left -= kernel - 1;
            kernels.push(kernel);
        }
        Self { kernels, channels: 64, hidden: 128 }
    }

    /// Returns the number of weights and biases of the value network for a network of size `shape`.
    ///
    /// # Errors
    /// Fails if a kernel is larger than its input, or if a size is out of range.
    pub fn parameters(&self, shape: Shape) -> Result<usize, StudyError> {
        Ok(self.network(shape)?.parameter_count())
    }

    fn network(&self, shape: Shape) -> Result<Network, StudyError> {
        for (name, size) in [("channels", self.channels), ("hidden", self.hidden)] {
            if !(1..=WIDTH_MAX).contains(&size) {
                return Err(StudyError::field(name, size, format!("1 to {WIDTH_MAX}")));
            }
        }
        let image = Image { height: shape.switches(), width: shape.switches(), channels: shape.stages() };
        let mut network = Network::image(image);
        let mut left = shape.switches();
        for (layer, kernel) in self.kernels.iter().enumerate() {
            if !(1..=left).contains(kernel) {
                return Err(StudyError::field(format!("kernels[{layer}]"), kernel, format!("1 to {left}")));
            }
            left -= kernel - 1;
            network = network.convolution(self.channels, *kernel, 1, Activation::Relu);
        }
        Ok(network.dense(self.hidden, Activation::Relu).dense(1, Activation::Identity))
    }
}

/// Value network with its parameters.
#[derive(Clone, Debug)]
pub struct ConvolutionalValue {
    network: Network,
    parameters: Vec<f32>,
    work: Workspace,
    /// Input of the current batch, as `[state, switch, class, stage]`.
    input: Vec<f32>,
    /// Gradient of one chunk of the batch.
    partial: Vec<f32>,
}

impl ConvolutionalValue {
    /// Creates a network with random weights. The weights of the last layer are 0, so all states have the same value
    /// and the policy before any learning chooses random links. Matrix products use up to `threads` threads.
    ///
    /// # Errors
    /// Fails if a kernel is larger than its input, or if a size is out of range.
    pub fn new(
        shape: Shape,
        options: &ConvolutionalOptions,
        threads: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, StudyError> {
        let network = options.network(shape)?;
        let mut parameters = vec![0.0; network.parameter_count()];
        for layer in network.layers().split_last().map_or(&[][..], |(_, layers)| layers) {
            let [rows, columns] = layer.weight_shape();
            let weight = &mut parameters[layer.weight.clone()];
            orthogonal(weight, rows, columns, std::f64::consts::SQRT_2, rng);
        }
        let work = network.workspace(CHUNK).with_threads(threads);
        let partial = vec![0.0; parameters.len()];
        Ok(Self { network, parameters, work, input: Vec::new(), partial })
    }

    /// Returns all weights and biases, layer by layer.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Returns all weights and biases for modification by an optimiser.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Rescales the last layer for a new mean and standard deviation, so that the outputs represent the same values as
    /// before (PopArt; van Hasselt et al., 2016). An output is the offset of a value from the mean, in units of the
    /// standard deviation.
    pub fn rescale(&mut self, (old_mean, old_deviation): (f64, f64), (mean, deviation): (f64, f64)) {
        let last = self.network.layers().last().expect("a network has layers");
        let ratio = old_deviation / deviation;
        for weight in &mut self.parameters[last.weight.clone()] {
            *weight = (f64::from(*weight) * ratio) as f32;
        }
        for bias in &mut self.parameters[last.bias.clone()] {
            *bias = (f64::from(*bias) * ratio + (old_mean - mean) / deviation) as f32;
        }
    }

    /// Returns the ranges of the weights, to which regularisation applies; it does not apply to biases.
    pub fn weights(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.network.layers().iter().map(|layer| layer.weight.clone())
    }

    /// Returns a description of each layer: the shape of its weights, and the ranges of its weights and biases in
    /// [`Self::parameters`].
    pub fn layers(&self) -> &[Layer] {
        self.network.layers()
    }

    /// Clears the batch.
    pub fn begin_batch(&mut self) {
        self.input.clear();
    }

    /// Adds a state to the batch.
    pub fn push(&mut self, queues: &Queues) {
        let shape = queues.shape();
        let start = self.input.len();
        self.input.resize(start + shape.queues(), 0.0);
        for (stage, lens) in (0..shape.stages()).map(|stage| (stage, queues.stage(stage))) {
            let places = self.input[start + stage..].iter_mut().step_by(shape.stages());
            places.zip(lens).for_each(|(x, len)| *x = *len as f32);
        }
    }

    /// Appends the value of each state in the batch, in the units of the targets.
    pub fn batch_values(&mut self, values: &mut Vec<f32>) {
        let Self { network, parameters, work, input, .. } = self;
        for chunk in input.chunks(CHUNK * network.inputs()) {
            values.extend_from_slice(network.forward(parameters, chunk, work));
        }
    }

    /// Overwrites `gradient` with the gradient of half the sum of squared errors over the batch, divided by `divisor`.
    /// `targets` has one target for each state. Returns the sum of squared errors.
    ///
    /// # Panics
    /// Panics if the number of targets is not the number of states in the batch.
    pub fn gradient(&mut self, targets: &[f32], divisor: f32, gradient: &mut [f32]) -> f64 {
        let Self { network, parameters, work, input, partial } = self;
        assert_eq!(
            input.len(),
            targets.len() * network.inputs(),
            "the number of targets must equal the number of states"
        );
        gradient.fill(0.0);
        let mut squares = 0.0;
        for (input, targets) in input.chunks(CHUNK * network.inputs()).zip(targets.chunks(CHUNK)) {
            network.forward(parameters, input, work);
            let (outputs, deltas) = work.output_and_delta(targets.len());
            for ((output, delta), target) in outputs.iter().zip(deltas).zip(targets) {
                let error = output - target;
                squares += f64::from(error).powi(2);
                *delta = error / divisor;
            }
            network.backward(parameters, input, work, partial);
            gradient.iter_mut().zip(partial.iter()).for_each(|(sum, slope)| *sum += slope);
        }
        squares
    }

    /// Adds one state to the batch for each link that the lane's packet may take: the state after the packet has taken
    /// it.
    fn push_candidates(&mut self, lane: &Lane) {
        let shape = lane.now().shape();
        let (stages, switches) = (shape.stages(), shape.switches());
        let decision = lane.decision();
        let place = |switch: usize, stage: usize| (switch * switches + decision.class) * stages + stage;
        let first = self.input.len();
        self.push(lane.now());
        self.input[first + place(decision.switch, decision.stage)] -= 1.0;
        let len = shape.queues();
        for at in 0..lane.idle().len() {
            if at > 0 {
                self.input.extend_from_within(first..first + len);
            }
        }
        for (at, link) in lane.idle().iter().enumerate() {
            self.input[first + at * len + place(usize::from(*link), decision.stage + 1)] += 1.0;
        }
    }
}

impl Value for ConvolutionalValue {
    fn costs(&mut self, lanes: &[Lane], asked: &[usize], costs: &mut Vec<f32>) {
        self.begin_batch();
        asked.iter().for_each(|at| self.push_candidates(&lanes[*at]));
        self.batch_values(costs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    fn value(switches: usize) -> ConvolutionalValue {
        let shape = Shape::new(3, switches).unwrap();
        let options = ConvolutionalOptions::paper(switches);
        ConvolutionalValue::new(shape, &options, 1, &mut stream(1, Purpose::Weights, 0)).unwrap()
    }

    #[test]
    fn the_value_network_has_the_sizes_of_the_paper() {
        assert_eq!(ConvolutionalOptions::paper(16).kernels, [7, 5, 3, 3]);
        assert_eq!(ConvolutionalOptions::paper(20).kernels, [7, 5, 3, 3, 3, 3]);
        assert_eq!(value(16).parameters().len(), 218_817);
        assert_eq!(value(20).parameters().len(), 292_673);
        assert_eq!(ConvolutionalOptions::paper(8).kernels, [3, 3, 3]);
        assert!(ConvolutionalOptions::paper(2).kernels.is_empty());
    }

    #[test]
    fn convolution_kernels_that_do_not_fit_are_reported() {
        let options = ConvolutionalOptions { kernels: vec![3, 3], channels: 4, hidden: 8 };
        let error = options.network(Shape::new(3, 4).unwrap()).unwrap_err().to_string();
        assert_eq!(error, "kernels[1] is 3, expected 1 to 2");
    }

    #[test]
    fn the_gradient_matches_the_derivative_of_the_error() {
        let mut value = value(4);
        value.parameters_mut().iter_mut().enumerate().for_each(|(i, x)| *x += 0.1 * (i as f32).sin());
        let mut queues = Queues::empty(Shape::new(3, 4).unwrap());
        queues.all_mut().iter_mut().enumerate().for_each(|(i, len)| *len = (i % 5) as u32);
        value.begin_batch();
        value.push(&queues);
        let mut gradient = vec![0.0; value.parameters().len()];
        value.gradient(&[2.0], 1.0, &mut gradient);
        let mut loss = |at: usize, by: f32| {
            value.parameters_mut()[at] += by;
            let mut out = Vec::new();
            value.batch_values(&mut out);
            value.parameters_mut()[at] -= by;
            0.5 * (f64::from(out[0]) - 2.0).powi(2)
        };
        for at in (0..gradient.len()).step_by(gradient.len() / 50) {
            let slope = (loss(at, 1e-2) - loss(at, -1e-2)) / 2e-2;
            assert!((slope - f64::from(gradient[at])).abs() < 2e-2 * slope.abs().max(1.0), "{at}: {slope}");
        }
    }
}
