//! PlanarLander-v0 and PlanarLanderContinuous-v0: land a spacecraft on a pad. They need no external library.
//!
//! The task follows Gymnasium's LunarLander-v3 (observation, actions, shaped reward, end of an episode) but uses this
//! project's own dynamics. `docs/environments.md` lists the differences.

mod dynamics;
mod terrain;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use self::dynamics::{FEET, HULL, Lander, SIDE_HEIGHT, STANCE, SUBSTEP, Throttle};
use self::terrain::{CORNERS, HALF_WIDTH, PAD_HALF_WIDTH, Terrain};
use super::scene::{Picture, Point, Role, Scene, Shape};
use super::{Action, ActionSpec, EnvError, EnvSpec, Environment, Step, check_state, chosen, clipped};

pub(super) const ID: &str = "PlanarLander-v0";
pub(super) const CONTINUOUS_ID: &str = "PlanarLanderContinuous-v0";

/// Time between two actions, s.
const ACTION_TIME: f64 = 0.02;
/// Number of integration steps per action.
const SUBSTEPS: usize = 8;
const _: () = assert!((SUBSTEPS as f64 * SUBSTEP - ACTION_TIME).abs() < 1e-12);
/// Number of values of an observation.
const OBSERVED: usize = 8;
/// Throttles for each discrete action: no engine, left engine, main engine, right engine.
const CHOICES: [Throttle; 4] = [
    Throttle { main: 0.0, side: 0.0 },
    Throttle { main: 0.0, side: -1.0 },
    Throttle { main: 1.0, side: 0.0 },
    Throttle { main: 0.0, side: 1.0 },
];
/// Divisors of the observed position along x and z, m.
const POSITION_UNITS: Point = [HALF_WIDTH, 20.0 / 3.0];
/// Divisors of the observed velocity along x and z, m/s.
const VELOCITY_UNITS: Point = [5.0, 7.5];
/// Divisor of the observed angular velocity, rad/s.
const SPIN_UNIT: f64 = 2.5;
/// Initial height of the feet above the pad, m.
const START_HEIGHT: f64 = 9.4;
/// Bound on the absolute initial velocity along each axis, m/s.
const START_SPEED: f64 = 4.0;
/// Cost of a step with the main engine at full throttle.
const MAIN_COST: f64 = 0.3;
/// Cost of a step with a side engine at full throttle.
const SIDE_COST: f64 = 0.03;
/// Reward of the step in which the lander has come to rest. A crash results in the negative of this reward. Both end
/// the episode.
const PRIZE: f64 = 100.0;
/// Speed, in m/s, and absolute angular velocity, in rad/s, below which a lander on both feet counts as being at rest.
const REST_SPEED: f64 = 0.05;
/// Number of consecutive steps at rest after which the episode ends.
const REST_STEPS: u32 = 10;
/// Number of values of a saved state.
const STATE: usize = 13 + CORNERS;

/// The lander environments. Observation: position relative to the pad (x in units of 10 m, z in units of 6.67 m),
/// velocity (x in units of 5 m/s, z in units of 7.5 m/s), angle (rad, counterclockwise), angular velocity (in units of
/// 2.5 rad/s), and for each foot 1 if it touches the ground, otherwise 0.
///
/// Action of `PlanarLander-v0`: 0 nothing, 1 left engine, 2 main engine, 3 right engine. The left engine pushes the
/// lander to the left and turns it counterclockwise. Action of `PlanarLanderContinuous-v0`: main and side throttle in
/// [-1, 1]. The main engine is off if its throttle is 0 or less; above 0, its thrust rises from 50 % to 100 %. The side
/// engines are off if their throttle is between -0.5 and 0.5.
///
/// Reward: the change of a potential (which depends on the distance from the pad, the speed, the angle, and the feet on
/// the ground) minus the cost of fuel. The step that ends an episode instead has a reward of 100 if the lander is at
/// rest, or of -100 if it has crashed.
#[derive(Debug)]
pub struct PlanarLander {
    spec: EnvSpec,
    lander: Lander,
    terrain: Terrain,
    /// Throttles in the most recent step, which the picture shows.
    throttle: Throttle,
    /// Potential after the most recent step.
    potential: f64,
    /// Number of consecutive steps at rest.
    rest_steps: u32,
}

impl PlanarLander {
    /// Creates a lander with discrete actions that stands on the pad.
    pub fn new() -> Self {
        Self::with(ID, ActionSpec::Discrete { n: CHOICES.len() })
    }

    /// Creates a lander with continuous actions that stands on the pad.
    pub fn continuous() -> Self {
        Self::with(CONTINUOUS_ID, ActionSpec::Continuous { dim: 2 })
    }

    fn with(id: &'static str, action: ActionSpec) -> Self {
        let spec = EnvSpec {
            id: id.into(),
            observation_dim: OBSERVED,
            image: None,
            action,
            episode_steps_max: 1000,
            solved_return: 200.0,
        };
        let (lander, terrain) = (Lander::standing(), Terrain::flat());
        let mut new =
            Self { spec, lander, terrain, throttle: Throttle::default(), potential: 0.0, rest_steps: 0 };
        new.potential = new.potential();
        new
    }

    fn throttle(&self, action: Action<'_>) -> Result<Throttle, EnvError> {
        if let ActionSpec::Discrete { n } = self.spec.action {
            return Ok(CHOICES[chosen(action, n)?]);
        }
        let [main, side] = clipped(action)?;
        Ok(Throttle {
            main: if main > 0.0 { 0.5 + 0.5 * main } else { 0.0 },
            side: if side.abs() > 0.5 { side } else { 0.0 },
        })
    }

