//! MountainCarContinuous-v0: drive an underpowered car out of a valley; the car must first gain momentum on the
//! opposite slope (Moore, 1990). The constants and the Euler step are those of Gymnasium; tests check trajectories
//! against recordings of Gymnasium.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::scene::{Picture, Point, Role, Scene, Shape, disc};
use super::{Action, ActionSpec, EnvError, EnvSpec, Environment, Step, check_state, clipped};

pub(super) const ID: &str = "MountainCarContinuous-v0";

/// Velocity change per step at full force.
const POWER: f64 = 0.0015;
/// Velocity change per step on the steepest slope.
const GRAVITY: f64 = 0.0025;
/// Maximum change of the position per step.
const SPEED_MAX: f64 = 0.07;
/// Position of the wall on the left.
const POSITION_MIN: f64 = -1.2;
/// Right end of the track.
const POSITION_MAX: f64 = 0.6;
/// Position at which the car has left the valley.
const GOAL: f64 = 0.45;
/// Amplitude of the track in the picture.
const TRACK_SCALE: f64 = 0.45;
/// Time between two steps of the display, s, as in Gymnasium.
const DISPLAY_STEP: f64 = 1.0 / 30.0;
/// Range from which the initial position is drawn uniformly, around the bottom of the valley.
const START: std::ops::Range<f64> = -0.6..-0.4;

/// The MountainCarContinuous-v0 environment. Observation: position, velocity (per step). Action: the force in [-1, 1].
/// Reward: -0.1 force^2 in each step, plus 100 in the step that reaches the goal. Unlike in Gymnasium, the state is not
/// rounded to 32 bits, and the reward is computed from the clipped force.
#[derive(Debug)]
pub struct MountainCarContinuous {
    spec: EnvSpec,
    position: f64,
    velocity: f64,
}

impl MountainCarContinuous {
    /// Creates a car at rest at the bottom of the valley.
    pub fn new() -> Self {
        let spec = EnvSpec {
            id: ID.into(),
            observation_dim: 2,
            image: None,
            action: ActionSpec::Continuous { dim: 1 },
            episode_steps_max: 999,
            solved_return: 90.0,
        };
        Self { spec, position: -0.5, velocity: 0.0 }
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[self.position as f32, self.velocity as f32]);
    }

    fn scene(&self) -> Scene {
        const SEGMENTS: u32 = 90;
        const WHEEL: f64 = 0.025;
        const BASE: f64 = 0.045;
        const BODY: f64 = 0.03;
        let at = |share: f64| POSITION_MIN + share * (POSITION_MAX - POSITION_MIN);
        let track = (0..=SEGMENTS).map(|segment| on_track(at(f64::from(segment) / f64::from(SEGMENTS))));
        let corners = track.chain([[POSITION_MAX, -1.0], [POSITION_MIN, -1.0]]).collect();
        let [goal, ground] = on_track(GOAL);
        let top = ground + 0.2;
        let flag = vec![[goal, top], [goal, top - 0.08], [goal + 0.1, top - 0.04]];
        // The track is y = sin(3 x), scaled. The car is rotated to match the slope of the track.
        let [x, y] = on_track(self.position);
        let (sin, cos) = (3.0 * TRACK_SCALE * (3.0 * self.position).cos()).atan().sin_cos();
        let place = |[along, above]: Point| [x + cos * along - sin * above, y + sin * along + cos * above];
        let (rear, front) = (place([-BASE, WHEEL]), place([BASE, WHEEL]));
        let lift = WHEEL + BODY;
        let [body_from, body_to] = [place([-BASE, lift]), place([BASE, lift])];
        let shapes = vec![
            Shape::Polygon { corners, role: Role::Ground },
            Shape::Capsule { from: [goal, ground], to: [goal, top], radius: 0.005, role: Role::Detail },
            Shape::Polygon { corners: flag, role: Role::Goal },
            Shape::Capsule { from: body_from, to: body_to, radius: BODY, role: Role::Body },
            disc(rear, WHEEL, Role::Detail),
            disc(front, WHEEL, Role::Detail),
        ];
        let middle = f64::midpoint(POSITION_MIN, POSITION_MAX);
        Scene { centre: [middle, 0.55], height: 1.35, step_seconds: DISPLAY_STEP, shapes }
    }
}

/// Returns the point of the track, as displayed, at which a car with the given position is drawn.
fn on_track(position: f64) -> Point {
    [position, TRACK_SCALE * (3.0 * position).sin() + 0.55]
}

impl Default for MountainCarContinuous {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for MountainCarContinuous {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        (self.position, self.velocity) = (rng.random_range(START), 0.0);
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let [force] = clipped(action)?;
        let acceleration = force * POWER - GRAVITY * (3.0 * self.position).cos();
        self.velocity = (self.velocity + acceleration).clamp(-SPEED_MAX, SPEED_MAX);
        self.position = (self.position + self.velocity).clamp(POSITION_MIN, POSITION_MAX);
        if self.position == POSITION_MIN {
            self.velocity = self.velocity.max(0.0);
        }
        self.observe(observation);
        let terminated = self.position >= GOAL && self.velocity >= 0.0;
        let prize = if terminated { 100.0 } else { 0.0 };
        Ok(Step { reward: prize - 0.1 * force.powi(2), terminated, truncated: false, life_lost: false })
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(self.scene())))
    }

    fn save_state(&self) -> Vec<f64> {
        vec![self.position, self.velocity]
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, 2)?;
        (self.position, self.velocity) = (state[0], state[1]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// `fixtures/env/mountain_car_continuous.csv` has the columns `episode,action,position,velocity,reward,terminated`,
    /// recorded once from Gymnasium 1.4.0's MountainCarContinuous-v0. The first line of an episode has action -9 and
    /// holds the start state. Each step begins at the recorded state, because Gymnasium rounds it to 32 bits.
    #[test]
    fn steps_match_recordings_of_gymnasium() {
        let fixture = include_str!("../../../../fixtures/env/mountain_car_continuous.csv");
        let mut env = MountainCarContinuous::new();
        let mut observation = [0.0; 2];
        let (mut ends, mut at_wall) = (0, 0);
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            if fields[1] > -8.0 {
                let step = env.step(Action::Continuous(&[fields[1] as f32]), &mut observation).unwrap();
                for (got, want) in [env.position, env.velocity, step.reward].into_iter().zip(&fields[2..5]) {
                    assert!((got - want).abs() <= 1e-6 * want.abs().max(0.1), "{line}: {env:?} {step:?}");
                }
                assert_eq!(step.terminated, fields[5] > 0.0, "{line}");
                ends += usize::from(step.terminated);
                at_wall += usize::from(env.position == POSITION_MIN);
            }
            env.restore_state(&fields[2..4]).unwrap();
        }
        assert!(ends >= 4 && at_wall >= 1, "{ends} ends, {at_wall} steps at the wall");
    }

    #[test]
    fn the_car_starts_at_rest_near_the_bottom() {
        let mut env = MountainCarContinuous::default();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for _ in 0..100 {
            let mut observation = [9.0; 2];
            env.reset(&mut rng, &mut observation).unwrap();
            assert!((-0.6..=-0.4).contains(&observation[0]) && observation[1] == 0.0, "{observation:?}");
        }
    }
}
