//! Acrobot-v1: swing the free end of two linked rods more than one rod length above the pivot, with a motor at the
//! joint between the rods (Sutton, 1996; Sutton and Barto, Reinforcement Learning, 1998, section 11.3). The constants,
//! the equations of motion and the Runge-Kutta step are those of Gymnasium; tests check trajectories against recordings
//! of Gymnasium.

use std::f64::consts::PI;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::scene::{Picture, Role, Scene, Shape, disc};
use super::{Action, ActionSpec, EnvError, EnvSpec, Environment, Step, check_state, chosen, reduced};

pub(super) const ID: &str = "Acrobot-v1";

/// Gravitational acceleration, m/s^2.
const GRAVITY: f64 = 9.8;
/// Mass of each rod, kg.
const MASS: f64 = 1.0;
/// Length of the upper rod, m.
const LENGTH: f64 = 1.0;
/// Distance from the upper end of each rod to its centre of mass, m.
const CENTRE: f64 = 0.5;
/// Moment of inertia of each rod, kg m^2.
const INERTIA: f64 = 1.0;
/// Time between two actions, s.
const TIME_STEP: f64 = 0.2;
/// Maximum angular speed of each rod, rad/s.
const SPEEDS_MAX: [f64; 2] = [4.0 * PI, 9.0 * PI];
/// Time between two steps of the display, s, as in Gymnasium; the display runs at three times real speed.
const DISPLAY_STEP: f64 = 1.0 / 15.0;
/// Number of torques to choose from: -1, 0 and 1 N m.
const TORQUES: usize = 3;
/// Bound on the absolute value of each state variable at the start of an episode; each is drawn uniformly.
const START_SPREAD: f64 = 0.1;

/// Angle of the upper rod from the downward vertical and angle of the lower rod relative to the upper one (rad),
/// followed by their angular velocities (rad/s).
type State = [f64; 4];

/// The Acrobot-v1 environment. Observation: cosine and sine of the angle of the upper rod from the downward vertical,
/// cosine and sine of the angle of the lower rod relative to the upper one, and both angular velocities (rad/s).
/// Action: 0, 1 or 2 for a torque of -1, 0 or 1 N m. Reward: -1 for each step that does not reach the target height.
#[derive(Debug)]
pub struct Acrobot {
    spec: EnvSpec,
    state: State,
}

impl Acrobot {
    /// Creates an acrobot that hangs down at rest.
    pub fn new() -> Self {
        let spec = EnvSpec {
            id: ID.into(),
            observation_dim: 6,
            image: None,
            action: ActionSpec::Discrete { n: TORQUES },
            episode_steps_max: 500,
            solved_return: -100.0,
        };
        Self { spec, state: [0.0; 4] }
    }

    fn observe(&self, observation: &mut [f32]) {
        let [upper, lower, upper_speed, lower_speed] = self.state;
        let values = [upper.cos(), upper.sin(), lower.cos(), lower.sin(), upper_speed, lower_speed];
        observation.iter_mut().zip(values).for_each(|(to, value)| *to = value as f32);
    }

    fn scene(&self) -> Scene {
        let [upper, lower, ..] = self.state;
        let along = |[x, y]: [f64; 2], angle: f64| [x + LENGTH * angle.sin(), y - LENGTH * angle.cos()];
        let middle = along([0.0, 0.0], upper);
        let end = along(middle, upper + lower);
        let reach = 2.2 * LENGTH;
        let rod = |from, to, role| Shape::Capsule { from, to, radius: 0.1, role };
        let goal =
            Shape::Capsule { from: [-reach, LENGTH], to: [reach, LENGTH], radius: 0.015, role: Role::Goal };
        let shapes = vec![
            goal,
            rod([0.0, 0.0], middle, Role::Body),
            rod(middle, end, Role::Limb),
            disc([0.0, 0.0], 0.05, Role::Detail),
            disc(middle, 0.05, Role::Detail),
        ];
        Scene { centre: [0.0, 0.0], height: 2.1 * reach, step_seconds: DISPLAY_STEP, shapes }
    }

    /// Returns whether the end of the lower rod is more than one rod length above the pivot of the upper rod.
    fn is_high(&self) -> bool {
        let [upper, lower, ..] = self.state;
        -upper.cos() - (lower + upper).cos() > 1.0
    }
}

