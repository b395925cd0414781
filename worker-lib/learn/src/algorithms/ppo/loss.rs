//! The PPO loss and its gradient, over the samples of a minibatch.

use super::PpoConfig;
use super::branch::{Branch, Observed};
use crate::algorithms::actor_critic::{ActorCritic, Head};
use crate::algorithms::phases::Phase;
use crate::algorithms::rollout::RolloutBuffer;

/// The `b` samples of one minibatch, or a worker's share of them. If the policy is recurrent, they are sequences of
/// equal length.
#[derive(Clone, Debug, Default)]
pub struct Minibatch {
    /// Normalised observations, `[b, observation_dim]`.
    pub observations: Vec<f32>,
    /// Actions, `[b, action_dim]`.
    pub actions: Vec<f32>,
    /// Log-probabilities of the actions at the time of acting, `[b]`.
    pub log_probs: Vec<f32>,
    /// Normalised advantages, `[b]`.
    pub advantages: Vec<f32>,
    /// Value targets, `[b]`.
    pub returns: Vec<f32>,
    /// Value estimates at the time of acting, `[b]`.
    pub values: Vec<f32>,
    /// Whether an episode began with the sample, `[b]`; false at the start of a rollout.
    pub starts: Vec<bool>,
    /// State of the policy before each sequence, `[sequences, state_len]`; empty if the policy is not recurrent.
    pub states: Vec<f32>,
}

impl Minibatch {
    pub(super) fn with_size(samples: usize, sequences: usize, agent: &ActorCritic) -> Self {
        Self {
            observations: vec![0.0; samples * agent.observation_dim()],
            actions: vec![0.0; samples * agent.action_dim()],
            log_probs: vec![0.0; samples],
            advantages: vec![0.0; samples],
            returns: vec![0.0; samples],
            values: vec![0.0; samples],
            starts: vec![false; samples],
            states: vec![0.0; sequences * agent.state_len()],
        }
    }

    pub(super) fn observed(&self) -> Observed<'_> {
        Observed { observations: &self.observations, states: &self.states, starts: &self.starts }
    }

    /// Copies sample `from` of the rollout to index `to`.
    pub(super) fn copy_sample(&mut self, to: usize, buffer: &RolloutBuffer, from: usize) {
        let copy_row = |target: &mut [f32], source: &[f32], dim: usize| {
            target[to * dim..(to + 1) * dim].copy_from_slice(&source[from * dim..(from + 1) * dim]);
        };
        let samples = self.log_probs.len();
        let (observation_dim, action_dim) = (self.observations.len() / samples, self.actions.len() / samples);
        copy_row(&mut self.observations, &buffer.observations, observation_dim);
        copy_row(&mut self.actions, &buffer.actions, action_dim);
        self.log_probs[to] = buffer.log_probs[from];
        self.advantages[to] = buffer.advantages[from];
        self.returns[to] = buffer.returns[from];
        self.values[to] = buffer.values[from];
        self.starts[to] = buffer.starts(from);
    }
}

/// Parts of the loss, as means over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Clipped surrogate objective, negated.
    pub policy: f64,
    /// Half the squared error of the values, clipped if configured.
    pub value: f64,
    /// Entropy of the policy, in nats, averaged over observations.
    pub entropy: f64,
    /// Estimate of the KL divergence between the policy that acted and the current policy: the mean of Schulman's `(r -
    /// 1) - ln r`, where `r` is the probability ratio.
    pub approx_kl: f64,
    /// Fraction of samples whose ratio was clipped.
    pub clip_fraction: f64,
    /// Norm of the aggregated gradient before clipping.
    pub gradient_norm: f64,
}

impl Losses {
    pub(super) fn add(&mut self, other: &Self) {
        self.policy += other.policy;
        self.value += other.value;
        self.entropy += other.entropy;
        self.approx_kl += other.approx_kl;
        self.clip_fraction += other.clip_fraction;
        self.gradient_norm += other.gradient_norm;
    }

    pub(super) fn scaled(&self, factor: f64) -> Self {
        Self {
            policy: self.policy * factor,
            value: self.value * factor,
            entropy: self.entropy * factor,
            approx_kl: self.approx_kl * factor,
            clip_fraction: self.clip_fraction * factor,
            gradient_norm: self.gradient_norm * factor,
        }
    }
}

/// The PPO loss and its gradient, with buffers for the intermediate results of a batch.
pub struct PpoLoss {
    agent: ActorCritic,
    actor: Branch,
    critic: Branch,
}

