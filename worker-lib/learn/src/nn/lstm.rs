//! Long short-term memory (Hochreiter and Schmidhuber, 1997) with forget gates (Gers et al., 2000), over sequences of
//! steps. Gradients are computed by backpropagation through time.

use rand::Rng;

use super::{MatrixMut, MatrixRef, matmul, tanh, uniform_by_fan_in};

/// A long short-term memory (LSTM) layer. The type holds only the shapes. The parameters have PyTorch's layout, but
/// with a single bias: input weights `[4 width, inputs]`, recurrent weights `[4 width, width]` and biases `[4 width]`.
/// Their rows belong to the input gate, the forget gate, the cell and the output gate, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lstm {
    inputs: usize,
    width: usize,
}

/// Sequences of equal length, to be processed in one pass. Row `k * steps + t` of the input is step `t` of sequence
/// `k`.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    /// Inputs, `[sequences * steps, inputs]`.
    pub input: &'a [f32],
    /// Number of steps of each sequence.
    pub steps: usize,
    /// State before the first step of each sequence, `[sequences, state_len]`.
    pub states: &'a [f32],
    /// For each step, whether an episode begins at it, which resets the state to zero, `[sequences * steps]`.
    pub starts: &'a [bool],
}

/// Intermediate results of one layer, for batches of up to a maximum size. Rows are ordered by step, then by sequence.
#[derive(Clone, Debug)]
pub struct LstmWorkspace {
    input: Vec<f32>,
    /// Gates after their activations, `[rows, 4 width]`.
    gates: Vec<f32>,
    /// Hyperbolic tangent of the cells after each step, `[rows, width]`.
    squashed_cells: Vec<f32>,
    /// Outputs and cells before each step; both have the shape `[rows, width]`.
    before: [Vec<f32>; 2],
    by_gates: Vec<f32>,
    /// Outputs of all steps, in the order of the input, `[rows, width]`, and the gradient of the loss with respect to
    /// them.
    outputs: Vec<f32>,
    by_outputs: Vec<f32>,
    /// Outputs and cells of the current step, or the gradient of the loss with respect to them; both have the shape
    /// `[sequences, width]`.
    current: [Vec<f32>; 2],
}

impl Lstm {
    /// Creates a layer of `width` units for inputs of `inputs` floats.
    pub fn new(inputs: usize, width: usize) -> Self {
        Self { inputs, width }
    }

    /// Returns the number of floats in the parameter and gradient slices.
    pub fn parameter_count(self) -> usize {
        4 * self.width * (self.inputs + self.width + 1)
    }

    /// Returns the number of floats of one output.
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns the number of floats in the state of one sequence, which consists of its output and its cells.
    pub fn state_len(self) -> usize {
        2 * self.width
    }

