//! The policy and value networks of A2C: one shared network for image observations, two networks for vector
//! observations.

use std::ops::Range;

use rand::Rng;

use super::actor_critic::{ActorCritic, NamedTensor, network_tensors};
use super::policy_graph::{GraphLayer, graph_layers, keep_outputs};
use super::q_network::image_trunk;
use crate::env::{ActionSpec, EnvSpec};
use crate::nn::{Activation, Network, Workspace, orthogonal};

/// Shapes of the networks, without parameters. For vector observations, the parameters are laid out as in
/// [`ActorCritic`]. For image observations, the parameters of the shared network, whose last output is the value, are
/// followed by the log standard deviations of continuous actions.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyValue {
    networks: Networks,
    action: ActionSpec,
}

#[derive(Clone, Debug, PartialEq)]
enum Networks {
    Separate(ActorCritic),
    Shared(Network),
}

/// Buffers for one batch.
#[derive(Clone, Debug)]
pub struct PolicyValueWorkspace {
    actor: Workspace,
    critic: Option<Workspace>,
    /// Means or logits, `[batch_max, outputs]`.
    pub outputs: Vec<f32>,
    /// Values, `[batch_max]`.
    pub values: Vec<f32>,
    /// Gradient of the loss with respect to `outputs`.
    pub by_outputs: Vec<f32>,
    /// Gradient of the loss with respect to `values`.
    pub by_values: Vec<f32>,
}

impl PolicyValue {
    /// Creates the networks for an environment. `hidden` lists the widths of the hidden layers: those that follow the
    /// convolutions for image observations, or those of each of the two networks for vector observations.
    pub fn new(env: &EnvSpec, hidden: &[usize]) -> Self {
        let networks = if env.image.is_some() {
            let outputs = outputs_of(env.action) + 1;
            let dense = |network: Network, width: &usize| network.dense(*width, Activation::Relu);
            let network = hidden.iter().fold(image_trunk(env, 32), dense);
            Networks::Shared(network.dense(outputs, Activation::Identity))
        } else {
            Networks::Separate(ActorCritic::new(env, hidden))
        };
        Self { networks, action: env.action }
    }

    /// Returns the number of floats in the parameter and gradient vectors.
    pub fn parameter_count(&self) -> usize {
        match &self.networks {
            Networks::Separate(agent) => agent.parameter_count(),
            Networks::Shared(_) => self.log_std_range().end,
        }
    }

    /// Returns the number of means or logits for one observation.
    pub fn outputs(&self) -> usize {
        outputs_of(self.action)
    }

    /// Returns the kind of actions that the policy takes.
    pub fn action(&self) -> ActionSpec {
        self.action
    }

    /// Returns the range of the log standard deviations; empty for discrete actions.
    pub fn log_std_range(&self) -> Range<usize> {
        match (&self.networks, self.action) {
            (Networks::Separate(agent), _) => agent.log_std_range(),
            (Networks::Shared(network), ActionSpec::Continuous { dim }) => {
                network.parameter_count()..network.parameter_count() + dim
            }
            (Networks::Shared(network), ActionSpec::Discrete { .. }) => {
                network.parameter_count()..network.parameter_count()
            }
        }
    }

    /// Allocates buffers for batches of up to `batch_max` samples.
    pub fn workspace(&self, batch_max: usize) -> PolicyValueWorkspace {
        let (actor, critic) = match &self.networks {
            Networks::Separate(agent) => {
                (agent.actor().workspace(batch_max), Some(agent.critic().workspace(batch_max)))
            }
            Networks::Shared(network) => (network.workspace(batch_max), None),
        };
        let (outputs, values) = (vec![0.0; batch_max * self.outputs()], vec![0.0; batch_max]);
        PolicyValueWorkspace {
            actor,
            critic,
            by_outputs: outputs.clone(),
            by_values: values.clone(),
            outputs,
            values,
        }
    }

