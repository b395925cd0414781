//! The task shared by both half-cheetah simulators, with the observation and reward of Gymnasium's HalfCheetah-v5.
//!
//! The coordinates q are the displacement of the torso (x and z, m), its pitch, and the angles of the back thigh, shin
//! and foot and of the front thigh, shin and foot (rad); v are their time derivatives.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::scene::{Link, Scene, on_ground, robot};
use super::{ActionSpec, EnvSpec, Step};

/// Number of coordinates.
pub(super) const N: usize = 9;
/// Number of motors.
pub(super) const MOTORS: usize = 6;
/// Time between two actions, s.
pub(super) const ACTION_TIME: f64 = 0.05;
/// Radius of all capsules, m.
pub(super) const RADIUS: f64 = 0.046;

/// Weight of the squared norm of the action in the cost.
const CONTROL_COST: f64 = 0.1;
/// Bound on the uniformly distributed deviation of each initial coordinate, and standard deviation of each initial
/// velocity.
const START_SPREAD: f64 = 0.1;
/// Height of the visible part of the scene, m.
const VIEW_HEIGHT: f64 = 2.2;

/// Torso with head, followed by the thigh, shin and foot of the back leg, and those of the front leg. MuJoCo's model
/// gives the middle, angle and half length of each capsule, whereas this table contains the end points.
pub(super) const LINKS: [Link; 7] = [
    Link {
        parent: None,
        anchor: [0.0, 0.7],
        turn: -1.0,
        capsules: &[
            ([-0.5, 0.0], [0.5, 0.0], RADIUS),
            ([0.485_350_659_446_2, 0.003_276_017_914], [0.714_649_340_553_8, 0.196_723_982_086], RADIUS),
        ],
    },
    Link {
        parent: Some(0),
        anchor: [-0.5, 0.0],
        turn: -1.0,
        capsules: &[(
            [0.011_280_605_813_31, -0.015_309_681_772_41],
            [0.188_719_394_186_7, -0.244_690_318_227_6],
            RADIUS,
        )],
    },
    Link {
        parent: Some(1),
        anchor: [0.16, -0.25],
        turn: -1.0,
        capsules: &[(
            [-0.005_539_138_827_266, -0.003_514_837_650_144],
            [-0.274_460_861_172_7, -0.136_485_162_349_9],
            RADIUS,
        )],
    },
    Link {
        parent: Some(2),
        anchor: [-0.28, -0.14],
        turn: -1.0,
        capsules: &[(
            [0.055_072_755_048_75, -0.187_594_464_258_4],
            [0.004_927_244_951_25, -0.006_405_535_741_606],
            RADIUS,
        )],
    },
    Link {
        parent: Some(0),
        anchor: [0.5, 0.0],
        turn: -1.0,
        capsules: &[(
            [-0.136_085_058_333_2, -0.235_419_950_897_1],
            [-0.003_914_941_666_783, -0.004_580_049_102_873],
            RADIUS,
        )],
    },
    Link {
        parent: Some(4),
        anchor: [-0.14, -0.24],
        turn: -1.0,
        capsules: &[(
            [0.124_852_102_179_9, -0.177_485_575_180_4],
            [0.005_147_897_820_126, -0.002_514_424_819_574],
            RADIUS,
        )],
    },
    Link {
        parent: Some(5),
        anchor: [0.13, -0.18],
        turn: -1.0,
        capsules: &[(
            [0.084_524_973_137_65, -0.127_773_493_043_7],
            [0.005_475_026_862_348, -0.012_226_506_956_32],
            RADIUS,
        )],
    },
];

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
        solved_return: 4800.0,
    }
}

/// Adds the random deviations at the start of an episode to coordinates and velocities.
pub(super) fn disturb(q: &mut [f64], v: &mut [f64], rng: &mut ChaCha8Rng) {
    q.iter_mut().for_each(|q| *q += rng.random_range(-START_SPREAD..START_SPREAD));
    v.iter_mut().for_each(|v| {
        let normal: f64 = StandardNormal.sample(rng);
        *v += START_SPREAD * normal;
    });
}

/// Writes all coordinates except x, on which neither dynamics nor reward depend, followed by all velocities.
pub(super) fn observe(q: &[f64], v: &[f64], observation: &mut [f32]) {
    observation.iter_mut().zip(q[1..].iter().chain(v)).for_each(|(o, x)| *o = *x as f32);
}

/// Returns the outcome of a step in which the torso moved from `x_before` to `x` while the motors had the inputs
/// `control`.
pub(super) fn outcome(x_before: f64, x: f64, control: &[f64; MOTORS]) -> Step {
    let velocity = (x - x_before) / ACTION_TIME;
    let cost = CONTROL_COST * control.iter().map(|u| u * u).sum::<f64>();
    Step { reward: velocity - cost, terminated: false, truncated: false, life_lost: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_displayed_bodies_begin_where_their_parents_end() {
        for link in LINKS.iter().filter(|link| link.parent.is_some()) {
            let parent = &LINKS[link.parent.unwrap_or_default()];
            let gap = |end: [f64; 2], joint: [f64; 2]| (end[0] - joint[0]).hypot(end[1] - joint[1]);
            let ends =
                |link: &Link| link.capsules.iter().flat_map(|(from, to, _)| [*from, *to]).collect::<Vec<_>>();
            assert!(ends(parent).iter().any(|end| gap(*end, link.anchor) < RADIUS), "{link:?}");
            assert!(ends(link).iter().any(|end| gap(*end, [0.0, 0.0]) < RADIUS), "{link:?}");
        }
    }
}
