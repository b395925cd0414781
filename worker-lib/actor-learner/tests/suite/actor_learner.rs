//! Tests of the processes of `iswitch actor-learner`. The processes must learn, and must continue after any of them is
//! killed.
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use iswitch_learn::algorithms::evaluate::evaluate;
use iswitch_learn::algorithms::trained::Trained;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Timeout that no operation of these tests exceeds, even on a busy machine.
const HANGS: Duration = Duration::from_secs(180);
/// Hyper-parameters of a network that is sufficient for a pendulum and is trained in a third of the default time.
const SMALL: &str = "--set hidden=[64,64] --set batch_size=64";
const POLL: Duration = Duration::from_millis(50);

fn iswitch(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-actors"));
    command.args(arguments.split_whitespace());
    command
}

fn finish(arguments: &str, out: &Path) -> Value {
    let output = iswitch(arguments).args(["--json", "--quiet", "--out"]).arg(out).output().unwrap();
    result(&output)
}

fn result(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    parsed(output)
}

fn parsed(output: &Output) -> Value {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}\n{stderr}"))
}

/// Trains an agent, which must achieve at least the return `least_return`. The replicas must stay identical, and all
/// items must be valid.
fn learns(arguments: &str, least_return: f64) {
    let directory = TempDir::new().unwrap();
    let result = finish(&format!("actor-learner {arguments}"), &directory.path().join("run"));
    assert_eq!(result["replicas_identical"], true, "{result}");
    assert_eq!(result["replay"]["malformed"], 0, "{result}");
    let mean_return = mean_return(&directory.path().join("run"));
    assert!(mean_return >= least_return, "{mean_return}");
}

/// Returns the mean return of the trained agent over five episodes, as `iswitch eval` runs them.
fn mean_return(run: &Path) -> f64 {
    const EPISODES: usize = 5;
    let trained = Trained::read(run).unwrap();
    let mut env = iswitch_learn::env::make(&trained.env).unwrap();
    let mut policy = trained.policy(env.spec()).unwrap();
    let episodes = evaluate(policy.as_mut(), env.as_mut(), EPISODES, 1, false).unwrap();
    episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / EPISODES as f64
}

#[test]
fn dqn_learns_from_replay() {
    learns("dqn --actors 2 --steps 60000", 60.0);
}

#[test]
fn prioritised_dqn_learns_from_two_shards() {
    let how = "--set prioritisation={\"alpha\":0.6,\"beta\":0.4,\"epsilon\":1e-6}";
    learns(&format!("dqn --actors 4 --shards 2 --cells 0 --steps 60000 {how}"), 60.0);
}

#[test]
fn ddpg_learns_from_replay() {
    // A random policy reaches a return of about -1200. With only 8,000 steps, one run in eight stays below -900, even
    // if it trains in a single process.
    learns(&format!("ddpg --actors 2 --steps 20000 {SMALL}"), -900.0);
}

#[test]
fn td3_and_sac_learn_from_replay() {
    for algorithm in ["td3", "sac"] {
        learns(&format!("{algorithm} --actors 2 --steps 20000 {SMALL}"), -900.0);
    }
}

#[test]
fn a2c_learns_from_rollouts_with_two_learners() {
    // A random policy reaches a return of about 20.
    learns("a2c --actors 4 --workers 2 --steps 60000", 40.0);
}

#[test]
fn ppo_learns_from_rollouts_with_two_learners_and_two_cells() {
    learns(
        "ppo --env CartPole-v1 --actors 4 --actors-per-process 2 --cells 2 --workers 2 --steps 60000",
        60.0,
    );
}

#[test]
fn recurrent_ppo_learns_from_rollouts_with_two_learners() {
    // The rollouts contain the states of the recurrent policy. A policy without memory reaches a return of about 40.
    learns("ppo --env CartPoleNoVel-v1 --actors 4 --workers 2 --steps 40000", 80.0);
}

/// An endless run, with its parent process.
struct Run {
    parent: Option<Child>,
    directory: TempDir,
}

impl Run {
    fn start(algorithm: &str, arguments: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let parent = iswitch(&format!("actor-learner {algorithm} --steps 1000000000 {arguments}"))
            .args(["--json", "--quiet", "--checkpoint-every", "1", "--out"])
            .arg(directory.path().join("run"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let run = Self { parent: Some(parent), directory };
        let checkpoint = run.out().join("model.safetensors");
        run.wait_until("there is a checkpoint", || checkpoint.exists());
        run
    }

    fn out(&self) -> std::path::PathBuf {
        self.directory.path().join("run")
    }

    fn parent(&self) -> &Child {
        self.parent.as_ref().unwrap()
    }

    fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(
                began.elapsed() < HANGS,
                "{what}: not within {HANGS:?}; {:?}",
                descendants(self.parent().id())
            );
            std::thread::sleep(POLL);
        }
    }

