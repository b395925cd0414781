//! Dynamics of the lander: one rigid body with two sprung feet, a main engine and side engines, over a terrain.
//!
//! Contact between a foot and the ground is modelled by a spring, a damper and regularised Coulomb friction along the
//! slope. The integrator is semi-implicit Euler.

use super::terrain::Terrain;
use crate::env::scene::Point;

/// Mass, kg.
const MASS: f64 = 5.0;
/// Moment of inertia about the centre of mass, kg m^2.
const INERTIA: f64 = 1.0;
/// Gravitational acceleration, m/s^2.
const GRAVITY: f64 = 10.0;
/// Thrust of the main engine at full throttle, N, upwards in the frame of the lander.
const MAIN_FORCE: f64 = 90.0;
/// Thrust of a side engine at full throttle, N.
const SIDE_FORCE: f64 = 12.0;
/// Height of the side engines above the centre of mass, m.
pub(super) const SIDE_HEIGHT: f64 = 0.4;
/// Spring constant of a foot, N/m; when the lander is at rest, each foot compresses by 1 cm.
const FOOT_STIFFNESS: f64 = 2500.0;
/// Damping coefficient of a foot, N s/m. The sum of the spring and damping forces is clipped so that a foot never
/// pulls on the ground.
const FOOT_DAMPING: f64 = 120.0;
/// Ratio of friction force to sliding speed below the Coulomb limit, N s/m.
const FRICTION_SLOPE: f64 = 200.0;
const FRICTION: f64 = 0.8;
/// Compression at which a foot breaks, m; a vertical speed of about 4 m/s breaks both feet.
const STROKE: f64 = 0.06;
/// Integration step, s.
pub(super) const SUBSTEP: f64 = 0.0025;

/// Height of the centre of mass above the soles of the feet, m.
pub(super) const STANCE: f64 = 0.8;
/// Positions of the left and right foot in the frame of the lander, m.
pub(super) const FEET: [Point; 2] = [[-0.75, -STANCE], [0.75, -STANCE]];
/// Corners of the hull in the frame of the lander, m.
pub(super) const HULL: [Point; 6] =
    [[-0.45, 0.45], [0.45, 0.45], [0.6, 0.1], [0.6, -0.3], [-0.6, -0.3], [-0.6, 0.1]];

/// Throttles of the engines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Throttle {
    /// Main engine, from 0 to 1.
    pub(super) main: f64,
    /// Side engines, from -1 (pushes to the left and turns counterclockwise) to 1 (the opposite).
    pub(super) side: f64,
}

/// State of the lander.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lander {
    /// Centre of mass: x to the right of the middle of the pad and z above the pad, m.
    pub(super) position: Point,
    /// Velocity, m/s.
    pub(super) velocity: Point,
    /// Angle from upright, rad; positive if the lander is tilted counterclockwise.
    pub(super) angle: f64,
    /// Angular velocity, rad/s.
    pub(super) spin: f64,
    /// Whether the left and the right foot touch the ground.
    pub(super) touching: [bool; 2],
    /// Whether a foot has broken since the last reset.
    pub(super) broken: bool,
}

impl Lander {
    /// Creates a lander that stands on the pad.
    pub(super) fn standing() -> Self {
        Self {
            position: [0.0, STANCE],
            velocity: [0.0; 2],
            angle: 0.0,
            spin: 0.0,
            touching: [true; 2],
            broken: false,
        }
    }

    /// Advances by `substeps` integration steps.
    pub(super) fn advance(&mut self, throttle: Throttle, terrain: &Terrain, substeps: usize) {
        for _ in 0..substeps {
            self.substep(throttle, terrain);
        }
    }

    fn substep(&mut self, throttle: Throttle, terrain: &Terrain) {
        let (sin, cos) = self.angle.sin_cos();
        let (main, side) = (MAIN_FORCE * throttle.main, SIDE_FORCE * throttle.side);
        let mut force = [cos * side - sin * main, sin * side + cos * main - MASS * GRAVITY];
        let mut torque = -SIDE_HEIGHT * side;
        for (foot, touching) in FEET.iter().zip(&mut self.touching) {
            let arm = [cos * foot[0] - sin * foot[1], sin * foot[0] + cos * foot[1]];
            let velocity = [self.velocity[0] - self.spin * arm[1], self.velocity[1] + self.spin * arm[0]];
            let (height, slope) = terrain.at(self.position[0] + arm[0]);
            let depth = height - self.position[1] - arm[1];
            *touching = depth > 0.0;
            if depth <= 0.0 {
                continue;
            }
            let scale = 1.0 / (1.0 + slope * slope).sqrt();
            let (along, normal) = ([scale, scale * slope], [-scale * slope, scale]);
            let speed = |direction: Point| velocity[0] * direction[0] + velocity[1] * direction[1];
            let compression = scale * depth;
            self.broken |= compression > STROKE;
            let press = (FOOT_STIFFNESS * compression - FOOT_DAMPING * speed(normal)).max(0.0);
            let limit = FRICTION * press;
            let rub = (-FRICTION_SLOPE * speed(along)).clamp(-limit, limit);
            let push = [along[0] * rub + normal[0] * press, along[1] * rub + normal[1] * press];
            force = [force[0] + push[0], force[1] + push[1]];
            torque += arm[0] * push[1] - arm[1] * push[0];
        }
        for ((x, v), force) in self.position.iter_mut().zip(&mut self.velocity).zip(force) {
            *v += SUBSTEP * force / MASS;
            *x += SUBSTEP * *v;
        }
        self.spin += SUBSTEP * torque / INERTIA;
        self.angle += SUBSTEP * self.spin;
    }

