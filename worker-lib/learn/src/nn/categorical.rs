//! Categorical policy head: one logit per action.

/// Log-probabilities, entropy and derivatives of a softmax over logits.
#[derive(Clone, Copy, Debug)]
pub struct Categorical<'a> {
    /// Unnormalised logits, `[n]`.
    pub logits: &'a [f32],
}

impl Categorical<'_> {
    /// Returns the logarithm of the sum of the exponentials of the logits, computed without overflow.
    fn log_normaliser(&self) -> f32 {
        let max = self.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        max + self.logits.iter().map(|x| (x - max).exp()).sum::<f32>().ln()
    }

    /// Returns the log-probability of `action` (`0..n`).
    pub fn log_prob(&self, action: usize) -> f32 {
        self.logits[action] - self.log_normaliser()
    }

    /// Returns the first action at which the cumulative probability exceeds `uniform` (in `[0, 1)`), and its
    /// log-probability.
    pub fn sample(&self, uniform: f32) -> (usize, f32) {
        let normaliser = self.log_normaliser();
        let mut cumulated = 0.0;
        let passes = |logit: &f32| {
            cumulated += (logit - normaliser).exp();
            uniform < cumulated
        };
        // Due to rounding, the total can be slightly below 1.
        let action = self.logits.iter().position(passes).unwrap_or(self.logits.len() - 1);
        (action, self.logits[action] - normaliser)
    }

    /// Returns the most probable action; in case of a tie, the one with the lowest index.
    pub fn mode(&self) -> usize {
        let better = |best: usize, i: usize| if self.logits[i] > self.logits[best] { i } else { best };
        (0..self.logits.len()).fold(0, better)
    }

    /// Adds `scale` times the gradient of the log-probability of `action` to `by_logits` (`[n]`).
    pub fn add_log_prob_gradient(&self, action: usize, scale: f32, by_logits: &mut [f32]) {
        let normaliser = self.log_normaliser();
        for (i, (by, logit)) in by_logits.iter_mut().zip(self.logits).enumerate() {
            let chosen = if i == action { 1.0 } else { 0.0 };
            *by += scale * (chosen - (logit - normaliser).exp());
        }
    }

    /// Returns the entropy, in nats.
    pub fn entropy(&self) -> f32 {
        let normaliser = self.log_normaliser();
        -self.logits.iter().map(|x| (x - normaliser).exp() * (x - normaliser)).sum::<f32>()
    }

    /// Adds `scale` times the gradient of the entropy to `by_logits` (`[n]`).
    pub fn add_entropy_gradient(&self, scale: f32, by_logits: &mut [f32]) {
        let (normaliser, entropy) = (self.log_normaliser(), self.entropy());
        for (by, logit) in by_logits.iter_mut().zip(self.logits) {
            let log_prob = logit - normaliser;
            *by -= scale * log_prob.exp() * (log_prob + entropy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_even_for_large_logits() {
        for logits in [[0.0_f32, 0.0, 0.0], [1.0, -2.0, 0.5], [1e4, 9.998e3, -1e4]] {
            let head = Categorical { logits: &logits };
            let total: f32 = (0..3).map(|action| head.log_prob(action).exp()).sum();
            assert!((total - 1.0).abs() < 1e-3, "{total}");
        }
    }

    #[test]
    fn samples_follow_the_probabilities() {
        let logits = [0.0, 1.0, -1.0];
        let head = Categorical { logits: &logits };
        let mut counts = [0_u32; 3];
        (0..10_000).for_each(|i| counts[head.sample(i as f32 / 1e4).0] += 1);
        for (action, count) in counts.iter().enumerate() {
            assert!((f64::from(*count) / 1e4 - f64::from(head.log_prob(action).exp())).abs() < 1e-3);
        }
        assert_eq!(head.sample(0.999_999_94).0, 2);
        assert_eq!(head.mode(), 1);
    }

    #[test]
    fn gradients_agree_with_differences() {
        let logits = [0.3, 1.0, -0.7];
        let head = Categorical { logits: &logits };
        let (mut by_log_prob, mut by_entropy) = ([0.0; 3], [0.0; 3]);
        head.add_log_prob_gradient(2, 1.5, &mut by_log_prob);
        head.add_entropy_gradient(1.5, &mut by_entropy);
        for i in 0..3 {
            let at = |step: f32| {
                let mut moved = logits;
                moved[i] += step;
                let head = Categorical { logits: &moved };
                (1.5 * head.log_prob(2), 1.5 * head.entropy())
            };
            let (up, down) = (at(1e-2), at(-1e-2));
            assert!(((up.0 - down.0) / 2e-2 - by_log_prob[i]).abs() < 1e-3);
            assert!(((up.1 - down.1) / 2e-2 - by_entropy[i]).abs() < 1e-3);
        }
    }
}
