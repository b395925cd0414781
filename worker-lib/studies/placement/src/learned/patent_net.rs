//! Networks of the patent, with the state `[N, T, S]` as input; see [`PatentNet::push_state`]. Both networks have
//! hidden layers of 256, 196, 196 and 128 units. The value network has one output. The policy network outputs one logit
//! for each GPU.

use rand_chacha::ChaCha8Rng;

use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_learn::part::{Part, tensors};

/// Number of units in each hidden layer.
const HIDDEN: [usize; 4] = [256, 196, 196, 128];
/// Number of elements of a state that describe the job: N and T.
const OF_JOB: usize = 2;

/// Policy and value network. The caller holds their parameters. The patent does not specify an activation function;
/// this implementation uses the hyperbolic tangent.
#[derive(Clone, Debug)]
pub struct PatentNet {
    gpus: usize,
    policy: Part,
    value: Part,
}

impl PatentNet {
    /// Creates the networks for a cluster with `gpus` GPUs.
    pub fn new(gpus: usize) -> Self {
        let widths = |outputs| [&[OF_JOB + gpus], &HIDDEN[..], &[outputs]].concat();
        let policy = Part::new("policy", &widths(gpus), 0);
        let value = Part::new("value", &widths(1), policy.end());
        Self { gpus, policy, value }
    }

    /// Returns the number of parameters of the networks for a cluster with `gpus` GPUs, without creating the networks.
    pub fn count(gpus: usize) -> usize {
        let of = |inputs: usize, outputs: usize| (inputs + 1) * outputs;
        let hidden: usize = HIDDEN.windows(2).map(|pair| of(pair[0], pair[1])).sum();
        let first = of(OF_JOB + gpus, HIDDEN[0]);
        2 * (first + hidden) + of(HIDDEN[3], gpus) + of(HIDDEN[3], 1)
    }

    /// Returns the number of GPUs in the cluster.
    pub fn gpus(&self) -> usize {
        self.gpus
    }

    /// Returns the number of elements of a state.
    pub fn inputs(&self) -> usize {
        OF_JOB + self.gpus
    }

    /// Returns random parameters.
    pub fn initial_parameters(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.value.end()];
        self.policy.initialise(&mut parameters, false, rng);
        self.value.initialise(&mut parameters, false, rng);
        parameters
    }

    /// Returns the names and positions of the tensors.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        tensors([&self.policy, &self.value])
    }

    /// Adds the state `[N, T, S]` to `rows`. N is the number of GPUs that the job needs divided by the number in the
    /// cluster, T is the job's duration in weeks, and S has one element for each GPU: 1 if the GPU is taken or failed,
    /// otherwise 0.
    pub fn push_state(&self, asked: u32, weeks: f32, taken: impl Iterator<Item = bool>, rows: &mut Vec<f32>) {
        rows.extend([asked as f32 / self.gpus as f32, weeks]);
        rows.extend(taken.map(|is_taken| f32::from(u8::from(is_taken))));
    }

    /// Returns the logits of the policy network, `[rows, gpus]`.
    pub fn policy(&mut self, parameters: &[f32], rows: &[f32]) -> Vec<f32> {
        let mut logits = Vec::new();
        self.policy.forward(parameters, rows, &mut logits);
        logits
    }

    /// Returns the values of the value network, `[rows]`.
    pub fn value(&mut self, parameters: &[f32], rows: &[f32]) -> Vec<f32> {
        let mut values = Vec::new();
        self.value.forward(parameters, rows, &mut values);
        values
    }

    /// Adds the gradient with respect to the parameters to `gradient`, given the gradients with respect to the logits
    /// and to the values of `rows`.
    pub fn backward(
        &mut self,
        parameters: &[f32],
        rows: &[f32],
        (by_logits, by_values): (&[f32], &[f32]),
        gradient: &mut [f32],
    ) {
        let mut by_rows = Vec::new();
        self.policy.backward(parameters, rows, by_logits, gradient, &mut by_rows);
        self.value.backward(parameters, rows, by_values, gradient, &mut by_rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    #[test]
    fn the_network_has_the_size_of_the_patent() {
        for gpus in [1, 32, 64] {
            let net = PatentNet::new(gpus);
            let parameters = net.initial_parameters(&mut stream(1, Purpose::Weights, 0));
            assert_eq!((parameters.len(), net.inputs()), (PatentNet::count(gpus), gpus + 2));
        }
        // For 32 GPUs, the policy network has 127,288 parameters and the value network 123,289.
        assert_eq!(PatentNet::count(32), 250_577);
    }

    #[test]
    fn output_gradients_match_finite_differences() {
        let mut net = PatentNet::new(4);
        let parameters = net.initial_parameters(&mut stream(1, Purpose::Weights, 0));
        let mut rows = Vec::new();
        net.push_state(2, 0.3, [true, false, false, true].into_iter(), &mut rows);
        net.push_state(1, 1.5, [false; 4].into_iter(), &mut rows);
        let (by_logits, by_values) = ([0.5, -1.0, 0.25, 0.0, 1.0, 0.0, -0.5, 0.75], [1.0, -2.0]);
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum()
        };
        let loss = |net: &mut PatentNet, parameters: &[f32]| {
            dot(&net.policy(parameters, &rows), &by_logits) + dot(&net.value(parameters, &rows), &by_values)
        };
        let mut gradient = vec![0.0; parameters.len()];
        net.backward(&parameters, &rows, (&by_logits, &by_values), &mut gradient);
        for at in (0..parameters.len()).step_by(parameters.len() / 60) {
            let mut moved = parameters.clone();
            moved[at] += 1e-2;
            let above = loss(&mut net, &moved);
            moved[at] -= 2e-2;
            let slope = (above - loss(&mut net, &moved)) / 2e-2;
            let got = f64::from(gradient[at]);
            assert!((slope - got).abs() < 1e-2 * slope.abs().max(1.0), "{at}: {slope}, {got}");
        }
    }
}
