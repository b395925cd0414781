//! The losses of SAC and their gradients.

use super::networks::SoftActorCritic;
use crate::algorithms::critics::CriticLoss;
use crate::algorithms::phases::Phase;
use crate::algorithms::replay::Batch;
use crate::nn::{SquashedGaussian, Workspace};

/// Components of the loss, as means over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Log-probability of the policy's actions multiplied by the temperature, minus the smaller of the values that the
    /// two critics assign to the actions.
    pub policy: f64,
    /// Squared error of the first critic's values.
    pub value: f64,
    /// Mean value of the chosen actions.
    pub mean_value: f64,
    /// Entropy of the policy, estimated from one action for each observation, in nats.
    pub entropy: f64,
    /// Temperature: the weight of the entropy in the objective.
    pub temperature: f32,
}

/// Parameters at which the gradients are computed.
#[derive(Clone, Copy, Debug)]
pub struct Networks<'a> {
    /// Parameters that are learned, `[parameter_count]`.
    pub parameters: &'a [f32],
    /// Parameters of the target critics.
    pub target_critics: &'a [f32],
}

/// Standard normal noise for sampling the actions of a batch.
#[derive(Clone, Debug, Default)]
pub struct Noise {
    /// Noise for the actions at the next observations, used by the targets, `[batch, action_dim]`.
    pub next: Vec<f32>,
    /// Noise for the actions at the batch's observations, used by the policy loss, `[batch, action_dim]`.
    pub current: Vec<f32>,
}

/// The losses and their gradients, with buffers for the intermediate results of a batch.
#[derive(Clone, Debug)]
pub struct SacLoss {
    agent: SoftActorCritic,
    actor: Workspace,
    critics: CriticLoss,
    /// Actions of the policy, `[batch, action_dim]`, and their log-probabilities, `[batch]`.
    actions: Vec<f32>,
    log_probs: Vec<f32>,
    by_actions: Vec<f32>,
}

impl SacLoss {
    /// Creates the losses for batches of up to `batch_max` samples.
    pub fn new(agent: SoftActorCritic, batch_max: usize) -> Self {
        let actor = agent.actor().workspace(batch_max);
        let critics = CriticLoss::new(agent.critics().clone(), batch_max);
        Self { agent, actor, critics, actions: vec![], log_probs: vec![], by_actions: vec![] }
    }

    /// Returns the shapes of the networks.
    pub fn agent(&self) -> &SoftActorCritic {
        &self.agent
    }

