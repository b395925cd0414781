//! Tests with processes that crash, hang or are killed during an episode.

use super::*;

/// Environments that fail deliberately at their fifth step. `Always` and `Wrong` fail every time, and `Never` does not
/// fail; all others fail only once, because they create a marker file that they check for.
const FAULTS: &str = r#"
import os, sys, time
import gymnasium, numpy

MARK = os.path.join(os.path.dirname(__file__), "failed")

class Faulty(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (2,), "float64")
    action_space = gymnasium.spaces.Discrete(3, start=-1)

    def __init__(self, how):
        self.how = how

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.start = self.np_random.random()
        return numpy.array([self.start, 0.0]), {}

    def step(self, action):
        print("what an environment prints is not an answer")
        self.steps += 1
        if self.steps == 5 and self.how == "wrong":
            raise ValueError("the action", action, "is wrong\nhere")
        if self.steps == 5 and (self.how == "always" or not os.path.exists(MARK)):
            open(MARK, "w").close()
            if self.how == "hang":
                time.sleep(1000)
            if self.how == "raise":
                raise RuntimeError("on purpose")
            if self.how != "never":
                os.abort()
        noise = time.monotonic() if self.how == "random" else 0
        return numpy.array([self.start + noise, float(action)]), self.steps, False, self.steps == 8, {}

for how in ["once", "always", "hang", "raise", "random", "never", "wrong"]:
    gymnasium.register(f"{how.title()}-v0", lambda how=how: Faulty(how))
"#;

/// Returns options for a Python interpreter that can import the environments in [`FAULTS`].
fn faulty(directory: &Path, answer_timeout: Duration) -> GymnasiumOptions {
    std::fs::write(directory.join("iswitch_faults.py"), FAULTS).unwrap();
    let python = GymnasiumOptions::default().python;
    let text = format!("PYTHONPATH='{}' exec '{}' \"$@\"", directory.display(), python.display());
    options(script(directory, &text), answer_timeout)
}

/// Checks that a failure does not change the trajectory of an episode.
fn goes_on_as_if_nothing_happened(how: &str, answer_timeout: Duration) {
    let directory = tempfile::tempdir().unwrap();
    let options = faulty(directory.path(), answer_timeout);
    let make = |how: &str| players_with(&format!("iswitch_faults:{how}-v0"), 2, &options);
    let Some(mut healthy) = make("Never") else { return };
    let expected: Vec<_> = healthy.iter_mut().map(|player| player.play(20)).collect();
    let _ = std::fs::remove_file(directory.path().join("failed"));
    let mut failing = make(how).unwrap();
    let mut seen: Vec<_> = failing.iter_mut().map(|player| vec![player.reset()]).collect();
    for _ in 0..20 {
        failing.iter_mut().for_each(Player::begin);
        for (player, seen) in failing.iter_mut().zip(&mut seen) {
            seen.push(player.finish());
            if seen.last().is_some_and(|(step, _)| step.is_some_and(|step| step.truncated)) {
                seen.push(player.reset());
            }
        }
    }
    assert!(directory.path().join("failed").exists(), "the environment has failed once");
    assert_eq!(seen, expected);
}

#[test]
fn a_crash_does_not_change_the_trajectory() {
    goes_on_as_if_nothing_happened("Once", Duration::from_secs(60));
}

#[test]
fn an_exception_does_not_change_the_trajectory() {
    goes_on_as_if_nothing_happened("Raise", Duration::from_secs(60));
}

#[test]
fn a_hang_does_not_change_the_trajectory() {
    goes_on_as_if_nothing_happened("Hang", Duration::from_secs(10));
}

#[test]
fn an_episode_that_always_crashes_is_truncated_and_others_continue() {
    let directory = tempfile::tempdir().unwrap();
    let options = faulty(directory.path(), Duration::from_secs(60));
    let Some(mut all) = players_with("iswitch_faults:Always-v0", 2, &options) else { return };
    all.iter_mut().for_each(|player| drop(player.reset()));
    // The second environment stays two steps behind the first.
    (0..2).for_each(|_| drop(all[0].step()));
    let steps: Vec<_> = (0..3)
        .map(|_| {
            all.iter_mut().for_each(Player::begin);
            all.iter_mut().map(|player| player.finish().0.unwrap()).collect::<Vec<_>>()
        })
        .collect();
    assert!(!steps[1][0].truncated);
    assert_eq!((steps[2][0].truncated, steps[2][0].reward), (true, 0.0), "{steps:?}");
    assert_eq!((steps[2][1].truncated, steps[2][1].reward), (false, 3.0), "{steps:?}");
    all[0].reset();
    assert_eq!(all[0].step().0.unwrap().reward, 1.0, "a new episode has begun");
    assert_eq!(all[1].step().0.unwrap().reward, 4.0, "the episode of the other environment continues");
}

