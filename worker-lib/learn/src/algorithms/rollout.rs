//! The samples of one rollout, and the estimation of generalised advantages from them.

/// Samples of this worker's environments in one rollout. Sample `env * steps + t` is step `t` of environment `env`.
#[derive(Clone, Debug)]
pub struct RolloutBuffer {
    /// Number of steps of each environment.
    pub steps: usize,
    /// Observations before the actions, normalised, `[samples, observation_dim]`.
    pub observations: Vec<f32>,
    /// Actions, `[samples, action_dim]`; a discrete action is its index.
    pub actions: Vec<f32>,
    /// Log-probabilities of the actions under the policy that chose them, `[samples]`.
    pub log_probs: Vec<f32>,
    /// Scaled rewards, `[samples]`; the last reward of a truncated episode includes the discounted value of the final
    /// observation.
    pub rewards: Vec<f32>,
    /// Whether the episode ended with the step, by termination, truncation or the loss of a life, `[samples]`.
    pub dones: Vec<bool>,
    /// Estimated values of the observations, `[samples]`.
    pub values: Vec<f32>,
    /// Estimated value of each environment's observation after the rollout, `[environments]`.
    pub last_values: Vec<f32>,
    /// State of a recurrent policy before the first step, `[environments, state_len]`; empty if the policy is not
    /// recurrent.
    pub states: Vec<f32>,
    /// Advantages, computed by [`Self::estimate_advantages`], `[samples]`.
    pub advantages: Vec<f32>,
    /// Value targets, each the sum of advantage and value, `[samples]`.
    pub returns: Vec<f32>,
}

impl RolloutBuffer {
    /// Allocates `environments * steps` samples.
    pub fn new(environments: usize, steps: usize, observation_dim: usize, action_dim: usize) -> Self {
        let samples = environments * steps;
        Self {
            steps,
            observations: vec![0.0; samples * observation_dim],
            actions: vec![0.0; samples * action_dim],
            log_probs: vec![0.0; samples],
            rewards: vec![0.0; samples],
            dones: vec![false; samples],
            values: vec![0.0; samples],
            last_values: vec![0.0; environments],
            states: vec![],
            advantages: vec![0.0; samples],
            returns: vec![0.0; samples],
        }
    }

    /// Adds space for the states of a recurrent policy, each of `state_len` floats.
    #[must_use]
    pub fn with_states(self, state_len: usize) -> Self {
        let environments = self.last_values.len();
        Self { states: vec![0.0; environments * state_len], ..self }
    }

    /// Returns whether an episode begins with sample `i`; false for the first sample of an environment's rollout.
    pub fn starts(&self, i: usize) -> bool {
        !i.is_multiple_of(self.steps) && self.dones[i - 1]
    }

    /// Normalises `advantages` to mean 0 and variance 1, given their mean and variance.
    pub fn normalise_advantages(&mut self, mean: f64, variance: f64) {
        let scale = 1.0 / (variance.sqrt() + 1e-8);
        self.advantages.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * scale) as f32);
    }

    /// Computes `advantages` and `returns` (Schulman et al., 2016, "High-dimensional continuous control using
    /// generalized advantage estimation").
    pub fn estimate_advantages(&mut self, gamma: f32, lambda: f32) {
        for (env, last_value) in self.last_values.iter().enumerate() {
            let (mut next_value, mut advantage) = (*last_value, 0.0);
            for i in (env * self.steps..(env + 1) * self.steps).rev() {
                let goes_on = if self.dones[i] { 0.0 } else { 1.0 };
                let error = self.rewards[i] + gamma * next_value * goes_on - self.values[i];
                advantage = error + gamma * lambda * goes_on * advantage;
                next_value = self.values[i];
                self.advantages[i] = advantage;
                self.returns[i] = advantage + self.values[i];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes an advantage by its definition: the sum of the discounted errors until the end of the episode.
    fn naive(buffer: &RolloutBuffer, env: usize, t: usize, gamma: f64, lambda: f64) -> f64 {
        let (steps, mut sum, mut weight) = (buffer.steps, 0.0, 1.0);
        for later in t..steps {
            let i = env * steps + later;
            let next = if later + 1 < steps { buffer.values[i + 1] } else { buffer.last_values[env] };
            let next = if buffer.dones[i] { 0.0 } else { f64::from(next) };
            sum += weight * (f64::from(buffer.rewards[i]) + gamma * next - f64::from(buffer.values[i]));
            if buffer.dones[i] {
                break;
            }
            weight *= gamma * lambda;
        }
        sum
    }

    proptest! {
        #[test]
        fn advantages_agree_with_their_definition(
            (environments, steps) in (1_usize..4, 1_usize..20),
            numbers in prop::collection::vec(-3.0_f32..3.0, 200),
            dones in prop::collection::vec(prop::bool::weighted(0.2), 60),
            (gamma, lambda) in (0.5_f32..1.0, 0.0_f32..1.0),
        ) {
            let mut buffer = RolloutBuffer::new(environments, steps, 1, 1);
            let samples = environments * steps;
            buffer.rewards.copy_from_slice(&numbers[..samples]);
            buffer.values.copy_from_slice(&numbers[60..60 + samples]);
            buffer.last_values.copy_from_slice(&numbers[120..120 + environments]);
            buffer.dones.copy_from_slice(&dones[..samples]);
            buffer.estimate_advantages(gamma, lambda);
            for env in 0..environments {
                for t in 0..steps {
                    let i = env * steps + t;
                    let want = naive(&buffer, env, t, f64::from(gamma), f64::from(lambda));
                    prop_assert!((f64::from(buffer.advantages[i]) - want).abs() < 1e-4);
                    prop_assert!((buffer.returns[i] - buffer.advantages[i] - buffer.values[i]).abs() < 1e-6);
                }
            }
        }
    }
}
