//! CartPole-v1: balance a pole on a cart by pushing left or right (Barto, Sutton and Anderson, 1983). The constants and
//! the Euler step are those of Gymnasium; tests check trajectories against recordings of Gymnasium.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::scene::{Picture, Role, Scene, Shape, disc};
use super::{Action, ActionSpec, EnvError, EnvSpec, Environment, Step, check_state, chosen};

pub(super) const ID: &str = "CartPole-v1";

/// Gravitational acceleration, m/s^2.
const GRAVITY: f64 = 9.8;
/// Mass of the cart, kg.
const CART_MASS: f64 = 1.0;
/// Mass of the pole, kg.
const POLE_MASS: f64 = 0.1;
/// Half the length of the pole, m.
const POLE_HALF_LENGTH: f64 = 0.5;
/// Force, N, to the left (action 0) or right (action 1).
const FORCE: f64 = 10.0;
/// Number of directions of the force.
const DIRECTIONS: usize = 2;
/// Time between two actions, s.
const TIME_STEP: f64 = 0.02;
/// Maximum distance of the cart from the middle of the track, m; beyond it, the episode ends.
const POSITION_MAX: f64 = 2.4;
/// Maximum angle of the pole from upright, rad (12 degrees); beyond it, the episode ends.
const ANGLE_MAX: f64 = 12.0 * 2.0 * std::f64::consts::PI / 360.0;
/// Bound on the absolute value of each state variable at the start of an episode; each is drawn uniformly.
const START_SPREAD: f64 = 0.05;

/// The CartPole-v1 environment. Observation: position (m), velocity (m/s), angle (rad, clockwise), angular velocity
/// (rad/s). Action: 0 left, 1 right. Reward: 1 for each step.
#[derive(Debug)]
pub struct CartPole {
    spec: EnvSpec,
    state: [f64; 4],
}

impl CartPole {
    /// Creates a cart at rest in the middle of the track, with its pole upright.
    pub fn new() -> Self {
        let spec = EnvSpec {
            id: ID.into(),
            observation_dim: 4,
            image: None,
            action: ActionSpec::Discrete { n: DIRECTIONS },
            episode_steps_max: 500,
            solved_return: 475.0,
        };
        Self { spec, state: [0.0; 4] }
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.iter_mut().zip(self.state).for_each(|(o, s)| *o = s as f32);
    }

    fn scene(&self) -> Scene {
        let [x, _, angle, _] = self.state;
        let (sin, cos) = angle.sin_cos();
        let [half_width, height, pole] = [0.25, 0.25, 2.0 * POLE_HALF_LENGTH];
        let [left, right] = [x - half_width, x + half_width];
        let rail = Shape::Capsule {
            from: [-POSITION_MAX, 0.0],
            to: [POSITION_MAX, 0.0],
            radius: 0.02,
            role: Role::Ground,
        };
        let corners = vec![[left, 0.0], [right, 0.0], [right, height], [left, height]];
        let pole = Shape::Capsule {
            from: [x, height],
            to: [x + pole * sin, height + pole * cos],
            radius: 0.05,
            role: Role::Limb,
        };
        let axle = disc([x, height], 0.04, Role::Detail);
        let shapes = vec![rail, Shape::Polygon { corners, role: Role::Body }, pole, axle];
        Scene { centre: [0.0, 0.7], height: 3.8, step_seconds: TIME_STEP, shapes }
    }
}

impl Default for CartPole {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for CartPole {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.state = std::array::from_fn(|_| rng.random_range(-START_SPREAD..START_SPREAD));
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let force = if chosen(action, DIRECTIONS)? == 0 { -FORCE } else { FORCE };
        let [x, x_dot, theta, theta_dot] = self.state;
        let total_mass = CART_MASS + POLE_MASS;
        let moment = POLE_MASS * POLE_HALF_LENGTH;
        let (sin, cos) = theta.sin_cos();
        let push = (force + moment * theta_dot.powi(2) * sin) / total_mass;
        let theta_acc = (GRAVITY * sin - cos * push)
            / (POLE_HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cos.powi(2) / total_mass));
        let x_acc = push - moment * theta_acc * cos / total_mass;
        self.state = [
            x + TIME_STEP * x_dot,
            x_dot + TIME_STEP * x_acc,
            theta + TIME_STEP * theta_dot,
            theta_dot + TIME_STEP * theta_acc,
        ];
        self.observe(observation);
        let terminated = self.state[0].abs() > POSITION_MAX || self.state[2].abs() > ANGLE_MAX;
        Ok(Step { reward: 1.0, terminated, truncated: false, life_lost: false })
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(self.scene())))
    }

    fn save_state(&self) -> Vec<f64> {
        self.state.to_vec()
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, 4)?;
        self.state.copy_from_slice(state);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// `fixtures/env/cartpole.csv` has the columns `episode,action,x,x_dot,theta,theta_dot,terminated`, recorded once
    /// from the float64 state of CartPole-v1 in Gymnasium 1.4.0. The first line of an episode has action -1 and holds
    /// the start state.
    #[test]
    fn trajectories_match_recordings_of_gymnasium() {
        let fixture = include_str!("../../../../fixtures/env/cartpole.csv");
        let mut env = CartPole::new();
        let mut observation = [0.0; 4];
        let (mut steps, mut ends) = (0, 0);
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            if fields[1] < 0.0 {
                env.restore_state(&fields[2..6]).unwrap();
                continue;
            }
            let step = env.step(Action::Discrete(fields[1] as usize), &mut observation).unwrap();
            for (got, want) in env.state.iter().zip(&fields[2..6]) {
                assert!((got - want).abs() <= 1e-12 * want.abs().max(1.0), "{line}: {:?}", env.state);
            }
            assert_eq!(step.terminated, fields[6] > 0.0, "{line}");
            steps += 1;
            ends += usize::from(step.terminated);
        }
        assert!(steps > 200 && ends >= 5, "{steps} steps, {ends} ends");
    }

    #[test]
    fn the_pole_starts_near_upright() {
        let mut env = CartPole::default();
        let mut observation = [1.0; 4];
        env.reset(&mut ChaCha8Rng::seed_from_u64(3), &mut observation).unwrap();
        assert!(observation.iter().all(|x| x.abs() <= 0.05 && *x != 0.0));
    }
}
