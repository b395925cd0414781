//! Shared network, which scores each waiting job, GPU and running job separately.

use rand_chacha::ChaCha8Rng;
use strum::EnumCount as _;

use super::features::{ORDER_FEATURES, PICK_FEATURES, SAVE_FEATURES};
use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_learn::part::{Part, tensors};

/// Number of units in a head's hidden layer.
const HIDDEN: usize = 16;
/// Number of heads.
pub const HEADS: usize = Head::COUNT;

/// Heads of the network, in the order of their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount, strum::VariantArray)]
pub enum Head {
    /// Head that decides which job of the queue is first.
    Order,
    /// Head that decides which GPUs a job gets.
    Pick,
    /// Head that decides after how much work a job is suspended.
    Save,
}

/// Shared network. Each head is a perceptron with one hidden layer. A head's output is added to a value on which a
/// hand-written rule bases its decision; before any training, this output is 0. The caller holds the parameters.
#[derive(Clone, Debug)]
pub struct SharedNet {
    heads: [Part; HEADS],
}

impl SharedNet {
    /// Creates the network, whose shape is fixed.
    pub fn new() -> Self {
        let order = Part::new("order", &[ORDER_FEATURES, HIDDEN, 1], 0);
        let pick = Part::new("pick", &[PICK_FEATURES, HIDDEN, 1], order.end());
        let save = Part::new("save", &[SAVE_FEATURES, HIDDEN, 1], pick.end());
        Self { heads: [order, pick, save] }
    }

    /// Returns the number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.heads[HEADS - 1].end()
    }

    /// Returns the range of a head's parameters.
    pub fn range(&self, head: Head) -> std::ops::Range<usize> {
        let start = (head as usize).checked_sub(1).map_or(0, |before| self.heads[before].end());
        start..self.heads[head as usize].end()
    }

    /// Returns random initial parameters, for which all outputs are 0.
    pub fn initial_parameters(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        self.heads.iter().for_each(|head| head.initialise(&mut parameters, true, rng));
        parameters
    }

    /// Returns the names and positions of the tensors.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        tensors(&self.heads)
    }

    /// Returns a head's output for each row of features.
    pub fn forward(&mut self, head: Head, parameters: &[f32], rows: &[f32]) -> Vec<f32> {
        let mut results = Vec::with_capacity(rows.len() / self.heads[head as usize].inputs());
        self.heads[head as usize].forward(parameters, rows, &mut results);
        results
    }

    /// Adds the gradient with respect to the parameters to `gradient`, given `by_results`, the gradient with respect to
    /// the outputs of [`Self::forward`].
    pub fn backward(
        &mut self,
        head: Head,
        parameters: &[f32],
        rows: &[f32],
        by_results: &[f32],
        gradient: &mut [f32],
    ) {
        self.heads[head as usize].backward(parameters, rows, by_results, gradient, &mut Vec::new());
    }
}

impl Default for SharedNet {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    #[test]
    fn output_gradients_match_finite_differences() {
        let mut net = SharedNet::new();
        let mut parameters = net.initial_parameters(&mut stream(1, Purpose::Weights, 0));
        parameters.iter_mut().enumerate().for_each(|(at, x)| *x += 0.1 * (at as f32).sin());
        for (head, inputs) in
            Head::VARIANTS.iter().copied().zip([ORDER_FEATURES, PICK_FEATURES, SAVE_FEATURES])
        {
            let rows: Vec<f32> = (0..7 * inputs).map(|at| (at as f32 * 0.7).cos()).collect();
            let weights: Vec<f32> = (0..7).map(|at| (at as f32 * 1.3).sin()).collect();
            let loss = |net: &mut SharedNet, parameters: &[f32]| -> f64 {
                let results = net.forward(head, parameters, &rows);
                results.iter().zip(&weights).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum()
            };
            let mut gradient = vec![0.0; parameters.len()];
            net.backward(head, &parameters, &rows, &weights, &mut gradient);
            let range = net.range(head);
            for (at, got) in gradient.iter().enumerate() {
                let mut moved = parameters.clone();
                moved[at] += 4e-3;
                let above = loss(&mut net, &moved);
                moved[at] -= 8e-3;
                let slope = (above - loss(&mut net, &moved)) / 8e-3;
                assert!((slope - f64::from(*got)).abs() < 5e-3 * slope.abs().max(1.0), "{head:?} {at}");
                assert!(range.contains(&at) || *got == 0.0, "{head:?} {at}");
            }
        }
    }
}
