//! The task of both hopper simulators: observation, reward and termination of Gymnasium's Hopper-v5.
//!
//! The coordinates q are x and z of the torso's joint frame (m), and the pitch, thigh, leg and foot angles (rad); v
//! are their rates.

use super::scene::{Link, Scene, on_ground, robot};
use super::{ActionSpec, EnvSpec, Step};

/// Number of coordinates.
pub(super) const N: usize = 6;
/// Number of motors: thigh, leg, foot.
pub(super) const MOTORS: usize = 3;
/// Time between two actions, s.
pub(super) const ACTION_TIME: f64 = 0.008;
/// Bound of the uniform deviation of each initial coordinate and velocity from its standing value.
pub(super) const START_SPREAD: f64 = 5e-3;

/// Height of the torso, m, at or below which the episode ends.
const HEALTHY_HEIGHT: f64 = 0.7;
/// Absolute pitch of the torso, rad, at or above which the episode ends.
const HEALTHY_PITCH: f64 = 0.2;
/// Absolute value of any other coordinate or velocity at or above which the episode ends.
const HEALTHY_STATE: f64 = 100.0;
/// Reward of each healthy step.
const HEALTHY_REWARD: f64 = 1.0;
/// Cost per squared action.
const CONTROL_COST: f64 = 1e-3;
/// Bound of the absolute observed velocities.
const OBSERVED_VELOCITY: f64 = 10.0;

/// Torso, thigh, leg and foot.
pub(super) const LINKS: [Link; 4] = [
    Link { parent: None, anchor: [0.0, 0.0], turn: -1.0, capsules: &[([0.0, 0.2], [0.0, -0.2], 0.05)] },
    Link { parent: Some(0), anchor: [0.0, -0.2], turn: 1.0, capsules: &[([0.0, 0.0], [0.0, -0.45], 0.05)] },
    Link { parent: Some(1), anchor: [0.0, -0.45], turn: 1.0, capsules: &[([0.0, 0.0], [0.0, -0.5], 0.04)] },
    Link { parent: Some(2), anchor: [0.0, -0.5], turn: 1.0, capsules: &[([-0.13, 0.0], [0.26, 0.0], 0.06)] },
];
/// Height of the visible part of the scene, m.
const VIEW_HEIGHT: f64 = 2.4;

/// Returns the scene at coordinates q.
pub(super) fn scene(q: &[f64]) -> Scene {
    on_ground(robot(&LINKS, q), q[0], VIEW_HEIGHT, ACTION_TIME)
}

/// Returns the shapes and limits of the environment `id`.
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

/// Writes the clipped velocities and all coordinates except x, on which the task does not depend.
pub(super) fn observe(q: &[f64], v: &[f64], observation: &mut [f32]) {
    let (positions, velocities) = observation.split_at_mut(N - 1);
    positions.iter_mut().zip(&q[1..]).for_each(|(o, q)| *o = *q as f32);
    let clipped = v.iter().map(|v| v.clamp(-OBSERVED_VELOCITY, OBSERVED_VELOCITY));
    velocities.iter_mut().zip(clipped).for_each(|(o, v)| *o = v as f32);
}

/// Returns the outcome of a step from `x_before` to the state (q, v) under `control`.
pub(super) fn outcome(x_before: f64, q: &[f64], v: &[f64], control: &[f64; MOTORS]) -> Step {
    let bounded = q[2..].iter().chain(v).all(|x| x.abs() < HEALTHY_STATE);
    let healthy = bounded && q[1] > HEALTHY_HEIGHT && q[2].abs() < HEALTHY_PITCH;
    let velocity = (q[0] - x_before) / ACTION_TIME;
    let cost = CONTROL_COST * control.iter().map(|u| u * u).sum::<f64>();
    let reward = velocity + if healthy { HEALTHY_REWARD } else { 0.0 } - cost;
    Step { reward, terminated: !healthy, truncated: false, life_lost: false }
}
