//! Dynamics of a planar robot: a tree of capsules on hinges, with motors, springs, joint limits and flat ground.
//!
//! The generalised coordinates q are the displacement of the root's joint (x forward and z up, m) and the angle of each
//! body relative to its parent (rad). The equation of motion M(q) dv/dt = f(q, v, control) is assembled body by body
//! from the Jacobians of the centres of mass. The factorisation of M starts at the leaves of the tree, so that it
//! creates no entry that couples two branches (Featherstone, "Rigid Body Dynamics Algorithms", 2008, section 6.5). The
//! integrator is semi-implicit Euler.
//!
//! In the air and within the joint ranges, the accelerations equal MuJoCo's. The contact model differs: this engine
//! uses a penalty spring and damper with regularised Coulomb friction at chosen points, whereas MuJoCo solves soft
//! constraints.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use crate::env::scene::Link;
use crate::env::{EnvError, check_state};

/// Gravitational acceleration, m/s^2.
pub(super) const GRAVITY: f64 = 9.81;

/// A vector in the plane: x forward, z up.
pub(super) type Vec2 = [f64; 2];

/// The hinge between a body and its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joint {
    /// Torque that a control input of 1 applies, N m.
    pub(super) gear: f64,
    /// Rotor inertia, kg m^2.
    pub(super) armature: f64,
    /// Viscous friction, N m s/rad.
    pub(super) damping: f64,
    /// Stiffness of the spring towards an angle of 0, N m/rad.
    pub(super) stiffness: f64,
    /// Minimum and maximum angle, rad.
    pub(super) range: (f64, f64),
}

/// Sphere at an end of a capsule, where the body can touch the ground.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContactPoint {
    /// Index of the body.
    pub(super) body: usize,
    /// Centre in the frame of the body's joint, m.
    pub(super) at: Vec2,
    /// Radius, m.
    pub(super) radius: f64,
    /// Coefficient of Coulomb friction.
    pub(super) friction: f64,
}

/// Parameters of the springs and dampers that model the ground and the joint limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalties {
    /// Spring constant of the ground, N/m.
    pub(super) contact_stiffness: f64,
    /// Damping coefficient of the ground, N s/m. The sum of the spring and damping forces is clipped so that the
    /// ground never pulls.
    pub(super) contact_damping: f64,
    /// Ratio of friction force to sliding speed below the Coulomb limit, N s/m.
    pub(super) friction_slope: f64,
    /// Spring constant of a joint limit, N m/rad.
    pub(super) limit_stiffness: f64,
    /// Damping coefficient of a joint limit, N m s/rad.
    pub(super) limit_damping: f64,
}

/// Order in which the mass matrix is factorised. All orders result in the same accelerations, up to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Factorisation {
    /// Starts at the root and covers all entries of the matrix. The published results of `PlanarHopper-v0` were
    /// computed with the rounding of this order.
    Dense,
    /// Starts at the leaves and covers only the entries that couple two bodies on the same branch of the tree.
    Sparse,
}

/// Description of a robot with `B` bodies.
#[derive(Debug)]
pub(super) struct Model<const B: usize> {
    /// Bodies with their geometry. A parent precedes its children; coordinate 2 + k is the angle of body k.
    pub(super) links: &'static [Link; B],
    /// Density of all capsules, kg/m^3.
    pub(super) density: f64,
    /// Joints; `None` for the root, which turns freely and has no motor.
    pub(super) joints: [Option<Joint>; B],
    pub(super) contacts: &'static [ContactPoint],
    pub(super) penalties: Penalties,
    pub(super) factorisation: Factorisation,
    /// Integration step, s. It is short compared with the time constants of the penalty forces.
    pub(super) substep: f64,
}

