//! Tests of the dynamics for all robots.

use proptest::prelude::{prop_assert, proptest};
use proptest::test_runner::TestCaseResult;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::engine::{GRAVITY, Model, Robot, Vec2, add, rotate};
use super::{PlanarHalfCheetah, PlanarHopper, PlanarWalker, half_cheetah, hopper, walker};
use crate::env::{Action, ActionSpec, Environment};

/// Returns a robot in the air, with random angles within the joint ranges and random velocities.
fn airborne<const B: usize, const N: usize>(model: &'static Model<B>, seed: u64) -> Robot<B, N> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut robot = Robot::new(model);
    (robot.q[0], robot.q[1]) = (rng.random_range(-2.0..2.0), 5.0);
    for (q, joint) in robot.q[2..].iter_mut().zip(&model.joints) {
        let (low, high) = joint.map_or((-1.0, 1.0), |joint| joint.range);
        *q = rng.random_range(low + 0.2 * (high - low)..high - 0.2 * (high - low));
    }
    robot.v = std::array::from_fn(|_| rng.random_range(-2.0..2.0));
    robot
}

/// Total mass, centre of mass and momenta of several bodies.
#[derive(Clone, Copy, Debug, Default)]
struct Composite {
    mass: f64,
    centre: Vec2,
    inertia: f64,
}

impl Composite {
    fn join(self, other: Self) -> Self {
        let mass = self.mass + other.mass;
        let mean = |axis: usize| (self.mass * self.centre[axis] + other.mass * other.centre[axis]) / mass;
        let centre = [mean(0), mean(1)];
        let about = |part: Self| {
            let [x, z] = [part.centre[0] - centre[0], part.centre[1] - centre[1]];
            part.inertia + part.mass * (x * x + z * z)
        };
        Self { mass, centre, inertia: about(self) + about(other) }
    }
}

/// Returns the lower triangle of the mass matrix, computed by the composite-rigid-body algorithm without Jacobians: the
/// entry for two angles is the inertia of those bodies that both angles turn.
fn composite_mass<const B: usize, const N: usize>(robot: &Robot<B, N>, model: &Model<B>) -> [[f64; N]; N] {
    let pose = robot.pose();
    let mut composites: [Composite; B] = std::array::from_fn(|k| {
        let body = &robot.bodies()[k];
        let centre = add(pose.joint[k], rotate(pose.sin_cos[k], body.centre));
        Composite { mass: body.mass, centre, inertia: body.inertia }
    });
    for k in (0..B).rev() {
        if let Some(parent) = model.links[k].parent {
            composites[parent] = composites[parent].join(composites[k]);
        }
    }
    let mut mass = [[0.0; N]; N];
    (mass[0][0], mass[1][1]) = (composites[0].mass, composites[0].mass);
    for (k, part) in composites.iter().enumerate() {
        let turn = model.links[k].turn;
        let [x, z] = [part.centre[0] - pose.joint[k][0], part.centre[1] - pose.joint[k][1]];
        (mass[2 + k][0], mass[2 + k][1]) = (-turn * part.mass * z, turn * part.mass * x);
        let mut ancestor = Some(k);
        while let Some(i) = ancestor {
            let [to_x, to_z] = [part.centre[0] - pose.joint[i][0], part.centre[1] - pose.joint[i][1]];
            let moment = part.inertia + part.mass * (x * to_x + z * to_z);
            mass[2 + k][2 + i] = turn * model.links[i].turn * moment;
            ancestor = model.links[i].parent;
        }
        mass[2 + k][2 + k] += model.joints[k].map_or(0.0, |joint| joint.armature);
    }
    mass
}

