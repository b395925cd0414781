//! PlanarHopper-v0: a one-legged robot that hops forward in the vertical plane; it needs no library.
//!
//! Bodies, joints and motors are those of MuJoCo's Hopper: torso, thigh, leg and foot are capsules with the density
//! of water on three motorised hinges. In the air, the accelerations equal MuJoCo's (checked against recorded
//! numbers). The contact model differs: a penalty spring and damper with regularised Coulomb friction at five points,
//! whereas MuJoCo solves soft constraints. The returns of the two are therefore not comparable; reward, termination
//! and observation have the same definitions.
//!
//! The generalised coordinates q are x and z of the torso's joint frame (m), and the pitch, thigh, leg and foot
//! angles (rad). The equation of motion M(q) dv/dt = f(q, v, torque) is assembled body by body from the Jacobians of
//! the centres of mass and solved by Cholesky decomposition; the integrator is semi-implicit Euler.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::hopper_task::{self, N, START_SPREAD};
use super::scene::Picture;
use super::{Action, EnvError, EnvSpec, Environment, Step, check_state, clipped};

pub(super) const ID: &str = "PlanarHopper-v0";

/// Number of bodies: torso, thigh, leg, foot. Coordinate 2 + k turns body k.
const BODIES: usize = 4;
/// Gravitational acceleration, m/s^2.
const GRAVITY: f64 = 9.81;
/// Density of all bodies, kg/m^3.
const DENSITY: f64 = 1000.0;
/// Motor torque at an action of 1, N m.
const GEAR: f64 = 200.0;
/// Rotor inertia on each motorised joint, kg m^2.
const ARMATURE: f64 = 1.0;
/// Viscous friction of each motorised joint, N m s/rad.
const JOINT_DAMPING: f64 = 1.0;
/// Integration step, s: a quarter of the contact's time constant, so that the penalty force is smooth.
const SUBSTEP: f64 = 0.001;
/// Number of integration steps per action: 8 ms, as in Gymnasium's Hopper (4 of 2 ms).
const SUBSTEPS: usize = 8;
/// Ground spring, N/m: the standing hopper sinks in by 2 mm.
const CONTACT_STIFFNESS: f64 = 2e4;
/// Ground damper, N s/m; the normal force never becomes negative.
const CONTACT_DAMPING: f64 = 300.0;
/// Slope of the friction force below the Coulomb limit, N s/m.
const FRICTION_SLOPE: f64 = 400.0;
/// Spring of a joint beyond its range, N m/rad.
const LIMIT_STIFFNESS: f64 = 2000.0;
/// Damper of a joint beyond its range, N m s/rad.
const LIMIT_DAMPING: f64 = 60.0;
/// Height of the torso's frame when standing, m.
const STANDING_HEIGHT: f64 = 1.25;
const _: () = assert!((SUBSTEPS as f64 * SUBSTEP - hopper_task::ACTION_TIME).abs() < 1e-12);

/// A vector in the plane: x forward, z up.
type Vec2 = [f64; 2];
type Coordinates = [f64; N];

/// A capsule that turns about a joint.
#[derive(Clone, Copy, Debug)]
struct Body {
    /// Position of the joint in the frame of the parent's joint, m.
    anchor: Vec2,
    /// Centre of mass in the frame of this joint, m.
    centre: Vec2,
    /// Mass, kg.
    mass: f64,
    /// Moment of inertia about the centre of mass, kg m^2.
    inertia: f64,
    /// Direction in which a positive joint velocity turns the body: from x towards z (+1) or from z towards x (-1).
    turn: f64,
    /// Range of the joint, rad; `None` for the torso, which turns freely and has no motor.
    range: Option<(f64, f64)>,
}

/// A sphere at the end of a capsule that can touch the ground.
#[derive(Clone, Copy, Debug)]
struct ContactPoint {
    body: usize,
    /// Centre in the frame of the body's joint, m.
    at: Vec2,
    /// Radius, m.
    radius: f64,
    friction: f64,
}