/// The inertia of a body and its position in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<const B: usize> {
    /// Index of the parent.
    parent: Option<usize>,
    /// Position of the joint in the frame of the parent's joint, m; for the root, its position in the world when all
    /// coordinates are 0.
    anchor: Vec2,
    /// Direction in which a positive joint velocity turns the body: from x towards z (+1) or from z towards x (-1).
    turn: f64,
    /// Centre of mass in the frame of the body's joint, m.
    pub(super) centre: Vec2,
    /// Mass, kg.
    pub(super) mass: f64,
    /// Moment of inertia about the centre of mass, kg m^2.
    pub(super) inertia: f64,
    /// Indices of the bodies from the root to this one, in the first `depth` entries; the other entries are unused.
    path: [usize; B],
    /// Number of bodies from the root to this one, including both.
    depth: usize,
}

/// Robot with `B` bodies and `N` coordinates; `N` must equal `B` + 2.
#[derive(Debug)]
pub(super) struct Robot<const B: usize, const N: usize> {
    model: &'static Model<B>,
    bodies: [Body<B>; B],
    /// Coordinates: x and z of the root (m), then the angles (rad).
    pub(super) q: [f64; N],
    /// Velocities: x and z of the root (m/s), then the angles (rad/s).
    pub(super) v: [f64; N],
}

/// Positions and velocities of all bodies.
pub(super) struct Pose<const B: usize> {
    /// Sine and cosine of the angle of each body from x towards z.
    pub(super) sin_cos: [(f64, f64); B],
    /// Angular velocity of each body, rad/s.
    spin: [f64; B],
    /// Position of each joint, m.
    pub(super) joint: [Vec2; B],
    /// Velocity of each joint, m/s.
    joint_velocity: [Vec2; B],
    /// Acceleration of each joint at zero generalised acceleration (the centripetal part), m/s^2.
    joint_bias: [Vec2; B],
}

/// The equation of motion M a = f. Only the lower triangle of M is stored.
#[derive(Clone, Debug)]
pub(super) struct Motion<const N: usize> {
    pub(super) mass: [[f64; N]; N],
    pub(super) force: [f64; N],
}

impl<const B: usize, const N: usize> Robot<B, N> {
    const COORDINATES: () = assert!(N == B + 2, "a robot has two more coordinates than bodies");

    /// Creates a robot with all coordinates and velocities at 0.
    pub(super) fn new(model: &'static Model<B>) -> Self {
        let () = Self::COORDINATES;
        Self { model, bodies: bodies(model), q: [0.0; N], v: [0.0; N] }
    }

    /// Advances by `substeps` integration steps. `control` has one value for each body except the root.
    pub(super) fn advance(&mut self, control: &[f64], substeps: usize) {
        for _ in 0..substeps {
            self.substep(control);
        }
    }

    fn substep(&mut self, control: &[f64]) {
        let pose = self.pose();
        let mut motion = self.free_motion(&pose, control);
        self.add_contacts(&pose, &mut motion);
        self.add_limits(&mut motion);
        let time = self.model.substep;
        for (i, joint) in (2..).zip(&self.model.joints) {
            if let Some(joint) = joint {
                // Implicit joint damping, evaluated at the end of the step, is stable for any coefficient.
                motion.mass[i][i] += time * joint.damping;
            }
        }
        let acceleration = match self.model.factorisation {
            Factorisation::Dense => motion.solve_dense(),
            Factorisation::Sparse => motion.solve_sparse(&self.bodies),
        };
        for ((q, v), a) in self.q.iter_mut().zip(&mut self.v).zip(acceleration) {
            *v += time * a;
            *q += time * *v;
        }
    }

