//! The losses of a deterministic policy and its critics.

use super::DeterministicActorCritic;
use crate::algorithms::critics::CriticLoss;
use crate::algorithms::phases::Phase;
use crate::algorithms::replay::Batch;
use crate::nn::Workspace;

/// Parts of the loss, as means over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Negated mean value of the policy's actions. It is 0 in an update that does not change the policy.
    pub policy: f64,
    /// Squared error of the first critic's values, weighted by the sample weights.
    pub value: f64,
    /// Mean of the values that the first critic assigns to the chosen actions.
    pub mean_value: f64,
}

/// Parameters at which a gradient is computed. Each slice has the shape `[parameter_count]`.
#[derive(Clone, Copy, Debug)]
pub struct Networks<'a> {
    /// Parameters of the learned networks.
    pub parameters: &'a [f32],
    /// Parameters of the target networks.
    pub targets: &'a [f32],
}

/// The losses and their gradients, with buffers for the intermediate results of a batch.
#[derive(Clone, Debug)]
pub struct DeterministicLoss {
    agent: DeterministicActorCritic,
    actor: Workspace,
    critics: CriticLoss,
    next_actions: Vec<f32>,
}

impl DeterministicLoss {
    /// Creates the losses for batches of up to `batch_max` samples.
    pub fn new(agent: DeterministicActorCritic, batch_max: usize) -> Self {
        let actor = agent.actor().workspace(batch_max);
        let critics = CriticLoss::new(agent.critics().clone(), batch_max);
        Self { agent, actor, critics, next_actions: vec![] }
    }

    /// Returns the shapes of the networks.
    pub fn agent(&self) -> &DeterministicActorCritic {
        &self.agent
    }