const CONTACTS: [ContactPoint; 5] = [
    ContactPoint { body: 3, at: [-0.13, 0.0], radius: 0.06, friction: 2.0 }, // heel
    ContactPoint { body: 3, at: [0.26, 0.0], radius: 0.06, friction: 2.0 },  // toe
    ContactPoint { body: 2, at: [0.0, -0.5], radius: 0.04, friction: 0.9 },  // ankle
    ContactPoint { body: 1, at: [0.0, -0.45], radius: 0.05, friction: 0.9 }, // knee
    ContactPoint { body: 0, at: [0.0, 0.2], radius: 0.05, friction: 0.9 },   // top of the torso
];

/// The PlanarHopper-v0 environment. Observation: z, pitch, three joint angles, then the six velocities clipped to
/// [-10, 10]. Action: three motors in [-1, 1]. Reward: forward velocity (m/s) + 1 while healthy - 0.001 |action|^2.
#[derive(Debug)]
pub struct PlanarHopper {
    spec: EnvSpec,
    bodies: [Body; BODIES],
    q: Coordinates,
    v: Coordinates,
}

/// Positions and velocities of all bodies.
struct Pose {
    /// Sine and cosine of the angle of each body from x towards z.
    sin_cos: [(f64, f64); BODIES],
    /// Angular velocity of each body, rad/s.
    spin: [f64; BODIES],
    /// Position of each joint, m.
    joint: [Vec2; BODIES],
    /// Velocity of each joint, m/s.
    joint_velocity: [Vec2; BODIES],
    /// Acceleration of each joint at zero generalised acceleration (the centripetal part), m/s^2.
    joint_bias: [Vec2; BODIES],
}

/// The equation of motion M a = f, with the lower triangle of M.
struct Motion {
    mass: [Coordinates; N],
    force: Coordinates,
}

fn rotate((sin, cos): (f64, f64), p: Vec2) -> Vec2 {
    [cos * p[0] - sin * p[1], sin * p[0] + cos * p[1]]
}

fn add(a: Vec2, b: Vec2) -> Vec2 {
    [a[0] + b[0], a[1] + b[1]]
}

/// Returns the mass of a capsule and its moment of inertia about the centre, perpendicular to the axis. The capsule
/// is a cylinder of length `2 * half_length` with a hemisphere on each end.
fn capsule(radius: f64, half_length: f64) -> (f64, f64) {
    let length = 2.0 * half_length;
    let pi = std::f64::consts::PI;
    let cylinder = DENSITY * pi * radius.powi(2) * length;
    let sphere = DENSITY * 4.0 / 3.0 * pi * radius.powi(3);
    let cylinder_inertia = cylinder * (length.powi(2) / 12.0 + radius.powi(2) / 4.0);
    let sphere_inertia = sphere * (0.4 * radius.powi(2) + length.powi(2) / 4.0 + 3.0 / 8.0 * length * radius);
    (cylinder + sphere, cylinder_inertia + sphere_inertia)
}

fn bodies() -> [Body; BODIES] {
    let body = |radius, half_length, anchor, centre, turn, degrees: Option<(f64, f64)>| {
        let (mass, inertia) = capsule(radius, half_length);
        let range = degrees.map(|(low, high)| (low.to_radians(), high.to_radians()));
        Body { anchor, centre, mass, inertia, turn, range }
    };
    [
        body(0.05, 0.2, [0.0, 0.0], [0.0, 0.0], -1.0, None),
        body(0.05, 0.225, [0.0, -0.2], [0.0, -0.225], 1.0, Some((-150.0, 0.0))),
        body(0.04, 0.25, [0.0, -0.45], [0.0, -0.25], 1.0, Some((-150.0, 0.0))),
        body(0.06, 0.195, [0.0, -0.5], [0.065, 0.0], 1.0, Some((-45.0, 45.0))),
    ]
}

