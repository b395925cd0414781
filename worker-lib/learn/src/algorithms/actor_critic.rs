//! A policy and a value function whose parameters are stored in one flat vector.

use std::ops::Range;

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::env::{Action, ActionSpec, EnvSpec};
use crate::nn::{Activation, Categorical, Cell, DiagonalGaussian, Layer, Network, Recurrent, orthogonal};

/// Separate actor and critic networks with tanh layers. The policy is either a softmax, or a diagonal Gaussian with a
/// log standard deviation that does not depend on the observation. If the policy is recurrent, a recurrent layer (the
/// network's memory) precedes each network and computes its inputs. The type contains only shapes; the layout of the
/// parameters is `[actor | log_std (continuous only) | critic | memory of the actor | memory of the critic]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorCritic {
    actor: Network,
    critic: Network,
    action: ActionSpec,
    observation_dim: usize,
    memory: Option<Recurrent>,
}

/// Named part of the parameter vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTensor {
    /// Name of the tensor, such as `actor.0.weight`.
    pub name: String,
    /// Shape of the tensor, such as `[64, 11]`.
    pub shape: Vec<usize>,
    /// Range of the tensor in the parameter vector.
    pub range: Range<usize>,
}

/// Asserts that the tensors together cover each of `count` parameters exactly once, and that the shape of each tensor
/// matches its range.
#[cfg(test)]
pub(super) fn assert_covered(tensors: Vec<NamedTensor>, count: usize) {
    let mut covered = vec![0; count];
    for tensor in tensors {
        assert_eq!(tensor.shape.iter().product::<usize>(), tensor.range.len(), "{}", tensor.name);
        covered[tensor.range].iter_mut().for_each(|count| *count += 1);
    }
    assert!(covered.iter().all(|count| *count == 1));
}

/// Returns the weights and biases of a network whose parameters begin at `start`. Their names have the prefix `name`.
pub(crate) fn network_tensors(name: &str, network: &Network, start: usize) -> Vec<NamedTensor> {
    let tensor = |i: usize, kind: &str, shape: Vec<usize>, part: &Range<usize>| NamedTensor {
        name: format!("{name}.{i}.{kind}"),
        shape,
        range: start + part.start..start + part.end,
    };
    let of_layer = |(i, layer): (usize, &Layer)| {
        let weight = tensor(i, "weight", layer.weight_shape().to_vec(), &layer.weight);
        [weight, tensor(i, "bias", vec![layer.bias.len()], &layer.bias)]
    };
    network.layers().iter().enumerate().flat_map(of_layer).collect()
}

impl ActorCritic {
    /// Creates the networks for an environment. `hidden` contains the widths of the hidden layers of each network.
    pub fn new(env: &EnvSpec, hidden: &[usize]) -> Self {
        Self::with_memory(env, hidden, None)
    }

    /// Creates the networks for an environment. `hidden` contains the widths of the hidden layers of each network. If
    /// `memory` is given, a recurrent layer of this kind and with this number of units precedes each network.
    pub fn with_memory(env: &EnvSpec, hidden: &[usize], memory: Option<(Cell, usize)>) -> Self {
        let memory = memory.map(|(cell, width)| Recurrent::new(cell, env.observation_dim, width));
        let inputs = memory.map_or(env.observation_dim, Recurrent::width);
        let network = |outputs: usize| {
            let widths = [&[inputs], hidden, &[outputs]].concat();
            Network::mlp(&widths, Activation::Tanh)
        };
        let outputs = match env.action {
            ActionSpec::Continuous { dim } => dim,
            ActionSpec::Discrete { n } => n,
        };
        Self {
            actor: network(outputs),
            critic: network(1),
            action: env.action,
            observation_dim: env.observation_dim,
            memory,
        }
    }

    /// Returns the number of floats in the parameter and gradient vectors.
    pub fn parameter_count(&self) -> usize {
        self.memory_ranges()[1].end
    }

    /// Returns the number of floats in an observation.
    pub fn observation_dim(&self) -> usize {
        self.observation_dim
    }

    /// Returns the recurrent layer that precedes each network, or `None` if the policy is not recurrent.
    pub fn memory(&self) -> Option<Recurrent> {
        self.memory
    }

    /// Returns the number of floats in the state of a recurrent policy, which consists of the actor's state and the
    /// critic's state; 0 if the policy is not recurrent.
    pub fn state_len(&self) -> usize {
        self.memory.map_or(0, |memory| 2 * memory.state_len())
    }

