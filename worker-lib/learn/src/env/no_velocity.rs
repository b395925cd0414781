//! Tasks whose observations lack velocities, which an agent with memory can infer from earlier observations.

use rand_chacha::ChaCha8Rng;

use super::scene::Picture;
use super::{Action, ActionSpace, EnvError, EnvSpec, Environment, Step};

/// Id of [`CartPole`](super::CartPole) without velocities.
pub(super) const CART_POLE_ID: &str = "CartPoleNoVel-v1";
/// Id of [`Pendulum`](super::Pendulum) without velocity.
pub(super) const PENDULUM_ID: &str = "PendulumNoVel-v1";

/// An environment whose observed velocities are all set to zero, as in the RL Baselines3 Zoo environments with the same
/// ids.
#[derive(Debug)]
pub struct NoVelocity<E> {
    inner: E,
    spec: EnvSpec,
    /// Indices of the velocities in an observation.
    velocities: &'static [usize],
}

impl NoVelocity<super::CartPole> {
    /// Creates a cart pole. The velocities in its observation are zero; only the position and the angle are observed.
    pub fn cart_pole() -> Self {
        Self::new(super::CartPole::new(), CART_POLE_ID, &[1, 3])
    }
}

impl NoVelocity<super::Pendulum> {
    /// Creates a pendulum. The angular velocity in its observation is zero; only the cosine and sine of the angle are
    /// observed.
    pub fn pendulum() -> Self {
        Self::new(super::Pendulum::new(), PENDULUM_ID, &[2])
    }
}

impl<E: Environment> NoVelocity<E> {
    fn new(inner: E, id: &'static str, velocities: &'static [usize]) -> Self {
        let spec = EnvSpec { id: id.into(), ..inner.spec().clone() };
        Self { inner, spec, velocities }
    }

    fn mask(&self, observation: &mut [f32]) {
        self.velocities.iter().for_each(|i| observation[*i] = 0.0);
    }
}

impl<E: Environment> Environment for NoVelocity<E> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn action_space(&self) -> ActionSpace {
        self.inner.action_space()
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.inner.reset(rng, observation)?;
        self.mask(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let step = self.inner.step(action, observation)?;
        self.mask(observation);
        Ok(step)
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        self.inner.picture()
    }

    fn save_state(&self) -> Vec<f64> {
        self.inner.save_state()
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        self.inner.restore_state(state)
    }
}

#[cfg(test)]
mod tests {
    use crate::env::{Action, make};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn observations_differ_from_those_of_the_task_only_in_the_velocities() {
        let cases = [
            ("CartPoleNoVel-v1", "CartPole-v1", Action::Discrete(1), &[1, 3][..]),
            ("PendulumNoVel-v1", "Pendulum-v1", Action::Continuous(&[0.7]), &[2]),
        ];
        for (id, original, action, velocities) in cases {
            let (mut masked, mut full) = (make(id).unwrap(), make(original).unwrap());
            assert_eq!(masked.spec().id, id);
            assert_eq!(masked.action_space(), full.action_space());
            let mut observations =
                [vec![0.0; full.spec().observation_dim], vec![0.0; full.spec().observation_dim]];
            let [hidden, seen] = &mut observations;
            for step in 0..8 {
                let rewards = if step == 0 {
                    masked.reset(&mut ChaCha8Rng::seed_from_u64(3), hidden).unwrap();
                    full.reset(&mut ChaCha8Rng::seed_from_u64(3), seen).unwrap();
                    [0.0; 2]
                } else {
                    [masked.step(action, hidden).unwrap().reward, full.step(action, seen).unwrap().reward]
                };
                assert_eq!(rewards[0], rewards[1]);
                for (i, (x, y)) in hidden.iter().zip(seen.iter()).enumerate() {
                    if velocities.contains(&i) {
                        assert!(*x == 0.0 && *y != 0.0, "{id}: {i} of step {step}");
                    } else {
                        assert_eq!(x, y, "{id}: {i} of step {step}");
                    }
                }
                assert_eq!(masked.save_state(), full.save_state());
            }
            assert!(masked.picture().unwrap().is_some(), "{id}");
        }
    }
}