    /// Returns the names, shapes and offsets of the parameters.
    pub fn tensors(self) -> [(&'static str, Vec<usize>, usize); 3] {
        let rows = 4 * self.width;
        let (recurrent, bias) = (rows * self.inputs, rows * (self.inputs + self.width));
        [
            ("weight_ih", vec![rows, self.inputs], 0),
            ("weight_hh", vec![rows, self.width], recurrent),
            ("bias", vec![rows], bias),
        ]
    }

    /// Writes the initial parameters, drawn uniformly between `-1 / sqrt(width)` and `1 / sqrt(width)`, as in PyTorch.
    pub fn initialise(self, parameters: &mut [f32], rng: &mut impl Rng) {
        uniform_by_fan_in(parameters, self.width, rng);
    }

    /// Allocates a workspace for up to `rows_max` steps over all sequences.
    pub fn workspace(self, rows_max: usize) -> LstmWorkspace {
        let room = |len: usize| vec![0.0; rows_max * len];
        let narrow = || room(self.width);
        LstmWorkspace {
            input: room(self.inputs),
            gates: room(4 * self.width),
            squashed_cells: narrow(),
            before: [narrow(), narrow()],
            by_gates: room(4 * self.width),
            outputs: narrow(),
            by_outputs: narrow(),
            current: [narrow(), narrow()],
        }
    }

    /// Returns the outputs of all steps, `[sequences * steps, width]`.
    ///
    /// # Panics
    /// Panics if a length does not match the layer, or if there are more rows than the workspace can hold.
    pub fn forward<'w>(
        self,
        parameters: &[f32],
        sequences: &Sequences<'_>,
        work: &'w mut LstmWorkspace,
    ) -> &'w [f32] {
        let (rows, count) = self.shape(sequences);
        self.gather(sequences, work);
        let [weight_ih, weight_hh, bias] = self.parts(parameters);
        let wide = 4 * self.width;
        let gates = &mut work.gates[..rows * wide];
        gates.chunks_exact_mut(wide).for_each(|row| row.copy_from_slice(bias));
        let input = MatrixRef::row_major(&work.input[..rows * self.inputs], rows, self.inputs);
        let weight = MatrixRef::row_major(weight_ih, wide, self.inputs);
        matmul(MatrixMut::row_major(gates, rows, wide), true, input, weight.transposed(), 1);
        for (k, state) in sequences.states.chunks_exact(self.state_len()).enumerate() {
            for (current, part) in work.current.iter_mut().zip(state.chunks_exact(self.width)) {
                current[k * self.width..(k + 1) * self.width].copy_from_slice(part);
            }
        }
        let weight = MatrixRef::row_major(weight_hh, wide, self.width);
        for t in 0..sequences.steps {
            self.step(t, (count, sequences), weight, work);
        }
        &work.outputs[..rows * self.width]
    }

    /// Writes the state (`[state_len]`) of sequence `k` after the last step of the preceding [`Self::forward`] call.
    pub fn write_state(self, work: &LstmWorkspace, k: usize, state: &mut [f32]) {
        for (current, part) in work.current.iter().zip(state.chunks_exact_mut(self.width)) {
            part.copy_from_slice(&current[k * self.width..(k + 1) * self.width]);
        }
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of the loss with respect to the parameters. The
    /// caller must first call [`Self::forward`] with the same arguments and fill the buffer of
    /// [`LstmWorkspace::output_and_delta`]. Gradients do not flow into the states before the first step.
    ///
    /// # Panics
    /// Panics under the same conditions as [`Self::forward`], or if the length of `gradient` is not `parameter_count`.
    pub fn backward(
        self,
        parameters: &[f32],
        sequences: &Sequences<'_>,
        work: &mut LstmWorkspace,
        gradient: &mut [f32],
    ) {
        let (rows, count) = self.shape(sequences);
        let [_, weight_hh, _] = self.parts(parameters);
        let wide = 4 * self.width;
        let weight = MatrixRef::row_major(weight_hh, wide, self.width);
        work.current.iter_mut().for_each(|by| by[..count * self.width].fill(0.0));
        for t in (0..sequences.steps).rev() {
            self.step_back(t, (count, sequences), weight, work);
        }
        let by_gates = &work.by_gates[..rows * wide];
        let (by_weights, by_bias) = gradient.split_at_mut(wide * (self.inputs + self.width));
        let (by_weight_ih, by_weight_hh) = by_weights.split_at_mut(wide * self.inputs);
        by_bias.fill(0.0);
        for row in by_gates.chunks_exact(wide) {
            by_bias.iter_mut().zip(row).for_each(|(sum, by)| *sum += by);
        }
        let by_gates = MatrixRef::row_major(by_gates, rows, wide).transposed();
        let input = MatrixRef::row_major(&work.input[..rows * self.inputs], rows, self.inputs);
        matmul(MatrixMut::row_major(by_weight_ih, wide, self.inputs), false, by_gates, input, 1);
        let before = MatrixRef::row_major(&work.before[0][..rows * self.width], rows, self.width);
        matmul(MatrixMut::row_major(by_weight_hh, wide, self.width), false, by_gates, before, 1);
    }

    /// Returns the number of rows and the number of sequences.
    fn shape(self, sequences: &Sequences<'_>) -> (usize, usize) {
        let (rows, count) = (sequences.starts.len(), sequences.states.len() / self.state_len());
        assert_eq!(
            sequences.states.len(),
            count * self.state_len(),
            "expected the states of whole sequences"
        );
        assert_eq!(rows, count * sequences.steps, "steps of {count} sequences of {}", sequences.steps);
        assert_eq!(sequences.input.len(), rows * self.inputs, "inputs of {rows} steps");
        (rows, count)
    }

    fn parts(self, parameters: &[f32]) -> [&[f32]; 3] {
        assert_eq!(parameters.len(), self.parameter_count(), "parameters");
        let (weights, bias) = parameters.split_at(4 * self.width * (self.inputs + self.width));
        let (weight_ih, weight_hh) = weights.split_at(4 * self.width * self.inputs);
        [weight_ih, weight_hh, bias]
    }

    /// Copies the input to the workspace, ordered by step.
    fn gather(self, sequences: &Sequences<'_>, work: &mut LstmWorkspace) {
        let count = sequences.starts.len() / sequences.steps.max(1);
        for (row, x) in sequences.input.chunks_exact(self.inputs).enumerate() {
            let to = row % sequences.steps * count + row / sequences.steps;
            work.input[to * self.inputs..(to + 1) * self.inputs].copy_from_slice(x);
        }
    }

    /// Computes step `t` of all sequences. The gates must already contain their input-dependent part.
    fn step(
        self,
        t: usize,
        (count, sequences): (usize, &Sequences<'_>),
        weight_hh: MatrixRef<'_>,
        work: &mut LstmWorkspace,
    ) {
        let (width, wide) = (self.width, 4 * self.width);
        let now = t * count * width..(t + 1) * count * width;
        for (current, before) in work.current.iter_mut().zip(&mut work.before) {
            for k in (0..count).filter(|k| sequences.starts[k * sequences.steps + t]) {
                current[k * width..(k + 1) * width].fill(0.0);
            }
            before[now.clone()].copy_from_slice(&current[..count * width]);
        }
        let gates = &mut work.gates[t * count * wide..(t + 1) * count * wide];
        let before = MatrixRef::row_major(&work.before[0][now.clone()], count, width);
        matmul(MatrixMut::row_major(gates, count, wide), true, before, weight_hh.transposed(), 1);
        let [outputs, cells] = &mut work.current;
        for (k, row) in gates.chunks_exact_mut(wide).enumerate() {
            let own = k * width..(k + 1) * width;
            let squashed = &mut work.squashed_cells[now.start + own.start..now.start + own.end];
            activate(row, &mut cells[own.clone()], squashed, &mut outputs[own.clone()]);
            let at = (k * sequences.steps + t) * width;
            work.outputs[at..at + width].copy_from_slice(&outputs[own]);
        }
    }

    /// Computes the gradient of the loss with respect to the gates of step `t`. Propagates the gradients with respect
    /// to outputs and cells, which are in `work.current`, back through this step.
    fn step_back(
        self,
        t: usize,
        (count, sequences): (usize, &Sequences<'_>),
        weight_hh: MatrixRef<'_>,
        work: &mut LstmWorkspace,
    ) {
        let (width, wide) = (self.width, 4 * self.width);
        let [by_outputs, by_cells] = &mut work.current;
        for k in 0..count {
            let (at, row) = ((k * sequences.steps + t) * width, t * count + k);
            let gates = &work.gates[row * wide..(row + 1) * wide];
            let by_gates = &mut work.by_gates[row * wide..(row + 1) * wide];
            for j in 0..width {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * width + j]);
                let squashed = work.squashed_cells[row * width + j];
                let by_output = work.by_outputs[at + j] + by_outputs[k * width + j];
                let by_cell = by_cells[k * width + j] + by_output * o * (1.0 - squashed * squashed);
                by_gates[j] = by_cell * g * i * (1.0 - i);
                by_gates[width + j] = by_cell * work.before[1][row * width + j] * f * (1.0 - f);
                by_gates[2 * width + j] = by_cell * i * (1.0 - g * g);
                by_gates[3 * width + j] = by_output * squashed * o * (1.0 - o);
                by_cells[k * width + j] = by_cell * f;
            }
        }
        let by_gates = &work.by_gates[t * count * wide..(t + 1) * count * wide];
        let by_gates = MatrixRef::row_major(by_gates, count, wide);
        let by_before = &mut by_outputs[..count * width];
        matmul(MatrixMut::row_major(by_before, count, width), false, by_gates, weight_hh, 1);
        for k in (0..count).filter(|k| sequences.starts[k * sequences.steps + t]) {
            work.current.iter_mut().for_each(|by| by[k * width..(k + 1) * width].fill(0.0));
        }
    }
}

