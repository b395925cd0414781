//! A worker's environments, the rollout that they fill, and the minibatches drawn from it.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::branch::Observed;
use super::loss::{Minibatch, PpoLoss};
use super::{Losses, PpoConfig};
use crate::algorithms::TrainError;
use crate::algorithms::actor_critic::ActorCritic;
use crate::algorithms::environments::{EnvFactory, EnvironmentSlot, local_slots};
use crate::algorithms::normalise::{CLIP, Normaliser, normalise_or_copy};
use crate::algorithms::rollout::RolloutBuffer;
use crate::algorithms::share::Share;
use crate::env::EnvSpec;

/// Parameters and statistics that are constant during a rollout.
pub(super) struct Frozen<'a> {
    /// Parameters of the networks.
    pub(super) parameters: &'a [f32],
    /// Normaliser of the observations, if they are normalised.
    pub(super) normaliser: Option<&'a Normaliser>,
    /// Factor by which rewards are multiplied, if they are scaled.
    pub(super) reward_scale: Option<f64>,
    /// Discount factor.
    pub(super) gamma: f32,
}

/// Receiver of the events of a rollout.
pub(super) trait Tally {
    /// Returns the value from which deviations of the discounted return are measured, such as its mean before the
    /// rollout.
    fn return_mean(&self) -> f64;
    /// Records an environment's observation before the policy acts on that observation.
    fn observed(&mut self, slot: &mut EnvironmentSlot);
    /// Records the step that an environment has just taken.
    fn stepped(&mut self, slot: &EnvironmentSlot);
    /// Records that the episode of an environment ended with step `step` of the rollout.
    fn ended(&mut self, slot: &EnvironmentSlot, step: usize);
}

/// Environments, rollout buffer and minibatches of a worker.
pub(super) struct Rollouts {
    pub(super) share: Share,
    pub(super) collector: Collector,
    pub(super) buffer: RolloutBuffer,
    minibatches: Minibatches,
}

impl Rollouts {
    /// Creates the environments, each at the start of its first episode.
    pub(super) fn new(config: &PpoConfig, share: Share, factory: &EnvFactory) -> Result<Self, TrainError> {
        let (spec, slots) = local_slots(&share, config.seed, factory)?;
        let agent = config.networks(&spec);
        Ok(Self {
            buffer: new_buffer(&share, &agent),
            minibatches: Minibatches::new(config, &share, agent),
            collector: Collector::new(config, spec, slots),
            share,
        })
    }

    /// Fills the buffer with one rollout.
    ///
    /// # Errors
    /// Fails if an environment fails.
    pub(super) fn collect(&mut self, with: &Frozen<'_>, tally: &mut dyn Tally) -> Result<(), TrainError> {
        self.collector.collect(with, &mut self.buffer, tally)
    }

    /// Computes advantages and value targets with discount factor `gamma`, and restores the original order of the
    /// samples.
    pub(super) fn estimate_advantages(&mut self, gamma: f32) {
        self.minibatches.begin(&mut self.buffer, gamma);
    }

    /// Shuffles the order of the samples.
    pub(super) fn shuffle(&mut self) {
        self.minibatches.shuffle(self.collector.slots.iter_mut().map(|slot| &mut slot.minibatch_rng));
    }

    /// Assembles minibatch `number` from the samples in their current order.
    pub(super) fn draw(&mut self, number: usize, parameters: &[f32]) {
        self.minibatches.draw(number, parameters, &self.buffer);
    }

    /// Computes the gradient of the loss over the most recently assembled minibatch.
    pub(super) fn gradient(
        &mut self,
        config: &PpoConfig,
        parameters: &[f32],
        gradient: &mut [f32],
    ) -> Losses {
        self.minibatches.gradient(config, parameters, gradient)
    }
}

/// Allocates the buffer for one rollout of a worker's environments.
pub(super) fn new_buffer(share: &Share, agent: &ActorCritic) -> RolloutBuffer {
    let environments = share.local_environments().len();
    let dims = (agent.observation_dim(), agent.action_dim());
    RolloutBuffer::new(environments, share.steps_per_env, dims.0, dims.1).with_states(agent.state_len())
}

/// A worker's environments, and the networks that act in them.
pub(super) struct Collector {
    pub(super) spec: EnvSpec,
    pub(super) agent: ActorCritic,
    pub(super) slots: Vec<EnvironmentSlot>,
    networks: PpoLoss,
    /// Current normalised observations, `[environments, observation_dim]`.
    normalised: Vec<f32>,
    /// States of a recurrent policy, `[environments, state_len]`.
    states: Vec<f32>,
    /// Episode-start flags passed to the networks. Always false: acting runs one step at a time, and the state of an
    /// environment that begins an episode has already been zeroed.
    starts: Vec<bool>,
}