    /// Computes `outputs` and `values` of the workspace for `observations` (`[batch, observation_dim]`).
    pub fn forward(&self, parameters: &[f32], observations: &[f32], work: &mut PolicyValueWorkspace) {
        match (&self.networks, &mut work.critic) {
            (Networks::Separate(agent), Some(critic_work)) => {
                let actor = &parameters[agent.actor_range()];
                let outputs = agent.actor().forward(actor, observations, &mut work.actor);
                work.outputs[..outputs.len()].copy_from_slice(outputs);
                let critic = &parameters[agent.critic_range()];
                let values = agent.critic().forward(critic, observations, critic_work);
                work.values[..values.len()].copy_from_slice(values);
            }
            (Networks::Separate(_), None) => unreachable!("the workspace belongs to these networks"),
            (Networks::Shared(network), _) => {
                let width = self.outputs();
                let rows = network
                    .forward(&parameters[..network.parameter_count()], observations, &mut work.actor)
                    .chunks_exact(width + 1);
                for ((row, outputs), value) in
                    rows.zip(work.outputs.chunks_exact_mut(width)).zip(&mut work.values)
                {
                    outputs.copy_from_slice(&row[..width]);
                    *value = row[width];
                }
            }
        }
    }

    /// Computes the gradient of the loss with respect to the parameters from the workspace's `by_outputs` and
    /// `by_values`. Overwrites `gradient` (`[parameter_count]`), except for the part of the log standard deviations.
    /// The preceding call on the workspace must be [`Self::forward`] with the same parameters and observations.
    pub fn backward(
        &self,
        parameters: &[f32],
        observations: &[f32],
        batch: usize,
        work: &mut PolicyValueWorkspace,
        gradient: &mut [f32],
    ) {
        let width = self.outputs();
        let by_outputs = &work.by_outputs[..batch * width];
        match (&self.networks, &mut work.critic) {
            (Networks::Separate(agent), Some(critic_work)) => {
                let range = agent.actor_range();
                work.actor.output_delta(by_outputs.len()).copy_from_slice(by_outputs);
                let by_actor = &mut gradient[range.clone()];
                agent.actor().backward(&parameters[range], observations, &mut work.actor, by_actor);
                let range = agent.critic_range();
                critic_work.output_delta(batch).copy_from_slice(&work.by_values[..batch]);
                let by_critic = &mut gradient[range.clone()];
                agent.critic().backward(&parameters[range], observations, critic_work, by_critic);
            }
            (Networks::Separate(_), None) => unreachable!("the workspace belongs to these networks"),
            (Networks::Shared(network), _) => {
                let delta = work.actor.output_delta(batch * (width + 1));
                let rows = delta.chunks_exact_mut(width + 1).zip(by_outputs.chunks_exact(width));
                for ((row, by_outputs), by_value) in rows.zip(&work.by_values) {
                    row[..width].copy_from_slice(by_outputs);
                    row[width] = *by_value;
                }
                let range = 0..network.parameter_count();
                let by_network = &mut gradient[range.clone()];
                network.backward(&parameters[range], observations, &mut work.actor, by_network);
            }
        }
    }

    /// Returns the initial parameters: orthogonal weights (with a gain of 0.01 for the policy output, 1 for the value
    /// output, and sqrt(2) for all other layers), zero biases, and the given log standard deviation.
    pub fn initial_parameters(&self, log_std: f32, rng: &mut impl Rng) -> Vec<f32> {
        let network = match &self.networks {
            Networks::Separate(agent) => return agent.initial_parameters(log_std, rng),
            Networks::Shared(network) => network,
        };
        let mut parameters = vec![0.0; self.parameter_count()];
        parameters[self.log_std_range()].fill(log_std);
        let [hidden @ .., last] = network.layers() else { return parameters };
        for layer in hidden {
            let [rows, columns] = layer.weight_shape();
            let weight = &mut parameters[layer.weight.clone()];
            orthogonal(weight, rows, columns, std::f64::consts::SQRT_2, rng);
        }
        let [rows, columns] = last.weight_shape();
        let (policy, value) = parameters[last.weight.clone()].split_at_mut((rows - 1) * columns);
        orthogonal(policy, rows - 1, columns, 0.01, rng);
        orthogonal(value, 1, columns, 1.0, rng);
        parameters
    }

