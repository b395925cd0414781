//! A deterministic policy and its action-value functions in one flat vector of parameters, for DDPG and TD3.

use std::ops::Range;

use rand::{Rng, RngExt as _};

use super::TrainError;
use super::actor_critic::{NamedTensor, network_tensors};
use crate::env::{ActionSpec, EnvSpec};
use crate::nn::{Activation, Network, Operation, Workspace, uniform_by_fan_in};

/// Bound of the initial weights and biases of the output layers, so that actions and values start near zero.
const LAST_LAYER_SPREAD: f32 = 3e-3;

/// Actor and critics of dense layers with layer normalisation and ReLU. The action enters a critic at its second
/// layer. The type holds shapes only; the layout of the parameters is `[actor | critic | second critic (if there are
/// twins)]`, where each critic's first layer precedes its other layers.
#[derive(Clone, Debug, PartialEq)]
pub struct DeterministicActorCritic {
    actor: Network,
    features: Network,
    value: Network,
    critics: usize,
    action_dim: usize,
}

/// Buffers for one batch through a critic.
#[derive(Clone, Debug)]
pub struct CriticWorkspace {
    features: Workspace,
    value: Workspace,
    /// Features and actions side by side, `[batch_max, width + action_dim]`; `by_joined` is the loss gradient with
    /// respect to them.
    joined: Vec<f32>,
    by_joined: Vec<f32>,
}

impl DeterministicActorCritic {
    /// Creates the networks for an environment with continuous actions, with hidden layers of these widths; `critics`
    /// is 1, or 2 for twin critics.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the actions are discrete or there are no hidden layers.
    pub fn new(env: &EnvSpec, hidden: &[usize], critics: usize) -> Result<Self, TrainError> {
        let ActionSpec::Continuous { dim: action_dim } = env.action else {
            return Err(TrainError::Config(format!(
                "{} has discrete actions, expected continuous ones; train ppo, a2c or dqn on these",
                env.id
            )));
        };
        let [first, others @ ..] = hidden else {
            return Err(TrainError::Config("hidden has no layer, expected at least one".to_owned()));
        };
        let normalised = |network: Network, width: &usize| {
            network.dense(*width, Activation::Identity).layer_norm(Activation::Relu)
        };
        Ok(Self {
            actor: hidden
                .iter()
                .fold(Network::flat(env.observation_dim), normalised)
                .dense(action_dim, Activation::Tanh),
            features: normalised(Network::flat(env.observation_dim), first),
            value: others
                .iter()
                .fold(Network::flat(first + action_dim), normalised)
                .dense(1, Activation::Identity),
            critics,
            action_dim,
        })
    }

    /// Returns the number of floats in the parameter and gradient vectors.
    pub fn parameter_count(&self) -> usize {
        self.critic_range(self.critics).start
    }

    /// Returns the number of floats in an observation.
    pub fn observation_dim(&self) -> usize {
        self.actor.inputs()
    }

    /// Returns the number of floats in an action.
    pub fn action_dim(&self) -> usize {
        self.action_dim
    }

    /// Returns the number of critics, one or two.
    pub fn critics(&self) -> usize {
        self.critics
    }

    /// Returns the policy network, whose outputs are actions in [-1, 1].
    pub fn actor(&self) -> &Network {
        &self.actor
    }

    /// Returns the range of the policy network's parameters.
    pub fn actor_range(&self) -> Range<usize> {
        0..self.actor.parameter_count()
    }

    /// Returns the range of a critic's parameters.
    pub fn critic_range(&self, number: usize) -> Range<usize> {
        let len = self.features.parameter_count() + self.value.parameter_count();
        let start = self.actor.parameter_count() + number * len;
        start..start + len
    }

    /// Allocates buffers for batches of up to `batch_max` samples through a critic.
    pub fn critic_workspace(&self, batch_max: usize) -> CriticWorkspace {
        let joined = vec![0.0; batch_max * self.value.inputs()];
        CriticWorkspace {
            features: self.features.workspace(batch_max),
            value: self.value.workspace(batch_max),
            by_joined: joined.clone(),
            joined,
        }
    }

