//! Stochastic gradient descent with momentum.

/// Gradient descent over a flat vector, with PyTorch's momentum: `velocity = momentum * velocity + gradient`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sgd {
    /// Velocity, `[parameters]`.
    pub velocity: Vec<f32>,
    momentum: f32,
}

impl Sgd {
    /// Creates an optimiser for `parameters` floats; a momentum of 0 is plain gradient descent.
    pub fn new(parameters: usize, momentum: f32) -> Self {
        Self { velocity: vec![0.0; parameters], momentum }
    }

    /// Moves `parameters` against `gradient` (both `[parameters]`) by one optimiser step. The same inputs produce
    /// bit-identical results on all machines.
    ///
    /// # Panics
    /// Panics if the length of `parameters` or `gradient` is not the one given at construction.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], learning_rate: f32) {
        assert_eq!(parameters.len(), self.velocity.len(), "parameters");
        assert_eq!(gradient.len(), self.velocity.len(), "gradient");
        for ((p, g), v) in parameters.iter_mut().zip(gradient).zip(&mut self.velocity) {
            *v = self.momentum * *v + g;
            *p -= learning_rate * *v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn momentum_accumulates_over_steps() {
        let mut sgd = Sgd::new(1, 0.5);
        let mut x = [1.0];
        sgd.step(&mut x, &[1.0], 0.1);
        sgd.step(&mut x, &[0.0], 0.1);
        assert!((x[0] - 0.85).abs() < 1e-6, "{}", x[0]);
        let mut plain = Sgd::new(1, 0.0);
        plain.step(&mut x, &[-1.0], 0.15);
        assert!((x[0] - 1.0).abs() < 1e-6, "{}", x[0]);
    }
}
