//! Recurrent layers over sequences of steps. Gradients are computed by backpropagation through time.

mod gru;
mod lstm;

use std::fmt;
use std::ops::Range;

use rand::Rng;

use super::{MatrixMut, MatrixRef, matmul, uniform_by_fan_in};

/// Number of blocks in the gate buffer, each of `width` columns, and in the biases, each of `width` numbers.
const BLOCKS: usize = 4;

/// Kind of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Long short-term memory (Hochreiter and Schmidhuber, 1997) with forget gates (Gers et al., 2000).
    Lstm,
    /// Gated recurrent unit (Cho et al., 2014). As in PyTorch, the reset gate is applied after the matrix product.
    Gru,
}

impl Cell {
    /// Returns the name of the layer in hyper-parameters and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lstm => "lstm",
            Self::Gru => "gru",
        }
    }

    /// Returns the number of gates, including the candidate: the number of blocks of `width` rows in each weight.
    pub fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Returns the number of vectors of `width` floats in the state of a sequence. The first is its output.
    fn state_parts(self) -> usize {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }

    /// Returns how row blocks of the recurrent weight map to column blocks of the gate buffer. Each entry contains the
    /// first column block, the first row block, and the number of consecutive blocks.
    fn recurrent_blocks(self) -> &'static [(usize, usize, usize)] {
        match self {
            Self::Lstm => &[(0, 0, 4)],
            // The candidate's recurrent term has its own block, separate from the input term.
            Self::Gru => &[(0, 0, 2), (3, 2, 1)],
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lstm => "LSTM",
            Self::Gru => "GRU",
        })
    }
}

/// A recurrent layer. The type holds only the shapes. The parameters are the input weights `[gates width, inputs]`, the
/// recurrent weights `[gates width, width]` and the biases `[4 width]`. They have PyTorch's layout, except that the two
/// biases of a gate are stored as their sum where only the sum matters.
///
/// The rows of an LSTM belong to the input gate, the forget gate, the cell and the output gate, in this order. Those of
/// a GRU belong to the reset gate, the update gate and the candidate; the last two quarters of its biases are the
/// candidate's input bias and recurrent bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurrent {
    cell: Cell,
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
    /// For each step, whether an episode begins at this step and the state is reset to zero, `[sequences * steps]`.
    pub starts: &'a [bool],
}

/// Intermediate results of one layer, for batches of up to a maximum size. Rows are ordered by step, then by sequence.
#[derive(Clone, Debug)]
pub struct RecurrentWorkspace {
    input: Vec<f32>,
    /// Gates after their activations, `[rows, 4 width]`.
    gates: Vec<f32>,
    /// Hyperbolic tangent of the cells of an LSTM after each step, `[rows, width]`; empty for a GRU.
    squashed_cells: Vec<f32>,
    /// Parts of the state before each step, each of the shape `[rows, width]`.
    before: Vec<Vec<f32>>,
    by_gates: Vec<f32>,
    /// Outputs of all steps, in the order of the input, `[rows, width]`, and the gradient of the loss with respect to
    /// them.
    outputs: Vec<f32>,
    by_outputs: Vec<f32>,
    /// Parts of the state at the current step, or the gradient of the loss with respect to them; each has the shape
    /// `[sequences, width]`.
    current: Vec<Vec<f32>>,
}

impl Recurrent {
    /// Creates a layer of `width` units for inputs of `inputs` floats.
    pub fn new(cell: Cell, inputs: usize, width: usize) -> Self {
        Self { cell, inputs, width }
    }

    /// Returns the kind of the layer.
    pub fn cell(self) -> Cell {
        self.cell
    }

    /// Returns the number of floats in the parameter and gradient slices.
    pub fn parameter_count(self) -> usize {
        self.rows() * (self.inputs + self.width) + BLOCKS * self.width
    }

    /// Returns the number of floats of one input.
    pub fn inputs(self) -> usize {
        self.inputs
    }

    /// Returns the number of floats of one output.
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns the number of floats in the state of one sequence: its output and, for an LSTM, its cells.
    pub fn state_len(self) -> usize {
        self.cell.state_parts() * self.width
    }