    /// Returns whether the hull touches the ground.
    pub(super) fn hull_touches(&self, terrain: &Terrain) -> bool {
        HULL.iter().any(|corner| {
            let [x, z] = self.place(*corner);
            z <= terrain.at(x).0
        })
    }

    /// Converts a point from the frame of the lander to world coordinates.
    pub(super) fn place(&self, [x, z]: Point) -> Point {
        let (sin, cos) = self.angle.sin_cos();
        [self.position[0] + cos * x - sin * z, self.position[1] + sin * x + cos * z]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn high() -> Lander {
        Lander { position: [0.0, 50.0], touching: [false; 2], ..Lander::standing() }
    }

    /// In free fall, the integrator conserves energy up to an error that is proportional to the step size.
    #[test]
    fn energy_and_momenta_are_conserved_in_free_fall() {
        let mut lander = Lander { velocity: [3.0, 8.0], spin: 2.0, ..high() };
        let energy = |lander: &Lander| {
            let [x, z] = lander.velocity;
            0.5 * MASS * (x * x + z * z)
                + 0.5 * INERTIA * lander.spin * lander.spin
                + MASS * GRAVITY * lander.position[1]
        };
        let before = energy(&lander);
        lander.advance(Throttle::default(), &Terrain::flat(), 400);
        assert!((energy(&lander) - before).abs() < 1e-3 * before, "{before} J, then {} J", energy(&lander));
        assert_eq!((lander.velocity[0], lander.spin), (3.0, 2.0));
        assert!((lander.angle - 2.0).abs() < 1e-9 && (lander.velocity[1] + 2.0).abs() < 1e-9);
    }

    #[test]
    fn engines_accelerate_and_turn_the_lander() {
        let after = |main, side| {
            let mut lander = high();
            lander.advance(Throttle { main, side }, &Terrain::flat(), 8);
            lander
        };
        assert!(after(1.0, 0.0).velocity[1] > 0.0 && after(0.0, 0.0).velocity[1] < 0.0);
        assert_eq!(after(1.0, 0.0).spin, 0.0);
        let left = after(0.0, -1.0);
        assert!(left.velocity[0] < 0.0 && left.spin > 0.0, "{left:?}");
        let right = after(0.0, 1.0);
        assert_eq!((right.velocity[0], right.spin), (-left.velocity[0], -left.spin));
    }

    #[test]
    fn the_lander_comes_to_rest_on_flat_and_on_sloping_ground() {
        for slope in [0.0, 0.2] {
            let mut terrain = Terrain::flat();
            let sloping: Vec<f64> = terrain.corners().map(|[x, _]| slope * x).collect();
            terrain.heights.copy_from_slice(&sloping);
            let mut lander = Lander { position: [0.0, STANCE + 0.3], ..high() };
            lander.advance(Throttle::default(), &terrain, 2000);
            assert_eq!((lander.touching, lander.broken), ([true; 2], false), "{lander:?}");
            assert!((lander.angle - slope.atan()).abs() < 0.01, "{lander:?}");
            assert!(lander.velocity.iter().all(|v| v.abs() < 0.05) && lander.spin.abs() < 1e-3, "{lander:?}");
            assert!(!lander.hull_touches(&terrain));
        }
    }

    #[test]
    fn a_fast_impact_breaks_a_foot_and_a_slow_one_does_not() {
        for (speed, breaks) in [(2.0, false), (3.0, false), (6.0, true)] {
            let mut lander = Lander { position: [0.0, STANCE + 0.01], velocity: [0.0, -speed], ..high() };
            lander.advance(Throttle::default(), &Terrain::flat(), 400);
            assert_eq!(lander.broken, breaks, "{speed} m/s");
        }
    }
}