/// Returns the time derivative of the state under a torque (N m).
fn derivative([upper, lower, upper_speed, lower_speed]: State, torque: f64) -> State {
    let (sin, cos) = lower.sin_cos();
    let coupling = MASS * LENGTH * CENTRE;
    let own = MASS * CENTRE.powi(2) + INERTIA;
    let d1 = own + MASS * (LENGTH.powi(2) + CENTRE.powi(2)) + 2.0 * coupling * cos + INERTIA;
    let d2 = own + coupling * cos;
    let phi2 = MASS * CENTRE * GRAVITY * (upper + lower).sin();
    let phi1 = -coupling * lower_speed * (lower_speed + 2.0 * upper_speed) * sin
        + (MASS * CENTRE + MASS * LENGTH) * GRAVITY * upper.sin()
        + phi2;
    let lower_acceleration =
        (torque + d2 / d1 * phi1 - coupling * upper_speed.powi(2) * sin - phi2) / (own - d2.powi(2) / d1);
    let upper_acceleration = -(d2 * lower_acceleration + phi1) / d1;
    [upper_speed, lower_speed, upper_acceleration, lower_acceleration]
}

/// Integrates the equations of motion over one time step with the classical fourth-order Runge-Kutta method.
fn integrate(state: State, torque: f64) -> State {
    let after = |slope: State, seconds: f64| -> State {
        derivative(std::array::from_fn(|i| state[i] + seconds * slope[i]), torque)
    };
    let first = derivative(state, torque);
    let second = after(first, TIME_STEP / 2.0);
    let third = after(second, TIME_STEP / 2.0);
    let fourth = after(third, TIME_STEP);
    let slope = |i: usize| first[i] + 2.0 * second[i] + 2.0 * third[i] + fourth[i];
    std::array::from_fn(|i| state[i] + TIME_STEP / 6.0 * slope(i))
}

impl Default for Acrobot {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for Acrobot {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.state = std::array::from_fn(|_| rng.random_range(-START_SPREAD..START_SPREAD));
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let torque = chosen(action, TORQUES)? as f64 - 1.0;
        let [upper, lower, upper_speed, lower_speed] = integrate(self.state, torque);
        let [upper_max, lower_max] = SPEEDS_MAX;
        self.state = [
            reduced(upper),
            reduced(lower),
            upper_speed.clamp(-upper_max, upper_max),
            lower_speed.clamp(-lower_max, lower_max),
        ];
        self.observe(observation);
        let terminated = self.is_high();
        let reward = if terminated { 0.0 } else { -1.0 };
        Ok(Step { reward, terminated, truncated: false, life_lost: false })
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

    /// `fixtures/env/acrobot.csv` has the columns `episode,action,theta1,theta2,velocity1,velocity2,terminated`,
    /// recorded once from the float64 state of Acrobot-v1 in Gymnasium 1.4.0. The first line of an episode has action
    /// -1 and holds the start state.
    #[test]
    fn trajectories_match_recordings_of_gymnasium() {
        let fixture = include_str!("../../../../fixtures/env/acrobot.csv");
        let mut env = Acrobot::new();
        let mut observation = [0.0; 6];
        let (mut steps, mut ends) = (0, 0);
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            if fields[1] < 0.0 {
                env.restore_state(&fields[2..6]).unwrap();
                continue;
            }
            let step = env.step(Action::Discrete(fields[1] as usize), &mut observation).unwrap();
            for (got, want) in env.state.iter().zip(&fields[2..6]) {
                // The tolerance is wide because the motion is chaotic, so rounding errors grow over an episode.
                assert!((got - want).abs() <= 1e-7 * want.abs().max(1.0), "{line}: {:?}", env.state);
            }
            assert_eq!((step.terminated, step.reward), (fields[6] > 0.0, fields[6] - 1.0), "{line}");
            steps += 1;
            ends += usize::from(step.terminated);
        }
        assert!(steps > 400 && ends >= 4, "{steps} steps, {ends} ends");
    }

    #[test]
    fn the_rods_start_near_rest() {
        let mut env = Acrobot::default();
        let mut observation = [9.0; 6];
        env.reset(&mut ChaCha8Rng::seed_from_u64(3), &mut observation).unwrap();
        assert!(env.state.iter().all(|x| x.abs() <= START_SPREAD && *x != 0.0), "{:?}", env.state);
        assert!(observation[0] > 0.99 && observation[2] > 0.99, "{observation:?}");
    }
}
