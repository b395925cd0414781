//! The stochastic policy, the twin critics and the temperature of SAC, with their parameters in one flat vector.

use std::ops::Range;

use rand::Rng;

use crate::algorithms::TrainError;
use crate::algorithms::actor_critic::{NamedTensor, network_tensors};
use crate::algorithms::critics::{Architecture, Critics, continuous_dim};
use crate::env::EnvSpec;
use crate::nn::{Activation, Network};

/// Architecture of all networks.
const ARCHITECTURE: Architecture = Architecture::Plain;

/// Actor, twin critics and temperature. The type holds only the shapes. The parameters are laid out as `[actor | critic
/// | second critic | logarithm of the temperature]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftActorCritic {
    actor: Network,
    critics: Critics,
}

impl SoftActorCritic {
    /// Creates the networks for an environment with continuous actions; `hidden` gives the widths of the hidden layers.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the actions are discrete or there are no hidden layers.
    pub fn new(env: &EnvSpec, hidden: &[usize]) -> Result<Self, TrainError> {
        let action_dim = continuous_dim(env, hidden)?;
        let add = |network: Network, width: &usize| ARCHITECTURE.hidden(network, *width);
        let actor = hidden.iter().fold(Network::flat(env.observation_dim), add);
        Ok(Self {
            actor: actor.dense(2 * action_dim, Activation::Identity),
            critics: Critics::new(env, hidden, 2, ARCHITECTURE)?,
        })
    }

    /// Returns the number of floats in the parameter and gradient vectors.
    pub fn parameter_count(&self) -> usize {
        self.temperature_index() + 1
    }

    /// Returns the number of floats in an action.
    pub fn action_dim(&self) -> usize {
        self.actor.outputs() / 2
    }

    /// Returns the policy network. Its outputs (`[2 * action_dim]`) are the means and the logarithms of the standard
    /// deviations of a [`SquashedGaussian`](crate::nn::SquashedGaussian).
    pub fn actor(&self) -> &Network {
        &self.actor
    }

    /// Returns the critics.
    pub fn critics(&self) -> &Critics {
        &self.critics
    }

    /// Returns the range of the policy network's parameters.
    pub fn actor_range(&self) -> Range<usize> {
        0..self.actor.parameter_count()
    }

    /// Returns the range of the parameters of both critics.
    pub fn critic_range(&self) -> Range<usize> {
        let start = self.actor.parameter_count();
        start..start + self.critics.parameter_count()
    }

    /// Returns the position of the logarithm of the temperature in the parameter vector.
    pub fn temperature_index(&self) -> usize {
        self.critic_range().end
    }

    /// Returns the initial parameters: weights and biases drawn uniformly within a bound that depends on the fan-in, as
    /// in PyTorch, and the given temperature.
    pub fn initial_parameters(&self, temperature: f32, rng: &mut impl Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        ARCHITECTURE.initialise(&self.actor, &mut parameters[self.actor_range()], rng);
        self.critics.initialise(&mut parameters[self.critic_range()], rng);
        parameters[self.temperature_index()] = temperature.ln();
        parameters
    }

    /// Returns the name and shape of each parameter tensor, as used in model files.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let mut tensors = network_tensors("actor", &self.actor, 0);
        tensors.extend(self.critics.tensors(self.critic_range().start));
        let at = self.temperature_index();
        tensors.push(NamedTensor { name: "log_alpha".to_owned(), shape: vec![1], range: at..at + 1 });
        tensors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::actor_critic::assert_covered;
    use crate::algorithms::critics::samples::spec;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn the_tensors_cover_all_parameters_once() {
        let agent = SoftActorCritic::new(&spec(), &[32, 16]).unwrap();
        assert_covered(agent.tensors(), agent.parameter_count());
    }

    #[test]
    fn the_networks_have_the_sizes_of_the_published_code() {
        let agent = SoftActorCritic::new(&spec(), &[256, 256]).unwrap();
        let dense = |inputs: usize, outputs: usize| (inputs + 1) * outputs;
        assert_eq!(agent.actor_range().len(), dense(3, 256) + dense(256, 256) + 2 * dense(256, 2));
        assert_eq!(agent.critic_range().len(), 2 * (dense(3 + 2, 256) + dense(256, 256) + dense(256, 1)));
    }

    #[test]
    fn training_starts_at_the_given_temperature() {
        let agent = SoftActorCritic::new(&spec(), &[8]).unwrap();
        let parameters = agent.initial_parameters(0.2, &mut ChaCha8Rng::seed_from_u64(1));
        assert!((parameters[agent.temperature_index()].exp() - 0.2).abs() < 1e-6);
        assert!(parameters.iter().all(|x| *x != 0.0));
    }
}
