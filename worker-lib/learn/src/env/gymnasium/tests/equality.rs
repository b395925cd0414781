//! Tests that two ways of running the same environment produce equal trajectories.

use super::*;
use crate::env::{CartPole, Environment, MujocoHopper};

/// Parses floats that Python printed, separated by spaces.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Steps both environments with the same actions until the first one's episode ends. Returns the number of steps.
fn step_both(player: &mut Player, own: &mut impl Environment, tolerance: f64) -> usize {
    let mut observation = player.observation.clone();
    for steps in 1.. {
        let step = player.with_action(|action| own.step(action, &mut observation)).unwrap();
        let (Some(theirs), _) = player.step() else { panic!("expected an outcome of the step") };
        assert!((step.reward - theirs.reward).abs() <= tolerance, "{step:?} {theirs:?} after {steps}");
        assert_eq!(step.terminated, theirs.terminated, "after {steps}");
        for (ours, theirs) in observation.iter().zip(&player.observation) {
            assert!((f64::from(*ours) - f64::from(*theirs)).abs() <= tolerance, "{steps}: {ours} {theirs}");
        }
        if step.terminated {
            return steps;
        }
    }
    unreachable!("the loop ends only by returning")
}

/// Returns the seed that the player's next reset will draw.
fn next_seed(player: &Player) -> u32 {
    use rand::Rng as _;
    player.rng.clone().next_u32() >> 1
}

#[test]
fn gymnasium_cartpole_matches_the_built_in_environment() {
    let Some(mut player) = player("gymnasium:CartPole-v1") else { return };
    assert_eq!(player.env.spec().action, ActionSpec::Discrete { n: 2 });
    assert_eq!((player.env.spec().observation_dim, player.env.spec().image), (4, None));
    assert_eq!((player.env.spec().episode_steps_max, player.env.spec().solved_return), (500, 475.0));
    for _ in 0..3 {
        let state = numbers(&python(&format!(
            "import gymnasium; env = gymnasium.make('CartPole-v1'); env.reset(seed={}); \
             print(*map(float, env.unwrapped.state))",
            next_seed(&player)
        )));
        player.reset();
        let mut own = CartPole::new();
        own.restore_state(&state).unwrap();
        assert!(step_both(&mut player, &mut own, 1e-6) > 8);
    }
}

#[test]
fn gymnasium_hopper_matches_the_mujoco_environment() {
    let Some(mut player) = player("gymnasium:Hopper-v5") else { return };
    let Some(mut own) = available(MujocoHopper::new()) else { return };
    assert_eq!(player.env.spec().id, "gymnasium:Hopper-v5");
    assert_eq!((player.env.spec().action, player.env.spec().observation_dim), (own.spec().action, 11));
    // Time, positions, velocities, and the solver's warm start.
    let state = numbers(&python(&format!(
        "import gymnasium; env = gymnasium.make('Hopper-v5'); env.reset(seed={}); d = env.unwrapped.data; \
         print(0.0, *map(float, [*d.qpos, *d.qvel, *d.qacc_warmstart]))",
        next_seed(&player)
    )));
    player.reset();
    own.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut [0.0; 11]).unwrap();
    own.restore_state(&state).unwrap();
    assert!(step_both(&mut player, &mut own, 1e-4) > 8);
}

#[test]
fn a_seed_determines_the_whole_run() {
    for id in ["gymnasium:CartPole-v1", "gymnasium:Hopper-v5"] {
        let (Some(mut a), Some(mut b)) = (players(id, 2), player(id)) else { return };
        let first = a[0].play(100);
        assert_eq!(first, b.play(100));
        assert_ne!(first, a[1].play(100), "a different generator should give a different trajectory");
    }
}

#[test]
fn environments_in_one_process_behave_like_separate_processes() {
    let Some(mut together) = players("gymnasium:CartPole-v1", 3) else { return };
    let mut apart: Vec<_> = (0..3).map(|_| player("gymnasium:CartPole-v1").unwrap()).collect();
    for (seed, player) in apart.iter_mut().enumerate() {
        player.rng = ChaCha8Rng::seed_from_u64(seed as u64);
        assert_eq!(player.reset(), together[seed].reset());
    }
    for t in 0..60 {
        together.iter_mut().for_each(Player::begin);
        for (one, other) in together.iter_mut().zip(&mut apart) {
            let seen = one.finish();
            assert_eq!(seen, other.step(), "step {t}");
            if seen.0.is_some_and(|step| step.terminated) {
                assert_eq!(one.reset(), other.reset());
            }
        }
    }
}

#[test]
fn a_restored_state_continues_bit_for_bit() {
    for id in ["gymnasium:CartPole-v1", "gymnasium:Hopper-v5", "ALE/Pong-v5"] {
        let Some(mut all) = players(id, 2) else { return };
        all[0].play(30);
        all[0].reset();
        (0..6).for_each(|_| drop(all[0].step()));
        let state = all[0].env.save_state();
        let (one, other) = all.split_at_mut(1);
        other[0].env.restore_state(&state).unwrap();
        other[0].acted = one[0].acted;
        for _ in 0..6 {
            assert_eq!(one[0].step(), other[0].step(), "{id}");
        }
    }
}

#[test]
fn an_episode_whose_saved_state_does_not_replay_is_truncated() {
    let Some(mut player) = player("gymnasium:CartPole-v1") else { return };
    player.reset();
    player.step();
    let mut state = player.env.save_state();
    state[1] += 1.0;
    player.env.restore_state(&state).unwrap();
    assert!(player.step().0.unwrap().truncated);
    assert!(!player.play(5)[1].0.unwrap().truncated);
}
