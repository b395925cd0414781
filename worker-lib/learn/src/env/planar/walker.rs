//! PlanarWalker-v0: a robot with two legs that walks forward.
//!
//! Bodies, joints and motors are those of MuJoCo's Walker2d: the torso, and the thigh, leg and foot of each side, are
//! capsules with the density of water, connected by six motorised hinges. In the air, the accelerations equal MuJoCo's
//! (checked against recorded numbers). The contact model differs, so the returns of the two simulators are not
//! comparable; reward, termination and observation have the definitions of Walker2d-v5.

use rand_chacha::ChaCha8Rng;

use super::engine::{ContactPoint, Factorisation, Joint, Model, Penalties, Robot};
use crate::env::legged_task::{self, ACTION_TIME, START_SPREAD, observe};
use crate::env::scene::{Link, Picture, Point, on_ground, robot};
use crate::env::{Action, ActionSpec, EnvError, EnvSpec, Environment, Step, clipped};

pub(in crate::env) const ID: &str = "PlanarWalker-v0";

/// Number of bodies: torso, then thigh, leg and foot of the right and of the left side.
const BODIES: usize = 7;
/// Number of coordinates: x and z of the torso's joint frame (m), pitch and six joint angles (rad).
const N: usize = BODIES + 2;
const MOTORS: usize = 6;
/// Number of integration steps per action. An action lasts 8 ms, as in Gymnasium's Walker2d (4 steps of 2 ms).
const SUBSTEPS: usize = 8;
const _: () = assert!((SUBSTEPS as f64 * MODEL.substep - ACTION_TIME).abs() < 1e-12);
/// Height of the torso's frame when the robot stands, m.
const STANDING_HEIGHT: f64 = 1.25;
/// Range of torso heights within which the episode continues, m; both ends are excluded.
const HEALTHY_HEIGHT: (f64, f64) = (0.8, 2.0);
/// Absolute pitch of the torso, rad, at or above which the episode ends.
const HEALTHY_PITCH: f64 = 1.0;
/// Return of an episode in which the robot walks at 3 m/s and never falls. Gymnasium defines no solved return for
/// Walker2d.
const SOLVED_RETURN: f64 = 4000.0;
/// Height of the visible part of the scene, m.
const VIEW_HEIGHT: f64 = 2.4;

/// Bodies of the robot: torso, followed by the thigh, leg and foot of the right side, and those of the left side.
const LINKS: [Link; BODIES] = [
    Link { parent: None, anchor: [0.0, 0.0], turn: -1.0, capsules: &[([0.0, 0.2], [0.0, -0.2], 0.05)] },
    thigh(),
    leg(1),
    foot(2),
    thigh(),
    leg(4),
    foot(5),
];

pub(super) const MODEL: Model<BODIES> = Model {
    links: &LINKS,
    density: 1000.0,
    joints: [
        None,
        Some(joint(-150.0, 0.0)),
        Some(joint(-150.0, 0.0)),
        Some(joint(-45.0, 45.0)),
        Some(joint(-150.0, 0.0)),
        Some(joint(-150.0, 0.0)),
        Some(joint(-45.0, 45.0)),
    ],
    contacts: &[
        sole(3, LINKS[3].capsules[0].0), // heel and toe
        sole(3, LINKS[3].capsules[0].1),
        ContactPoint { body: 1, at: LINKS[1].capsules[0].1, radius: 0.05, friction: 0.9 }, // knee
        sole(6, LINKS[6].capsules[0].0),
        sole(6, LINKS[6].capsules[0].1),
        ContactPoint { body: 4, at: LINKS[4].capsules[0].1, radius: 0.05, friction: 0.9 },
        ContactPoint { body: 0, at: LINKS[0].capsules[0].0, radius: 0.05, friction: 0.9 }, // top of the torso
    ],
    // With this stiffness, the standing robot sinks 3 mm into the ground.
    penalties: Penalties {
        contact_stiffness: 2e4,
        contact_damping: 300.0,
        friction_slope: 400.0,
        limit_stiffness: 2000.0,
        limit_damping: 20.0,
    },
    factorisation: Factorisation::Sparse,
    substep: 0.001,
};

/// The PlanarWalker-v0 environment. Observation: z (m), pitch and six joint angles (rad), then the nine velocities (m/s
/// and rad/s) clipped to [-10, 10]. Action: six motors in [-1, 1]. Reward: forward velocity (m/s) + 1 while healthy -
/// 0.001 |action|^2.
#[derive(Debug)]
pub struct PlanarWalker {
    spec: EnvSpec,
    robot: Robot<BODIES, N>,
}