impl Collector {
    pub(super) fn new(config: &PpoConfig, spec: EnvSpec, mut slots: Vec<EnvironmentSlot>) -> Self {
        let agent = config.networks(&spec);
        slots.iter_mut().for_each(|slot| slot.memory = vec![0.0; agent.state_len()]);
        Self {
            states: vec![0.0; slots.len() * agent.state_len()],
            starts: vec![false; slots.len()],
            networks: PpoLoss::new(agent.clone(), slots.len()),
            normalised: vec![0.0; slots.len() * spec.observation_dim],
            spec,
            agent,
            slots,
        }
    }

    /// Fills the buffer with one rollout.
    ///
    /// # Errors
    /// Fails if an environment fails.
    pub(super) fn collect(
        &mut self,
        with: &Frozen<'_>,
        buffer: &mut RolloutBuffer,
        tally: &mut dyn Tally,
    ) -> Result<(), TrainError> {
        for t in 0..buffer.steps {
            self.normalise_observations(with.normaliser);
            if t == 0 {
                buffer.states.copy_from_slice(&self.states);
            }
            self.act(with.parameters, buffer, t, tally)?;
            self.finish_steps(with, buffer, t, tally)?;
            self.end_episodes(with, buffer, t, tally)?;
        }
        self.normalise_observations(with.normaliser);
        let Self { networks, normalised, states, starts, .. } = self;
        let values = networks.values(with.parameters, &Observed { observations: normalised, states, starts });
        buffer.last_values.copy_from_slice(values);
        Ok(())
    }

    /// Gathers the observations of all environments, normalised, and their policy states.
    fn normalise_observations(&mut self, normaliser: Option<&Normaliser>) {
        let rows = self.normalised.chunks_exact_mut(self.spec.observation_dim);
        for (slot, row) in self.slots.iter().zip(rows) {
            normalise_or_copy(normaliser, &slot.observation, row);
        }
        self.states.clear();
        self.slots.iter().for_each(|slot| self.states.extend_from_slice(&slot.memory));
    }

    /// Chooses actions from the observations in `self.normalised` and begins step `t` of every environment with them.
    fn act(
        &mut self,
        parameters: &[f32],
        buffer: &mut RolloutBuffer,
        t: usize,
        tally: &mut dyn Tally,
    ) -> Result<(), TrainError> {
        let (dim, action_dim) = (self.spec.observation_dim, self.agent.action_dim());
        let Self { normalised, states, starts, .. } = self;
        let observed = Observed { observations: normalised, states, starts };
        for (k, value) in self.networks.values(parameters, &observed).iter().enumerate() {
            buffer.values[k * buffer.steps + t] = *value;
        }
        let outputs = self.agent.actor().outputs();
        let output = self.networks.policy(parameters, &observed);
        for (k, slot) in self.slots.iter_mut().enumerate() {
            let i = k * buffer.steps + t;
            buffer.observations[i * dim..(i + 1) * dim]
                .copy_from_slice(&self.normalised[k * dim..(k + 1) * dim]);
            let action = &mut buffer.actions[i * action_dim..(i + 1) * action_dim];
            let row = &output[k * outputs..(k + 1) * outputs];
            buffer.log_probs[i] = self.agent.sample(parameters, row, &mut slot.action_rng, action);
            tally.observed(slot);
            slot.begin_step(self.agent.to_env(action))?;
        }
        self.networks.write_states(&mut self.states);
        let state_len = self.agent.state_len().max(1);
        for (slot, state) in self.slots.iter_mut().zip(self.states.chunks_exact(state_len)) {
            slot.memory.copy_from_slice(state);
        }
        Ok(())
    }

    fn finish_steps(
        &mut self,
        with: &Frozen<'_>,
        buffer: &mut RolloutBuffer,
        t: usize,
        tally: &mut dyn Tally,
    ) -> Result<(), TrainError> {
        let (action_dim, gamma) = (self.agent.action_dim(), f64::from(with.gamma));
        for (k, slot) in self.slots.iter_mut().enumerate() {
            let i = k * buffer.steps + t;
            let action = self.agent.to_env(&buffer.actions[i * action_dim..(i + 1) * action_dim]);
            let step = slot.finish_step(action, gamma, tally.return_mean())?;
            tally.stepped(slot);
            buffer.rewards[i] = match with.reward_scale {
                Some(scale) => (step.reward * scale).clamp(-CLIP, CLIP) as f32,
                None => step.reward as f32,
            };
            buffer.dones[i] = slot.ended || step.life_lost;
        }
        Ok(())
    }

    /// Starts a new episode in each environment whose episode ended at step `t`. If the episode was truncated, first
    /// adds the discounted value of the final observation to the reward.
    fn end_episodes(
        &mut self,
        with: &Frozen<'_>,
        buffer: &mut RolloutBuffer,
        t: usize,
        tally: &mut dyn Tally,
    ) -> Result<(), TrainError> {
        for (k, slot) in self.slots.iter_mut().enumerate() {
            if !slot.ended {
                if buffer.dones[k * buffer.steps + t] {
                    // For the value function, the loss of a life ends the episode, so the state of a recurrent policy
                    // is reset too.
                    slot.memory.fill(0.0);
                }
                continue;
            }
            if slot.truncated {
                let row = &mut self.normalised[..self.spec.observation_dim];
                normalise_or_copy(with.normaliser, &slot.observation, row);
                let last = Observed { observations: row, states: &slot.memory, starts: &[false] };
                let value = self.networks.values(with.parameters, &last)[0];
                buffer.rewards[k * buffer.steps + t] += with.gamma * value;
            }
            tally.ended(slot, t);
            slot.reset()?;
        }
        Ok(())
    }
}