    /// Returns the layers that compute the means or logits, for [`PolicyGraph`](super::policy_graph::PolicyGraph).
    pub fn graph_layers(&self, parameters: &[f32]) -> Vec<GraphLayer> {
        match &self.networks {
            Networks::Separate(agent) => graph_layers(agent.actor(), &parameters[agent.actor_range()], None),
            Networks::Shared(network) => {
                let mut layers = graph_layers(network, parameters, None);
                keep_outputs(&mut layers, self.outputs());
                layers
            }
        }
    }

    /// Returns the name and shape of each parameter tensor, as used in model files.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let network = match &self.networks {
            Networks::Separate(agent) => return agent.tensors(),
            Networks::Shared(network) => network,
        };
        let mut tensors = network_tensors("actor_critic", network, 0);
        let range = self.log_std_range();
        if !range.is_empty() {
            tensors.push(NamedTensor { name: "actor.log_std".to_owned(), shape: vec![range.len()], range });
        }
        tensors
    }
}

fn outputs_of(action: ActionSpec) -> usize {
    match action {
        ActionSpec::Continuous { dim } => dim,
        ActionSpec::Discrete { n } => n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::actor_critic::assert_covered;
    use crate::env::{ImageShape, make};
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    fn images(height: usize, actions: ActionSpec) -> EnvSpec {
        EnvSpec {
            id: "images".into(),
            observation_dim: height * height * 4,
            image: Some(ImageShape { height, width: height, channels: 4 }),
            action: actions,
            episode_steps_max: 1000,
            solved_return: f64::INFINITY,
        }
    }

    #[test]
    fn the_network_for_qbert_has_the_size_of_the_paper() {
        let networks = PolicyValue::new(&images(84, ActionSpec::Discrete { n: 6 }), &[512]);
        assert_eq!(networks.parameter_count(), 866_439);
    }

    #[test]
    fn tensors_cover_all_parameters_once() {
        let specs = [
            images(36, ActionSpec::Discrete { n: 3 }),
            images(36, ActionSpec::Continuous { dim: 2 }),
            make("CartPole-v1").unwrap().spec().clone(),
        ];
        for spec in specs {
            let networks = PolicyValue::new(&spec, &[12]);
            assert_covered(networks.tensors(), networks.parameter_count());
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for spec in [images(36, ActionSpec::Discrete { n: 3 }), make("CartPole-v1").unwrap().spec().clone()] {
            let networks = PolicyValue::new(&spec, &[8]);
            let mut random = |len: usize| (0..len).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
            let (batch, width) = (3, networks.outputs());
            let observations = random(batch * spec.observation_dim);
            let (by_outputs, by_values) = (random(batch * width), random(batch));
            let parameters: Vec<_> = random(networks.parameter_count()).iter().map(|x| 0.3 * x).collect();
            let mut work = networks.workspace(batch);
            let mut gradient = vec![f32::NAN; parameters.len()];
            networks.forward(&parameters, &observations, &mut work);
            work.by_outputs.copy_from_slice(&by_outputs);
            work.by_values.copy_from_slice(&by_values);
            networks.backward(&parameters, &observations, batch, &mut work, &mut gradient);
            // The stride samples parameters of all layers.
            for i in (0..parameters.len()).step_by(parameters.len() / 60 + 1) {
                let mut at = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[i] += step;
                    networks.forward(&moved, &observations, &mut work);
                    let dot =
                        |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum::<f64>();
                    dot(&work.outputs, &by_outputs) + dot(&work.values, &by_values)
                };
                let numeric = (at(1e-3) - at(-1e-3)) / 2e-3;
                let error = (f64::from(gradient[i]) - numeric).abs();
                assert!(error < 2e-2 + 3e-2 * numeric.abs(), "{} {i}: {} {numeric}", spec.id, gradient[i]);
            }
        }
    }
}
