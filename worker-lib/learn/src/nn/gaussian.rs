//! Diagonal Gaussian policy head: one mean per action dimension and observation, and one log standard deviation per
//! action dimension.

/// ln(sqrt(2 pi)).
pub(super) const LOG_SQRT_TWO_PI: f32 = 0.918_938_5;

/// Log-density, entropy and derivatives of independent normal distributions.
#[derive(Clone, Copy, Debug)]
pub struct DiagonalGaussian<'a> {
    /// Means, `[dim]`.
    pub mean: &'a [f32],
    /// Logarithms of the standard deviations, `[dim]`.
    pub log_std: &'a [f32],
}

impl DiagonalGaussian<'_> {
    /// Transforms standard normal noise (`[dim]`) into an action, `mean + std * noise`, in place. Returns the
    /// log-density of the action.
    pub fn transform(&self, noise: &mut [f32]) -> f32 {
        let mut log_prob = 0.0;
        for (x, (mean, log_std)) in noise.iter_mut().zip(self.mean.iter().zip(self.log_std)) {
            log_prob += -0.5 * *x * *x - log_std - LOG_SQRT_TWO_PI;
            *x = mean + log_std.exp() * *x;
        }
        log_prob
    }

    /// Returns the log-density of `action` (`[dim]`).
    pub fn log_prob(&self, action: &[f32]) -> f32 {
        let scores = action.iter().zip(self.mean).zip(self.log_std);
        scores
            .map(|((a, mean), log_std)| {
                let z = (a - mean) * (-log_std).exp();
                -0.5 * z * z - log_std - LOG_SQRT_TWO_PI
            })
            .sum()
    }

    /// Adds `scale` times the gradient of the log-density of `action` to `by_mean` and `by_log_std`.
    pub fn add_log_prob_gradient(
        &self,
        action: &[f32],
        scale: f32,
        by_mean: &mut [f32],
        by_log_std: &mut [f32],
    ) {
        for (i, a) in action.iter().enumerate() {
            let inverse = (-self.log_std[i]).exp();
            let z = (a - self.mean[i]) * inverse;
            by_mean[i] += scale * z * inverse;
            by_log_std[i] += scale * (z * z - 1.0);
        }
    }

    /// Returns the differential entropy. Its derivative with respect to each log standard deviation is 1.
    pub fn entropy(&self) -> f32 {
        self.log_std.iter().map(|log_std| log_std + LOG_SQRT_TWO_PI + 0.5).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probability_and_density_formula_agree() {
        let head = DiagonalGaussian { mean: &[0.5, -1.0], log_std: &[0.0, 0.7] };
        let density = |x: f64, mean: f64, log_std: f64| {
            let z = (x - mean) / log_std.exp();
            (-0.5 * z * z).exp() / (log_std.exp() * (2.0 * std::f64::consts::PI).sqrt())
        };
        let want = (density(0.1, 0.5, 0.0) * density(0.4, -1.0, 0.7)).ln();
        assert!((f64::from(head.log_prob(&[0.1, 0.4])) - want).abs() < 1e-6);
        let mut action = [0.3, -1.2];
        let log_prob = head.transform(&mut action);
        assert!((log_prob - head.log_prob(&action)).abs() < 1e-6);
    }

    #[test]
    fn gradient_agrees_with_differences() {
        let (mean, log_std, action) = ([0.5, -1.0], [-0.3, 0.7], [0.1, 0.4]);
        let (mut by_mean, mut by_log_std) = ([0.0; 2], [0.0; 2]);
        let head = DiagonalGaussian { mean: &mean, log_std: &log_std };
        head.add_log_prob_gradient(&action, 2.0, &mut by_mean, &mut by_log_std);
        for i in 0..2 {
            let at = |mean_step: f32, std_step: f32| {
                let (mut mean, mut log_std) = (mean, log_std);
                mean[i] += mean_step;
                log_std[i] += std_step;
                2.0 * DiagonalGaussian { mean: &mean, log_std: &log_std }.log_prob(&action)
            };
            let numeric = (at(1e-2, 0.0) - at(-1e-2, 0.0)) / 2e-2;
            assert!((by_mean[i] - numeric).abs() < 1e-3, "{} {numeric}", by_mean[i]);
            let numeric = (at(0.0, 1e-2) - at(0.0, -1e-2)) / 2e-2;
            assert!((by_log_std[i] - numeric).abs() < 1e-3, "{} {numeric}", by_log_std[i]);
        }
    }
}
