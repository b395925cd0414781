//! Tests of EnvPool environments.

use super::*;
use crate::nn::Image;

const CART_POLE: &str = "envpool:CartPole-v1";

fn has_ended((step, _): &Seen) -> bool {
    step.is_some_and(|step| step.terminated || step.truncated)
}

/// Steps all players together. Returns what each player has observed, including the observations after resets.
fn play_together(all: &mut [Player], steps: usize) -> Vec<Vec<Seen>> {
    let mut seen: Vec<_> = all.iter_mut().map(|player| vec![player.reset()]).collect();
    for _ in 0..steps {
        all.iter_mut().for_each(Player::begin);
        for (player, seen) in all.iter_mut().zip(&mut seen) {
            seen.push(player.finish());
            if seen.last().is_some_and(has_ended) {
                seen.push(player.reset());
            }
        }
    }
    seen
}

#[test]
fn the_seed_of_an_environment_determines_its_run_whatever_the_others_do() {
    for (id, steps) in [(CART_POLE, 100), ("envpool:Hopper-v4", 100), ("envpool:Pong-v5", 40)] {
        let Some(mut together) = players(id, 3) else { return };
        let seen = play_together(&mut together, steps);
        assert_ne!(seen[0], seen[1], "a different generator should give a different trajectory");
        for (seed, expected) in seen.iter().enumerate() {
            let mut alone = player(id).unwrap();
            alone.rng = ChaCha8Rng::seed_from_u64(seed as u64);
            assert_eq!(alone.play(steps), *expected, "{id}, environment {seed}");
        }
    }
}

#[test]
fn the_descriptions_are_those_of_envpool() {
    let (Some(hopper), Some(pong)) = (player("envpool:Hopper-v4"), player("envpool:Pong-v5")) else { return };
    let spec = hopper.env.spec();
    assert_eq!((spec.observation_dim, spec.action), (11, ActionSpec::Continuous { dim: 3 }));
    assert_eq!((spec.episode_steps_max, &*spec.id), (1000, "envpool:Hopper-v4"));
    let spec = pong.env.spec();
    assert_eq!(spec.image, Some(Image { height: 84, width: 84, channels: 4 }));
    assert_eq!((spec.action, spec.episode_steps_max), (ActionSpec::Discrete { n: 6 }, 27_000));
    assert_eq!(spec.solved_return, f64::INFINITY);
}

#[test]
fn an_episode_ends_with_its_final_observation_and_the_next_begins_with_its_first() {
    let Some(mut player) = player(CART_POLE) else { return };
    for _ in 0..5 {
        player.reset();
        assert!(player.observation.iter().all(|x| x.abs() <= 0.05), "{:?}", player.observation);
        let mut steps = 1;
        while !has_ended(&player.step()) {
            steps += 1;
            assert!(player.observation[2].abs() <= 0.2095, "{:?}", player.observation);
        }
        assert!(steps > 5, "an episode of {steps} steps includes part of another one");
        assert!(player.observation[2].abs() > 0.2094 || player.observation[0].abs() > 2.4);
    }
}

#[test]
fn a_time_limit_truncates_and_does_not_terminate() {
    let Some(mut player) = player("envpool:Pendulum-v1") else { return };
    let seen = player.play(401);
    let steps: Vec<_> = seen.iter().filter_map(|(step, _)| *step).collect();
    assert!(steps.iter().all(|step| !step.terminated));
    let truncated: Vec<_> = (0..steps.len()).filter(|i| steps[*i].truncated).collect();
    assert_eq!(truncated, [199, 399]);
}

#[test]
fn a_restored_episode_is_truncated_and_the_next_one_runs() {
    let Some(mut all) = players(CART_POLE, 2) else { return };
    all.iter_mut().for_each(|player| drop(player.reset()));
    let state = all[0].env.save_state();
    all[0].env.restore_state(&state).unwrap();
    let step = all[0].step().0.unwrap();
    assert!(step.truncated && !step.terminated && step.reward == 0.0, "{step:?}");
    all[0].reset();
    assert!(!all[0].step().0.unwrap().truncated);
    assert!(!all[1].step().0.unwrap().truncated, "the other environment should not be affected");
}

#[test]
fn the_failure_of_the_process_truncates_all_running_episodes() {
    let Some(mut all) = players(CART_POLE, 2) else { return };
    all.iter_mut().for_each(|player| drop(player.reset()));
    all.iter_mut().for_each(|player| drop(player.step()));
    all[0].kill_process();
    all.iter_mut().for_each(Player::begin);
    assert!(all.iter_mut().all(|player| player.finish().0.unwrap().truncated));
    let seen = play_together(&mut all, 5);
    assert!(seen.iter().flatten().all(|seen| !has_ended(seen)), "{seen:?}");
}

#[test]
fn an_unknown_id_and_rendering_are_refused() {
    if player(CART_POLE).is_none() {
        return;
    }
    let refused = |id: &str, options: &GymnasiumOptions| {
        GymnasiumEnvironment::vector(id, 1, options).err().expect("should be refused").to_string()
    };
    let error = refused("envpool:Nothing-v0", &GymnasiumOptions::default());
    assert!(error.starts_with("envpool:Nothing-v0: EnvPool "), "{error}");
    assert!(error.ends_with(" has no environment Nothing-v0"), "{error}");
    let error = refused(CART_POLE, &GymnasiumOptions { renders: true, ..GymnasiumOptions::default() });
    assert!(error.contains("cannot be rendered"), "{error}");
}

#[test]
fn a_missing_package_is_named_with_the_command_that_installs_it() {
    let directory = tempfile::tempdir().unwrap();
    let python = GymnasiumOptions::default().python;
    let program = "import sys; sys.modules['envpool'] = None; exec(sys.argv[1])";
    let text = format!("exec '{}' -c \"{program}\" \"$2\"", python.display());
    let options = options(script(directory.path(), &text), Duration::from_secs(60));
    let error = GymnasiumEnvironment::vector(CART_POLE, 1, &options).err().expect("the package is missing");
    let text = error.to_string();
    if text.contains("it exited") {
        // Python is not installed.
        available::<()>(Err(error));
        return;
    }
    assert!(text.starts_with("envpool:CartPole-v1: ") && text.contains("cannot import envpool"), "{text}");
    assert!(text.contains(" -m pip install envpool gymnasium"), "{text}");
}