#[test]
fn an_exception_that_recurs_ends_the_run_with_its_text_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let options = faulty(directory.path(), Duration::from_secs(60));
    let Some(mut all) = players_with("iswitch_faults:Wrong-v0", 2, &options) else { return };
    all.iter_mut().for_each(|player| drop(player.reset()));
    (0..4).for_each(|_| {
        all.iter_mut().for_each(Player::begin);
        all.iter_mut().for_each(|player| drop(player.finish()));
    });
    all.iter_mut().for_each(Player::begin);
    let mut observation = vec![0.0; all[0].observation.len()];
    let error = all[0].env.finish_step(Action::Discrete(0), &mut observation).unwrap_err().to_string();
    assert!(
        error.starts_with("the environment iswitch_faults:Wrong-v0 raised ValueError: ('the action', "),
        "{error}"
    );
    assert!(error.contains("iswitch_faults.py, line ") && error.ends_with("in step)"), "{error}");
    assert!(!error.contains('\n') && !error.contains("Traceback"), "{error}");
}

#[test]
fn an_episode_that_replays_to_another_state_is_truncated() {
    let directory = tempfile::tempdir().unwrap();
    let options = faulty(directory.path(), Duration::from_secs(60));
    let Some(mut all) = players_with("iswitch_faults:Random-v0", 1, &options) else { return };
    all[0].reset();
    all[0].step();
    all[0].kill_process();
    assert!(all[0].step().0.unwrap().truncated);
}

#[test]
fn a_killed_process_is_replaced_with_the_same_trajectory() {
    for id in ["gymnasium:CartPole-v1", "ALE/Pong-v5"] {
        let (Some(mut all), Some(mut other)) = (players(id, 2), player(id)) else { return };
        all[1].reset();
        assert_eq!(all[0].reset(), other.reset());
        for t in 0..30 {
            if t % 10 == 7 {
                all[0].kill_process();
            }
            all.iter_mut().for_each(Player::begin);
            if t % 10 == 4 {
                all[1].kill_process();
            }
            let (seen, beside) = (all[0].finish(), all[1].finish());
            assert_eq!(seen, other.step(), "{id} step {t}");
            if beside.0.is_some_and(|step| step.terminated) {
                all[1].reset();
            }
            if seen.0.is_some_and(|step| step.terminated) {
                all[0].kill_process();
                assert_eq!(all[0].reset(), other.reset());
            }
        }
    }
}

#[test]
fn a_process_ends_with_its_last_environment() {
    let Some(all) = players("gymnasium:CartPole-v1", 2) else { return };
    let mut all = all.into_iter();
    let first = all.next().unwrap();
    let id = first.env.vector.lock().unwrap().child.as_mut().unwrap().process().id();
    let process = PathBuf::from(format!("/proc/{id}"));
    drop(first);
    assert!(process.exists());
    drop(all);
    assert!(!process.exists());
}

#[test]
fn errors_name_the_package_to_install() {
    if player("ALE/Pong-v5").is_none() {
        return;
    }
    for (missing, expected) in [
        ("gymnasium", "cannot import gymnasium (not here); install: "),
        ("ale_py", "the Atari games require ale-py (not here); install: "),
        ("cv2", "the Atari games require OpenCV (not here); install: "),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let options = faulty(directory.path(), Duration::from_secs(60));
        let module = directory.path().join(missing).with_extension("py");
        std::fs::write(module, "raise ImportError('not here')").unwrap();
        let made = GymnasiumEnvironment::vector("ALE/Pong-v5", 1, &options);
        let error = made.err().expect("expected an error instead of an environment").to_string();
        assert!(error.starts_with("environment \"ALE/Pong-v5\" is not available: "), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("pip install 'gymnasium[atari]' ale-py opencv-python-headless"), "{error}");
    }
}

#[test]
fn unknown_or_unsupported_environments_give_one_line_errors() {
    if player("gymnasium:CartPole-v1").is_none() {
        return;
    }
    let error_of = |id: &str| {
        let made = GymnasiumEnvironment::vector(id, 1, &GymnasiumOptions::default());
        made.err().expect("expected an error instead of an environment").to_string()
    };
    let error = error_of("CartPool-v1");
    assert!(
        error.starts_with("unknown environment \"CartPool-v1\": the built-in environments are CartPole-v1, "),
        "{error}"
    );
    assert!(error.contains("doesn't exist") && !error.contains('\n'), "{error}");
    let error = error_of("FrozenLake-v1");
    assert!(error.starts_with("FrozenLake-v1: observation space Discrete(16) is not supported, "), "{error}");
    let error = error_of("no_such_module:Some-v1");
    assert!(error.contains("cannot import no_such_module"), "{error}");
}
