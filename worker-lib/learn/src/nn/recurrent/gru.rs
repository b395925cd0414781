//! The operations of a gated recurrent unit. Its gate buffer holds four blocks: the reset gate, the update gate, the
//! candidate, and the candidate's recurrent term (its recurrent weights times the previous output).

use super::{BLOCKS, RecurrentWorkspace, StepIndex};
use crate::nn::activation::{sigmoid, tanh};

/// Applies the activations to the gates of one step (`[sequences, 4 width]`) and advances the outputs
/// (`[sequences, width]`).
pub(super) fn activate(width: usize, gates: &mut [f32], outputs: &mut [f32]) {
    for (row, output) in gates.chunks_exact_mut(BLOCKS * width).zip(outputs.chunks_exact_mut(width)) {
        let (sigmoids, others) = row.split_at_mut(2 * width);
        let (candidates, products) = others.split_at_mut(width);
        sigmoids.iter_mut().for_each(|x| *x = sigmoid(*x));
        for j in 0..width {
            let (reset, update) = (sigmoids[j], sigmoids[width + j]);
            candidates[j] = tanh(candidates[j] + reset * products[j]);
            output[j] = candidates[j] + update * (output[j] - candidates[j]);
        }
    }
}

/// Computes the gradient of the loss with respect to the gates of one step. Replaces the gradient with respect to the
/// output after the step with the gradient with respect to the output before the step, except for the part that flows
/// through the gates.
pub(super) fn step_back(at: StepIndex, work: &mut RecurrentWorkspace) {
    let width = at.width;
    let gates = &work.gates[at.row * BLOCKS * width..(at.row + 1) * BLOCKS * width];
    let by_gates = &mut work.by_gates[at.row * BLOCKS * width..(at.row + 1) * BLOCKS * width];
    let before = &work.before[0][at.row * width..(at.row + 1) * width];
    let by_outputs = &work.by_outputs[at.output * width..(at.output + 1) * width];
    let by_state = &mut work.current[0][at.sequence * width..(at.sequence + 1) * width];
    for j in 0..width {
        let [reset, update, candidate, product] = [0, 1, 2, 3].map(|gate| gates[gate * width + j]);
        let by_output = by_outputs[j] + by_state[j];
        let by_candidate = by_output * (1.0 - update) * (1.0 - candidate * candidate);
        by_gates[j] = by_candidate * product * reset * (1.0 - reset);
        by_gates[width + j] = by_output * (before[j] - candidate) * update * (1.0 - update);
        by_gates[2 * width + j] = by_candidate;
        by_gates[3 * width + j] = by_candidate * reset;
        by_state[j] = by_output * update;
    }
}
