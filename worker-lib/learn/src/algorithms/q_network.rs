//! The Q-network of DQN for discrete actions, with its parameters in one flat vector.

use rand::Rng;

use super::TrainError;
use super::actor_critic::{NamedTensor, network_tensors};
use super::policy_graph::{GraphLayer, graph_layers, last_image};
use crate::env::{ActionSpec, EnvSpec};
use crate::nn::{Activation, Network, Operation, Workspace, uniform_by_fan_in};

/// A network with one output for each action. Images first pass through the convolutions of Mnih et al. (2015). The
/// duelling variant (Wang et al., 2016) has two streams, each as wide as the last hidden layer: one computes the value,
/// and the other computes the advantages. The mean of the advantages is subtracted from each advantage. The type holds
/// only the shapes. The parameters are those of the trunk, followed by those of the value stream and of the advantage
/// stream.
#[derive(Clone, Debug, PartialEq)]
pub struct QNetwork {
    trunk: Network,
    streams: Option<[Network; 2]>,
    actions: usize,
}

/// Buffers for one batch.
#[derive(Clone, Debug)]
pub struct QWorkspace {
    trunk: Workspace,
    streams: Option<[Workspace; 2]>,
    values: Vec<f32>,
    /// Gradient of the loss with respect to the outputs of the trunk, as computed by the backward pass of each stream.
    by_trunk: [Vec<f32>; 2],
}

/// Returns the convolutions of Mnih et al. (2015) for images, or an empty network for vectors.
pub(super) fn image_trunk(env: &EnvSpec, last_channels: usize) -> Network {
    match env.image {
        Some(image) => Network::image(image)
            .convolution(32, 8, 4, Activation::Relu)
            .convolution(64, 4, 2, Activation::Relu)
            .convolution(last_channels, 3, 1, Activation::Relu),
        None => Network::flat(env.observation_dim),
    }
}

impl QNetwork {
    /// Creates the network for an environment with discrete actions; `hidden` gives the widths of the hidden layers.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the actions are continuous or there are no hidden layers.
    pub fn new(env: &EnvSpec, hidden: &[usize], duelling: bool) -> Result<Self, TrainError> {
        let ActionSpec::Discrete { n: actions } = env.action else {
            return Err(TrainError::Config(format!(
                "{} has continuous actions, expected discrete ones; for continuous actions, train ppo, a2c, ddpg, \
                 td3 or sac",
                env.id
            )));
        };
        let [first @ .., last] = hidden else {
            return Err(TrainError::Config("hidden has no layer, expected at least one".to_owned()));
        };
        let dense = |network: Network, width: &usize| network.dense(*width, Activation::Relu);
        let trunk = first.iter().fold(image_trunk(env, 64), dense);
        if !duelling {
            let trunk = dense(trunk, last).dense(actions, Activation::Identity);
            return Ok(Self { trunk, streams: None, actions });
        }
        let stream =
            |outputs: usize| dense(Network::flat(trunk.outputs()), last).dense(outputs, Activation::Identity);
        Ok(Self { streams: Some([stream(1), stream(actions)]), trunk, actions })
    }

    /// Returns the number of floats in the parameter and gradient vectors.
    pub fn parameter_count(&self) -> usize {
        let streams = self.streams.iter().flatten().map(Network::parameter_count).sum::<usize>();
        self.trunk.parameter_count() + streams
    }

    /// Returns the number of actions.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Allocates buffers for batches of up to `batch_max` samples.
    pub fn workspace(&self, batch_max: usize) -> QWorkspace {
        let by_trunk = vec![0.0; if self.streams.is_some() { batch_max * self.trunk.outputs() } else { 0 }];
        QWorkspace {
            trunk: self.trunk.workspace(batch_max),
            streams: self
                .streams
                .as_ref()
                .map(|streams| streams.each_ref().map(|one| one.workspace(batch_max))),
            values: vec![0.0; batch_max * self.actions],
            by_trunk: [by_trunk.clone(), by_trunk],
        }
    }