    /// Returns the environment steps in the last row of the learning curve.
    fn steps(&self) -> u64 {
        let csv = std::fs::read_to_string(self.out().join("progress.csv")).unwrap_or_default();
        let last = csv.lines().rev().find_map(|line| line.split(',').next()?.parse().ok());
        last.unwrap_or(0)
    }

    /// Kills one process of the given kind, and waits until it has been replaced and the training has made progress.
    fn survives_the_end_of(&self, kind: &str) {
        let of_kind = || -> BTreeSet<u32> {
            descendants(self.parent().id())
                .into_iter()
                .filter(|(_, it)| it == kind)
                .map(|(id, _)| id)
                .collect()
        };
        let before = of_kind();
        let victim = *before.last().unwrap_or_else(|| panic!("no {kind}"));
        let steps = self.steps();
        kill(victim, Signal::KILL);
        self.wait_until(&format!("there is another {kind}"), || {
            let now = of_kind();
            !now.contains(&victim) && now.len() == before.len()
        });
        self.wait_until(&format!("training continues after the end of a {kind}"), || self.steps() > steps);
    }

    /// Stops the run, and returns its result.
    fn stop(mut self) -> Value {
        let children = descendants(self.parent().id());
        kill(self.parent().id(), Signal::TERM);
        let output = self.parent.take().unwrap().wait_with_output().unwrap();
        let left: Vec<_> =
            children.iter().filter(|(id, _)| Path::new(&format!("/proc/{id}")).exists()).collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
        parsed(&output)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(mut parent) = self.parent.take() {
            // The children exit when their parent has exited.
            let _ = parent.kill().and_then(|()| parent.wait());
        }
    }
}

fn kill(id: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal);
}

/// Returns the descendants of this process with their subcommands. If a learner is the parent of other learners, it is
/// not counted as a learner.
fn descendants(id: u32) -> Vec<(u32, String)> {
    let children = |id: u32| -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        lists
            .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
            .collect()
    };
    let mut all = Vec::new();
    for child in children(id) {
        let own = descendants(child);
        if own.is_empty() {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            let kind = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
            all.push((child, String::from_utf8_lossy(kind).into_owned()));
        }
        all.extend(own);
    }
    all
}

#[test]
fn any_process_may_be_killed_while_off_policy_learners_learn() {
    let run =
        Run::start("dqn", "--actors 4 --actors-per-process 2 --cells 2 --shards 2 --replay-durability write");
    for kind in ["actors", "cell", "replay", "learner", "replay"] {
        run.survives_the_end_of(kind);
    }
    let result = run.stop();
    assert_eq!(result["replay"]["malformed"], 0, "{result}");
}

#[test]
fn any_process_may_be_killed_while_two_on_policy_learners_learn() {
    let run = Run::start("ppo", "--env CartPole-v1 --actors 4 --actors-per-process 2 --workers 2");
    for kind in ["learner", "actors", "replay", "cell"] {
        run.survives_the_end_of(kind);
    }
    let result = run.stop();
    assert_eq!(result["replicas_identical"], true, "{result}");
    assert_eq!(result["replay"]["malformed"], 0, "{result}");
}

#[test]
fn a_finished_run_resumes_for_more_steps() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("run");
    let first = finish("actor-learner dqn --actors 2 --steps 15000", &out);
    let second = finish("actor-learner dqn --actors 2 --steps 30000 --resume", &out);
    assert!(second["steps"].as_u64() >= Some(30_000), "{second}");
    assert!(second["iterations"].as_u64() > first["iterations"].as_u64(), "{first} {second}");
    let refused = iswitch("actor-learner dqn --out").arg(&out).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("already holds a run"), "{refused:?}");
}

#[test]
fn impossible_settings_are_reported_by_name() {
    let error = |arguments: &str| {
        let directory = TempDir::new().unwrap();
        let output = iswitch(arguments).current_dir(directory.path()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let shards = error("learner dqn --replay nowhere --publish 127.0.0.1:0");
    assert!(
        shards.contains("shard is \"nowhere\", expected http://HOST:PORT, https://HOST:PORT, unix:PATH or"),
        "{shards}"
    );
    let asynchronous = error("learner dqn --replay unix:/nowhere --async");
    assert!(asynchronous.contains("--async is not supported here"), "{asynchronous}");
    let reported = error("actor-learner dqn --switch 127.0.0.1:1 --rank 0 --workers 2");
    assert!(reported.contains("pass these options to `iswitch learner`"), "{reported}");
    let continuous = error("actor-learner dqn --env Pendulum-v1");
    assert!(continuous.contains("discrete"), "{continuous}");
    let ratio = error("actor-learner dqn --cells 300");
    assert!(ratio.contains("300 is not in 0..=256"), "{ratio}");
}

#[test]
fn processes_waiting_for_a_learner_can_be_stopped() {
    for arguments in ["actors --models 127.0.0.1:1", "replay --models 127.0.0.1:1"] {
        let mut process = iswitch(arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(4 * POLL);
        assert!(process.try_wait().unwrap().is_none(), "{arguments}");
        kill(process.id(), Signal::TERM);
        process.wait().unwrap();
    }
}