    /// Returns the names, shapes and offsets of the parameters.
    pub fn tensors(self) -> [(&'static str, Vec<usize>, usize); 3] {
        let rows = self.rows();
        let (recurrent, bias) = (rows * self.inputs, rows * (self.inputs + self.width));
        [
            ("weight_ih", vec![rows, self.inputs], 0),
            ("weight_hh", vec![rows, self.width], recurrent),
            ("bias", vec![BLOCKS * self.width], bias),
        ]
    }

    /// Writes the initial parameters, drawn uniformly between `-1 / sqrt(width)` and `1 / sqrt(width)`, as in PyTorch.
    pub fn initialise(self, parameters: &mut [f32], rng: &mut impl Rng) {
        uniform_by_fan_in(parameters, self.width, rng);
    }

    /// Allocates a workspace for up to `rows_max` steps over all sequences.
    pub fn workspace(self, rows_max: usize) -> RecurrentWorkspace {
        let room = |len: usize| vec![0.0; rows_max * len];
        let parts = || vec![room(self.width); self.cell.state_parts()];
        RecurrentWorkspace {
            input: room(self.inputs),
            gates: room(BLOCKS * self.width),
            squashed_cells: if self.cell == Cell::Lstm { room(self.width) } else { vec![] },
            before: parts(),
            by_gates: room(BLOCKS * self.width),
            outputs: room(self.width),
            by_outputs: room(self.width),
            current: parts(),
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
        work: &'w mut RecurrentWorkspace,
    ) -> &'w [f32] {
        let (rows, count) = self.shape(sequences);
        self.gather(sequences, work);
        let [weight_ih, weight_hh, bias] = self.parts(parameters);
        let (wide, weighted) = (BLOCKS * self.width, self.rows());
        let gates = &mut work.gates[..rows * wide];
        gates.chunks_exact_mut(wide).for_each(|row| row.copy_from_slice(bias));
        let input = MatrixRef::row_major(&work.input[..rows * self.inputs], rows, self.inputs);
        let weight = MatrixRef::row_major(weight_ih, weighted, self.inputs);
        matmul(MatrixMut::columns(gates, (rows, wide), 0..weighted), true, input, weight.transposed(), 1);
        for (k, state) in sequences.states.chunks_exact(self.state_len()).enumerate() {
            for (current, part) in work.current.iter_mut().zip(state.chunks_exact(self.width)) {
                current[k * self.width..(k + 1) * self.width].copy_from_slice(part);
            }
        }
        for t in 0..sequences.steps {
            self.step(t, (count, sequences), weight_hh, work);
        }
        &work.outputs[..rows * self.width]
    }

    /// Writes the state (`[state_len]`) of sequence `k` after the last step of the preceding [`Self::forward`] call.
    pub fn write_state(self, work: &RecurrentWorkspace, k: usize, state: &mut [f32]) {
        for (current, part) in work.current.iter().zip(state.chunks_exact_mut(self.width)) {
            part.copy_from_slice(&current[k * self.width..(k + 1) * self.width]);
        }
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of the loss with respect to the parameters. The
    /// caller must first call [`Self::forward`] with the same arguments and fill the buffer of
    /// [`RecurrentWorkspace::output_and_delta`]. Gradients do not flow into the states before the first step.
    ///
    /// # Panics
    /// Panics under the same conditions as [`Self::forward`], or if the length of `gradient` is not `parameter_count`.
    pub fn backward(
        self,
        parameters: &[f32],
        sequences: &Sequences<'_>,
        work: &mut RecurrentWorkspace,
        gradient: &mut [f32],
    ) {
        let (rows, count) = self.shape(sequences);
        let [_, weight_hh, _] = self.parts(parameters);
        work.current.iter_mut().for_each(|by| by[..count * self.width].fill(0.0));
        for t in (0..sequences.steps).rev() {
            self.step_back(t, (count, sequences), weight_hh, work);
        }
        let (wide, weighted) = (BLOCKS * self.width, self.rows());
        let by_gates = &work.by_gates[..rows * wide];
        let (by_weights, by_bias) = gradient.split_at_mut(weighted * (self.inputs + self.width));
        let (by_weight_ih, by_weight_hh) = by_weights.split_at_mut(weighted * self.inputs);
        by_bias.fill(0.0);
        for row in by_gates.chunks_exact(wide) {
            by_bias.iter_mut().zip(row).for_each(|(sum, by)| *sum += by);
        }
        let columns = |range| MatrixRef::columns(by_gates, (rows, wide), range).transposed();
        let input = MatrixRef::row_major(&work.input[..rows * self.inputs], rows, self.inputs);
        let by_weight_ih = MatrixMut::row_major(by_weight_ih, weighted, self.inputs);
        matmul(by_weight_ih, false, columns(0..weighted), input, 1);
        for (to, from) in self.recurrent_blocks() {
            let before = MatrixRef::row_major(&work.before[0][..rows * self.width], rows, self.width);
            let by_weight = &mut by_weight_hh[from.start * self.width..from.end * self.width];
            let by_weight = MatrixMut::row_major(by_weight, from.len(), self.width);
            matmul(by_weight, false, columns(to), before, 1);
        }
    }

    /// Returns the number of rows of each weight.
    fn rows(self) -> usize {
        self.cell.gates() * self.width
    }

    /// Returns the recurrent blocks, each as a range of columns of the gate buffer and a range of rows of the weight.
    fn recurrent_blocks(self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let range = move |start: usize, count: usize| start * self.width..(start + count) * self.width;
        let blocks = self.cell.recurrent_blocks().iter();
        blocks.map(move |(to, from, count)| (range(*to, *count), range(*from, *count)))
    }

    /// Returns some rows of the recurrent weight.
    fn weight_rows(self, weight_hh: &[f32], rows: Range<usize>) -> MatrixRef<'_> {
        let own = rows.start * self.width..rows.end * self.width;
        MatrixRef::row_major(&weight_hh[own], rows.len(), self.width)
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
        let (weights, bias) = parameters.split_at(self.rows() * (self.inputs + self.width));
        let (weight_ih, weight_hh) = weights.split_at(self.rows() * self.inputs);
        [weight_ih, weight_hh, bias]
    }

    /// Copies the input to the workspace, ordered by step.
    fn gather(self, sequences: &Sequences<'_>, work: &mut RecurrentWorkspace) {
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
        weight_hh: &[f32],
        work: &mut RecurrentWorkspace,
    ) {
        let (width, wide) = (self.width, BLOCKS * self.width);
        let now = t * count * width..(t + 1) * count * width;
        for (current, before) in work.current.iter_mut().zip(&mut work.before) {
            for k in (0..count).filter(|k| sequences.starts[k * sequences.steps + t]) {
                current[k * width..(k + 1) * width].fill(0.0);
            }
            before[now.clone()].copy_from_slice(&current[..count * width]);
        }
        let gates = &mut work.gates[t * count * wide..(t + 1) * count * wide];
        for (to, from) in self.recurrent_blocks() {
            let before = MatrixRef::row_major(&work.before[0][now.clone()], count, width);
            let gates = MatrixMut::columns(gates, (count, wide), to);
            matmul(gates, true, before, self.weight_rows(weight_hh, from).transposed(), 1);
        }
        match self.cell {
            Cell::Lstm => {
                let squashed = &mut work.squashed_cells;
                lstm::activate(width, now.start, gates, &mut work.current, squashed);
            }
            Cell::Gru => gru::activate(width, gates, &mut work.current[0]),
        }
        for (k, output) in work.current[0][..count * width].chunks_exact(width).enumerate() {
            let at = (k * sequences.steps + t) * width;
            work.outputs[at..at + width].copy_from_slice(output);
        }
    }

    /// Computes the gradient of the loss with respect to the gates of step `t`. Propagates the gradients with respect
    /// to the state, which are in `work.current`, back through this step.
    fn step_back(
        self,
        t: usize,
        (count, sequences): (usize, &Sequences<'_>),
        weight_hh: &[f32],
        work: &mut RecurrentWorkspace,
    ) {
        let (width, wide) = (self.width, BLOCKS * self.width);
        for k in 0..count {
            let at = StepIndex { width, row: t * count + k, output: k * sequences.steps + t, sequence: k };
            match self.cell {
                Cell::Lstm => lstm::step_back(at, work),
                Cell::Gru => gru::step_back(at, work),
            }
        }
        let by_gates = &work.by_gates[t * count * wide..(t + 1) * count * wide];
        for (i, (to, from)) in self.recurrent_blocks().enumerate() {
            let by_before = MatrixMut::row_major(&mut work.current[0][..count * width], count, width);
            let by_gates = MatrixRef::columns(by_gates, (count, wide), to);
            // In a GRU, the previous output also contributes directly to the new output. Add to the gradient of that
            // contribution, which `current` already holds.
            matmul(
                by_before,
                self.cell == Cell::Gru || i > 0,
                by_gates,
                self.weight_rows(weight_hh, from),
                1,
            );
        }
        for k in (0..count).filter(|k| sequences.starts[k * sequences.steps + t]) {
            work.current.iter_mut().for_each(|by| by[k * width..(k + 1) * width].fill(0.0));
        }
    }
}

/// Position of one step of one sequence in the buffers.
#[derive(Clone, Copy)]
struct StepIndex {
    width: usize,
    /// The row in the buffers that are ordered by step.
    row: usize,
    /// The row in the outputs, which are ordered by sequence.
    output: usize,
    /// Number of the sequence.
    sequence: usize,
}

impl RecurrentWorkspace {
    /// Returns the outputs of the preceding [`Recurrent::forward`] call (`[sequences * steps, width]`) and a buffer of
    /// the same shape. Before the caller calls [`Recurrent::backward`], it must fill this buffer with the gradient of
    /// the loss with respect to the outputs. `len` is the number of floats in each.
    pub fn output_and_delta(&mut self, len: usize) -> (&[f32], &mut [f32]) {
        (&self.outputs[..len], &mut self.by_outputs[..len])
    }
}

#[cfg(test)]
mod tests;
