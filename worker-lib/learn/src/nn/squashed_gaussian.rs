//! Squashed Gaussian policy head: a diagonal Gaussian whose samples pass through the hyperbolic tangent (Haarnoja et
//! al., 2018, appendix C).

use std::f32::consts::LN_2;

use super::gaussian::LOG_SQRT_TWO_PI;
use super::tanh;

/// Bounds to which the logarithm of the standard deviation is clipped, as in the published code of Haarnoja et al.
/// (2018). Outside these bounds, the distribution does not depend on `log_std`.
const LOG_STD_BOUNDS: (f32, f32) = (-20.0, 2.0);

/// Distribution of actions in [-1, 1]: their log-density, and derivatives through the sampled noise.
#[derive(Clone, Copy, Debug)]
pub struct SquashedGaussian<'a> {
    /// Means before the hyperbolic tangent, `[dim]`.
    pub mean: &'a [f32],
    /// Logarithms of the standard deviations before the hyperbolic tangent, `[dim]`; clipped to [-20, 2].
    pub log_std: &'a [f32],
}

impl<'a> SquashedGaussian<'a> {
    /// Creates the distribution from one row of a network's output, `[2 * dim]`: the means, then the logarithms of
    /// the standard deviations.
    pub fn from_output(output: &'a [f32]) -> Self {
        let (mean, log_std) = output.split_at(output.len() / 2);
        Self { mean, log_std }
    }

    /// Transforms standard normal noise (`[dim]`) into an action, `tanh(mean + std * noise)`, in place. Returns the
    /// log-density of the action.
    pub fn transform(&self, noise: &mut [f32]) -> f32 {
        let mut log_prob = 0.0;
        for (i, x) in noise.iter_mut().enumerate() {
            let log_std = clipped(self.log_std[i]);
            let unsquashed = self.mean[i] + log_std.exp() * *x;
            log_prob += -0.5 * *x * *x - log_std - LOG_SQRT_TWO_PI - log_tanh_slope(unsquashed);
            *x = tanh(unsquashed);
        }
        log_prob
    }

    /// Writes the action that results from zero noise, `tanh(mean)`, to `action` (`[dim]`).
    pub fn mode(&self, action: &mut [f32]) {
        action.iter_mut().zip(self.mean).for_each(|(action, mean)| *action = tanh(*mean));
    }

    /// Overwrites `by_output` (`[2 * dim]`, in the layout of [`Self::from_output`]) with the gradient of a loss that
    /// depends on the action and its log-density, treating `noise` (`[dim]`) as constant. `action` must be the result
    /// of [`Self::transform`] for this noise; `by_action` (`[dim]`) and `by_log_prob` are the gradients of the loss
    /// with respect to the action and the log-density.
    pub fn gradient(
        &self,
        (noise, action): (&[f32], &[f32]),
        by_action: &[f32],
        by_log_prob: f32,
        by_output: &mut [f32],
    ) {
        let (by_mean, by_log_std) = by_output.split_at_mut(self.mean.len());
        for (i, a) in action.iter().enumerate() {
            // The log-density contains -ln(1 - tanh(u)^2), whose derivative with respect to u is 2 tanh(u).
            let by_unsquashed = by_action[i] * (1.0 - a * a).max(0.0) + by_log_prob * 2.0 * a;
            by_mean[i] = by_unsquashed;
            let log_std = clipped(self.log_std[i]);
            let is_free = log_std == self.log_std[i];
            by_log_std[i] =
                if is_free { by_unsquashed * log_std.exp() * noise[i] - by_log_prob } else { 0.0 };
        }
    }
}

fn clipped(log_std: f32) -> f32 {
    log_std.clamp(LOG_STD_BOUNDS.0, LOG_STD_BOUNDS.1)
}

/// Computes `ln(1 - tanh(u)^2)` as `2 (ln 2 - u - softplus(-2u))`, which is accurate even if tanh(u) rounds to 1.
fn log_tanh_slope(u: f32) -> f32 {
    let softplus = (-2.0 * u).max(0.0) + (-2.0 * u.abs()).exp().ln_1p();
    2.0 * (LN_2 - u - softplus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_density_agrees_with_the_change_of_variables() {
        let head = SquashedGaussian { mean: &[0.4, -0.8], log_std: &[-0.5, 0.3] };
        let density = |action: f64, mean: f64, log_std: f64| {
            let z = (action.atanh() - mean) / log_std.exp();
            let normal = (-0.5 * z * z).exp() / (log_std.exp() * (2.0 * std::f64::consts::PI).sqrt());
            normal / (1.0 - action * action)
        };
        for noise in [[0.0, 0.0], [1.2, -0.7], [-2.0, 1.5]] {
            let mut action = noise;
            let log_prob = head.transform(&mut action);
            let [a, b] = action.map(f64::from);
            let want = (density(a, 0.4, -0.5) * density(b, -0.8, 0.3)).ln();
            assert!((f64::from(log_prob) - want).abs() < 1e-4, "{noise:?}: {log_prob} {want}");
        }
    }

    #[test]
    fn the_log_slope_of_tanh_is_accurate_in_its_tails() {
        for u in [-30.0_f32, -9.0, -1.0, 0.0, 0.5, 9.0, 30.0] {
            let cosh = f64::from(u).cosh();
            let want = -2.0 * cosh.ln();
            assert!((f64::from(log_tanh_slope(u)) - want).abs() < 1e-5 * want.abs().max(1.0), "{u}");
        }
    }

    #[test]
    fn gradients_agree_with_differences() {
        let output = [0.4, -0.8, 1.3, -0.5, 0.3, -1.2];
        let noise = [1.2, -0.7, 0.4];
        let (by_action, by_log_prob) = ([0.7, -1.1, 0.4], 0.6);
        let loss = |output: &[f32]| {
            let mut action = noise;
            let log_prob = SquashedGaussian::from_output(output).transform(&mut action);
            action.iter().zip(by_action).map(|(a, by)| a * by).sum::<f32>() + by_log_prob * log_prob
        };
        let mut action = noise;
        let head = SquashedGaussian::from_output(&output);
        head.transform(&mut action);
        let mut by_output = [f32::NAN; 6];
        head.gradient((&noise, &action), &by_action, by_log_prob, &mut by_output);
        for i in 0..output.len() {
            let at = |step: f32| {
                let mut moved = output;
                moved[i] += step;
                loss(&moved)
            };
            let numeric = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((by_output[i] - numeric).abs() < 1e-3, "{i}: {} {numeric}", by_output[i]);
        }
    }

    #[test]
    fn a_standard_deviation_beyond_its_bounds_has_no_gradient() {
        for (log_std, bound) in [(5.0, 2.0), (-25.0, -20.0)] {
            let (outside, inside) = ([0.1, log_std], [0.1, bound]);
            let (mut first, mut second) = ([0.3], [0.3]);
            let head = SquashedGaussian::from_output(&outside);
            let log_prob = head.transform(&mut first);
            assert_eq!(log_prob, SquashedGaussian::from_output(&inside).transform(&mut second));
            assert_eq!(first, second);
            let mut by_output = [f32::NAN; 2];
            head.gradient((&[0.3], &first), &[1.0], 1.0, &mut by_output);
            assert_eq!(by_output[1], 0.0);
        }
    }
}