impl PlanarHopper {
    /// Creates a standing hopper.
    pub fn new() -> Self {
        let mut q = [0.0; N];
        q[1] = STANDING_HEIGHT;
        Self { spec: hopper_task::spec(ID), bodies: bodies(), q, v: [0.0; N] }
    }

    fn pose(&self) -> Pose {
        let mut pose = Pose {
            sin_cos: [(0.0, 1.0); BODIES],
            spin: [0.0; BODIES],
            joint: [[0.0; 2]; BODIES],
            joint_velocity: [[0.0; 2]; BODIES],
            joint_bias: [[0.0; 2]; BODIES],
        };
        let (mut angle, mut spin) = (0.0, 0.0);
        let (mut joint, mut velocity, mut bias) = ([self.q[0], self.q[1]], [self.v[0], self.v[1]], [0.0; 2]);
        for (k, body) in self.bodies.iter().enumerate() {
            if k > 0 {
                let arm = rotate(pose.sin_cos[k - 1], body.anchor);
                joint = add(joint, arm);
                velocity = add(velocity, [-spin * arm[1], spin * arm[0]]);
                bias = add(bias, [-spin * spin * arm[0], -spin * spin * arm[1]]);
            }
            angle += body.turn * self.q[2 + k];
            spin += body.turn * self.v[2 + k];
            pose.sin_cos[k] = angle.sin_cos();
            pose.spin[k] = spin;
            (pose.joint[k], pose.joint_velocity[k], pose.joint_bias[k]) = (joint, velocity, bias);
        }
        pose
    }

    /// Returns the Jacobian of a point fixed to body `k`: the derivatives of its x and z with respect to the
    /// coordinates.
    fn jacobian(&self, pose: &Pose, k: usize, point: Vec2) -> [Coordinates; 2] {
        let (mut by_x, mut by_z) = ([0.0; N], [0.0; N]);
        by_x[0] = 1.0;
        by_z[1] = 1.0;
        for i in 0..=k {
            let turn = self.bodies[i].turn;
            by_x[2 + i] = -turn * (point[1] - pose.joint[i][1]);
            by_z[2 + i] = turn * (point[0] - pose.joint[i][0]);
        }
        [by_x, by_z]
    }

    /// Assembles the inertia, gravity and centripetal forces of all bodies, the motors and the damping.
    fn free_motion(&self, pose: &Pose, torque: &[f64; 3]) -> Motion {
        let mut motion = Motion { mass: [[0.0; N]; N], force: [0.0; N] };
        for (k, body) in self.bodies.iter().enumerate() {
            let arm = rotate(pose.sin_cos[k], body.centre);
            let [jx, jz] = self.jacobian(pose, k, add(pose.joint[k], arm));
            let spin_2 = pose.spin[k] * pose.spin[k];
            let bias_x = pose.joint_bias[k][0] - spin_2 * arm[0];
            let bias_z = pose.joint_bias[k][1] - spin_2 * arm[1] + GRAVITY;
            for i in 0..3 + k {
                motion.force[i] -= body.mass * (jx[i] * bias_x + jz[i] * bias_z);
                for j in 0..=i {
                    motion.mass[i][j] += body.mass * (jx[i] * jx[j] + jz[i] * jz[j]);
                }
            }
            for i in 0..=k {
                for j in 0..=i {
                    let turns = self.bodies[i].turn * self.bodies[j].turn;
                    motion.mass[2 + i][2 + j] += turns * body.inertia;
                }
            }
        }
        for (i, torque) in (3..N).zip(torque) {
            motion.force[i] += torque - JOINT_DAMPING * self.v[i];
            motion.mass[i][i] += ARMATURE;
        }
        motion
    }