    /// Returns the positions and velocities of all bodies in the current state.
    pub(super) fn pose(&self) -> Pose<B> {
        let mut pose = Pose {
            sin_cos: [(0.0, 1.0); B],
            spin: [0.0; B],
            joint: [[0.0; 2]; B],
            joint_velocity: [[0.0; 2]; B],
            joint_bias: [[0.0; 2]; B],
        };
        let mut angles = [0.0; B];
        for (k, body) in self.bodies.iter().enumerate() {
            let (mut angle, mut spin) = (0.0, 0.0);
            if let Some(p) = body.parent {
                (angle, spin) = (angles[p], pose.spin[p]);
                let arm = rotate(pose.sin_cos[p], body.anchor);
                pose.joint[k] = add(pose.joint[p], arm);
                pose.joint_velocity[k] = add(pose.joint_velocity[p], [-spin * arm[1], spin * arm[0]]);
                pose.joint_bias[k] = add(pose.joint_bias[p], [-spin * spin * arm[0], -spin * spin * arm[1]]);
            } else {
                pose.joint[k] = add([self.q[0], self.q[1]], body.anchor);
                pose.joint_velocity[k] = [self.v[0], self.v[1]];
            }
            angles[k] = angle + body.turn * self.q[2 + k];
            pose.spin[k] = spin + body.turn * self.v[2 + k];
            pose.sin_cos[k] = angles[k].sin_cos();
        }
        pose
    }

    /// Assembles the equation of motion from the inertia, gravity and centripetal forces of all bodies, the motors, the
    /// springs and the damping.
    pub(super) fn free_motion(&self, pose: &Pose<B>, control: &[f64]) -> Motion<N> {
        let mut motion = Motion { mass: [[0.0; N]; N], force: [0.0; N] };
        for k in 0..B {
            self.add_body(k, pose, &mut motion);
        }
        let joints = (2..).zip(&self.model.joints).filter_map(|(i, joint)| Some((i, joint.as_ref()?)));
        for ((i, joint), control) in joints.zip(control) {
            motion.force[i] += joint.gear * control - joint.damping * self.v[i] - joint.stiffness * self.q[i];
            motion.mass[i][i] += joint.armature;
        }
        motion
    }

    /// Adds the inertia, gravity and centripetal force of body `k`.
    fn add_body(&self, k: usize, pose: &Pose<B>, motion: &mut Motion<N>) {
        let body = &self.bodies[k];
        let arm = rotate(pose.sin_cos[k], body.centre);
        let spin_2 = pose.spin[k] * pose.spin[k];
        let bias_x = pose.joint_bias[k][0] - spin_2 * arm[0];
        let bias_z = pose.joint_bias[k][1] - spin_2 * arm[1] + GRAVITY;
        motion.force[0] -= body.mass * bias_x;
        motion.force[1] -= body.mass * bias_z;
        motion.mass[0][0] += body.mass;
        motion.mass[1][1] += body.mass;
        let centre = add(pose.joint[k], arm);
        let mut jacobian = [[0.0; 2]; B];
        let path = body.path();
        for (level, &i) in path.iter().enumerate() {
            let [jx, jz] = self.by_angle(pose, i, centre);
            jacobian[level] = [jx, jz];
            motion.force[2 + i] -= body.mass * (jx * bias_x + jz * bias_z);
            let row = &mut motion.mass[2 + i];
            row[0] += body.mass * jx;
            row[1] += body.mass * jz;
            for (&j, above) in path[..=level].iter().zip(&jacobian) {
                row[2 + j] += body.mass * (jx * above[0] + jz * above[1]);
                row[2 + j] += self.bodies[i].turn * self.bodies[j].turn * body.inertia;
            }
        }
    }

    /// Returns the derivatives of the x and z coordinates of `point` with respect to the angle of body `i`; `point`
    /// must move with this body.
    fn by_angle(&self, pose: &Pose<B>, i: usize, point: Vec2) -> Vec2 {
        let turn = self.bodies[i].turn;
        [-turn * (point[1] - pose.joint[i][1]), turn * (point[0] - pose.joint[i][0])]
    }