    /// Returns the parameter ranges of the recurrent layers of the actor and of the critic; both are empty if the
    /// policy is not recurrent.
    pub fn memory_ranges(&self) -> [Range<usize>; 2] {
        let (start, len) = (self.critic_range().end, self.memory.map_or(0, Recurrent::parameter_count));
        [start..start + len, start + len..start + 2 * len]
    }

    /// Returns the number of floats in a stored action: the dimension of a continuous action, or 1 for the index of a
    /// discrete action.
    pub fn action_dim(&self) -> usize {
        match self.action {
            ActionSpec::Continuous { dim } => dim,
            ActionSpec::Discrete { .. } => 1,
        }
    }

    /// Returns the kind of actions that the policy takes.
    pub fn action(&self) -> ActionSpec {
        self.action
    }

    /// Returns the policy network, whose outputs are means or logits.
    pub fn actor(&self) -> &Network {
        &self.actor
    }

    /// Returns the value network.
    pub fn critic(&self) -> &Network {
        &self.critic
    }

    /// Returns the range of the policy network's parameters.
    pub fn actor_range(&self) -> Range<usize> {
        0..self.actor.parameter_count()
    }

    /// Returns the range of the log standard deviations, which is empty for discrete actions.
    pub fn log_std_range(&self) -> Range<usize> {
        let start = self.actor.parameter_count();
        match self.action {
            ActionSpec::Continuous { dim } => start..start + dim,
            ActionSpec::Discrete { .. } => start..start,
        }
    }

    /// Returns the range of the value network's parameters.
    pub fn critic_range(&self) -> Range<usize> {
        let start = self.log_std_range().end;
        start..start + self.critic.parameter_count()
    }

    /// Returns the initial parameters. Weights are orthogonal with a gain of sqrt(2), except for a gain of 0.01 in the
    /// policy's output layer and of 1 in the value function's output layer. Biases are zero, each log standard
    /// deviation is `log_std`, and recurrent layers have PyTorch's initial values.
    pub fn initial_parameters(&self, log_std: f32, rng: &mut impl Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        parameters[self.log_std_range()].fill(log_std);
        let networks = [(&self.actor, self.actor_range(), 0.01), (&self.critic, self.critic_range(), 1.0)];
        for (network, range, last_gain) in networks {
            let own = &mut parameters[range];
            let last = network.layers().len() - 1;
            for (i, layer) in network.layers().iter().enumerate() {
                let gain = if i == last { last_gain } else { std::f64::consts::SQRT_2 };
                let [rows, columns] = layer.weight_shape();
                orthogonal(&mut own[layer.weight.clone()], rows, columns, gain, rng);
            }
        }
        if let Some(memory) = self.memory {
            memory.initialise(&mut parameters[self.critic_range().end..], rng);
        }
        parameters
    }

    /// Returns the names and shapes of all parameters, for use in files.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let mut tensors = network_tensors("actor", &self.actor, self.actor_range().start);
        tensors.extend(network_tensors("critic", &self.critic, self.critic_range().start));
        if !self.log_std_range().is_empty() {
            let range = self.log_std_range();
            tensors.push(NamedTensor { name: "actor.log_std".to_owned(), shape: vec![range.len()], range });
        }
        if let Some(memory) = self.memory {
            for (network, range) in ["actor", "critic"].into_iter().zip(self.memory_ranges()) {
                tensors.extend(memory.tensors().map(|(name, shape, start)| {
                    let (name, start) =
                        (format!("{network}.{}.{name}", memory.cell().name()), range.start + start);
                    let range = start..start + shape.iter().product::<usize>();
                    NamedTensor { name, shape, range }
                }));
            }
        }
        tensors
    }

    /// Samples an action from one row of the policy network's output. Writes the action to `action` (`[action_dim]`)
    /// and returns its log-probability. From `rng`, draws one standard normal number per dimension for a continuous
    /// action, or one uniform number for a discrete action.
    pub fn sample(
        &self,
        parameters: &[f32],
        output: &[f32],
        rng: &mut ChaCha8Rng,
        action: &mut [f32],
    ) -> f32 {
        sample_action(self.action, output, &parameters[self.log_std_range()], rng, action)
    }

    /// Writes the most probable action for one row of the policy network's output.
    pub fn mode(&self, output: &[f32], action: &mut [f32]) {
        match self.action {
            ActionSpec::Continuous { .. } => action.copy_from_slice(output),
            ActionSpec::Discrete { .. } => action[0] = Categorical { logits: output }.mode() as f32,
        }
    }

    /// Converts a stored action to the environment's representation.
    pub fn to_env<'a>(&self, action: &'a [f32]) -> Action<'a> {
        match self.action {
            ActionSpec::Continuous { .. } => Action::Continuous(action),
            ActionSpec::Discrete { .. } => Action::Discrete(action[0] as usize),
        }
    }
}

