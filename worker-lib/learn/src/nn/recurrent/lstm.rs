//! The operations of a long short-term memory. Its gate buffer holds four blocks: the input gate, the forget gate, the
//! candidate and the output gate.

use super::{BLOCKS, RecurrentWorkspace, StepIndex};
use crate::nn::activation::{sigmoid, tanh};

/// Applies the activations to the gates of one step (`[sequences, 4 width]`) and advances the states. The step begins
/// at `start` in the buffers of `width` columns.
pub(super) fn activate(
    width: usize,
    start: usize,
    gates: &mut [f32],
    current: &mut [Vec<f32>],
    squashed: &mut [f32],
) {
    let [outputs, cells] = current else { return };
    let rows = gates.chunks_exact_mut(BLOCKS * width).zip(squashed[start..].chunks_exact_mut(width));
    let states = outputs.chunks_exact_mut(width).zip(cells.chunks_exact_mut(width));
    for ((gates, squashed), (outputs, cells)) in rows.zip(states) {
        let (sigmoids, others) = gates.split_at_mut(2 * width);
        let (candidates, output_gates) = others.split_at_mut(width);
        sigmoids.iter_mut().chain(output_gates.iter_mut()).for_each(|x| *x = sigmoid(*x));
        candidates.iter_mut().for_each(|x| *x = tanh(*x));
        for j in 0..width {
            cells[j] = sigmoids[width + j] * cells[j] + sigmoids[j] * candidates[j];
            squashed[j] = tanh(cells[j]);
            outputs[j] = output_gates[j] * squashed[j];
        }
    }
}

/// Computes the gradient of the loss with respect to the gates of one step. Replaces the gradient with respect to the
/// cells after the step with the gradient with respect to the cells before it.
pub(super) fn step_back(at: StepIndex, work: &mut RecurrentWorkspace) {
    let width = at.width;
    let gates = &work.gates[at.row * BLOCKS * width..(at.row + 1) * BLOCKS * width];
    let by_gates = &mut work.by_gates[at.row * BLOCKS * width..(at.row + 1) * BLOCKS * width];
    let by_outputs = &work.by_outputs[at.output * width..(at.output + 1) * width];
    let [by_output_states, by_cells] = &mut work.current[..] else { return };
    let own = at.sequence * width..(at.sequence + 1) * width;
    let (by_output_states, by_cells) = (&by_output_states[own.clone()], &mut by_cells[own]);
    for j in 0..width {
        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * width + j]);
        let squashed = work.squashed_cells[at.row * width + j];
        let by_output = by_outputs[j] + by_output_states[j];
        let by_cell = by_cells[j] + by_output * o * (1.0 - squashed * squashed);
        by_gates[j] = by_cell * g * i * (1.0 - i);
        by_gates[width + j] = by_cell * work.before[1][at.row * width + j] * f * (1.0 - f);
        by_gates[2 * width + j] = by_cell * i * (1.0 - g * g);
        by_gates[3 * width + j] = by_output * squashed * o * (1.0 - o);
        by_cells[j] = by_cell * f;
    }
}