const fn thigh() -> Link {
    Link { parent: Some(0), anchor: [0.0, -0.2], turn: 1.0, capsules: &[([0.0, 0.0], [0.0, -0.45], 0.05)] }
}

const fn leg(parent: usize) -> Link {
    let capsules = &[([0.0, 0.0], [0.0, -0.5], 0.04)];
    Link { parent: Some(parent), anchor: [0.0, -0.45], turn: 1.0, capsules }
}

const fn foot(parent: usize) -> Link {
    let capsules = &[([0.0, 0.0], [0.2, 0.0], 0.06)];
    Link { parent: Some(parent), anchor: [0.0, -0.5], turn: 1.0, capsules }
}

/// Returns a joint with a motor of 100 N m that turns from `low` to `high`, in degrees.
const fn joint(low: f64, high: f64) -> Joint {
    let range = (low.to_radians(), high.to_radians());
    Joint { gear: 100.0, armature: 0.01, damping: 0.1, stiffness: 0.0, range }
}

const fn sole(body: usize, at: Point) -> ContactPoint {
    ContactPoint { body, at, radius: 0.06, friction: 1.9 }
}

impl PlanarWalker {
    /// Creates a standing robot.
    pub fn new() -> Self {
        let spec = EnvSpec {
            id: ID.into(),
            observation_dim: 2 * N - 1,
            image: None,
            action: ActionSpec::Continuous { dim: MOTORS },
            episode_steps_max: 1000,
            solved_return: SOLVED_RETURN,
        };
        let mut robot = Robot::new(&MODEL);
        robot.q[1] = STANDING_HEIGHT;
        Self { spec, robot }
    }

    fn is_healthy(&self) -> bool {
        let [_, z, pitch, ..] = self.robot.q;
        z > HEALTHY_HEIGHT.0 && z < HEALTHY_HEIGHT.1 && pitch.abs() < HEALTHY_PITCH
    }
}

impl Default for PlanarWalker {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for PlanarWalker {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.robot.stand(STANDING_HEIGHT, START_SPREAD, rng);
        observe(&self.robot.q, &self.robot.v, observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let control: [f64; MOTORS] = clipped(action)?;
        let x_before = self.robot.q[0];
        self.robot.advance(&control, SUBSTEPS);
        observe(&self.robot.q, &self.robot.v, observation);
        Ok(legged_task::outcome(x_before, self.robot.q[0], self.is_healthy(), &control))
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        let q = &self.robot.q;
        Ok(Some(Picture::Scene(on_ground(robot(&LINKS, q), q[0], VIEW_HEIGHT, ACTION_TIME))))
    }

    fn save_state(&self) -> Vec<f64> {
        self.robot.save()
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        self.robot.restore(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn the_walker_stands_for_a_while_and_then_falls() {
        let mut walker = PlanarWalker::default();
        let mut observation = [0.0; 17];
        walker.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut observation).unwrap();
        let mut steps = 0;
        let end = loop {
            let step = walker.step(Action::Continuous(&[0.0; 6]), &mut observation).unwrap();
            assert!(observation.iter().all(|x| x.is_finite() && x.abs() < 20.0));
            steps += 1;
            if step.terminated || steps == 1000 {
                break step;
            }
        };
        assert!(end.terminated && (20..300).contains(&steps), "{steps} steps");
    }

    #[test]
    fn velocities_are_clipped_and_a_high_or_pitched_torso_ends_the_episode() {
        let mut walker = PlanarWalker::new();
        let mut observation = [0.0; 17];
        for (height, pitch, healthy) in
            [(1.25, 0.0, true), (2.1, 0.0, false), (0.7, 0.0, false), (1.9, 1.1, false)]
        {
            let mut state = [0.0; 2 * N];
            (state[1], state[2], state[N]) = (height, pitch, 20.0);
            walker.restore_state(&state).unwrap();
            let step = walker.step(Action::Continuous(&[0.0; 6]), &mut observation).unwrap();
            assert_eq!(step.terminated, !healthy, "{height} m, {pitch} rad");
            assert_eq!(observation[N - 1], 10.0);
            let expected = 20.0 + f64::from(u8::from(healthy));
            assert!((step.reward - expected).abs() < 2.0, "{step:?}");
        }
    }
}
