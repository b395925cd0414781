//! A worker's environments, the rollout that they fill and the minibatches that are drawn from it.

use rand::seq::SliceRandom;

use super::loss::{Minibatch, PpoLoss};
use super::{Losses, PpoConfig};
use crate::algorithms::TrainError;
use crate::algorithms::actor_critic::ActorCritic;
use crate::algorithms::environments::{EnvFactory, EnvironmentSlot, local_slots};
use crate::algorithms::normalise::{CLIP, Normaliser, normalise_or_copy};
use crate::algorithms::rollout::RolloutBuffer;
use crate::algorithms::share::Share;
use crate::env::EnvSpec;

/// What a rollout is taken with; it does not change before the next one.
pub(super) struct Frozen<'a> {
    /// Of the networks.
    pub(super) parameters: &'a [f32],
    /// Of observations, where they are normalised.
    pub(super) normaliser: Option<&'a Normaliser>,
    /// What rewards are multiplied by, where they are scaled.
    pub(super) reward_scale: Option<f64>,
}

/// Counts what happens in a rollout.
pub(super) trait Tally {
    /// Mean of the discounted return, from which its deviations are taken.
    fn return_mean(&self) -> f64;
    /// The environment stands at an observation that is acted on.
    fn observed(&mut self, slot: &mut EnvironmentSlot);
    /// It has acted.
    fn stepped(&mut self, slot: &EnvironmentSlot);
    /// Its episode ended with the rollout's `step`-th step.
    fn ended(&mut self, slot: &EnvironmentSlot, step: usize);
}

/// Environments, rollout, minibatches.
pub(super) struct Rollouts {
    pub(super) share: Share,
    pub(super) spec: EnvSpec,
    pub(super) agent: ActorCritic,
    pub(super) slots: Vec<EnvironmentSlot>,
    pub(super) buffer: RolloutBuffer,
    loss: PpoLoss,
    minibatch: Minibatch,
    /// Order of each environment's samples.
    permutations: Vec<Vec<u32>>,
    /// What the environments stand at, `[environments, observation_dim]`.
    normalised: Vec<f32>,
    gamma: f32,
    gae_lambda: f32,
}