    /// Returns the values (`[batch]`) of `actions` (`[batch, action_dim]`) at `observations`; `critic` is the slice
    /// of the parameters in [`Self::critic_range`].
    pub fn values<'w>(
        &self,
        critic: &[f32],
        observations: &[f32],
        actions: &[f32],
        work: &'w mut CriticWorkspace,
    ) -> &'w [f32] {
        let (of_features, of_value) = critic.split_at(self.features.parameter_count());
        let features = self.features.forward(of_features, observations, &mut work.features);
        let rows = features.chunks_exact(self.features.outputs()).zip(actions.chunks_exact(self.action_dim));
        for ((features, action), joined) in rows.zip(work.joined.chunks_exact_mut(self.value.inputs())) {
            let (left, right) = joined.split_at_mut(features.len());
            left.copy_from_slice(features);
            right.copy_from_slice(action);
        }
        let batch = actions.len() / self.action_dim;
        self.value.forward(of_value, &work.joined[..batch * self.value.inputs()], &mut work.value)
    }

    /// Overwrites `gradient`, which has the length of `critic`, with the loss gradient with respect to the critic's
    /// parameters. `delta` (`[batch]`) is the loss gradient with respect to the values of the preceding
    /// [`Self::values`] call.
    pub fn critic_gradient(
        &self,
        critic: &[f32],
        observations: &[f32],
        delta: &[f32],
        work: &mut CriticWorkspace,
        gradient: &mut [f32],
    ) {
        let (of_features, of_value) = critic.split_at(self.features.parameter_count());
        let (by_features, by_value) = gradient.split_at_mut(of_features.len());
        work.value.output_delta(delta.len()).copy_from_slice(delta);
        let joined_len = delta.len() * self.value.inputs();
        let (joined, by_joined) = (&work.joined[..joined_len], &mut work.by_joined[..joined_len]);
        self.value.backward_to_input(of_value, joined, &mut work.value, Some(by_value), by_joined);
        let width = self.features.outputs();
        let feature_delta = work.features.output_delta(delta.len() * width);
        for (to, from) in
            feature_delta.chunks_exact_mut(width).zip(by_joined.chunks_exact(self.value.inputs()))
        {
            to.copy_from_slice(&from[..width]);
        }
        self.features.backward(of_features, observations, &mut work.features, by_features);
    }

    /// Writes to `by_actions` (`[batch, action_dim]`) the gradient, with respect to the actions, of the values of the
    /// preceding [`Self::values`] call, multiplied by `delta`.
    pub fn action_gradient(
        &self,
        critic: &[f32],
        delta: f32,
        work: &mut CriticWorkspace,
        by_actions: &mut [f32],
    ) {
        let of_value = &critic[self.features.parameter_count()..];
        let batch = by_actions.len() / self.action_dim;
        work.value.output_delta(batch).fill(delta);
        let joined_len = batch * self.value.inputs();
        let (joined, by_joined) = (&work.joined[..joined_len], &mut work.by_joined[..joined_len]);
        self.value.backward_to_input(of_value, joined, &mut work.value, None, by_joined);
        let rows =
            by_actions.chunks_exact_mut(self.action_dim).zip(by_joined.chunks_exact(self.value.inputs()));
        rows.for_each(|(to, from)| to.copy_from_slice(&from[from.len() - to.len()..]));
    }

    /// Returns initial parameters: uniform by fan-in, as in PyTorch, but within 0.003 of zero in the output layers;
    /// layer normalisation starts with gain 1 and bias 0.
    pub fn initial_parameters(&self, rng: &mut impl Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        for (_, network, start) in self.networks() {
            let last = network.layers().len() - 1;
            for (i, layer) in network.layers().iter().enumerate() {
                let part = |range: &Range<usize>| start + range.start..start + range.end;
                if matches!(layer.operation, Operation::LayerNorm { .. }) {
                    parameters[part(&layer.weight)].fill(1.0);
                    continue;
                }
                let both = &mut parameters[start + layer.weight.start..start + layer.bias.end];
                if i == last && layer.outputs() <= self.action_dim {
                    both.iter_mut().for_each(|x| {
                        *x = rng.random_range(-LAST_LAYER_SPREAD..=LAST_LAYER_SPREAD);
                    });
                } else {
                    uniform_by_fan_in(both, layer.inputs(), rng);
                }
            }
        }
        parameters
    }

    /// Returns the names and shapes of all parameters, for files.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let networks = self.networks();
        networks.iter().flat_map(|(name, network, start)| network_tensors(name, network, *start)).collect()
    }

    /// Returns each network with its name and the start of its parameters.
    fn networks(&self) -> Vec<(String, &Network, usize)> {
        let mut networks = vec![("actor".to_owned(), &self.actor, 0)];
        for number in 0..self.critics {
            let start = self.critic_range(number).start;
            networks.push((format!("critic_{number}.features"), &self.features, start));
            let start = start + self.features.parameter_count();
            networks.push((format!("critic_{number}.value"), &self.value, start));
        }
        networks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::actor_critic::assert_covered;
    use crate::env::make;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    fn cheetah() -> EnvSpec {
        EnvSpec {
            id: "HalfCheetah-v5".into(),
            observation_dim: 17,
            image: None,
            action: ActionSpec::Continuous { dim: 6 },
            episode_steps_max: 1000,
            solved_return: 4800.0,
        }
    }

    #[test]
    fn the_networks_have_the_size_of_the_paper() {
        let agent = DeterministicActorCritic::new(&cheetah(), &[128, 128], 1).unwrap();
        assert_eq!(agent.parameter_count(), 40_327);
    }

    #[test]
    fn the_tensors_cover_all_parameters_once() {
        let agent = DeterministicActorCritic::new(&cheetah(), &[32, 16], 2).unwrap();
        assert_covered(agent.tensors(), agent.parameter_count());
    }

    #[test]
    fn initial_actions_and_values_are_near_zero() {
        let agent = DeterministicActorCritic::new(&cheetah(), &[128, 128], 2).unwrap();
        let parameters = agent.initial_parameters(&mut ChaCha8Rng::seed_from_u64(1));
        let observation = [0.3; 17];
        let mut work = agent.actor().workspace(1);
        let actions =
            agent.actor().forward(&parameters[agent.actor_range()], &observation, &mut work).to_vec();
        assert!(actions.iter().all(|a| a.abs() < 0.1 && *a != 0.0), "{actions:?}");
        let mut work = agent.critic_workspace(1);
        let values = [0, 1].map(|number| {
            agent.values(&parameters[agent.critic_range(number)], &observation, &actions, &mut work)[0]
        });
        assert!(values[0].abs() < 0.1 && values[0].to_bits() != values[1].to_bits(), "{values:?}");
    }

    #[test]
    fn discrete_actions_are_refused() {
        let error = DeterministicActorCritic::new(make("CartPole-v1").unwrap().spec(), &[8], 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "CartPole-v1 has discrete actions, expected continuous ones; train ppo, a2c or dqn on these"
        );
    }
}
