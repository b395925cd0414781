//! A deterministic policy and its critics, used by DDPG and TD3. The parameters are stored in one flat vector.

use std::ops::Range;

use rand::Rng;

use super::TrainError;
use super::actor_critic::{NamedTensor, network_tensors};
use super::critics::{Architecture, Critics, continuous_dim};
use crate::env::EnvSpec;
use crate::nn::{Activation, Network};

pub(super) mod learner;
pub mod loss;

/// A deterministic actor and its critics. The type contains only the shapes. The layout of the parameters is `[actor |
/// critic | second critic (if there are two)]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeterministicActorCritic {
    actor: Network,
    critics: Critics,
    architecture: Architecture,
}

impl DeterministicActorCritic {
    /// Creates the networks for an environment with continuous actions. `hidden` gives the widths of the hidden layers;
    /// `critics` is 1, or 2 for twin critics.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the actions are discrete or there are no hidden layers.
    pub fn new(
        env: &EnvSpec,
        hidden: &[usize],
        critics: usize,
        architecture: Architecture,
    ) -> Result<Self, TrainError> {
        let action_dim = continuous_dim(env, hidden)?;
        let add = |network: Network, width: &usize| architecture.hidden(network, *width);
        let actor = hidden.iter().fold(Network::flat(env.observation_dim), add);
        Ok(Self {
            actor: actor.dense(action_dim, Activation::Tanh),
            critics: Critics::new(env, hidden, critics, architecture)?,
            architecture,
        })
    }

    /// Returns the number of floats in the parameter and gradient vectors.
    pub fn parameter_count(&self) -> usize {
        self.critic_range().end
    }

    /// Returns the number of floats in an action.
    pub fn action_dim(&self) -> usize {
        self.actor.outputs()
    }

    /// Returns the policy network, whose outputs are actions in [-1, 1].
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

    /// Returns the range of the parameters of all critics.
    pub fn critic_range(&self) -> Range<usize> {
        let start = self.actor.parameter_count();
        start..start + self.critics.parameter_count()
    }

    /// Returns the initial parameters; see [`Architecture::initialise`].
    pub fn initial_parameters(&self, rng: &mut impl Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        let (actor, critics) = parameters.split_at_mut(self.actor.parameter_count());
        self.architecture.initialise(&self.actor, actor, rng);
        self.critics.initialise(critics, rng);
        parameters
    }

    /// Returns the names and shapes of all parameters, as stored in files.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let mut tensors = network_tensors("actor", &self.actor, 0);
        tensors.extend(self.critics.tensors(self.critic_range().start));
        tensors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::actor_critic::assert_covered;
    use crate::env::{ActionSpec, make};
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

    fn agent(hidden: &[usize], critics: usize, architecture: Architecture) -> DeterministicActorCritic {
        DeterministicActorCritic::new(&cheetah(), hidden, critics, architecture).unwrap()
    }

    #[test]
    fn the_networks_have_the_size_of_the_paper() {
        assert_eq!(agent(&[128, 128], 1, Architecture::Normalised).parameter_count(), 40_327);
    }

    #[test]
    fn the_tensors_cover_all_parameters_once() {
        for kind in [Architecture::Normalised, Architecture::Plain] {
            let agent = agent(&[32, 16], 2, kind);
            assert_covered(agent.tensors(), agent.parameter_count());
        }
    }

    #[test]
    fn initial_actions_are_near_zero_only_with_normalisation() {
        for (kind, bound) in [(Architecture::Normalised, 0.1), (Architecture::Plain, 1.0)] {
            let agent = agent(&[128, 128], 2, kind);
            let parameters = agent.initial_parameters(&mut ChaCha8Rng::seed_from_u64(1));
            let mut work = agent.actor().workspace(1);
            let actions = agent.actor().forward(&parameters[agent.actor_range()], &[0.3; 17], &mut work);
            assert!(actions.iter().all(|a| a.abs() < bound && *a != 0.0), "{kind:?}: {actions:?}");
        }
    }

    #[test]
    fn discrete_actions_are_refused() {
        let env = make("CartPole-v1").unwrap();
        let error = DeterministicActorCritic::new(env.spec(), &[8], 1, Architecture::Plain).unwrap_err();
        assert_eq!(
            error.to_string(),
            "CartPole-v1 has discrete actions, expected continuous ones; for discrete actions, train ppo, a2c or dqn"
        );
    }
}