/// Samples an action (`[action_dim]`) from one row of a policy's output. Returns the log-probability of the action.
pub(super) fn sample_action(
    spec: ActionSpec,
    output: &[f32],
    log_std: &[f32],
    rng: &mut ChaCha8Rng,
    action: &mut [f32],
) -> f32 {
    match spec {
        ActionSpec::Continuous { .. } => {
            action.iter_mut().for_each(|z| *z = StandardNormal.sample(rng));
            DiagonalGaussian { mean: output, log_std }.transform(action)
        }
        ActionSpec::Discrete { .. } => {
            let (index, log_prob) = Categorical { logits: output }.sample(rng.random());
            action[0] = index as f32;
            log_prob
        }
    }
}

/// Distribution of the policy's actions for one observation.
pub(super) enum Head<'a> {
    Continuous(DiagonalGaussian<'a>),
    Discrete(Categorical<'a>),
}

impl<'a> Head<'a> {
    pub(super) fn new(action: ActionSpec, output: &'a [f32], log_std: &'a [f32]) -> Self {
        match action {
            ActionSpec::Continuous { .. } => Self::Continuous(DiagonalGaussian { mean: output, log_std }),
            ActionSpec::Discrete { .. } => Self::Discrete(Categorical { logits: output }),
        }
    }

    pub(super) fn log_prob(&self, action: &[f32]) -> f32 {
        match self {
            Self::Continuous(head) => head.log_prob(action),
            Self::Discrete(head) => head.log_prob(action[0] as usize),
        }
    }

    pub(super) fn entropy(&self) -> f32 {
        match self {
            Self::Continuous(head) => head.entropy(),
            Self::Discrete(head) => head.entropy(),
        }
    }

    /// Adds the gradient of the log-probability, multiplied by `scale`, and the gradient of the entropy, multiplied by
    /// `entropy_scale`.
    pub(super) fn add_gradient(
        &self,
        action: &[f32],
        scale: f32,
        entropy_scale: f32,
        by_output: &mut [f32],
        by_log_std: &mut [f32],
    ) {
        match self {
            Self::Continuous(head) => {
                head.add_log_prob_gradient(action, scale, by_output, by_log_std);
                by_log_std.iter_mut().for_each(|by| *by += entropy_scale);
            }
            Self::Discrete(head) => {
                head.add_log_prob_gradient(action[0] as usize, scale, by_output);
                head.add_entropy_gradient(entropy_scale, by_output);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::make;
    use rand::SeedableRng;

    #[test]
    fn the_hopper_network_has_the_size_of_the_paper() {
        let env = make("PlanarHopper-v0").unwrap();
        let agent = ActorCritic::new(env.spec(), &[64, 64]);
        assert_eq!(agent.parameter_count(), 10_119);
    }

    #[test]
    fn the_tensors_cover_all_parameters_once() {
        for (id, memory) in [
            ("PlanarHopper-v0", None),
            ("CartPole-v1", None),
            ("CartPole-v1", Some((Cell::Lstm, 8))),
            ("CartPole-v1", Some((Cell::Gru, 8))),
        ] {
            let agent = ActorCritic::with_memory(make(id).unwrap().spec(), &[64, 64], memory);
            assert_covered(agent.tensors(), agent.parameter_count());
        }
    }

    #[test]
    fn initial_policies_are_almost_uniform() {
        let agent = ActorCritic::new(make("CartPole-v1").unwrap().spec(), &[64, 64]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let parameters = agent.initial_parameters(0.0, &mut rng);
        let mut work = agent.actor().workspace(1);
        let actor = &parameters[agent.actor_range()];
        let output = agent.actor().forward(actor, &[0.1, -0.2, 0.3, 0.4], &mut work);
        assert!(output.iter().all(|x| x.abs() < 0.05 && *x != 0.0), "{output:?}");
    }
}
