//! PlanarHopper-v0: a one-legged robot that hops forward.
//!
//! Bodies, joints and motors are those of MuJoCo's Hopper: torso, thigh, leg and foot are capsules with the density of
//! water on three motorised hinges. In the air, the accelerations equal MuJoCo's (checked against recorded numbers).
//! The contact model differs, so the returns of the two simulators are not comparable; reward, termination and
//! observation have the same definitions.

use rand_chacha::ChaCha8Rng;

use super::engine::{ContactPoint, Factorisation, Joint, Model, Penalties, Robot};
use crate::env::hopper_task::{self, LINKS, N, START_SPREAD};
use crate::env::scene::Picture;
use crate::env::{Action, EnvError, EnvSpec, Environment, Step, clipped};

pub(in crate::env) const ID: &str = "PlanarHopper-v0";

/// Number of bodies: torso, thigh, leg, foot.
const BODIES: usize = 4;
/// Number of integration steps per action. An action lasts 8 ms, as in Gymnasium's Hopper (4 steps of 2 ms).
const SUBSTEPS: usize = 8;
/// Height of the torso's frame when the robot stands, m.
const STANDING_HEIGHT: f64 = 1.25;
const _: () = assert!((SUBSTEPS as f64 * MODEL.substep - hopper_task::ACTION_TIME).abs() < 1e-12);

pub(super) const MODEL: Model<BODIES> = Model {
    links: &LINKS,
    density: 1000.0,
    joints: [None, Some(joint(-150.0, 0.0)), Some(joint(-150.0, 0.0)), Some(joint(-45.0, 45.0))],
    contacts: &[
        ContactPoint { body: 3, at: [-0.13, 0.0], radius: 0.06, friction: 2.0 }, // heel
        ContactPoint { body: 3, at: [0.26, 0.0], radius: 0.06, friction: 2.0 },  // toe
        ContactPoint { body: 2, at: [0.0, -0.5], radius: 0.04, friction: 0.9 },  // ankle
        ContactPoint { body: 1, at: [0.0, -0.45], radius: 0.05, friction: 0.9 }, // knee
        ContactPoint { body: 0, at: [0.0, 0.2], radius: 0.05, friction: 0.9 },   // top of the torso
    ],
    // With this stiffness, the standing hopper sinks 2 mm into the ground. The integration step is a quarter of the
    // contact's time constant.
    penalties: Penalties {
        contact_stiffness: 2e4,
        contact_damping: 300.0,
        friction_slope: 400.0,
        limit_stiffness: 2000.0,
        limit_damping: 60.0,
    },
    factorisation: Factorisation::Dense,
    substep: 0.001,
};

/// The PlanarHopper-v0 environment. Observation: z (m), pitch and three joint angles (rad), then the six velocities
/// (m/s and rad/s) clipped to [-10, 10]. Action: three motors in [-1, 1]. Reward: forward velocity (m/s) + 1 while
/// healthy - 0.001 |action|^2.
#[derive(Debug)]
pub struct PlanarHopper {
    spec: EnvSpec,
    robot: Robot<BODIES, N>,
}

/// Returns a joint with a motor of 200 N m that turns from `low` to `high`, in degrees.
const fn joint(low: f64, high: f64) -> Joint {
    let range = (low.to_radians(), high.to_radians());
    Joint { gear: 200.0, armature: 1.0, damping: 1.0, stiffness: 0.0, range }
}

impl PlanarHopper {
    /// Creates a standing hopper.
    pub fn new() -> Self {
        let mut robot = Robot::new(&MODEL);
        robot.q[1] = STANDING_HEIGHT;
        Self { spec: hopper_task::spec(ID), robot }
    }
}

impl Default for PlanarHopper {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for PlanarHopper {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.robot.stand(STANDING_HEIGHT, START_SPREAD, rng);
        hopper_task::observe(&self.robot.q, &self.robot.v, observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let control = clipped(action)?;
        let x_before = self.robot.q[0];
        self.robot.advance(&control, SUBSTEPS);
        let Robot { q, v, .. } = &self.robot;
        hopper_task::observe(q, v, observation);
        Ok(hopper_task::outcome(x_before, q, v, &control))
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(hopper_task::scene(&self.robot.q))))
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
    use rand::{RngExt as _, SeedableRng};
    use sha2::{Digest as _, Sha256};

    #[test]
    fn the_hopper_stands_for_a_while_and_then_falls() {
        let mut hopper = PlanarHopper::new();
        let mut observation = [0.0; 11];
        hopper.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut observation).unwrap();
        let mut steps = 0;
        let end = loop {
            let step = hopper.step(Action::Continuous(&[0.0; 3]), &mut observation).unwrap();
            assert!(observation.iter().all(|x| x.is_finite() && x.abs() < 20.0));
            steps += 1;
            if step.terminated || steps == 1000 {
                break step;
            }
        };
        assert!(end.terminated && (20..300).contains(&steps), "{steps} steps");
    }

    /// The digest was recorded before the dynamics moved to an engine that other robots share. Published results and
    /// checkpoints depend on every bit of a step. The sine that another C library or processor computes may differ in
    /// its last bit, so the test runs only on the kind of machine on which the digest was recorded.
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    #[test]
    fn ten_thousand_steps_are_bit_identical_to_a_recording() {
        if !std::arch::is_x86_feature_detected!("fma") {
            return;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(42);
        let mut hopper = PlanarHopper::new();
        let mut observation = [0.0; 11];
        let mut digest = Sha256::new();
        hopper.reset(&mut rng, &mut observation).unwrap();
        for _ in 0..10_000 {
            let action: [f32; 3] = std::array::from_fn(|_| rng.random_range(-1.2..1.2));
            let step = hopper.step(Action::Continuous(&action), &mut observation).unwrap();
            digest.update(step.reward.to_le_bytes());
            hopper.save_state().iter().for_each(|x| digest.update(x.to_le_bytes()));
            observation.iter().for_each(|x| digest.update(x.to_le_bytes()));
            // Most episodes continue far beyond their termination, so that joint limits and all contacts act.
            if step.terminated && rng.random_bool(0.02) {
                hopper.reset(&mut rng, &mut observation).unwrap();
            }
        }
        let digest: [u8; 32] = digest.finalize().into();
        assert_eq!(digest[..8], [0x83, 0x30, 0x1b, 0xc7, 0x89, 0x50, 0xc3, 0x08], "{digest:x?}");
    }
}