    /// Returns the first critic's temporal-difference errors in the most recent batch, which determine the replay
    /// priorities.
    pub fn errors(&self) -> &[f32] {
        self.critics.errors()
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of the critics' loss and, if `with_policy` is set,
    /// of the policy's loss. If it is not set, the policy's part of the gradient is zero. `noise` (`[batch,
    /// action_dim]`) is added to the target policy's actions, which are then clipped to [-1, 1].
    pub fn gradient(
        &mut self,
        gamma: f32,
        networks: &Networks<'_>,
        batch: &Batch,
        noise: &[f32],
        with_policy: bool,
        gradient: &mut [f32],
    ) -> Losses {
        let _forward = Phase::Forward.enter();
        self.find_targets(gamma, networks.targets, batch, noise);
        let range = self.agent.critic_range();
        let critics = &networks.parameters[range.clone()];
        let report = self.critics.gradient(critics, batch, &mut gradient[range]);
        let by_actor = &mut gradient[self.agent.actor_range()];
        let policy = if with_policy {
            self.policy_gradient(networks.parameters, batch, by_actor)
        } else {
            by_actor.fill(0.0);
            0.0
        };
        Losses { policy, value: report.loss, mean_value: report.mean_value }
    }

    /// Computes `r + gamma * min Q'(s', mu'(s') + noise)`.
    fn find_targets(&mut self, gamma: f32, targets: &[f32], batch: &Batch, noise: &[f32]) {
        let actor = &targets[self.agent.actor_range()];
        let actions = self.agent.actor().forward(actor, &batch.next_observations, &mut self.actor);
        self.next_actions.clear();
        self.next_actions.extend(actions.iter().zip(noise).map(|(a, n)| (a + n).clamp(-1.0, 1.0)));
        let critics = &targets[self.agent.critic_range()];
        self.critics.find_targets(gamma, critics, batch, &self.next_actions, |_| 0.0);
    }

    /// Writes the gradient of the policy to `by_actor`. Returns the loss, which is the negated mean of the values that
    /// the first critic assigns to the policy's actions.
    fn policy_gradient(&mut self, parameters: &[f32], batch: &Batch, by_actor: &mut [f32]) -> f64 {
        let agent = &self.agent;
        let (actor, critics) = (&parameters[agent.actor_range()], &parameters[agent.critic_range()]);
        let len = agent.actor().forward(actor, &batch.observations, &mut self.actor).len();
        let (actions, by_actions) = self.actor.output_and_delta(len);
        let loss = self.critics.action_gradient(critics, (&batch.observations, actions), 1, by_actions);
        let _backward = Phase::Backward.enter();
        agent.actor().backward(actor, &batch.observations, &mut self.actor, by_actor);
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::critics::Architecture;
    use crate::algorithms::critics::samples::{BATCH, batch, outliers, random, spec};

    fn agent(critics: usize, architecture: Architecture) -> DeterministicActorCritic {
        DeterministicActorCritic::new(&spec(), &[7, 5], critics, architecture).unwrap()
    }

    /// Each part of the gradient must match the loss of that part: the critics' part must match the squared error of
    /// the values, and the actor's part must match the negated values of the first critic.
    #[test]
    fn gradients_agree_with_finite_differences() {
        for (critics, kind) in [(1, Architecture::Normalised), (2, Architecture::Plain)] {
            let (agent, batch) = (agent(critics, kind), batch());
            let (parameters, targets) =
                (random(agent.parameter_count(), 5), random(agent.parameter_count(), 6));
            let noise = random(BATCH * 2, 7);
            let mut loss = DeterministicLoss::new(agent.clone(), BATCH);
            let mut gradient = vec![f32::NAN; agent.parameter_count()];
            let networks = Networks { parameters: &parameters, targets: &targets };
            loss.gradient(0.9, &networks, &batch, &noise, true, &mut gradient);
            assert!(gradient.iter().all(|x| x.is_finite()));
            let mut ignored = gradient.clone();
            let different = outliers(&parameters, &gradient, |i, moved| {
                let networks = Networks { parameters: moved, targets: &targets };
                let policy = loss.gradient(0.9, &networks, &batch, &noise, true, &mut ignored).policy;
                let range = agent.critic_range();
                if i < range.start {
                    return policy;
                }
                let number = usize::from(i - range.start >= agent.critics().range(0).len());
                loss.critics.gradient_of(number, &moved[range], &batch, &mut ignored).loss
            });
            // The rectifier has a kink, where finite differences are inaccurate.
            assert!(different <= parameters.len() / 25, "{kind:?}: {different} of {}", parameters.len());
        }
    }

    #[test]
    fn noise_moves_the_actions_of_the_target_within_their_bounds() {
        let (agent, batch) = (agent(2, Architecture::Plain), batch());
        let parameters = random(agent.parameter_count(), 5);
        let mut loss = DeterministicLoss::new(agent, BATCH);
        let mut actions_with = |noise: f32| {
            loss.find_targets(0.9, &parameters, &batch, &[noise; BATCH * 2]);
            loss.next_actions.clone()
        };
        let without = actions_with(0.0);
        for (moved, action) in actions_with(0.25).iter().zip(&without) {
            assert_eq!(*moved, (action + 0.25).min(1.0));
        }
        assert_eq!(actions_with(-5.0), [-1.0; BATCH * 2]);
    }

    #[test]
    fn a_delayed_policy_update_has_no_actor_gradient() {
        let (agent, batch) = (agent(1, Architecture::Normalised), batch());
        let parameters = random(agent.parameter_count(), 5);
        let networks = Networks { parameters: &parameters, targets: &parameters };
        let mut gradient = vec![1.0; agent.parameter_count()];
        let mut loss = DeterministicLoss::new(agent.clone(), BATCH);
        loss.gradient(0.9, &networks, &batch, &[0.0; BATCH * 2], false, &mut gradient);
        assert!(gradient[agent.actor_range()].iter().all(|x| *x == 0.0));
        assert!(gradient[agent.critic_range()].iter().any(|x| *x != 0.0));
    }
}