impl PpoLoss {
    /// Creates the loss for batches of up to `batch_max` samples.
    pub fn new(agent: ActorCritic, batch_max: usize) -> Self {
        let [of_actor, of_critic] = agent.memory_ranges();
        let half = agent.state_len() / 2;
        let memory = |range, part| Some((agent.memory()?, range, part));
        let actor = (agent.actor().clone(), agent.actor_range());
        let critic = (agent.critic().clone(), agent.critic_range());
        Self {
            actor: Branch::new(actor, memory(of_actor, 0..half), batch_max),
            critic: Branch::new(critic, memory(of_critic, half..2 * half), batch_max),
            agent,
        }
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of
    /// `policy + value_coefficient * value - entropy_coefficient * entropy`, where each term is the mean over `batch`.
    pub fn gradient(
        &mut self,
        config: &PpoConfig,
        parameters: &[f32],
        batch: &Minibatch,
        gradient: &mut [f32],
    ) -> Losses {
        let mut losses = self.policy_gradient(config, parameters, batch, gradient);
        losses.value = self.value_gradient(config, parameters, batch, gradient);
        losses
    }

    /// Returns the value estimates of the observations, `[batch]`.
    pub(super) fn values(&mut self, parameters: &[f32], observed: &Observed<'_>) -> &[f32] {
        self.critic.forward(parameters, observed)
    }

    /// Returns the outputs of the policy network, `[batch, outputs]`.
    pub(super) fn policy(&mut self, parameters: &[f32], observed: &Observed<'_>) -> &[f32] {
        self.actor.forward(parameters, observed)
    }

    /// Writes the states of the policy after the observed sequences to `states` (`[sequences, state_len]`). The
    /// preceding calls must be [`Self::values`] and [`Self::policy`] with the same observations.
    pub(super) fn write_states(&self, states: &mut [f32]) {
        self.actor.write_states(states);
        self.critic.write_states(states);
    }

    /// Advances `states` (`[sequences, state_len]`) to the states of the policy after the observed sequences.
    pub(super) fn remember(&mut self, parameters: &[f32], observed: &Observed<'_>, states: &mut [f32]) {
        self.actor.remember(parameters, observed, states);
        self.critic.remember(parameters, observed, states);
    }

    fn policy_gradient(
        &mut self,
        config: &PpoConfig,
        parameters: &[f32],
        batch: &Minibatch,
        gradient: &mut [f32],
    ) -> Losses {
        let _forward = Phase::Forward.enter();
        let (agent, samples) = (&self.agent, batch.log_probs.len());
        let outputs = agent.actor().outputs();
        let log_std = &parameters[agent.log_std_range()];
        self.actor.forward(parameters, &batch.observed());
        let by_log_std = &mut gradient[agent.log_std_range()];
        by_log_std.fill(0.0);
        let (output, delta) = self.actor.output_and_delta(samples * outputs);
        delta.fill(0.0);
        let mut losses = Losses::default();
        for (i, (row, by_row)) in
            output.chunks_exact(outputs).zip(delta.chunks_exact_mut(outputs)).enumerate()
        {
            let action = &batch.actions[i * agent.action_dim()..(i + 1) * agent.action_dim()];
            let head = Head::new(agent.action(), row, log_std);
            let log_ratio = head.log_prob(action) - batch.log_probs[i];
            let ratio = log_ratio.exp();
            let advantage = batch.advantages[i];
            let clipped = ratio.clamp(1.0 - config.clip_range, 1.0 + config.clip_range);
            let surrogate = (ratio * advantage).min(clipped * advantage);
            // If the clipped term is smaller, the surrogate is constant and its gradient is zero. The scale includes
            // the factor 1/samples of the mean.
            let active = ratio * advantage <= clipped * advantage;
            let scale = if active { -advantage * ratio / samples as f32 } else { 0.0 };
            head.add_gradient(
                action,
                scale,
                -config.entropy_coefficient / samples as f32,
                by_row,
                by_log_std,
            );
            losses.policy -= f64::from(surrogate);
            losses.entropy += f64::from(head.entropy());
            losses.approx_kl += f64::from(ratio - 1.0 - log_ratio);
            losses.clip_fraction += if (ratio - 1.0).abs() > config.clip_range { 1.0 } else { 0.0 };
        }
        self.actor.backward(parameters, &batch.observed(), gradient);
        losses.scaled(1.0 / samples as f64)
    }

    /// Overwrites the critic's part of the gradient. Returns the value loss.
    fn value_gradient(
        &mut self,
        config: &PpoConfig,
        parameters: &[f32],
        batch: &Minibatch,
        gradient: &mut [f32],
    ) -> f64 {
        let _forward = Phase::Forward.enter();
        let samples = batch.returns.len();
        self.critic.forward(parameters, &batch.observed());
        let (output, delta) = self.critic.output_and_delta(samples);
        let mut loss = 0.0;
        for (i, (value, by_value)) in output.iter().zip(delta).enumerate() {
            let (old, target) = (batch.values[i], batch.returns[i]);
            let range = config.clip_range_value.unwrap_or(f32::INFINITY);
            let clipped = old + (value - old).clamp(-range, range);
            let (free_loss, clipped_loss) = ((value - target).powi(2), (clipped - target).powi(2));
            // The loss is the larger of the two. Outside the clipping range, the clipped value is constant.
            let inside = (value - old).abs() < range;
            let slope = if free_loss >= clipped_loss || inside { value - target } else { 0.0 };
            *by_value = config.value_coefficient * slope / samples as f32;
            loss += 0.5 * f64::from(free_loss.max(clipped_loss));
        }
        self.critic.backward(parameters, &batch.observed(), gradient);
        loss / samples as f64
    }
}
