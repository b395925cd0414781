//! Environments that step together, for off-policy algorithms.

use super::TrainError;
use super::environments::EnvironmentSlot;
use super::halves::Tail;
use super::replay::Transition;
use crate::env::EnvSpec;

/// Receiver of the transitions of a step. The first argument is the index of the environment in this process; the
/// second is its transition.
pub type TransitionSink<'a> = dyn FnMut(usize, &Transition<'_>) + 'a;

/// This process's environments and their current observations.
pub struct VectorEnv {
    spec: EnvSpec,
    slots: Vec<EnvironmentSlot>,
    clip_rewards: bool,
    tail: Tail,
    /// Observations scaled for the networks, `[environments, observation_dim]`.
    observations: Vec<f32>,
    next_observation: Vec<f32>,
}

impl VectorEnv {
    /// Wraps environments that are at the start of their episodes. If `clip_rewards` is true, the rewards of
    /// transitions are clipped to [-1, 1].
    pub fn new(spec: EnvSpec, slots: Vec<EnvironmentSlot>, clip_rewards: bool) -> Self {
        Self {
            observations: vec![0.0; slots.len() * spec.observation_dim],
            next_observation: vec![0.0; spec.observation_dim],
            tail: Tail::default(),
            spec,
            slots,
            clip_rewards,
        }
    }

    /// Returns the environment's specification, including the shapes of observations and actions.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Returns the environments.
    pub fn slots(&self) -> &[EnvironmentSlot] {
        &self.slots
    }

    /// Returns the environments.
    pub fn slots_mut(&mut self) -> &mut [EnvironmentSlot] {
        &mut self.slots
    }

    /// Returns the current observations, scaled for the networks, `[environments, observation_dim]`.
    pub fn observations(&mut self) -> &[f32] {
        let dim = self.spec.observation_dim;
        for (slot, row) in self.slots.iter().zip(self.observations.chunks_exact_mut(dim)) {
            self.spec.scale_observation(&slot.observation, row);
        }
        &self.observations
    }

    /// Takes one step in each environment; row `i` of `actions` (`[environments, action_dim]`; a discrete action is
    /// represented by its index) is the action of environment `i`. [`Self::observations`] must be called before each
    /// step.
    ///
    /// # Errors
    /// Fails if an environment fails.
    pub fn step(&mut self, actions: &[f32], sink: &mut TransitionSink<'_>) -> Result<(), TrainError> {
        let action_dim = actions.len() / self.slots.len();
        for (slot, action) in self.slots.iter_mut().zip(actions.chunks_exact(action_dim)) {
            slot.begin_step(self.spec.to_env(action))?;
        }
        for (k, action) in actions.chunks_exact(action_dim).enumerate() {
            self.finish_step(k, action, sink)?;
        }
        self.tail.steps += self.slots.len() as f32;
        Ok(())
    }

    fn finish_step(
        &mut self,
        k: usize,
        action: &[f32],
        sink: &mut TransitionSink<'_>,
    ) -> Result<(), TrainError> {
        let (slot, dim) = (&mut self.slots[k], self.spec.observation_dim);
        let step = slot.finish_step(self.spec.to_env(action), 0.0, 0.0)?;
        let reward = if self.clip_rewards { step.reward.clamp(-1.0, 1.0) } else { step.reward };
        self.spec.scale_observation(&slot.observation, &mut self.next_observation);
        let transition = Transition {
            observation: &self.observations[k * dim..(k + 1) * dim],
            action,
            reward: reward as f32,
            next_observation: &self.next_observation,
            terminated: step.terminated || step.life_lost,
            episode_ends: slot.ended,
        };
        sink(k, &transition);
        if slot.ended {
            self.tail.count_episode(slot);
            slot.reset()?;
        }
        Ok(())
    }

    /// Returns the statistics collected since the previous call.
    pub fn take_tail(&mut self) -> Tail {
        std::mem::take(&mut self.tail)
    }
}
