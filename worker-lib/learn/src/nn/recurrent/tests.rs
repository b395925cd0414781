//! Tests of the recurrent layers.

use super::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const CELLS: [Cell; 2] = [Cell::Lstm, Cell::Gru];
const INPUTS: usize = 3;
const WIDTH: usize = 4;
const COUNT: usize = 2;
const STEPS: usize = 5;

fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Returns parameters, inputs, states and episode starts. The only episode start is in the middle of the second
/// sequence.
fn sample(layer: Recurrent) -> (Vec<f32>, Vec<f32>, Vec<f32>, Vec<bool>) {
    let mut starts = vec![false; COUNT * STEPS];
    starts[STEPS + 2] = true;
    let states = random(COUNT * layer.state_len(), 3);
    (random(layer.parameter_count(), 1), random(COUNT * STEPS * INPUTS, 2), states, starts)
}

#[test]
fn gradients_agree_with_finite_differences() {
    for layer in CELLS.map(|cell| Recurrent::new(cell, INPUTS, WIDTH)) {
        let (parameters, input, states, starts) = sample(layer);
        let weights = random(COUNT * STEPS * WIDTH, 4);
        let sequences = Sequences { input: &input, steps: STEPS, states: &states, starts: &starts };
        let mut work = layer.workspace(COUNT * STEPS);
        let mut loss = |parameters: &[f32]| {
            let outputs = layer.forward(parameters, &sequences, &mut work);
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
        layer.backward(&parameters, &sequences, &mut work, &mut gradient);
        for (i, (by, numeric)) in gradient.iter().zip(&numeric).enumerate() {
            assert!(
                (f64::from(*by) - numeric).abs() < 1e-3 + 1e-3 * numeric.abs(),
                "{layer:?} {i}: {by} {numeric}"
            );
        }
    }
}

#[test]
fn single_steps_with_carried_states_equal_one_pass() {
    for layer in CELLS.map(|cell| Recurrent::new(cell, INPUTS, WIDTH)) {
        let (parameters, input, states, starts) = sample(layer);
        let sequences = Sequences { input: &input, steps: STEPS, states: &states, starts: &starts };
        let mut work = layer.workspace(COUNT * STEPS);
        let all = layer.forward(&parameters, &sequences, &mut work).to_vec();
        let write_states = |work: &RecurrentWorkspace, states: &mut [f32]| {
            let each = states.chunks_exact_mut(layer.state_len());
            each.enumerate().for_each(|(k, state)| layer.write_state(work, k, state));
        };
        let mut last = vec![0.0; states.len()];
        write_states(&work, &mut last);
        let mut carried = states.clone();
        for t in 0..STEPS {
            let rows = |data: &[f32], dim: usize| -> Vec<f32> {
                (0..COUNT).flat_map(|k| data[(k * STEPS + t) * dim..][..dim].to_vec()).collect()
            };
            let input = rows(&input, INPUTS);
            let starts: Vec<_> = (0..COUNT).map(|k| starts[k * STEPS + t]).collect();
            let one = Sequences { input: &input, steps: 1, states: &carried, starts: &starts };
            let outputs = layer.forward(&parameters, &one, &mut work);
            let want = rows(&all, WIDTH);
            assert!(outputs.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6), "{outputs:?} {want:?}");
            write_states(&work, &mut carried);
        }
        assert!(carried.iter().zip(&last).all(|(a, b)| (a - b).abs() < 1e-6), "{carried:?} {last:?}");
    }
}

#[test]
fn an_episode_that_begins_within_a_sequence_does_not_see_earlier_steps() {
    for layer in CELLS.map(|cell| Recurrent::new(cell, INPUTS, WIDTH)) {
        let (parameters, input, states, starts) = sample(layer);
        let outputs_of = |input: &[f32], states: &[f32]| {
            let sequences = Sequences { input, steps: STEPS, states, starts: &starts };
            layer.forward(&parameters, &sequences, &mut layer.workspace(COUNT * STEPS)).to_vec()
        };
        let all = outputs_of(&input, &states);
        let mut changed = input.clone();
        changed[STEPS * INPUTS..(STEPS + 2) * INPUTS].fill(0.7);
        let others: Vec<f32> = states.iter().map(|x| x + 0.5).collect();
        let (later, earlier) = ((STEPS + 2) * WIDTH..all.len(), STEPS * WIDTH..(STEPS + 2) * WIDTH);
        let moved = outputs_of(&changed, &others);
        assert_eq!(moved[later.clone()], all[later]);
        assert!(moved[earlier.clone()].iter().zip(&all[earlier]).all(|(a, b)| a != b));
        assert!(moved[..STEPS * WIDTH].iter().zip(&all).any(|(a, b)| a != b));
    }
}

#[test]
fn a_gru_combines_its_gates_as_published() {
    let layer = Recurrent::new(Cell::Gru, 1, 1);
    let (mut work, sigmoid) = (layer.workspace(1), |x: f32| 1.0 / (1.0 + (-x).exp()));
    // Input weights, recurrent weights and biases of the reset gate, the update gate and the candidate.
    let parameters = [0.3, -0.7, 0.9, 0.5, 1.1, -1.3, 0.1, -0.2, 0.4, 0.6];
    let (x, h) = (0.8_f32, -0.6_f32);
    let reset = sigmoid(0.3 * x + 0.5 * h + 0.1);
    let update = sigmoid(-0.7 * x + 1.1 * h - 0.2);
    let candidate = (0.9 * x + 0.4 + reset * (-1.3 * h + 0.6)).tanh();
    let expected = (1.0 - update) * candidate + update * h;
    let sequences = Sequences { input: &[x], steps: 1, states: &[h], starts: &[false] };
    let output = layer.forward(&parameters, &sequences, &mut work)[0];
    assert!((output - expected).abs() < 1e-6, "{output} {expected}");
}
