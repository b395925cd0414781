//! PlanarHalfCheetah-v0: a robot with a back and a front leg that runs forward.
//!
//! Bodies, joints, springs and motors are those of MuJoCo's half cheetah. In the air, the accelerations equal MuJoCo's
//! (checked against recorded numbers). The contact model differs, so the returns of the two simulators are not
//! comparable; reward and observation have the same definitions.

use rand_chacha::ChaCha8Rng;

use super::engine::{ContactPoint, Factorisation, Joint, Model, Penalties, Robot};
use crate::env::half_cheetah_task::{self, ACTION_TIME, LINKS, N, RADIUS};
use crate::env::scene::{Picture, Point};
use crate::env::{Action, EnvError, EnvSpec, Environment, Step, clipped};

pub(in crate::env) const ID: &str = "PlanarHalfCheetah-v0";

/// Number of bodies: torso with head, then the thigh, shin and foot of the back leg and of the front leg.
const BODIES: usize = 7;
/// Number of integration steps per action. An action lasts 50 ms, as in Gymnasium's half cheetah (5 steps of 10 ms).
const SUBSTEPS: usize = 20;
const _: () = assert!((SUBSTEPS as f64 * MODEL.substep - ACTION_TIME).abs() < 1e-12);

pub(super) const MODEL: Model<BODIES> = Model {
    links: &LINKS,
    // The total mass is 14 kg.
    density: 660.884_950_077_473_5,
    joints: [
        None,
        Some(joint(120.0, 240.0, 6.0, (-0.52, 1.05))),
        Some(joint(90.0, 180.0, 4.5, (-0.785, 0.785))),
        Some(joint(60.0, 120.0, 3.0, (-0.4, 0.785))),
        Some(joint(120.0, 180.0, 4.5, (-1.0, 0.7))),
        Some(joint(60.0, 120.0, 3.0, (-1.2, 0.87))),
        Some(joint(30.0, 60.0, 1.5, (-0.5, 0.5))),
    ],
    contacts: &[
        point(3, LINKS[3].capsules[0].0), // back foot
        point(3, LINKS[3].capsules[0].1),
        point(2, LINKS[2].capsules[0].0), // back knee
        point(6, LINKS[6].capsules[0].0), // front foot
        point(6, LINKS[6].capsules[0].1),
        point(5, LINKS[5].capsules[0].1), // front knee
        point(0, LINKS[0].capsules[0].0), // rear and front of the torso
        point(0, LINKS[0].capsules[0].1),
        point(0, LINKS[0].capsules[1].1), // head
    ],
    // With this stiffness, the standing robot sinks 4 mm into the ground.
    penalties: Penalties {
        contact_stiffness: 1e4,
        contact_damping: 150.0,
        friction_slope: 200.0,
        limit_stiffness: 1000.0,
        limit_damping: 20.0,
    },
    factorisation: Factorisation::Sparse,
    substep: 0.0025,
};

/// The PlanarHalfCheetah-v0 environment. Observation: z relative to the initial height (m), pitch and six joint angles
/// (rad), nine velocities (m/s and rad/s). Action: six motors in [-1, 1]. Reward: forward velocity (m/s) - 0.1
/// |action|^2. Episodes never terminate.
#[derive(Debug)]
pub struct PlanarHalfCheetah {
    spec: EnvSpec,
    robot: Robot<BODIES, N>,
}

const fn joint(gear: f64, stiffness: f64, damping: f64, range: (f64, f64)) -> Joint {
    Joint { gear, armature: 0.1, damping, stiffness, range }
}

const fn point(body: usize, at: Point) -> ContactPoint {
    ContactPoint { body, at, radius: RADIUS, friction: 0.4 }
}

impl PlanarHalfCheetah {
    /// Creates a standing robot.
    pub fn new() -> Self {
        Self { spec: half_cheetah_task::spec(ID), robot: Robot::new(&MODEL) }
    }
}

impl Default for PlanarHalfCheetah {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for PlanarHalfCheetah {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        let Robot { q, v, .. } = &mut self.robot;
        (*q, *v) = ([0.0; N], [0.0; N]);
        half_cheetah_task::disturb(q, v, rng);
        half_cheetah_task::observe(q, v, observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let control = clipped(action)?;
        let x_before = self.robot.q[0];
        self.robot.advance(&control, SUBSTEPS);
        half_cheetah_task::observe(&self.robot.q, &self.robot.v, observation);
        Ok(half_cheetah_task::outcome(x_before, self.robot.q[0], &control))
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(half_cheetah_task::scene(&self.robot.q))))
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
    fn the_half_cheetah_comes_to_rest_on_its_springs() {
        let mut cheetah = PlanarHalfCheetah::default();
        let mut observation = [0.0; 17];
        cheetah.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut observation).unwrap();
        for _ in 0..100 {
            let step = cheetah.step(Action::Continuous(&[0.0; 6]), &mut observation).unwrap();
            assert!(!step.terminated);
        }
        let (z, pitch, velocities) = (observation[0], observation[1], &observation[8..]);
        assert!(z.abs() < 0.2 && pitch.abs() < 0.3, "{z} m, {pitch} rad");
        assert!(velocities.iter().all(|v| v.abs() < 0.02), "{velocities:?}");
    }

    #[test]
    fn the_mass_is_that_of_the_model() {
        let cheetah = PlanarHalfCheetah::new();
        let mass: f64 = cheetah.robot.bodies().iter().map(|body| body.mass).sum();
        assert!((mass - 14.0).abs() < 1e-9, "{mass} kg");
    }
}
