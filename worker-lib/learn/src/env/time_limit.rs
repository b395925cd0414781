//! Truncation of episodes after a number of steps.

use rand_chacha::ChaCha8Rng;

use super::scene::Picture;
use super::{Action, ActionSpace, EnvError, EnvSpec, Environment, Step, check_state};

/// An environment whose episodes are truncated after `episode_steps_max` steps. If the last of these steps terminates
/// the episode, it is not reported as truncated.
#[derive(Debug)]
pub struct TimeLimit<E> {
    inner: E,
    steps: u32,
}

impl<E: Environment> TimeLimit<E> {
    /// Wraps `inner`.
    pub fn new(inner: E) -> Self {
        Self { inner, steps: 0 }
    }
}

impl<E: Environment> Environment for TimeLimit<E> {
    fn spec(&self) -> &EnvSpec {
        self.inner.spec()
    }

    fn action_space(&self) -> ActionSpace {
        self.inner.action_space()
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.steps = 0;
        self.inner.reset(rng, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let step = self.inner.step(action, observation)?;
        self.steps += 1;
        let over = self.steps >= self.inner.spec().episode_steps_max;
        Ok(Step { truncated: !step.terminated && (step.truncated || over), ..step })
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        self.inner.picture()
    }

    fn save_state(&self) -> Vec<f64> {
        let mut state = self.inner.save_state();
        state.push(f64::from(self.steps));
        state
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        let Some((steps, inner)) = state.split_last() else {
            return check_state(state, 1);
        };
        self.steps = *steps as u32;
        self.inner.restore_state(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::CartPole;
    use rand::SeedableRng;

    #[test]
    fn the_step_limit_truncates_and_survives_a_restore() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut observation = [0.0; 4];
        let mut env = TimeLimit::new(CartPole::new());
        env.reset(&mut rng, &mut observation).unwrap();
        // The pole stands still, one step before the limit.
        env.restore_state(&[0.0, 0.0, 0.0, 0.0, 498.0]).unwrap();
        assert!(!env.step(Action::Discrete(0), &mut observation).unwrap().truncated);
        let saved = env.save_state();
        assert_eq!(saved.last(), Some(&499.0));
        env.restore_state(&saved).unwrap();
        let step = env.step(Action::Discrete(1), &mut observation).unwrap();
        assert!(step.truncated && !step.terminated);
    }
}