    /// Adds the contact forces between robot and ground to `motion`.
    fn add_contacts(&self, pose: &Pose<B>, motion: &mut Motion<N>) {
        let penalties = &self.model.penalties;
        for contact in self.model.contacts {
            let k = contact.body;
            let arm = rotate(pose.sin_cos[k], contact.at);
            let depth = contact.radius - (pose.joint[k][1] + arm[1]);
            if depth <= 0.0 {
                continue;
            }
            // The contact is at the lowest point of the sphere.
            let arm = [arm[0], arm[1] - contact.radius];
            let velocity = add(pose.joint_velocity[k], [-pose.spin[k] * arm[1], pose.spin[k] * arm[0]]);
            let spring = penalties.contact_stiffness * depth;
            let normal = (spring - penalties.contact_damping * velocity[1]).max(0.0);
            let limit = contact.friction * normal;
            let tangential = (-penalties.friction_slope * velocity[0]).clamp(-limit, limit);
            let point = add(pose.joint[k], arm);
            motion.force[0] += tangential;
            motion.force[1] += normal;
            for &i in self.bodies[k].path() {
                let [jx, jz] = self.by_angle(pose, i, point);
                motion.force[2 + i] += jx * tangential + jz * normal;
            }
        }
    }

    /// Adds to `motion` the spring and damper torques of the joints whose angle is outside their range.
    fn add_limits(&self, motion: &mut Motion<N>) {
        for (i, joint) in (2..).zip(&self.model.joints) {
            let Some(Joint { range: (low, high), .. }) = *joint else { continue };
            let beyond = self.q[i] - self.q[i].clamp(low, high);
            if beyond != 0.0 {
                let penalties = &self.model.penalties;
                motion.force[i] -= penalties.limit_stiffness * beyond + penalties.limit_damping * self.v[i];
            }
        }
    }

    /// Places the robot upright at `height` (m), with a random deviation of at most `spread` in each coordinate and
    /// velocity, drawn uniformly.
    pub(super) fn stand(&mut self, height: f64, spread: f64, rng: &mut ChaCha8Rng) {
        self.q = std::array::from_fn(|_| rng.random_range(-spread..spread));
        self.v = std::array::from_fn(|_| rng.random_range(-spread..spread));
        self.q[1] += height;
    }

    /// Returns all coordinates, followed by all velocities.
    pub(super) fn save(&self) -> Vec<f64> {
        self.q.iter().chain(&self.v).copied().collect()
    }

    /// Restores the state that [`Self::save`] returned.
    pub(super) fn restore(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, 2 * N)?;
        self.q.copy_from_slice(&state[..N]);
        self.v.copy_from_slice(&state[N..]);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn bodies(&self) -> &[Body<B>; B] {
        &self.bodies
    }
}

impl<const B: usize> Body<B> {
    /// Returns the bodies from the root to this one, both included.
    pub(super) fn path(&self) -> &[usize] {
        &self.path[..self.depth]
    }
}