    fn observation(&self) -> [f64; OBSERVED] {
        let Lander { position, velocity, angle, spin, touching, .. } = self.lander;
        let [left, right] = touching.map(|touches| f64::from(u8::from(touches)));
        let [x, z] = [position[0] / POSITION_UNITS[0], (position[1] - STANCE) / POSITION_UNITS[1]];
        let [vx, vz] = [velocity[0] / VELOCITY_UNITS[0], velocity[1] / VELOCITY_UNITS[1]];
        [x, z, vx, vz, angle, spin / SPIN_UNIT, left, right]
    }

    /// Returns the potential. Its change over a step is the main part of the step's reward.
    fn potential(&self) -> f64 {
        let [x, z, vx, vz, angle, _, left, right] = self.observation();
        10.0 * (left + right) - 100.0 * (x.hypot(z) + vx.hypot(vz) + angle.abs())
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.iter_mut().zip(self.observation()).for_each(|(o, x)| *o = x as f32);
    }

    fn is_crashed(&self) -> bool {
        let outside = self.lander.position[0].abs() >= HALF_WIDTH;
        outside || self.lander.broken || self.lander.hull_touches(&self.terrain)
    }

    fn count_rest(&mut self) {
        let Lander { velocity, spin, touching, .. } = self.lander;
        let slow = velocity[0].hypot(velocity[1]) < REST_SPEED && spin.abs() < REST_SPEED;
        self.rest_steps = if slow && touching == [true; 2] { self.rest_steps + 1 } else { 0 };
    }

    fn scene(&self) -> Scene {
        const BOTTOM: f64 = -10.0;
        let below = [[2.0 * HALF_WIDTH, BOTTOM], [-2.0 * HALF_WIDTH, BOTTOM]];
        let [first, .., last] = self.terrain.heights;
        let edges = [[-2.0 * HALF_WIDTH, first], [2.0 * HALF_WIDTH, last]];
        let corners = [edges[0]].into_iter().chain(self.terrain.corners()).chain([edges[1]]).chain(below);
        let mut shapes = vec![Shape::Polygon { corners: corners.collect(), role: Role::Ground }];
        for x in [-PAD_HALF_WIDTH, PAD_HALF_WIDTH] {
            let flag = vec![[x, 1.2], [x, 0.8], [x + 0.6, 1.0]];
            shapes.push(Shape::Capsule { from: [x, 0.0], to: [x, 1.2], radius: 0.03, role: Role::Detail });
            shapes.push(Shape::Polygon { corners: flag, role: Role::Goal });
        }
        let bar = |from: Point, to: Point, radius: f64, role: Role| Shape::Capsule {
            from: self.lander.place(from),
            to: self.lander.place(to),
            radius,
            role,
        };
        let Throttle { main, side } = self.throttle;
        if main > 0.0 {
            shapes.push(bar([0.0, -0.3], [0.0, -0.4 - 0.6 * main], 0.1, Role::Detail));
        }
        if side != 0.0 {
            let from = -0.5 * side.signum();
            shapes.push(bar([from, SIDE_HEIGHT], [from - 0.4 * side, SIDE_HEIGHT], 0.05, Role::Detail));
        }
        shapes.extend(FEET.map(|foot| bar([0.7 * foot[0], -0.2], foot, 0.05, Role::Limb)));
        let hull = HULL.map(|corner| self.lander.place(corner)).to_vec();
        shapes.push(Shape::Polygon { corners: hull, role: Role::Body });
        Scene { centre: [0.0, 10.0 / 3.0], height: 40.0 / 3.0, step_seconds: ACTION_TIME, shapes }
    }
}

impl Default for PlanarLander {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for PlanarLander {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.terrain = Terrain::random(rng);
        self.lander = Lander {
            position: [0.0, STANCE + START_HEIGHT],
            velocity: [0, 1].map(|_| rng.random_range(-START_SPEED..START_SPEED)),
            touching: [false; 2],
            ..Lander::standing()
        };
        (self.throttle, self.rest_steps) = (Throttle::default(), 0);
        self.potential = self.potential();
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.throttle = self.throttle(action)?;
        self.lander.advance(self.throttle, &self.terrain, SUBSTEPS);
        self.count_rest();
        self.observe(observation);
        let before = self.potential;
        self.potential = self.potential();
        let fuel = MAIN_COST * self.throttle.main + SIDE_COST * self.throttle.side.abs();
        let (crashed, rested) = (self.is_crashed(), self.rest_steps >= REST_STEPS);
        let reward = match (crashed, rested) {
            (true, _) => -PRIZE,
            (false, true) => PRIZE,
            (false, false) => self.potential - before - fuel,
        };
        Ok(Step { reward, terminated: crashed || rested, truncated: false, life_lost: false })
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(self.scene())))
    }

    fn save_state(&self) -> Vec<f64> {
        let Lander { position, velocity, angle, spin, touching, broken } = &self.lander;
        let flags = [touching[0], touching[1], *broken].map(|flag| f64::from(u8::from(flag)));
        let mut state = vec![position[0], position[1], velocity[0], velocity[1], *angle, *spin];
        state.extend(flags);
        let rest_steps = f64::from(self.rest_steps);
        state.extend([self.throttle.main, self.throttle.side, self.potential, rest_steps]);
        state.extend(self.terrain.heights);
        state
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, STATE)?;
        self.lander = Lander {
            position: [state[0], state[1]],
            velocity: [state[2], state[3]],
            angle: state[4],
            spin: state[5],
            touching: [state[6] > 0.0, state[7] > 0.0],
            broken: state[8] > 0.0,
        };
        self.throttle = Throttle { main: state[9], side: state[10] };
        (self.potential, self.rest_steps) = (state[11], state[12] as u32);
        self.terrain.heights.copy_from_slice(&state[13..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
