//! The task shared by both hopper simulators, with the observation, reward and termination of Gymnasium's Hopper-v5.
//!
//! The coordinates q are x and z of the torso's joint frame (m), and the pitch, thigh, leg and foot angles (rad); v are
//! their time derivatives.

pub(super) use super::legged_task::{ACTION_TIME, START_SPREAD, observe};
use super::scene::{Link, Scene, on_ground, robot};
use super::{ActionSpec, EnvSpec, Step, legged_task};

/// Number of coordinates.
pub(super) const N: usize = 6;
/// Number of motors, which drive the thigh, leg and foot joints.
pub(super) const MOTORS: usize = 3;

/// Height of the torso, m, at or below which the episode ends.
const HEALTHY_HEIGHT: f64 = 0.7;
/// Absolute pitch of the torso, rad, at or above which the episode ends.
const HEALTHY_PITCH: f64 = 0.2;
/// Absolute value at or above which any other coordinate or velocity ends the episode.
const HEALTHY_STATE: f64 = 100.0;

/// Bodies of the robot: torso, thigh, leg and foot.
pub(super) const LINKS: [Link; 4] = [
    Link { parent: None, anchor: [0.0, 0.0], turn: -1.0, capsules: &[([0.0, 0.2], [0.0, -0.2], 0.05)] },
    Link { parent: Some(0), anchor: [0.0, -0.2], turn: 1.0, capsules: &[([0.0, 0.0], [0.0, -0.45], 0.05)] },
    Link { parent: Some(1), anchor: [0.0, -0.45], turn: 1.0, capsules: &[([0.0, 0.0], [0.0, -0.5], 0.04)] },
    Link { parent: Some(2), anchor: [0.0, -0.5], turn: 1.0, capsules: &[([-0.13, 0.0], [0.26, 0.0], 0.06)] },
];
/// Height of the visible part of the scene, m.
const VIEW_HEIGHT: f64 = 2.4;

/// Returns the scene with the robot at coordinates `q`.
pub(super) fn scene(q: &[f64]) -> Scene {
    on_ground(robot(&LINKS, q), q[0], VIEW_HEIGHT, ACTION_TIME)
}

/// Returns the specification of the environment `id`, including the shapes of observations and actions.
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

/// Returns the outcome of a step in which the torso moved from `x_before` to the state (q, v) while the motors had the
/// inputs `control`.
pub(super) fn outcome(x_before: f64, q: &[f64], v: &[f64], control: &[f64; MOTORS]) -> Step {
    let bounded = q[2..].iter().chain(v).all(|x| x.abs() < HEALTHY_STATE);
    let healthy = bounded && q[1] > HEALTHY_HEIGHT && q[2].abs() < HEALTHY_PITCH;
    legged_task::outcome(x_before, q[0], healthy, control)
}
