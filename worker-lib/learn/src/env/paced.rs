//! Environments that run in real time.

use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;

use super::scene::Picture;
use super::{Action, ActionSpace, EnvError, EnvSpec, Environment, Step};

/// An environment whose steps begin at a fixed rate, like those of a physical machine. If a step is late, the periods
/// after it are not shortened to catch up.
pub struct Paced {
    inner: Box<dyn Environment>,
    period: Duration,
    next: Instant,
}

impl Paced {
    /// Wraps `inner` so that its steps begin at least one `period` apart.
    pub fn new(inner: Box<dyn Environment>, period: Duration) -> Self {
        Self { inner, period, next: Instant::now() }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        std::thread::sleep(self.next.saturating_duration_since(now));
        self.next = self.next.max(now) + self.period;
    }
}

impl Environment for Paced {
    fn spec(&self) -> &EnvSpec {
        self.inner.spec()
    }

    fn action_space(&self) -> ActionSpace {
        self.inner.action_space()
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.inner.reset(rng, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.wait();
        self.inner.step(action, observation)
    }

    fn begin_step(&mut self, action: Action<'_>) -> Result<(), EnvError> {
        self.wait();
        self.inner.begin_step(action)
    }

    fn finish_step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.inner.finish_step(action, observation)
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
    use super::*;
    use crate::env::make;
    use rand::SeedableRng as _;

    #[test]
    fn paced_steps_take_their_period_and_give_the_same_results() {
        let period = Duration::from_millis(5);
        let mut paced = Paced::new(make("CartPole-v1").unwrap(), period);
        let mut plain = make("CartPole-v1").unwrap();
        let (mut a, mut b) = ([0.0; 4], [0.0; 4]);
        paced.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut a).unwrap();
        plain.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut b).unwrap();
        let began = Instant::now();
        for _ in 0..3 {
            let action = Action::Discrete(1);
            paced.begin_step(action).unwrap();
            let step = paced.finish_step(action, &mut a).unwrap();
            assert_eq!((step, a), (plain.step(action, &mut b).unwrap(), b));
        }
        // The first step is immediate, so three steps take at least two periods on any machine.
        assert!(began.elapsed() >= 2 * period);
        assert_eq!(paced.save_state(), plain.save_state());
    }
}
