//! Tests with processes that violate the protocol. They do not need Python.

use std::fmt::Write as _;

use super::super::message;
use super::*;
use crate::env::EnvError;

const LONG: Duration = Duration::from_secs(60);

/// Returns the error that occurs when an environment is created in a process that runs the script `text`.
fn error_of(text: &str, answer_timeout: Duration) -> String {
    let directory = tempfile::tempdir().unwrap();
    let python = script(directory.path(), text);
    let made = GymnasiumEnvironment::vector("Some-v1", 1, &options(python, answer_timeout));
    made.err().expect("expected an error instead of an environment").to_string()
}

#[test]
fn a_process_that_never_answers_times_out() {
    let error = error_of("exec sleep 1000", Duration::from_millis(300));
    assert_eq!(error, "Some-v1: the environment process failed: it did not answer in time");
}

#[test]
fn the_error_of_an_ended_process_quotes_its_standard_error() {
    let error = error_of("echo first >&2; echo 'out of luck' >&2; exit 3", LONG);
    let expected =
        "Some-v1: the environment process failed: it exited; end of its standard error: first | out of luck";
    assert_eq!(error, expected);
}

#[test]
fn output_of_a_foreign_program_is_recognised() {
    let error = error_of("echo Python 4.0 at your service; sleep 1", LONG);
    assert!(error.contains("it sent a response of 1752463696 bytes"), "{error}");
    let error = error_of(r"printf '\002\000\000\000\002\000'; sleep 1", LONG);
    assert!(error.contains("its response is of kind 2, expected 1"), "{error}");
}

#[test]
fn a_refusal_of_the_child_is_reported() {
    let error = error_of(r"printf '\007\000\000\000\005\001sorry'; sleep 1", LONG);
    let expected = "environment \"Some-v1\" is not available: the built-in environments are CartPole-v1, ";
    assert!(error.starts_with(expected) && error.ends_with(", and sorry"), "{error}");
    let error = error_of(r"printf '\007\000\000\000\005\003sorry'; sleep 1", LONG);
    assert!(
        error.starts_with("unknown environment \"Some-v1\": the built-in environments are CartPole-v1, "),
        "{error}"
    );
    assert!(error.ends_with(", and sorry"), "{error}");
    assert_eq!(error_of(r"printf '\007\000\000\000\005\002sorry'; sleep 1", LONG), "Some-v1: sorry");
}

/// Creates a process that answers each request in `exchanges` with the corresponding answer, and exits on any further
/// request.
fn fake(directory: &Path, exchanges: &[(Vec<u8>, Vec<u8>)]) -> GymnasiumOptions {
    let mut text = String::new();
    for (i, (request, answer)) in exchanges.iter().enumerate() {
        let path = directory.join(format!("answer-{i}"));
        std::fs::write(&path, answer).unwrap();
        let _ = write!(text, "head -c {} > /dev/null; cat '{}'; ", request.len(), path.display());
    }
    text += "head -c 1 > /dev/null; echo 'it hurts' >&2";
    options(script(directory, &text), LONG)
}

/// Returns the request that creates `count` environments and its answer. Each environment has one number as its
/// observation and two discrete actions.
fn making(count: usize) -> (Vec<u8>, Vec<u8>) {
    let ones = [1_u32; 4].map(u32::to_le_bytes).concat();
    let choices = [&2_u32.to_le_bytes()[..], &0_i64.to_le_bytes()].concat();
    let description = [&[0][..], &ones, &[0], &choices, &[0; 4], &f64::NAN.to_le_bytes()].concat();
    (
        message::make("Some-v1", count, false, Package::Gymnasium),
        message::message(1, &[message::VERSION], &description),
    )
}

/// Returns an answer that reports one step of each environment; each environment's observation equals its reward.
fn observed(rewards: &[f32]) -> Vec<u8> {
    let each = |reward: &f32| [&f64::from(*reward).to_le_bytes()[..], &[0], &reward.to_le_bytes()].concat();
    message::message(2, &[rewards.len() as u32], &rewards.iter().flat_map(each).collect::<Vec<_>>())
}

fn dies_at_a_step(directory: &Path) -> GymnasiumOptions {
    fake(directory, &[making(1), (message::reset(0, 0), observed(&[1.0]))])
}

#[test]
fn environments_that_have_started_a_step_share_one_message() {
    let directory = tempfile::tempdir().unwrap();
    let both = message::step([(0, &[0; 4][..]), (1, &[0; 4])].into_iter());
    let reset = |index| (message::reset(index, 0), observed(&[0.0]));
    let options = fake(directory.path(), &[making(2), reset(0), reset(1), (both, observed(&[3.0, 4.0]))]);
    let environments = GymnasiumEnvironment::vector("Some-v1", 2, &options).unwrap();
    let mut players: Vec<_> = environments.into_iter().map(|env| Player::new(env, 1)).collect();
    players.iter_mut().for_each(|player| drop(player.reset()));
    players.iter_mut().for_each(Player::begin);
    for (player, reward) in players.iter_mut().zip([3.0, 4.0]) {
        let (step, _) = player.finish();
        assert_eq!(step, Some(Step { reward, terminated: false, truncated: false, life_lost: false }));
        assert_eq!(player.observation, [reward as f32]);
    }
}

#[test]
fn a_process_without_progress_ends_the_run_and_quotes_its_error() {
    let directory = tempfile::tempdir().unwrap();
    let options = dies_at_a_step(directory.path());
    let mut player = Player::new(GymnasiumEnvironment::vector("Some-v1", 1, &options).unwrap().remove(0), 1);
    let mut truncated = 0;
    let error = loop {
        if let Err(error) = player.env.reset(&mut player.rng, &mut player.observation) {
            break error;
        }
        assert_eq!(player.observation, [1.0]);
        match player.env.step(Action::Discrete(0), &mut player.observation) {
            Ok(step) => {
                assert!(step.truncated && !step.terminated && step.reward == 0.0, "{step:?}");
                assert_eq!(player.observation, [1.0], "expected the last observation");
                truncated += 1;
            }
            Err(error) => break error,
        }
    };
    assert!(truncated > 0);
    let (error, expected) = (error.to_string(), "Some-v1: the environment process failed 5 times in a row: ");
    assert!(error.starts_with(expected) && error.contains("it hurts"), "{error}");
}

#[test]
fn a_step_outside_of_an_episode_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let options = dies_at_a_step(directory.path());
    let mut env = GymnasiumEnvironment::vector("Some-v1", 1, &options).unwrap().remove(0);
    let error = env.step(Action::Discrete(0), &mut [0.0]).unwrap_err();
    assert!(matches!(error, EnvError::NotReset), "{error}");
    let error = env.restore_state(&[1.0]).unwrap_err();
    assert_eq!(error.to_string(), "the saved state has 1 numbers, expected 2");
}