    /// Returns the values of all actions (`[batch, actions]`) for each of `observations` (`[batch, observation_dim]`).
    pub fn values<'w>(
        &self,
        parameters: &[f32],
        observations: &[f32],
        work: &'w mut QWorkspace,
    ) -> &'w [f32] {
        let (of_trunk, of_streams) = parameters.split_at(self.trunk.parameter_count());
        let (Some([value, advantage]), Some([value_work, advantage_work])) =
            (&self.streams, &mut work.streams)
        else {
            return self.trunk.forward(of_trunk, observations, &mut work.trunk);
        };
        let results = match self.trunk.layers() {
            [] => observations,
            _ => self.trunk.forward(of_trunk, observations, &mut work.trunk),
        };
        let (of_value, of_advantage) = of_streams.split_at(value.parameter_count());
        let values = value.forward(of_value, results, value_work);
        let advantages = advantage.forward(of_advantage, results, advantage_work);
        let joined = &mut work.values[..advantages.len()];
        let rows = joined.chunks_exact_mut(self.actions).zip(advantages.chunks_exact(self.actions));
        for ((row, advantages), value) in rows.zip(values) {
            let mean = advantages.iter().sum::<f32>() / self.actions as f32;
            row.iter_mut().zip(advantages).for_each(|(q, advantage)| *q = value + advantage - mean);
        }
        joined
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of the loss with respect to the parameters.
    /// `delta` (`[batch, actions]`) is the gradient of the loss with respect to the values that the preceding call of
    /// [`Self::values`] returned for the same `observations`.
    pub fn backward(
        &self,
        parameters: &[f32],
        observations: &[f32],
        delta: &[f32],
        work: &mut QWorkspace,
        gradient: &mut [f32],
    ) {
        let (of_trunk, of_streams) = parameters.split_at(self.trunk.parameter_count());
        let (by_trunk, by_streams) = gradient.split_at_mut(of_trunk.len());
        let QWorkspace { trunk, streams: stream_work, by_trunk: deltas, .. } = work;
        match (&self.streams, stream_work) {
            (Some(streams), Some(stream_work)) => {
                let batch = delta.len() / self.actions;
                let (results, by_results) = match self.trunk.layers() {
                    [] => (observations, &mut [][..]),
                    _ => trunk.output_and_delta(batch * self.trunk.outputs()),
                };
                split_delta(delta, self.actions, stream_work[0].output_delta(batch), 1);
                split_delta(delta, self.actions, stream_work[1].output_delta(delta.len()), self.actions);
                let mut start = 0;
                for ((stream, work), delta) in streams.iter().zip(stream_work).zip(deltas.iter_mut()) {
                    let range = start..start + stream.parameter_count();
                    start = range.end;
                    let by_stream = Some(&mut by_streams[range.clone()]);
                    let delta = &mut delta[..results.len()];
                    stream.backward_to_input(&of_streams[range], results, work, by_stream, delta);
                }
                let sums = deltas[0].iter().zip(&deltas[1]);
                by_results.iter_mut().zip(sums).for_each(|(by, (a, b))| *by = a + b);
            }
            _ => trunk.output_delta(delta.len()).copy_from_slice(delta),
        }
        self.trunk.backward(of_trunk, observations, trunk, by_trunk);
    }

    /// Returns the initial parameters, drawn uniformly within a bound that depends on the fan-in, as in PyTorch's
    /// layers.
    pub fn initial_parameters(&self, rng: &mut impl Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        let mut start = 0;
        for network in std::iter::once(&self.trunk).chain(self.streams.iter().flatten()) {
            for layer in network.layers() {
                let fan_in = layer.weight_shape()[1];
                for range in [layer.weight.clone(), layer.bias.clone()] {
                    uniform_by_fan_in(&mut parameters[start + range.start..start + range.end], fan_in, rng);
                }
                debug_assert!(
                    !matches!(layer.operation, Operation::LayerNorm { .. }),
                    "layer normalisation has weights that start at 1"
                );
            }
            start += network.parameter_count();
        }
        parameters
    }

    /// Returns, for [`PolicyGraph`](super::policy_graph::PolicyGraph), the layers of the trunk and, if the network is
    /// duelling, those of both streams.
    pub fn graph_layers(&self, parameters: &[f32]) -> (Vec<GraphLayer>, Option<[Vec<GraphLayer>; 2]>) {
        let (of_trunk, of_streams) = parameters.split_at(self.trunk.parameter_count());
        let streams = self.streams.as_ref().map(|[value, advantage]| {
            let (of_value, of_advantage) = of_streams.split_at(value.parameter_count());
            let image = last_image(&self.trunk);
            [graph_layers(value, of_value, image), graph_layers(advantage, of_advantage, image)]
        });
        (graph_layers(&self.trunk, of_trunk, None), streams)
    }

    /// Returns the name and shape of each parameter tensor, as used in model files.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let mut tensors = network_tensors("q", &self.trunk, 0);
        let mut start = self.trunk.parameter_count();
        for (name, stream) in ["value", "advantage"].iter().zip(self.streams.iter().flatten()) {
            tensors.extend(network_tensors(name, stream, start));
            start += stream.parameter_count();
        }
        tensors
    }
}

