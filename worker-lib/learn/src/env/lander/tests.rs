//! Tests of the lander environments.

use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::env::{TimeLimit, make};

/// Returns the throttles of a proportional controller: it tilts the lander towards the pad and slows the descent as the
/// lander approaches the ground.
fn pilot(observation: &[f32]) -> [f32; 2] {
    let [x, z, vx, vz, angle, spin, left, right] = *observation else { panic!("eight values") };
    let wanted = (0.5 * x + vx).clamp(-0.4, 0.4);
    let turn = (wanted - angle) * 0.5 - spin;
    let lift = (0.55 * x.abs() - z) * 0.5 - vz * 0.5;
    if left + right > 0.0 { [-vz * 10.0 - 1.0, 0.0] } else { [20.0 * lift - 1.0, -20.0 * turn] }
}

/// Returns the index of the discrete action that is closest to the given throttles.
fn choice([main, side]: [f32; 2]) -> usize {
    if main > 0.0 && main > side.abs() - 1.0 {
        2
    } else if side < -0.5 {
        1
    } else if side > 0.5 {
        3
    } else {
        0
    }
}

/// Lets the controller fly ten episodes, and returns the sum of rewards of each episode.
fn flown(mut env: TimeLimit<PlanarLander>) -> Vec<f64> {
    let mut observation = [0.0; OBSERVED];
    let episodes = (0..10).map(|seed| {
        env.reset(&mut ChaCha8Rng::seed_from_u64(seed), &mut observation).unwrap();
        let mut sum = 0.0;
        loop {
            let throttle = pilot(&observation);
            let action = match env.spec().action {
                ActionSpec::Discrete { .. } => Action::Discrete(choice(throttle)),
                ActionSpec::Continuous { .. } => Action::Continuous(&throttle),
            };
            let step = env.step(action, &mut observation).unwrap();
            sum += step.reward;
            if step.terminated || step.truncated {
                return sum;
            }
        }
    });
    episodes.collect()
}

#[test]
fn a_simple_controller_lands_and_solves_both_tasks() {
    for lander in [PlanarLander::new(), PlanarLander::continuous()] {
        let returns = flown(TimeLimit::new(lander));
        let mean = returns.iter().sum::<f64>() / returns.len() as f64;
        assert!(mean > 200.0, "{returns:?}");
    }
}

#[test]
fn random_actions_crash() {
    let mut env = TimeLimit::new(PlanarLander::default());
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (mut observation, mut sum, mut crashes) = ([0.0; OBSERVED], 0.0, 0);
    env.reset(&mut rng, &mut observation).unwrap();
    while crashes < 50 {
        let step = env.step(Action::Discrete(rng.random_range(0..4)), &mut observation).unwrap();
        assert!(observation.iter().all(|x| x.is_finite()));
        sum += step.reward;
        if step.terminated || step.truncated {
            assert!(step.terminated && step.reward == -PRIZE, "{step:?}");
            crashes += 1;
            env.reset(&mut rng, &mut observation).unwrap();
        }
    }
    assert!((-500.0..-100.0).contains(&(sum / 50.0)), "mean return {}", sum / 50.0);
}

#[test]
fn rewards_are_differences_of_the_potential_minus_fuel() {
    let mut env = PlanarLander::continuous();
    let mut observation = [0.0; OBSERVED];
    env.reset(&mut ChaCha8Rng::seed_from_u64(5), &mut observation).unwrap();
    let before = env.potential();
    let mut sum = 0.0;
    for _ in 0..30 {
        sum += env.step(Action::Continuous(&[0.2, -0.75]), &mut observation).unwrap().reward;
    }
    let fuel = 30.0 * (0.3 * 0.6 + 0.03 * 0.75);
    assert!((sum - (env.potential() - before - fuel)).abs() < 1e-6, "{sum}");
}

#[test]
fn a_lander_at_rest_ends_the_episode_with_a_prize() {
    let mut env = PlanarLander::new();
    let mut observation = [0.0; OBSERVED];
    for steps in 1.. {
        let step = env.step(Action::Discrete(0), &mut observation).unwrap();
        if step.terminated {
            assert!(step.reward == PRIZE && (10..100).contains(&steps), "{step:?} after {steps} steps");
            break;
        }
    }
    assert_eq!(observation[6..], [1.0, 1.0]);
}

#[test]
fn a_lander_beyond_the_edge_or_on_its_side_has_crashed() {
    let mut observation = [0.0; OBSERVED];
    for (x, z, angle) in [(10.1, STANCE, 0.0), (0.0, 0.4, 1.57)] {
        let mut env = PlanarLander::new();
        (env.lander.position, env.lander.angle) = ([x, z], angle);
        let step = env.step(Action::Discrete(0), &mut observation).unwrap();
        assert!(step.terminated && step.reward == -PRIZE, "{x} m, {angle} rad: {step:?}");
    }
}

#[test]
fn a_restored_state_continues_bit_for_bit() {
    for (id, action) in [(ID, Action::Discrete(2)), (CONTINUOUS_ID, Action::Continuous(&[0.1, 0.7]))] {
        let (mut a, mut b) = (make(id).unwrap(), make(id).unwrap());
        let (mut observed_a, mut observed_b) = ([0.0; OBSERVED], [0.0; OBSERVED]);
        a.reset(&mut ChaCha8Rng::seed_from_u64(2), &mut observed_a).unwrap();
        for _ in 0..30 {
            a.step(action, &mut observed_a).unwrap();
        }
        b.restore_state(&a.save_state()).unwrap();
        for _ in 0..200 {
            let step = a.step(action, &mut observed_a).unwrap();
            assert_eq!(step, b.step(action, &mut observed_b).unwrap());
            assert_eq!(observed_a.map(f32::to_bits), observed_b.map(f32::to_bits));
            assert_eq!(a.picture().unwrap(), b.picture().unwrap());
        }
        assert_eq!(a.save_state(), b.save_state());
        assert!(b.restore_state(&[0.0; 3]).is_err());
    }
}

#[test]
fn actions_of_the_other_kind_are_refused() {
    let mut observation = [0.0; OBSERVED];
    let error = PlanarLander::new().step(Action::Continuous(&[0.0; 2]), &mut observation).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the action is Continuous([0.0, 0.0]), but the environment takes Discrete { n: 4 }"
    );
    let error = PlanarLander::continuous().step(Action::Discrete(0), &mut observation).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the action is Discrete(0), but the environment takes Continuous { dim: 2 }"
    );
}