    /// Adds the forces of the ground to `motion`.
    fn add_contacts(&self, pose: &Pose, motion: &mut Motion) {
        for contact in CONTACTS {
            let k = contact.body;
            let arm = rotate(pose.sin_cos[k], contact.at);
            let depth = contact.radius - (pose.joint[k][1] + arm[1]);
            if depth <= 0.0 {
                continue;
            }
            // The contact is at the lowest point of the sphere.
            let arm = [arm[0], arm[1] - contact.radius];
            let velocity = add(pose.joint_velocity[k], [-pose.spin[k] * arm[1], pose.spin[k] * arm[0]]);
            let normal = (CONTACT_STIFFNESS * depth - CONTACT_DAMPING * velocity[1]).max(0.0);
            let limit = contact.friction * normal;
            let tangential = (-FRICTION_SLOPE * velocity[0]).clamp(-limit, limit);
            let [jx, jz] = self.jacobian(pose, k, add(pose.joint[k], arm));
            for i in 0..3 + k {
                motion.force[i] += jx[i] * tangential + jz[i] * normal;
            }
        }
    }

    /// Adds the spring and damper forces of joints beyond their range.
    fn add_limits(&self, motion: &mut Motion) {
        for (k, body) in self.bodies.iter().enumerate() {
            let Some((low, high)) = body.range else { continue };
            let i = 2 + k;
            let beyond = self.q[i] - self.q[i].clamp(low, high);
            if beyond != 0.0 {
                motion.force[i] -= LIMIT_STIFFNESS * beyond + LIMIT_DAMPING * self.v[i];
            }
        }
    }

    fn substep(&mut self, torque: &[f64; 3]) {
        let pose = self.pose();
        let mut motion = self.free_motion(&pose, torque);
        self.add_contacts(&pose, &mut motion);
        self.add_limits(&mut motion);
        for i in 3..N {
            // Implicit joint damping, evaluated at the end of the step, is stable for any coefficient.
            motion.mass[i][i] += SUBSTEP * JOINT_DAMPING;
        }
        let acceleration = motion.solve();
        for ((q, v), a) in self.q.iter_mut().zip(&mut self.v).zip(acceleration) {
            *v += SUBSTEP * a;
            *q += SUBSTEP * *v;
        }
    }
}