/// Converts `delta`, the gradient of the loss with respect to the action values, to the gradient with respect to the
/// outputs of one stream. For the value stream, this is the sum over actions; for the advantage stream, it is each
/// action's deviation from the mean over actions.
fn split_delta(delta: &[f32], actions: usize, by_stream: &mut [f32], outputs: usize) {
    for (row, by) in delta.chunks_exact(actions).zip(by_stream.chunks_exact_mut(outputs)) {
        let sum = row.iter().sum::<f32>();
        if outputs == 1 && actions > 1 {
            by[0] = sum;
        } else {
            by.iter_mut().zip(row).for_each(|(by, x)| *by = x - sum / actions as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::actor_critic::assert_covered;
    use crate::env::{ImageShape, make};
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    fn atari(actions: usize) -> EnvSpec {
        EnvSpec {
            id: "ALE/Pong-v5".into(),
            observation_dim: 84 * 84 * 4,
            image: Some(ImageShape { height: 84, width: 84, channels: 4 }),
            action: ActionSpec::Discrete { n: actions },
            episode_steps_max: 108_000,
            solved_return: f64::INFINITY,
        }
    }

    #[test]
    fn the_network_for_pong_has_the_size_of_the_paper() {
        let network = QNetwork::new(&atari(6), &[512], false).unwrap();
        assert_eq!(network.parameter_count(), 1_687_206);
    }

    #[test]
    fn tensors_cover_all_parameters_once() {
        for duelling in [false, true] {
            let network = QNetwork::new(make("CartPole-v1").unwrap().spec(), &[20, 10], duelling).unwrap();
            assert_covered(network.tensors(), network.parameter_count());
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        for (hidden, duelling) in [(&[9, 7][..], false), (&[9, 7], true), (&[9], true)] {
            let network = QNetwork::new(make("CartPole-v1").unwrap().spec(), hidden, duelling).unwrap();
            let mut random = |len: usize| (0..len).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
            let (observations, delta) = (random(5 * 4), random(5 * 2));
            let parameters = random(network.parameter_count());
            let mut work = network.workspace(5);
            let mut gradient = vec![f32::NAN; parameters.len()];
            network.values(&parameters, &observations, &mut work);
            network.backward(&parameters, &observations, &delta, &mut work, &mut gradient);
            let mut outliers = 0;
            for i in 0..parameters.len() {
                let mut at = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[i] += step;
                    let values = network.values(&moved, &observations, &mut work);
                    values.iter().zip(&delta).map(|(q, d)| f64::from(q * d)).sum::<f64>()
                };
                let numeric = (at(1e-3) - at(-1e-3)) / 2e-3;
                let error = (f64::from(gradient[i]) - numeric).abs();
                outliers += usize::from(error > 2e-3 + 1e-2 * numeric.abs());
            }
            // The ReLU has a kink, where finite differences are inaccurate.
            assert!(
                outliers <= parameters.len() / 25,
                "{hidden:?} {duelling}: {outliers} of {}",
                parameters.len()
            );
        }
    }

    #[test]
    fn continuous_actions_are_refused() {
        let error = QNetwork::new(make("Pendulum-v1").unwrap().spec(), &[8], false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Pendulum-v1 has continuous actions, expected discrete ones; for continuous actions, train ppo, a2c, ddpg, \
             td3 or sac"
        );
    }
}
