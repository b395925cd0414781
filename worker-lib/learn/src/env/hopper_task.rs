//! What a hopper is asked to do, alike for both simulators: Gymnasium's Hopper-v5 in observation, reward and
//! termination.
//!
//! Coordinates q: x and z of the torso's joint frame (m), pitch, thigh, leg and foot angles (rad); v their rates.

use super::{ActionSpec, EnvSpec, Step};

/// Coordinates.
pub(super) const N: usize = 6;
/// Motors: thigh, leg, foot.
pub(super) const MOTORS: usize = 3;
/// Time between two actions, s.
pub(super) const ACTION_TIME: f64 = 0.008;
/// Each coordinate and velocity starts uniform within this of its standing value.
pub(super) const START_SPREAD: f64 = 5e-3;

/// The episode ends when the torso is not above this, m ...
const HEALTHY_HEIGHT: f64 = 0.7;
/// ... or leans further than this, rad ...
const HEALTHY_PITCH: f64 = 0.2;
/// ... or any other coordinate or velocity exceeds this.
const HEALTHY_STATE: f64 = 100.0;
/// Reward of each healthy step.
const HEALTHY_REWARD: f64 = 1.0;
/// Cost per squared action.
const CONTROL_COST: f64 = 1e-3;
/// Velocities are observed within this range.
const OBSERVED_VELOCITY: f64 = 10.0;

/// Shapes and limits of the environment `id`.
pub(super) fn spec(id: &'static str) -> EnvSpec {
    EnvSpec {
        id: id.into(),
        observation_dim: 2 * N - 1,
        image: None,
        action: ActionSpec::Continuous { dim: MOTORS },
        episode_steps_max: 1000,
        solved_return: 2000.0,
    }
}

/// Writes all coordinates but x, which the task does not depend on, and the clipped velocities.
pub(super) fn observe(q: &[f64], v: &[f64], observation: &mut [f32]) {
    let (positions, velocities) = observation.split_at_mut(N - 1);
    positions.iter_mut().zip(&q[1..]).for_each(|(o, q)| *o = *q as f32);
    let clipped = v.iter().map(|v| v.clamp(-OBSERVED_VELOCITY, OBSERVED_VELOCITY));
    velocities.iter_mut().zip(clipped).for_each(|(o, v)| *o = v as f32);
}

/// What a step from `x_before` to the state (q, v) under `control` is worth, and whether it ends the episode.
pub(super) fn outcome(x_before: f64, q: &[f64], v: &[f64], control: &[f64; MOTORS]) -> Step {
    let bounded = q[2..].iter().chain(v).all(|x| x.abs() < HEALTHY_STATE);
    let healthy = bounded && q[1] > HEALTHY_HEIGHT && q[2].abs() < HEALTHY_PITCH;
    let velocity = (q[0] - x_before) / ACTION_TIME;
    let cost = CONTROL_COST * control.iter().map(|u| u * u).sum::<f64>();
    let reward = velocity + if healthy { HEALTHY_REWARD } else { 0.0 } - cost;
    Step { reward, terminated: !healthy, truncated: false, life_lost: false }
}