fn check_mass_and_factorisations<const B: usize, const N: usize>(
    model: &'static Model<B>,
    seed: u64,
) -> TestCaseResult {
    let robot = airborne::<B, N>(model, seed);
    let motion = robot.free_motion(&robot.pose(), &[0.5; B]);
    let expected = composite_mass(&robot, model);
    for (row, expected) in motion.mass.iter().zip(&expected) {
        for (got, want) in row.iter().zip(expected) {
            prop_assert!((got - want).abs() < 1e-12 * want.abs().max(1.0), "{row:?}, expected {expected:?}");
        }
    }
    let (dense, sparse) = (motion.clone().solve_dense(), motion.solve_sparse(robot.bodies()));
    for (a, b) in dense.iter().zip(sparse) {
        prop_assert!((a - b).abs() < 1e-9 * a.abs().max(1.0), "{dense:?}, {sparse:?}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_mass_matrix_is_that_of_composite_bodies_and_both_factorisations_agree(seed: u64) {
        check_mass_and_factorisations::<4, 6>(&hopper::MODEL, seed)?;
        check_mass_and_factorisations::<7, 9>(&walker::MODEL, seed)?;
        check_mass_and_factorisations::<7, 9>(&half_cheetah::MODEL, seed)?;
    }
}

/// Integrates the equation of motion, without contacts and joint limits, over 0.1 s with the fourth-order Runge-Kutta
/// method.
fn fly<const B: usize, const N: usize>(robot: &mut Robot<B, N>, control: impl Fn(&Robot<B, N>) -> Vec<f64>) {
    const STEP: f64 = 1e-4;
    for _ in 0..1000 {
        let (q, v) = (robot.q, robot.v);
        let (mut moved, mut gained) = ([0.0; N], [0.0; N]);
        for (weight, next) in [(1.0, 0.5), (2.0, 0.5), (2.0, 1.0), (1.0, 0.0)] {
            let speed = robot.v;
            let acceleration = robot.free_motion(&robot.pose(), &control(robot)).solve_dense();
            for i in 0..N {
                moved[i] += weight / 6.0 * STEP * speed[i];
                gained[i] += weight / 6.0 * STEP * acceleration[i];
                robot.q[i] = q[i] + next * STEP * speed[i];
                robot.v[i] = v[i] + next * STEP * acceleration[i];
            }
        }
        robot.q = std::array::from_fn(|i| q[i] + moved[i]);
        robot.v = std::array::from_fn(|i| v[i] + gained[i]);
    }
}

/// Returns the kinetic energy plus the potential energy of gravity and of the joint springs, in J.
fn energy<const B: usize, const N: usize>(robot: &Robot<B, N>, model: &Model<B>) -> f64 {
    let pose = robot.pose();
    let mass = robot.free_motion(&pose, &[0.0; B]).mass;
    let mut energy = 0.0;
    for i in 0..N {
        for j in 0..N {
            energy += 0.5 * robot.v[i] * mass[i.max(j)][i.min(j)] * robot.v[j];
        }
    }
    for (k, body) in robot.bodies().iter().enumerate() {
        let stiffness = model.joints[k].map_or(0.0, |joint| joint.stiffness);
        energy += 0.5 * stiffness * robot.q[2 + k].powi(2);
        energy += body.mass * GRAVITY * (pose.joint[k][1] + rotate(pose.sin_cos[k], body.centre)[1]);
    }
    energy
}

/// Returns the horizontal momentum and the angular momentum about the centre of mass. Velocities are computed from
/// differences of positions.
fn momenta<const B: usize, const N: usize>(robot: &Robot<B, N>, model: &'static Model<B>) -> [f64; 2] {
    const TIME: f64 = 1e-5;
    let at = |time: f64| {
        let mut moved = Robot::<B, N>::new(model);
        moved.q = std::array::from_fn(|i| robot.q[i] + time * robot.v[i]);
        let pose = moved.pose();
        let centre = |k: usize| add(pose.joint[k], rotate(pose.sin_cos[k], moved.bodies()[k].centre));
        let spins = |k: usize| -> f64 {
            let on_path = moved.bodies()[k].path();
            on_path.iter().map(|&i| model.links[i].turn * robot.v[2 + i]).sum()
        };
        std::array::from_fn::<_, B, _>(|k| (centre(k), spins(k)))
    };
    let (before, after) = (at(-TIME), at(TIME));
    let total: f64 = robot.bodies().iter().map(|body| body.mass).sum();
    let (mut linear, mut centre, mut angular) = ([0.0; 2], [0.0; 2], 0.0);
    for (k, body) in robot.bodies().iter().enumerate() {
        let (from, to) = (before[k].0, after[k].0);
        let place = [f64::midpoint(from[0], to[0]), f64::midpoint(from[1], to[1])];
        let momentum = [0, 1].map(|axis| body.mass * (to[axis] - from[axis]) / (2.0 * TIME));
        linear = add(linear, momentum);
        centre = add(centre, place.map(|x| body.mass * x / total));
        angular += place[0] * momentum[1] - place[1] * momentum[0] + body.inertia * before[k].1;
    }
    [linear[0], angular - (centre[0] * linear[1] - centre[1] * linear[0])]
}

fn check_conservation<const B: usize, const N: usize>(model: &'static Model<B>) {
    for seed in 0..5 {
        let mut robot = airborne::<B, N>(model, seed);
        let before = energy(&robot, model);
        // These controls cancel the damping.
        fly(&mut robot, |robot| {
            let joints = robot.v[3..].iter().zip(&model.joints[1..]);
            joints.map(|(v, joint)| joint.map_or(0.0, |joint| joint.damping * v / joint.gear)).collect()
        });
        let after = energy(&robot, model);
        assert!((after - before).abs() < 1e-8 * before.abs(), "energy {before} J, then {after} J");

        let mut robot = airborne::<B, N>(model, seed);
        let before = momenta(&robot, model);
        fly(&mut robot, |_| (1..B).map(|k| 0.3 * (k as f64).sin()).collect());
        let after = momenta(&robot, model);
        for (before, after) in before.iter().zip(after) {
            assert!((before - after).abs() < 1e-6 * before.abs().max(1.0), "momentum {before}, then {after}");
        }
    }
}

#[test]
fn energy_and_momenta_are_conserved_in_the_air() {
    check_conservation::<4, 6>(&hopper::MODEL);
    check_conservation::<7, 9>(&walker::MODEL);
    check_conservation::<7, 9>(&half_cheetah::MODEL);
}

fn check_limits<const B: usize, const N: usize>(model: &'static Model<B>) {
    for seed in 0..20 {
        let mut robot = airborne::<B, N>(model, seed);
        robot.q[1] = 1e3;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..20 {
            let control: Vec<f64> = (1..B).map(|_| if rng.random() { 1.0 } else { -1.0 }).collect();
            for _ in 0..100 {
                robot.advance(&control, 1);
                for (q, joint) in robot.q[2..].iter().zip(&model.joints) {
                    let Some(joint) = joint else { continue };
                    let beyond = q - q.clamp(joint.range.0, joint.range.1);
                    assert!(beyond.abs() < 0.6, "{beyond} rad beyond {joint:?}");
                }
            }
        }
    }
}

#[test]
fn joints_remain_near_their_ranges_at_full_torque() {
    check_limits::<4, 6>(&hopper::MODEL);
    check_limits::<7, 9>(&walker::MODEL);
    check_limits::<7, 9>(&half_cheetah::MODEL);
}

fn check_accelerations<const B: usize, const N: usize>(model: &'static Model<B>, fixture: &str) {
    let mut robot = Robot::<B, N>::new(model);
    let mut checked = 0;
    for line in fixture.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let (state, rest) = fields.split_at(2 * N);
        let (control, expected) = rest.split_at(B - 1);
        robot.restore(state).unwrap();
        let acceleration = robot.free_motion(&robot.pose(), control).solve_dense();
        for (got, want) in acceleration.iter().zip(expected) {
            assert!((got - want).abs() < 1e-7 * want.abs().max(1.0), "{line}: {acceleration:?}");
        }
        checked += 1;
    }
    assert_eq!(checked, 20);
}

