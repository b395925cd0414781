//! RMSProp (Tieleman and Hinton, 2012), the optimiser of A2C.

/// RMSProp without centring or momentum, over a flat vector. As in PyTorch, `epsilon` is added to the square root of
/// the running mean of squares. PyTorch's default decay is 0.99; A2C implementations use an epsilon of 1e-5.
#[derive(Clone, Debug, PartialEq)]
pub struct RmsProp {
    /// Running mean of the squared gradient, `[parameters]`.
    pub mean_square: Vec<f32>,
    decay: f32,
    epsilon: f32,
}

impl RmsProp {
    /// Creates an optimiser for `parameters` floats.
    pub fn new(parameters: usize, decay: f32, epsilon: f32) -> Self {
        Self { mean_square: vec![0.0; parameters], decay, epsilon }
    }

    /// Moves `parameters` against `gradient` (both `[parameters]`) by one optimiser step. The same inputs produce
    /// bit-identical results on all machines.
    ///
    /// # Panics
    /// Panics if the length of `parameters` or `gradient` is not the one given at construction.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f32) {
        assert_eq!(parameters.len(), self.mean_square.len(), "parameters");
        assert_eq!(gradient.len(), self.mean_square.len(), "gradient");
        for ((p, g), s) in parameters.iter_mut().zip(gradient).zip(&mut self.mean_square) {
            *s = self.decay * *s + (1.0 - self.decay) * g * g;
            *p -= learning_rate * g / (s.sqrt() + self.epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_match_a_calculation_by_hand() {
        let mut rmsprop = RmsProp::new(1, 0.99, 1e-5);
        let mut x = [1.0];
        rmsprop.step(&mut x, &[0.5], 0.01);
        // The mean is 0.0025 and its square root 0.05.
        assert!((x[0] - (1.0 - 0.01 * 0.5 / 0.05001)).abs() < 1e-6, "{}", x[0]);
        rmsprop.step(&mut x, &[-1.0], 0.01);
        let mean = 0.99_f32 * 0.0025 + 0.01;
        let want = 1.0 - 0.01 * 0.5 / 0.05001 + 0.01 / (mean.sqrt() + 1e-5);
        assert!((x[0] - want).abs() < 1e-6, "{} {want}", x[0]);
    }
}
