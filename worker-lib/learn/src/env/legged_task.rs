//! Parts shared by the hopper and walker tasks: the action time, start states, observations and rewards of Gymnasium's
//! Hopper-v5 and Walker2d-v5.

use super::Step;

/// Time between two actions, s.
pub(super) const ACTION_TIME: f64 = 0.008;
/// Bound on the deviation of each initial coordinate and velocity from its value in a standing robot; the deviation is
/// drawn uniformly.
pub(super) const START_SPREAD: f64 = 5e-3;
/// Reward of each healthy step.
const HEALTHY_REWARD: f64 = 1.0;
/// Weight of the squared norm of the action in the cost.
const CONTROL_COST: f64 = 1e-3;
/// Bound to which the absolute values of observed velocities are clipped.
const OBSERVED_VELOCITY: f64 = 10.0;

/// Writes all coordinates except x, on which the tasks do not depend, followed by the velocities, which are clipped.
pub(super) fn observe(q: &[f64], v: &[f64], observation: &mut [f32]) {
    let (positions, velocities) = observation.split_at_mut(q.len() - 1);
    positions.iter_mut().zip(&q[1..]).for_each(|(o, q)| *o = *q as f32);
    let clipped = v.iter().map(|v| v.clamp(-OBSERVED_VELOCITY, OBSERVED_VELOCITY));
    velocities.iter_mut().zip(clipped).for_each(|(o, v)| *o = v as f32);
}

/// Returns the outcome of a step in which the torso moved from `x_before` to `x` while the motors had the inputs
/// `control`. The episode ends if the robot is not healthy.
pub(super) fn outcome(x_before: f64, x: f64, is_healthy: bool, control: &[f64]) -> Step {
    let velocity = (x - x_before) / ACTION_TIME;
    let cost = CONTROL_COST * control.iter().map(|u| u * u).sum::<f64>();
    let reward = velocity + if is_healthy { HEALTHY_REWARD } else { 0.0 } - cost;
    Step { reward, terminated: !is_healthy, truncated: false, life_lost: false }
}