/// The fixtures contain coordinates, velocities, actions and accelerations. They were recorded once from MuJoCo 4.0.0
/// with the models of Gymnasium 1.4.0, in random states in which the robot is off the ground and within its joint
/// ranges.
#[test]
fn airborne_accelerations_match_mujoco() {
    check_accelerations::<4, 6>(
        &hopper::MODEL,
        include_str!("../../../../../fixtures/env/hopper_airborne.csv"),
    );
    check_accelerations::<7, 9>(
        &walker::MODEL,
        include_str!("../../../../../fixtures/env/walker_airborne.csv"),
    );
    let fixture = include_str!("../../../../../fixtures/env/half_cheetah_airborne.csv");
    check_accelerations::<7, 9>(&half_cheetah::MODEL, fixture);
}

fn robots() -> [Box<dyn Environment>; 3] {
    [Box::new(PlanarHopper::new()), Box::new(PlanarWalker::new()), Box::new(PlanarHalfCheetah::new())]
}

fn dimensions(env: &dyn Environment) -> (usize, usize) {
    let ActionSpec::Continuous { dim } = env.spec().action else { panic!("robots have continuous actions") };
    (env.spec().observation_dim, dim)
}

#[test]
fn a_hundred_thousand_random_steps_stay_finite() {
    for mut env in robots() {
        let (observed, motors) = dimensions(env.as_ref());
        let mut observation = vec![0.0; observed];
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        env.reset(&mut rng, &mut observation).unwrap();
        for step in 0..100_000 {
            let action: Vec<f32> = (0..motors).map(|_| rng.random_range(-1.0..1.0)).collect();
            let outcome = env.step(Action::Continuous(&action), &mut observation).unwrap();
            let state = env.save_state();
            // The first coordinate, x, grows without bound.
            assert!(state[1..].iter().all(|x| x.abs() < 300.0), "{} step {step}: {state:?}", env.spec().id);
            assert!(outcome.reward.is_finite());
            // A robot that has fallen is seldom reset, because a robot on the ground is the hardest case for the
            // contacts.
            if outcome.terminated && rng.random_bool(0.01) {
                env.reset(&mut rng, &mut observation).unwrap();
            }
        }
    }
}

#[test]
fn a_restored_state_continues_bit_for_bit() {
    for (mut a, mut b) in robots().into_iter().zip(robots()) {
        let (observed, motors) = dimensions(a.as_ref());
        let (mut observed_a, mut observed_b) = (vec![0.0; observed], vec![0.0; observed]);
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        a.reset(&mut ChaCha8Rng::seed_from_u64(2), &mut observed_a).unwrap();
        let act = |env: &mut dyn Environment, observation: &mut [f32], scale: f32| {
            let action: Vec<f32> = (0..motors).map(|i| scale * (i as f32 - 1.5)).collect();
            env.step(Action::Continuous(&action), observation).unwrap()
        };
        act(a.as_mut(), &mut observed_a, 2.0);
        b.restore_state(&a.save_state()).unwrap();
        for _ in 0..20 {
            let outcome = act(a.as_mut(), &mut observed_a, 0.4);
            assert_eq!(outcome, act(b.as_mut(), &mut observed_b, 0.4));
            assert_eq!(bits(&observed_a), bits(&observed_b));
        }
        assert_eq!(a.save_state(), b.save_state());
        assert!(b.restore_state(&[0.0; 3]).is_err());
    }
}
