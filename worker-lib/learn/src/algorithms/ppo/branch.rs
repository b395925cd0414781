//! One of PPO's two networks, preceded by a recurrent layer if the policy is recurrent.

use std::ops::Range;

use crate::algorithms::phases::Phase;
use crate::nn::{Network, Recurrent, RecurrentWorkspace, Sequences, Workspace};

/// Observations of sequences of equal length or, if the policy is not recurrent, of individual samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed<'a> {
    /// Normalised observations, `[sequences * steps, observation_dim]`, ordered by sequence and then by step.
    pub(super) observations: &'a [f32],
    /// State of the policy before each sequence, `[sequences, state_len]`; empty if the policy is not recurrent.
    pub(super) states: &'a [f32],
    /// Whether an episode begins at each step, `[sequences * steps]`; unused if the policy is not recurrent.
    pub(super) starts: &'a [bool],
}

/// A network and its buffers.
pub(super) struct Branch {
    network: Network,
    range: Range<usize>,
    work: Workspace,
    memory: Option<Memory>,
}

/// The recurrent layer of a branch and its buffers.
struct Memory {
    layer: Recurrent,
    range: Range<usize>,
    /// The range of this branch in the policy state, which holds the states of all branches.
    part: Range<usize>,
    /// States of this branch before each sequence, `[sequences, layer.state_len]`.
    states: Vec<f32>,
    work: RecurrentWorkspace,
}

impl Branch {
    /// Creates a branch for batches of up to `batch_max` samples. `range` is the range of the network's parameters. For
    /// a recurrent policy, `memory` holds the recurrent layer, the range of its parameters, and the range of this
    /// branch in the policy state.
    pub(super) fn new(
        (network, range): (Network, Range<usize>),
        memory: Option<(Recurrent, Range<usize>, Range<usize>)>,
        batch_max: usize,
    ) -> Self {
        let memory = memory.map(|(layer, range, part)| {
            let work = layer.workspace(batch_max);
            Memory { layer, range, part, states: vec![], work }
        });
        Self { work: network.workspace(batch_max), network, range, memory }
    }

    /// Returns the outputs of the network, `[batch, outputs]`; `parameters` are those of the whole policy.
    pub(super) fn forward(&mut self, parameters: &[f32], observed: &Observed<'_>) -> &[f32] {
        let inputs = match &mut self.memory {
            Some(memory) => memory.forward(parameters, observed),
            None => observed.observations,
        };
        self.network.forward(&parameters[self.range.clone()], inputs, &mut self.work)
    }

    /// Returns the outputs of the preceding [`Self::forward`] call, and the buffer into which the caller writes the
    /// gradient of the loss with respect to these outputs. Both have `len` floats.
    pub(super) fn output_and_delta(&mut self, len: usize) -> (&[f32], &mut [f32]) {
        self.work.output_and_delta(len)
    }

    /// Overwrites this branch's part of `gradient` (`[parameter_count]` of the whole policy) with the gradient of the
    /// loss. The preceding call must be [`Self::forward`] with the same arguments.
    pub(super) fn backward(&mut self, parameters: &[f32], observed: &Observed<'_>, gradient: &mut [f32]) {
        let _phase = Phase::Backward.enter();
        let own = &parameters[self.range.clone()];
        let by_network = &mut gradient[self.range.clone()];
        let Some(memory) = &mut self.memory else {
            self.network.backward(own, observed.observations, &mut self.work, by_network);
            return;
        };
        let len = observed.starts.len() * memory.layer.width();
        let (inputs, by_inputs) = memory.work.output_and_delta(len);
        self.network.backward_to_input(own, inputs, &mut self.work, Some(by_network), by_inputs);
        let by_memory = &mut gradient[memory.range.clone()];
        let sequences = sequences(observed, &memory.states, memory.layer);
        memory.layer.backward(&parameters[memory.range.clone()], &sequences, &mut memory.work, by_memory);
    }

    /// If the policy is recurrent, advances `states` (`[sequences, state_len]`) from the beginning to the end of the
    /// observed sequences.
    pub(super) fn remember(&mut self, parameters: &[f32], observed: &Observed<'_>, states: &mut [f32]) {
        if let Some(memory) = &mut self.memory {
            memory.forward(parameters, observed);
            memory.write_states(states);
        }
    }

    /// If the policy is recurrent, writes the states after the preceding [`Self::forward`] call to this branch's part
    /// of `states`.
    pub(super) fn write_states(&self, states: &mut [f32]) {
        if let Some(memory) = &self.memory {
            memory.write_states(states);
        }
    }
}

impl Memory {
    fn forward(&mut self, parameters: &[f32], observed: &Observed<'_>) -> &[f32] {
        self.states.clear();
        for state in observed.states.chunks_exact(2 * self.layer.state_len()) {
            self.states.extend_from_slice(&state[self.part.clone()]);
        }
        let sequences = sequences(observed, &self.states, self.layer);
        self.layer.forward(&parameters[self.range.clone()], &sequences, &mut self.work)
    }

    fn write_states(&self, states: &mut [f32]) {
        let own = states.chunks_exact_mut(2 * self.layer.state_len());
        own.enumerate().for_each(|(k, state)| {
            self.layer.write_state(&self.work, k, &mut state[self.part.clone()]);
        });
    }
}

fn sequences<'a>(observed: &Observed<'a>, states: &'a [f32], layer: Recurrent) -> Sequences<'a> {
    let count = states.len() / layer.state_len();
    let Observed { observations: input, starts, .. } = *observed;
    Sequences { input, steps: starts.len() / count.max(1), states, starts }
}