impl Rollouts {
    /// Environments at the start of their first episodes.
    pub(super) fn new(config: &PpoConfig, share: Share, factory: &EnvFactory) -> Result<Self, TrainError> {
        let (spec, slots) = local_slots(&share, config.seed, factory)?;
        let agent = config.networks(&spec);
        let (dim, steps) = (spec.observation_dim, share.steps_per_env);
        let samples = share.minibatch_per_env * slots.len();
        Ok(Self {
            buffer: RolloutBuffer::new(slots.len(), steps, dim, agent.action_dim()),
            loss: PpoLoss::new(agent.clone(), samples.max(slots.len())),
            minibatch: Minibatch::with_size(samples, &agent),
            permutations: vec![(0..steps as u32).collect(); slots.len()],
            normalised: vec![0.0; slots.len() * dim],
            gamma: config.gamma,
            gae_lambda: config.gae_lambda,
            share,
            spec,
            agent,
            slots,
        })
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// If an environment fails.
    pub(super) fn collect(&mut self, with: &Frozen<'_>, tally: &mut dyn Tally) -> Result<(), TrainError> {
        for t in 0..self.share.steps_per_env {
            self.normalise_observations(with.normaliser);
            self.act(with.parameters, t, tally)?;
            self.finish_steps(with.reward_scale, t, tally)?;
            self.end_episodes(with, t, tally)?;
        }
        self.normalise_observations(with.normaliser);
        let values = self.loss.values(with.parameters, &self.normalised);
        self.buffer.last_values.copy_from_slice(values);
        Ok(())
    }

    /// Advantages and value targets; minibatches are drawn anew.
    pub(super) fn estimate_advantages(&mut self) {
        self.buffer.estimate_advantages(self.gamma, self.gae_lambda);
        for permutation in &mut self.permutations {
            permutation.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        }
    }

    /// Another order of the samples.
    pub(super) fn shuffle(&mut self) {
        for (permutation, slot) in self.permutations.iter_mut().zip(&mut self.slots) {
            permutation.shuffle(&mut slot.minibatch_rng);
        }
    }

    /// Draws the `number`-th minibatch in the present order.
    pub(super) fn draw(&mut self, number: usize) {
        let per_env = self.share.minibatch_per_env;
        for (k, permutation) in self.permutations.iter().enumerate() {
            let chosen = &permutation[number * per_env..(number + 1) * per_env];
            for (j, t) in chosen.iter().enumerate() {
                let from = k * self.share.steps_per_env + *t as usize;
                self.minibatch.copy_sample(k * per_env + j, &self.buffer, from);
            }
        }
    }

    /// Gradient of the loss over the minibatch that was drawn.
    pub(super) fn gradient(
        &mut self,
        config: &PpoConfig,
        parameters: &[f32],
        gradient: &mut [f32],
    ) -> Losses {
        self.loss.gradient(config, parameters, &self.minibatch, gradient)
    }

    fn normalise_observations(&mut self, normaliser: Option<&Normaliser>) {
        let rows = self.normalised.chunks_exact_mut(self.spec.observation_dim);
        for (slot, row) in self.slots.iter().zip(rows) {
            normalise_or_copy(normaliser, &slot.observation, row);
        }
    }

    /// Begins step `t` of every environment, from the observations in `self.normalised`.
    fn act(&mut self, parameters: &[f32], t: usize, tally: &mut dyn Tally) -> Result<(), TrainError> {
        let (dim, action_dim) = (self.spec.observation_dim, self.agent.action_dim());
        for (k, value) in self.loss.values(parameters, &self.normalised).iter().enumerate() {
            self.buffer.values[k * self.share.steps_per_env + t] = *value;
        }
        let outputs = self.agent.actor().outputs();
        let output = self.loss.policy(parameters, &self.normalised);
        for (k, slot) in self.slots.iter_mut().enumerate() {
            let i = k * self.share.steps_per_env + t;
            self.buffer.observations[i * dim..(i + 1) * dim]
                .copy_from_slice(&self.normalised[k * dim..(k + 1) * dim]);
            let action = &mut self.buffer.actions[i * action_dim..(i + 1) * action_dim];
            let row = &output[k * outputs..(k + 1) * outputs];
            self.buffer.log_probs[i] = self.agent.sample(parameters, row, &mut slot.action_rng, action);
            tally.observed(slot);
            slot.begin_step(self.agent.to_env(action))?;
        }
        Ok(())
    }

    fn finish_steps(
        &mut self,
        reward_scale: Option<f64>,
        t: usize,
        tally: &mut dyn Tally,
    ) -> Result<(), TrainError> {
        let (action_dim, gamma) = (self.agent.action_dim(), f64::from(self.gamma));
        for (k, slot) in self.slots.iter_mut().enumerate() {
            let i = k * self.share.steps_per_env + t;
            let action = self.agent.to_env(&self.buffer.actions[i * action_dim..(i + 1) * action_dim]);
            let step = slot.finish_step(action, gamma, tally.return_mean())?;
            tally.stepped(slot);
            self.buffer.rewards[i] = match reward_scale {
                Some(scale) => (step.reward * scale).clamp(-CLIP, CLIP) as f32,
                None => step.reward as f32,
            };
            self.buffer.dones[i] = slot.ended || step.life_lost;
        }
        Ok(())
    }

    /// Starts new episodes where one ended at step `t`, after adding to the reward of truncated ones the value
    /// of where they would have gone on.
    fn end_episodes(&mut self, with: &Frozen<'_>, t: usize, tally: &mut dyn Tally) -> Result<(), TrainError> {
        for (k, slot) in self.slots.iter_mut().enumerate() {
            if !slot.ended {
                continue;
            }
            if slot.truncated {
                let row = &mut self.normalised[..self.spec.observation_dim];
                normalise_or_copy(with.normaliser, &slot.observation, row);
                let value = self.loss.values(with.parameters, row)[0];
                self.buffer.rewards[k * self.share.steps_per_env + t] += self.gamma * value;
            }
            tally.ended(slot, t);
            slot.reset()?;
        }
        Ok(())
    }
}
