//! Environment that generates images at almost no computational cost. With this environment, a learner can be measured
//! on observations like those of the Atari games, but without the games. A frame is a stored pattern that moves; the
//! four newest frames form an observation.

use iswitch_learn::env::{Action, ActionSpec, EnvError, EnvSpec, Environment, ImageShape, Step};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const SIDE: usize = 84;
const FRAMES: usize = 4;
const FRAME: usize = SIDE * SIDE;
const EPISODE_STEPS: u32 = 1000;
/// Number of actions; the same as in Pong and Q*bert.
const ACTIONS: usize = 6;

/// Environment of moving stripes, with observations of 84 x 84 x 4 and 6 actions that have no effect.
#[derive(Clone, Debug)]
pub struct Images {
    spec: EnvSpec,
    /// Pattern twice the size of an observation, so that an observation at any offset is contiguous.
    pattern: Vec<f32>,
    offset: usize,
    steps: u32,
}

impl Default for Images {
    fn default() -> Self {
        let spec = EnvSpec {
            id: "SyntheticImages".into(),
            observation_dim: FRAME * FRAMES,
            image: Some(ImageShape { height: SIDE, width: SIDE, channels: FRAMES }),
            action: ActionSpec::Discrete { n: ACTIONS },
            episode_steps_max: EPISODE_STEPS,
            solved_return: f64::INFINITY,
        };
        // The newest frame is the last channel.
        let pixel = |at: usize| f32::from((at % FRAME % 251) as u8);
        let pattern =
            (0..2 * FRAME * FRAMES).map(|at| pixel(at / FRAMES + at % FRAMES + 1 + FRAME - FRAMES)).collect();
        Self { spec, pattern, offset: 0, steps: 0 }
    }
}

impl Images {
    fn observe(&self, observation: &mut [f32]) {
        let at = self.offset * FRAMES;
        observation.copy_from_slice(&self.pattern[at..at + FRAMES * FRAME]);
    }
}

impl Environment for Images {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        (self.offset, self.steps) = (rng.random_range(0..FRAME), 0);
        self.observe(observation);
        for pixel in observation.chunks_exact_mut(FRAMES) {
            pixel.fill(pixel[FRAMES - 1]);
        }
        Ok(())
    }

    fn step(&mut self, _action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.offset = (self.offset + 1) % FRAME;
        self.steps += 1;
        self.observe(observation);
        let truncated = self.steps >= EPISODE_STEPS;
        let reward = if self.steps.is_multiple_of(50) { 1.0 } else { 0.0 };
        Ok(Step { reward, terminated: false, truncated, life_lost: false })
    }

    fn save_state(&self) -> Vec<f64> {
        vec![self.offset as f64, f64::from(self.steps)]
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        let [offset, steps] = state else {
            return Err(EnvError::WrongState { expected: 2, actual: state.len() });
        };
        (self.offset, self.steps) = (*offset as usize % FRAME, *steps as u32);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_newest_frame_is_last_and_older_frames_shift() {
        let (mut images, mut rng) = (Images::default(), ChaCha8Rng::seed_from_u64(1));
        let mut before = vec![0.0; images.spec.observation_dim];
        images.reset(&mut rng, &mut before).unwrap();
        let mut after = before.clone();
        for _ in 0..6 {
            before.copy_from_slice(&after);
            images.step(Action::Discrete(0), &mut after).unwrap();
        }
        for (before, after) in before.chunks_exact(FRAMES).zip(after.chunks_exact(FRAMES)) {
            assert_eq!(before[1..], after[..FRAMES - 1]);
        }
        let newest = |image: &[f32]| -> Vec<f32> { image.iter().skip(3).step_by(FRAMES).copied().collect() };
        assert_ne!(newest(&before), newest(&after));
        let state = images.save_state();
        let mut other = Images::default();
        other.restore_state(&state).unwrap();
        other.observe(&mut before);
        assert_eq!(before, after);
    }
}