impl<const N: usize> Motion<N> {
    /// Returns the accelerations, by Cholesky decomposition of the positive definite mass matrix.
    pub(super) fn solve_dense(mut self) -> [f64; N] {
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

    /// Returns the accelerations, by the decomposition M = L^T D L, in which L has entries only between a coordinate
    /// and those that precede it on its path to the root.
    pub(super) fn solve_sparse<const B: usize>(mut self, bodies: &[Body<B>; B]) -> [f64; N] {
        let (m, mut x) = (&mut self.mass, self.force);
        let mut inverse = [0.0; N];
        for (k, body) in bodies.iter().enumerate().rev() {
            let pivot = m[2 + k];
            inverse[2 + k] = 1.0 / pivot[2 + k];
            let above = &body.path[..body.depth - 1];
            for (level, &i) in above.iter().enumerate() {
                let factor = pivot[2 + i] * inverse[2 + k];
                let row = &mut m[2 + i];
                row[0] -= factor * pivot[0];
                row[1] -= factor * pivot[1];
                for &j in &above[..=level] {
                    row[2 + j] -= factor * pivot[2 + j];
                }
                x[2 + i] -= factor * x[2 + k];
                m[2 + k][2 + i] = factor;
            }
            let [by_x, by_z] = [pivot[0] * inverse[2 + k], pivot[1] * inverse[2 + k]];
            m[0][0] -= by_x * pivot[0];
            m[1][0] -= by_z * pivot[0];
            m[1][1] -= by_z * pivot[1];
            x[0] -= by_x * x[2 + k];
            x[1] -= by_z * x[2 + k];
            (m[2 + k][0], m[2 + k][1]) = (by_x, by_z);
        }
        let across = m[1][0] / m[1][1];
        x[0] = (x[0] - across * x[1]) / (m[0][0] - across * m[1][0]);
        x[1] = x[1] / m[1][1] - across * x[0];
        for (k, body) in bodies.iter().enumerate() {
            let row = &m[2 + k];
            let mut known = row[0] * x[0] + row[1] * x[1];
            for &i in &body.path[..body.depth - 1] {
                known += row[2 + i] * x[2 + i];
            }
            x[2 + k] = x[2 + k] * inverse[2 + k] - known;
        }
        x
    }
}

/// Derives the bodies from the geometry. The mass of a body is the total mass of its capsules; where capsules of one
/// body overlap, the overlap counts twice, as in MuJoCo.
fn bodies<const B: usize>(model: &Model<B>) -> [Body<B>; B] {
    let mut bodies = [None::<Body<B>>; B];
    for (k, link) in model.links.iter().enumerate() {
        let (mut path, mut depth) = ([0; B], 0);
        if let Some(parent) = link.parent.and_then(|parent| bodies[parent]) {
            (path, depth) = (parent.path, parent.depth);
        }
        path[depth] = k;
        let (centre, mass, inertia) = solid(link.capsules, model.density);
        let (parent, anchor, turn) = (link.parent, link.anchor, link.turn);
        bodies[k] = Some(Body { parent, anchor, turn, centre, mass, inertia, path, depth: depth + 1 });
    }
    bodies.map(|body| body.expect("each body has been derived from its link"))
}

/// Returns the centre of mass of a body that consists of `capsules`, its mass, and its moment of inertia about the
/// centre of mass.
fn solid(capsules: &[(Vec2, Vec2, f64)], density: f64) -> (Vec2, f64, f64) {
    let (mut centre, mut mass, mut inertia) = ([0.0; 2], 0.0, 0.0);
    for (from, to, radius) in capsules {
        let half_length = (to[0] - from[0]).hypot(to[1] - from[1]) / 2.0;
        let middle = [f64::midpoint(from[0], to[0]), f64::midpoint(from[1], to[1])];
        let (more, own_inertia) = capsule(*radius, half_length, density);
        if mass == 0.0 {
            // The first capsule is a special case, because the sums below would round its centre.
            (centre, mass, inertia) = (middle, more, own_inertia);
            continue;
        }
        let apart = [middle[0] - centre[0], middle[1] - centre[1]];
        let share = more / (mass + more);
        inertia += own_inertia + mass * share * (apart[0] * apart[0] + apart[1] * apart[1]);
        centre = add(centre, [share * apart[0], share * apart[1]]);
        mass += more;
    }
    (centre, mass, inertia)
}

/// Returns the mass of a capsule and its moment of inertia about a line through its centre that is perpendicular to its
/// axis. The capsule is a cylinder of length `2 * half_length` with a hemisphere on each end.
pub(super) fn capsule(radius: f64, half_length: f64, density: f64) -> (f64, f64) {
    let length = 2.0 * half_length;
    let pi = std::f64::consts::PI;
    let cylinder = density * pi * radius.powi(2) * length;
    // This uses `powf` instead of `powi`, because the optimiser rounds the result of `powi` differently if it knows the
    // radius.
    let sphere = density * 4.0 / 3.0 * pi * radius.powf(3.0);
    let cylinder_inertia = cylinder * (length.powi(2) / 12.0 + radius.powi(2) / 4.0);
    let sphere_inertia = sphere * (0.4 * radius.powi(2) + length.powi(2) / 4.0 + 3.0 / 8.0 * length * radius);
    (cylinder + sphere, cylinder_inertia + sphere_inertia)
}

pub(super) fn rotate((sin, cos): (f64, f64), p: Vec2) -> Vec2 {
    [cos * p[0] - sin * p[1], sin * p[0] + cos * p[1]]
}

pub(super) fn add(a: Vec2, b: Vec2) -> Vec2 {
    [a[0] + b[0], a[1] + b[1]]
}