    /// Returns the first critic's temporal-difference errors in the most recent batch, which determine the replay
    /// priorities.
    pub fn errors(&self) -> &[f32] {
        self.critics.errors()
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradients of three losses: those of the critics, the policy
    /// and the logarithm of the temperature. Each loss treats the parameters of the others as constants.
    /// `target_entropy` is the policy entropy, in nats, that the temperature is adjusted to reach.
    pub fn gradient(
        &mut self,
        gamma: f32,
        target_entropy: f32,
        networks: &Networks<'_>,
        batch: &Batch,
        noise: &Noise,
        gradient: &mut [f32],
    ) -> Losses {
        let _forward = Phase::Forward.enter();
        let parameters = networks.parameters;
        let temperature = parameters[self.agent.temperature_index()].exp();
        let (actor, range) = (&parameters[self.agent.actor_range()], self.agent.critic_range());
        self.act(actor, &batch.next_observations, &noise.next);
        let log_probs = &self.log_probs;
        let entropy_bonus = |i: usize| -temperature * log_probs[i];
        self.critics.find_targets(gamma, networks.target_critics, batch, &self.actions, entropy_bonus);
        let report = self.critics.gradient(&parameters[range.clone()], batch, &mut gradient[range]);
        let negated_value = self.policy_gradient(temperature, parameters, batch, noise, gradient);
        let count = self.log_probs.len() as f64;
        let entropy = -self.log_probs.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
        gradient[self.agent.temperature_index()] = entropy as f32 - target_entropy;
        Losses {
            policy: negated_value - f64::from(temperature) * entropy,
            value: report.loss,
            mean_value: report.mean_value,
            entropy,
            temperature,
        }
    }

    /// Samples actions of the policy for `observations` with the given noise, and computes their log-probabilities.
    fn act(&mut self, actor: &[f32], observations: &[f32], noise: &[f32]) {
        let (network, dim) = (self.agent.actor(), self.agent.action_dim());
        let outputs = network.forward(actor, observations, &mut self.actor);
        self.actions.clear();
        self.actions.extend_from_slice(noise);
        let rows = outputs.chunks_exact(2 * dim).zip(self.actions.chunks_exact_mut(dim));
        self.log_probs.clear();
        self.log_probs.extend(rows.map(|(row, action)| SquashedGaussian::from_output(row).transform(action)));
    }

    /// Overwrites the policy's part of the gradient. Returns the negated mean, over the batch, of the smaller of the
    /// two critics' values.
    fn policy_gradient(
        &mut self,
        temperature: f32,
        parameters: &[f32],
        batch: &Batch,
        noise: &Noise,
        gradient: &mut [f32],
    ) -> f64 {
        let range = self.agent.actor_range();
        let actor = &parameters[range.clone()];
        self.act(actor, &batch.observations, &noise.current);
        self.by_actions.resize(self.actions.len(), 0.0);
        let critics = &parameters[self.agent.critic_range()];
        let sampled = (&batch.observations[..], &self.actions[..]);
        let used = self.agent.critics().count();
        let negated_value = self.critics.action_gradient(critics, sampled, used, &mut self.by_actions);
        let (dim, count) = (self.agent.action_dim(), self.log_probs.len());
        let by_log_prob = temperature / count as f32;
        let (outputs, by_outputs) = self.actor.output_and_delta(2 * dim * count);
        let rows = outputs.chunks_exact(2 * dim).zip(by_outputs.chunks_exact_mut(2 * dim));
        for (i, (row, by_row)) in rows.enumerate() {
            let own = i * dim..(i + 1) * dim;
            let drawn = (&noise.current[own.clone()], &self.actions[own.clone()]);
            SquashedGaussian::from_output(row).gradient(drawn, &self.by_actions[own], by_log_prob, by_row);
        }
        let _backward = Phase::Backward.enter();
        self.agent.actor().backward(actor, &batch.observations, &mut self.actor, &mut gradient[range]);
        negated_value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::critics::samples::{BATCH, batch, outliers, random, spec, twins};

    const TARGET_ENTROPY: f32 = -2.0;

    /// Returns parameters with the given temperature, the parameters of the target critics, and noise.
    fn inputs(agent: &SoftActorCritic, temperature: f32) -> (Vec<f32>, Vec<f32>, Noise) {
        let mut parameters = random(agent.parameter_count(), 5);
        parameters[agent.critic_range()].copy_from_slice(&twins(agent.critics()));
        parameters[agent.temperature_index()] = temperature.ln();
        let noise = Noise { next: random(BATCH * 2, 7), current: random(BATCH * 2, 8) };
        (parameters, random(agent.critics().parameter_count(), 6), noise)
    }

    /// Each part of the gradient must match the loss of that part.
    #[test]
    fn gradients_agree_with_finite_differences() {
        let (agent, batch) = (SoftActorCritic::new(&spec(), &[7, 5]).unwrap(), batch());
        let (parameters, target_critics, noise) = inputs(&agent, 0.7);
        let mut loss = SacLoss::new(agent.clone(), BATCH);
        let mut run = |i: usize, parameters: &[f32], gradient: &mut [f32]| {
            let networks = Networks { parameters, target_critics: &target_critics };
            let losses = loss.gradient(0.9, TARGET_ENTROPY, &networks, &batch, &noise, gradient);
            let range = agent.critic_range();
            if !range.contains(&i) {
                return losses.policy;
            }
            let number = usize::from(i - range.start >= agent.critics().range(0).len());
            loss.critics.gradient_of(number, &parameters[range], &batch, &mut gradient.to_vec()).loss
        };
        let mut gradient = vec![f32::NAN; parameters.len()];
        run(0, &parameters, &mut gradient);
        assert!(gradient.iter().all(|x| x.is_finite()));
        let learned = agent.critic_range().end;
        let mut ignored = gradient.clone();
        let different = outliers(&parameters[..learned], &gradient, |i, moved| {
            let moved = [moved, &parameters[learned..]].concat();
            run(i, &moved, &mut ignored)
        });
        // The rectifier has a kink, where finite differences are inaccurate.
        assert!(different <= learned / 25, "{different} of {learned}");
    }

    #[test]
    fn the_temperature_falls_while_the_entropy_exceeds_its_target() {
        let (agent, batch) = (SoftActorCritic::new(&spec(), &[7, 5]).unwrap(), batch());
        let (parameters, target_critics, noise) = inputs(&agent, 0.7);
        let networks = Networks { parameters: &parameters, target_critics: &target_critics };
        let mut loss = SacLoss::new(agent.clone(), BATCH);
        let mut gradient = vec![f32::NAN; parameters.len()];
        let entropy = loss.gradient(0.9, 0.0, &networks, &batch, &noise, &mut gradient).entropy as f32;
        for target_entropy in [entropy - 1.0, entropy + 1.0] {
            loss.gradient(0.9, target_entropy, &networks, &batch, &noise, &mut gradient);
            // The optimiser moves against the gradient.
            let slope = gradient[agent.temperature_index()];
            assert!((slope - (entropy - target_entropy)).abs() < 1e-5, "{slope}");
        }
    }

    /// Unlike in TD3, the targets use actions of the current policy and include their entropy.
    #[test]
    fn the_targets_include_the_entropy_of_the_next_action() {
        let (agent, batch) = (SoftActorCritic::new(&spec(), &[7, 5]).unwrap(), batch());
        let targets_at = |temperature: f32| {
            let (parameters, target_critics, noise) = inputs(&agent, temperature);
            let networks = Networks { parameters: &parameters, target_critics: &target_critics };
            let mut loss = SacLoss::new(agent.clone(), BATCH);
            let mut gradient = vec![0.0; parameters.len()];
            loss.gradient(0.9, TARGET_ENTROPY, &networks, &batch, &noise, &mut gradient);
            let targets = loss.critics.targets().to_vec();
            loss.act(&parameters[agent.actor_range()], &batch.next_observations, &noise.next);
            (targets, loss.log_probs)
        };
        let ((cold, log_probs), (warm, _)) = (targets_at(0.1), targets_at(0.6));
        for (i, (warm, cold)) in warm.iter().zip(&cold).enumerate() {
            let expected = -0.5 * 0.9 * batch.goes_on[i] * log_probs[i];
            assert!((warm - cold - expected).abs() < 1e-5, "{i}: {warm} {cold} {expected}");
        }
    }
}
