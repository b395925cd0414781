//! Pendulum-v1: swing a pendulum up and hold it upright. The constants and the Euler step are those of Gymnasium; tests
//! check trajectories against recordings of Gymnasium.

use std::f64::consts::PI;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::scene::{Picture, Role, Scene, Shape, disc};
use super::{
    Action, ActionSpace, ActionSpec, EnvError, EnvSpec, Environment, Step, check_state, clipped, reduced,
};

pub(super) const ID: &str = "Pendulum-v1";

/// Gravitational acceleration, m/s^2.
const GRAVITY: f64 = 10.0;
/// Mass of the pendulum, kg.
const MASS: f64 = 1.0;
/// Length of the rod, m.
const LENGTH: f64 = 1.0;
/// Torque that an action of 1 applies, N m.
const TORQUE_MAX: f64 = 2.0;
/// Maximum angular speed, rad/s.
const SPEED_MAX: f64 = 8.0;
/// Time between two actions, s.
const TIME_STEP: f64 = 0.05;

/// The Pendulum-v1 environment. Observation: cosine and sine of the angle from upright, angular velocity (rad/s).
/// Action: the torque in [-1, 1], in units of 2 N m. Reward: -(angle^2 + 0.1 velocity^2 + 0.001 torque^2). Episodes
/// never terminate.
#[derive(Debug)]
pub struct Pendulum {
    spec: EnvSpec,
    /// Angle from upright, rad; not reduced to the range of one turn.
    angle: f64,
    /// Angular velocity, rad/s.
    velocity: f64,
}

impl Pendulum {
    /// Creates a pendulum that is upright and at rest.
    pub fn new() -> Self {
        let spec = EnvSpec {
            id: ID.into(),
            observation_dim: 3,
            image: None,
            action: ActionSpec::Continuous { dim: 1 },
            episode_steps_max: 200,
            solved_return: -200.0,
        };
        Self { spec, angle: 0.0, velocity: 0.0 }
    }

    fn observe(&self, observation: &mut [f32]) {
        let (sin, cos) = self.angle.sin_cos();
        observation.copy_from_slice(&[cos as f32, sin as f32, self.velocity as f32]);
    }

    fn scene(&self) -> Scene {
        // A positive angle is to the left, as in Gymnasium.
        let (sin, cos) = self.angle.sin_cos();
        let end = [-LENGTH * sin, LENGTH * cos];
        let rod = Shape::Capsule { from: [0.0, 0.0], to: end, radius: 0.1, role: Role::Limb };
        let shapes = vec![rod, disc([0.0, 0.0], 0.05, Role::Detail)];
        Scene { centre: [0.0, 0.0], height: 2.6 * LENGTH, step_seconds: TIME_STEP, shapes }
    }
}

impl Default for Pendulum {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for Pendulum {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn action_space(&self) -> ActionSpace {
        let limit = TORQUE_MAX as f32;
        ActionSpace::Continuous { bounds: vec![[-limit, limit]] }
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.angle = rng.random_range(-PI..PI);
        self.velocity = rng.random_range(-1.0..1.0);
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let [share] = clipped(action)?;
        let torque = share * TORQUE_MAX;
        let from_upright = reduced(self.angle);
        let cost = from_upright.powi(2) + 0.1 * self.velocity.powi(2) + 0.001 * torque.powi(2);
        let acceleration =
            3.0 * GRAVITY / (2.0 * LENGTH) * self.angle.sin() + 3.0 / (MASS * LENGTH.powi(2)) * torque;
        self.velocity = (self.velocity + acceleration * TIME_STEP).clamp(-SPEED_MAX, SPEED_MAX);
        self.angle += self.velocity * TIME_STEP;
        self.observe(observation);
        Ok(Step { reward: -cost, terminated: false, truncated: false, life_lost: false })
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(self.scene())))
    }

    fn save_state(&self) -> Vec<f64> {
        vec![self.angle, self.velocity]
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, 2)?;
        (self.angle, self.velocity) = (state[0], state[1]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// `fixtures/env/pendulum.csv` has the columns `episode,action,theta,theta_dot,reward`, recorded once from the
    /// float64 state of Pendulum-v1 in Gymnasium 1.4.0. The first line of an episode has action -9 and holds the start
    /// state.
    #[test]
    fn trajectories_match_recordings_of_gymnasium() {
        let fixture = include_str!("../../../../fixtures/env/pendulum.csv");
        let mut env = Pendulum::new();
        let mut observation = [0.0; 3];
        let mut steps = 0;
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            if fields[1] < -8.0 {
                env.restore_state(&fields[2..4]).unwrap();
                continue;
            }
            let step = env.step(Action::Continuous(&[fields[1] as f32]), &mut observation).unwrap();
            for (got, want) in [(env.angle, fields[2]), (env.velocity, fields[3]), (step.reward, fields[4])] {
                assert!((got - want).abs() <= 1e-9 * want.abs().max(1.0), "{line}: {env:?} {step:?}");
            }
            assert!(!step.terminated);
            steps += 1;
        }
        assert_eq!(steps, 300);
    }

    #[test]
    fn the_pendulum_starts_at_any_angle() {
        let mut env = Pendulum::default();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut below = 0;
        for _ in 0..100 {
            let mut observation = [0.0; 3];
            env.reset(&mut rng, &mut observation).unwrap();
            assert!((observation[0].hypot(observation[1]) - 1.0).abs() < 1e-6 && observation[2].abs() <= 1.0);
            below += usize::from(observation[0] < 0.0);
        }
        assert!((25..=75).contains(&below), "{below}");
    }
}