impl Motion {
    /// Returns the accelerations, by Cholesky decomposition of the positive definite mass matrix.
    fn solve(mut self) -> Coordinates {
        let (m, mut x) = (&mut self.mass, self.force);
        for i in 0..N {
            for j in 0..=i {
                let known: f64 = m[i][..j].iter().zip(&m[j][..j]).map(|(a, b)| a * b).sum();
                let sum = m[i][j] - known;
                m[i][j] = if i == j { sum.sqrt() } else { sum / m[j][j] };
            }
        }
        for i in 0..N {
            for k in 0..i {
                x[i] -= m[i][k] * x[k];
            }
            x[i] /= m[i][i];
        }
        for i in (0..N).rev() {
            for k in i + 1..N {
                x[i] -= m[k][i] * x[k];
            }
            x[i] /= m[i][i];
        }
        x
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
        self.q = std::array::from_fn(|_| rng.random_range(-START_SPREAD..START_SPREAD));
        self.v = std::array::from_fn(|_| rng.random_range(-START_SPREAD..START_SPREAD));
        self.q[1] += STANDING_HEIGHT;
        hopper_task::observe(&self.q, &self.v, observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let control = clipped(action)?;
        let torque = control.map(|u| GEAR * u);
        let x_before = self.q[0];
        for _ in 0..SUBSTEPS {
            self.substep(&torque);
        }
        hopper_task::observe(&self.q, &self.v, observation);
        Ok(hopper_task::outcome(x_before, &self.q, &self.v, &control))
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(hopper_task::scene(&self.q))))
    }

    fn save_state(&self) -> Vec<f64> {
        self.q.iter().chain(&self.v).copied().collect()
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, 2 * N)?;
        self.q.copy_from_slice(&state[..N]);
        self.v.copy_from_slice(&state[N..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn the_displayed_bodies_are_those_of_the_simulation() {
        let hopper = PlanarHopper::new();
        for (link, body) in hopper_task::LINKS.iter().zip(&hopper.bodies) {
            let [(from, to, radius)] = link.capsules else { panic!("each body is one capsule") };
            let half_length = (to[0] - from[0]).hypot(to[1] - from[1]) / 2.0;
            let (mass, inertia) = capsule(*radius, half_length);
            let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(close(mass, body.mass) && close(inertia, body.inertia), "{link:?}");
            assert!(
                (0..2).all(|axis| close(f64::midpoint(from[axis], to[axis]), body.centre[axis])),
                "{link:?}"
            );
            assert_eq!((link.anchor, link.turn), (body.anchor, body.turn));
        }
    }

    /// `fixtures/env/hopper_airborne.csv` has six coordinates, six velocities, three actions and six accelerations,
    /// recorded once from MuJoCo 4.0.0 on Gymnasium 1.4.0's Hopper model at random states off the ground and within
    /// the joint ranges.
    #[test]
    fn airborne_accelerations_match_mujoco() {
        let fixture = include_str!("../../../../fixtures/env/hopper_airborne.csv");
        let mut hopper = PlanarHopper::new();
        let mut checked = 0;
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            hopper.restore_state(&fields[..12]).unwrap();
            let torque = std::array::from_fn(|i| GEAR * fields[12 + i]);
            let pose = hopper.pose();
            let acceleration = hopper.free_motion(&pose, &torque).solve();
            for (got, want) in acceleration.iter().zip(&fields[15..]) {
                assert!((got - want).abs() < 1e-7 * want.abs().max(1.0), "{line}: {acceleration:?}");
            }
            checked += 1;
        }
        assert_eq!(checked, 20);
    }

    #[test]
    fn energy_is_conserved_in_the_air_without_damping() {
        let mut hopper = PlanarHopper::new();
        hopper.q = [0.0, 5.0, 0.1, -0.8, -0.9, 0.2];
        hopper.v = [1.0, 2.0, -1.0, 0.5, 2.0, -1.5];
        let energy = |hopper: &PlanarHopper| {
            let pose = hopper.pose();
            let mut motion = hopper.free_motion(&pose, &[0.0; 3]);
            let mut kinetic = 0.0;
            for i in 0..N {
                for j in 0..N {
                    motion.mass[i][j] = motion.mass[i.max(j)][i.min(j)];
                    kinetic += 0.5 * hopper.v[i] * motion.mass[i][j] * hopper.v[j];
                }
            }
            let height = |k: usize| pose.joint[k][1] + rotate(pose.sin_cos[k], hopper.bodies[k].centre)[1];
            kinetic + (0..BODIES).map(|k| hopper.bodies[k].mass * GRAVITY * height(k)).sum::<f64>()
        };
        let before = energy(&hopper);
        for _ in 0..100 {
            // This torque cancels the damping.
            let undo = std::array::from_fn(|i| JOINT_DAMPING * hopper.v[3 + i]);
            hopper.substep(&undo);
        }
        assert!((energy(&hopper) - before).abs() < 2e-3 * before, "{before} {}", energy(&hopper));
    }

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

    #[test]
    fn a_restored_state_continues_bit_for_bit() {
        let (mut a, mut b) = (PlanarHopper::new(), PlanarHopper::default());
        let (mut observed_a, mut observed_b) = ([0.0; 11], [0.0; 11]);
        a.reset(&mut ChaCha8Rng::seed_from_u64(2), &mut observed_a).unwrap();
        a.step(Action::Continuous(&[0.3, -2.0, 0.5]), &mut observed_a).unwrap();
        b.restore_state(&a.save_state()).unwrap();
        for _ in 0..20 {
            let action = Action::Continuous(&[-0.1, 0.4, 0.9]);
            assert_eq!(a.step(action, &mut observed_a).unwrap(), b.step(action, &mut observed_b).unwrap());
            assert_eq!(observed_a.map(f32::to_bits), observed_b.map(f32::to_bits));
        }
        assert!(b.restore_state(&[0.0; 3]).is_err());
    }
}