/// Minibatches of a rollout, and the loss over them. From each environment, a minibatch contains several single samples
/// or, if the policy is recurrent, one sequence.
pub(super) struct Minibatches {
    loss: PpoLoss,
    minibatch: Minibatch,
    /// Order in which the samples, or the sequences, of each environment enter minibatches.
    permutations: Vec<Vec<u32>>,
    /// Number of samples per entry of `permutations`: 1, or the length of a sequence.
    unit: usize,
    per_env: usize,
    /// Policy states before each sequence, `[sequences per environment, environments, state_len]`.
    states: Vec<f32>,
    /// Whether `states` have been computed for the current rollout.
    states_are_known: bool,
    gae_lambda: f32,
}

impl Minibatches {
    /// Creates the minibatches of a worker with this `share` of the job.
    pub(super) fn new(config: &PpoConfig, share: &Share, agent: ActorCritic) -> Self {
        let (environments, per_env) = (share.local_environments().len(), share.minibatch_per_env);
        let samples = per_env * environments;
        let unit = if agent.memory().is_some() { per_env } else { 1 };
        Self {
            minibatch: Minibatch::with_size(samples, environments, &agent),
            states: vec![0.0; share.minibatches() * environments * agent.state_len()],
            states_are_known: false,
            loss: PpoLoss::new(agent, samples),
            permutations: vec![(0..(share.steps_per_env / unit) as u32).collect(); environments],
            unit,
            per_env,
            gae_lambda: config.gae_lambda,
        }
    }

    /// Prepares for a new rollout: computes advantages and value targets with discount factor `gamma`, and restores the
    /// original order of the samples.
    pub(super) fn begin(&mut self, buffer: &mut RolloutBuffer, gamma: f32) {
        buffer.estimate_advantages(gamma, self.gae_lambda);
        self.states_are_known = false;
        for permutation in &mut self.permutations {
            permutation.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        }
    }

    /// Shuffles the samples of each environment with the environment's own random stream.
    pub(super) fn shuffle<'a>(&mut self, streams: impl Iterator<Item = &'a mut ChaCha8Rng>) {
        self.permutations.iter_mut().zip(streams).for_each(|(permutation, rng)| permutation.shuffle(rng));
    }

    /// Assembles minibatch `number` from the samples in their current order.
    pub(super) fn draw(&mut self, number: usize, parameters: &[f32], buffer: &RolloutBuffer) {
        if !std::mem::replace(&mut self.states_are_known, true) && !self.states.is_empty() {
            self.find_states(parameters, buffer);
        }
        let units = self.per_env / self.unit;
        for k in 0..self.permutations.len() {
            for j in 0..units {
                let chosen = self.permutations[k][number * units + j] as usize;
                self.copy_unit(k, j, chosen, buffer);
            }
        }
    }

    /// Copies sample or sequence `chosen` of environment `k` to position `to` among that environment's samples or
    /// sequences in the minibatch.
    fn copy_unit(&mut self, k: usize, to: usize, chosen: usize, buffer: &RolloutBuffer) {
        for i in 0..self.unit {
            let from = k * buffer.steps + chosen * self.unit + i;
            self.minibatch.copy_sample(k * self.per_env + to * self.unit + i, buffer, from);
        }
        let environments = self.permutations.len();
        let state_len = self.minibatch.states.len() / environments;
        let from = (chosen * environments + k) * state_len;
        let state = &mut self.minibatch.states[k * state_len..(k + 1) * state_len];
        state.copy_from_slice(&self.states[from..from + state_len]);
    }

    /// Computes the policy state before each sequence of a new rollout, using the parameters from before the rollout's
    /// first update. In all updates of this rollout, the sequences start from these states, as in Stable-Baselines3's
    /// RecurrentPPO.
    fn find_states(&mut self, parameters: &[f32], buffer: &RolloutBuffer) {
        let len = buffer.states.len();
        self.states[..len].copy_from_slice(&buffer.states);
        for chosen in 0..self.states.len() / len - 1 {
            for k in 0..self.permutations.len() {
                self.copy_unit(k, 0, chosen, buffer);
            }
            let next = &mut self.states[(chosen + 1) * len..(chosen + 2) * len];
            self.loss.remember(parameters, &self.minibatch.observed(), next);
        }
    }

    /// Computes the gradient of the loss over the most recently assembled minibatch.
    pub(super) fn gradient(
        &mut self,
        config: &PpoConfig,
        parameters: &[f32],
        gradient: &mut [f32],
    ) -> Losses {
        self.loss.gradient(config, parameters, &self.minibatch, gradient)
    }
}
