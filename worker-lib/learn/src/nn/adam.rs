//! Adam (Kingma and Ba, 2015), the optimiser of all algorithms except A2C.

/// Adam with bias correction, over a flat vector. `epsilon` is added to the square root of the corrected second
/// moment, as in PyTorch; PPO implementations use 1e-5, and PyTorch's default is 1e-8.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Running mean of the gradient, `[parameters]`.
    pub first_moment: Vec<f32>,
    /// Running mean of the squared gradient, `[parameters]`.
    pub second_moment: Vec<f32>,
    /// Number of steps taken.
    pub steps: u64,
    epsilon: f32,
}

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;

impl Adam {
    /// Creates an optimiser for `parameters` floats.
    pub fn new(parameters: usize, epsilon: f32) -> Self {
        Self { first_moment: vec![0.0; parameters], second_moment: vec![0.0; parameters], steps: 0, epsilon }
    }

    /// Moves `parameters` against `gradient` (both `[parameters]`) by one optimiser step. The same inputs produce
    /// bit-identical results on every machine, because the step uses only additions, multiplications, divisions and
    /// square roots in a fixed order.
    ///
    /// # Panics
    /// Panics if the length of `parameters` or `gradient` is not the one given at construction.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f32) {
        assert_eq!(parameters.len(), self.first_moment.len(), "parameters");
        assert_eq!(gradient.len(), self.first_moment.len(), "gradient");
        self.steps += 1;
        let rate = (f64::from(learning_rate) / self.correction(BETA_1)) as f32;
        let unbias = (1.0 / self.correction(BETA_2)) as f32;
        let epsilon = self.epsilon;
        let moments = self.first_moment.iter_mut().zip(&mut self.second_moment);
        for ((p, g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *m = BETA_1 * *m + (1.0 - BETA_1) * g;
            *v = BETA_2 * *v + (1.0 - BETA_2) * g * g;
            *p -= rate * *m / ((*v * unbias).sqrt() + epsilon);
        }
    }

    /// Returns `1 - beta^steps`. Uses repeated multiplication, because the last bit of the C library's power function
    /// may differ between machines.
    fn correction(&self, beta: f32) -> f64 {
        let (mut power, mut base, mut exponent) = (1.0_f64, f64::from(beta), self.steps);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power *= base;
            }
            base *= base;
            exponent >>= 1;
        }
        1.0 - power
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_adam_step_has_the_size_of_the_learning_rate() {
        let mut adam = Adam::new(3, 1e-8);
        let mut parameters = [1.0, 2.0, 3.0];
        adam.step(&mut parameters, &[0.5, -4.0, 1e-3], 0.01);
        for (p, want) in parameters.iter().zip([0.99, 2.01, 2.99]) {
            assert!((p - want).abs() < 1e-5, "{p} {want}");
        }
    }

    #[test]
    fn bias_corrections_agree_with_powers() {
        for steps in [1, 2, 7, 1000, 156_480] {
            let adam = Adam { steps, ..Adam::new(0, 1e-5) };
            let want = 1.0 - f64::from(BETA_2).powf(steps as f64);
            assert!((adam.correction(BETA_2) - want).abs() < 1e-12);
        }
    }

    #[test]
    fn adam_finds_the_minimum_of_a_parabola() {
        let mut adam = Adam::new(1, 1e-5);
        let mut x = [5.0];
        for _ in 0..2000 {
            let gradient = [2.0 * (x[0] - 1.5)];
            adam.step(&mut x, &gradient, 0.05);
        }
        assert!((x[0] - 1.5).abs() < 1e-3, "{}", x[0]);
    }
}