impl LstmWorkspace {
    /// Returns the outputs of the preceding [`Lstm::forward`] call (`[sequences * steps, width]`) and a buffer of the
    /// same shape. Before the caller calls [`Lstm::backward`], it must fill this buffer with the gradient of the loss
    /// with respect to the outputs. `len` is the number of floats in each.
    pub fn output_and_delta(&mut self, len: usize) -> (&[f32], &mut [f32]) {
        (&self.outputs[..len], &mut self.by_outputs[..len])
    }
}

/// Applies the activations of one sequence's gates (`[4 width]`), and computes its cells and outputs (`[width]`).
fn activate(gates: &mut [f32], cells: &mut [f32], squashed: &mut [f32], outputs: &mut [f32]) {
    let width = cells.len();
    let (sigmoids, others) = gates.split_at_mut(2 * width);
    let (candidates, output_gates) = others.split_at_mut(width);
    sigmoids.iter_mut().chain(output_gates.iter_mut()).for_each(|x| *x = 0.5 + 0.5 * tanh(0.5 * *x));
    candidates.iter_mut().for_each(|x| *x = tanh(*x));
    for j in 0..width {
        cells[j] = sigmoids[width + j] * cells[j] + sigmoids[j] * candidates[j];
        squashed[j] = tanh(cells[j]);
        outputs[j] = output_gates[j] * squashed[j];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    const LAYER: Lstm = Lstm { inputs: 3, width: 4 };
    const COUNT: usize = 2;
    const STEPS: usize = 5;

    fn random(len: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    /// Returns parameters, inputs, states and episode starts. The only episode start is in the middle of the second
    /// sequence.
    fn sample() -> (Vec<f32>, Vec<f32>, Vec<f32>, Vec<bool>) {
        let mut starts = vec![false; COUNT * STEPS];
        starts[STEPS + 2] = true;
        let states = random(COUNT * LAYER.state_len(), 3);
        (random(LAYER.parameter_count(), 1), random(COUNT * STEPS * LAYER.inputs, 2), states, starts)
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (parameters, input, states, starts) = sample();
        let weights = random(COUNT * STEPS * LAYER.width, 4);
        let sequences = Sequences { input: &input, steps: STEPS, states: &states, starts: &starts };
        let mut work = LAYER.workspace(COUNT * STEPS);
        let mut loss = |parameters: &[f32]| {
            let outputs = LAYER.forward(parameters, &sequences, &mut work);
            outputs.iter().zip(&weights).map(|(y, w)| f64::from(y * w)).sum::<f64>()
        };
        let numeric: Vec<f64> = (0..parameters.len())
            .map(|i| {
                let mut at = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[i] += step;
                    loss(&moved)
                };
                (at(5e-3) - at(-5e-3)) / 1e-2
            })
            .collect();
        loss(&parameters);
        work.output_and_delta(weights.len()).1.copy_from_slice(&weights);
        let mut gradient = vec![f32::NAN; parameters.len()];
        LAYER.backward(&parameters, &sequences, &mut work, &mut gradient);
        for (i, (by, numeric)) in gradient.iter().zip(&numeric).enumerate() {
            assert!((f64::from(*by) - numeric).abs() < 1e-3 + 1e-3 * numeric.abs(), "{i}: {by} {numeric}");
        }
    }

    #[test]
    fn single_steps_with_carried_states_equal_one_pass() {
        let (parameters, input, states, starts) = sample();
        let sequences = Sequences { input: &input, steps: STEPS, states: &states, starts: &starts };
        let mut work = LAYER.workspace(COUNT * STEPS);
        let all = LAYER.forward(&parameters, &sequences, &mut work).to_vec();
        let write_states = |work: &LstmWorkspace, states: &mut [f32]| {
            let each = states.chunks_exact_mut(LAYER.state_len());
            each.enumerate().for_each(|(k, state)| LAYER.write_state(work, k, state));
        };
        let mut last = vec![0.0; states.len()];
        write_states(&work, &mut last);
        let mut carried = states.clone();
        for t in 0..STEPS {
            let rows = |data: &[f32], dim: usize| -> Vec<f32> {
                (0..COUNT).flat_map(|k| data[(k * STEPS + t) * dim..][..dim].to_vec()).collect()
            };
            let input = rows(&input, LAYER.inputs);
            let starts: Vec<_> = (0..COUNT).map(|k| starts[k * STEPS + t]).collect();
            let one = Sequences { input: &input, steps: 1, states: &carried, starts: &starts };
            let outputs = LAYER.forward(&parameters, &one, &mut work);
            let want = rows(&all, LAYER.width);
            assert!(outputs.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6), "{outputs:?} {want:?}");
            write_states(&work, &mut carried);
        }
        assert!(carried.iter().zip(&last).all(|(a, b)| (a - b).abs() < 1e-6), "{carried:?} {last:?}");
    }

    #[test]
    fn an_episode_that_begins_within_a_sequence_does_not_see_earlier_steps() {
        let (parameters, input, states, starts) = sample();
        let outputs_of = |input: &[f32], states: &[f32]| {
            let sequences = Sequences { input, steps: STEPS, states, starts: &starts };
            LAYER.forward(&parameters, &sequences, &mut LAYER.workspace(COUNT * STEPS)).to_vec()
        };
        let all = outputs_of(&input, &states);
        let mut changed = input.clone();
        changed[STEPS * LAYER.inputs..(STEPS + 2) * LAYER.inputs].fill(0.7);
        let others: Vec<f32> = states.iter().map(|x| x + 0.5).collect();
        let (later, earlier) =
            ((STEPS + 2) * LAYER.width..all.len(), STEPS * LAYER.width..(STEPS + 2) * LAYER.width);
        let moved = outputs_of(&changed, &others);
        assert_eq!(moved[later.clone()], all[later]);
        assert!(moved[earlier.clone()].iter().zip(&all[earlier]).all(|(a, b)| a != b));
        assert!(moved[..STEPS * LAYER.width].iter().zip(&all).any(|(a, b)| a != b));
    }
}
