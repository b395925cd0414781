//! Tests of `iswitch train` when one of its workers is killed.
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(300);

fn train(algorithm: &str, options: &[&str], out: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_iswitch"))
        .args(["train", algorithm, "--workers", "3", "--json", "--quiet", "--checkpoint-every", "1"])
        .args(options)
        .args(["--environments", "6", "--out"])
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the process id of the worker of this rank.
fn worker(parent: &Child, rank: &str) -> Option<String> {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", parent.id())).ok()?;
    children.split_whitespace().map(str::to_owned).find(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments: Vec<_> = command.split(|byte| *byte == 0).collect();
        arguments.windows(2).any(|pair| pair == [&b"--rank"[..], rank.as_bytes()])
    })
}

/// Starts a run, kills a worker once the run has a checkpoint, and waits until the run is over.
fn train_and_kill(algorithm: &str, options: &[&str], rank: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let parent = train(algorithm, options, directory.path());
    let begin = Instant::now();
    while !directory.path().join("model.safetensors").exists() {
        assert!(begin.elapsed() < PATIENCE, "expected a checkpoint within the time limit");
        std::thread::sleep(Duration::from_millis(5));
    }
    let victim = worker(&parent, rank).expect("the worker is running");
    assert!(Command::new("kill").args(["-9", &victim]).status().unwrap().success());
    parent.wait_with_output().unwrap()
}

/// Kills a worker as [`train_and_kill`] does, and checks that the run completes. Returns the result and the standard
/// error of the run.
fn kill_worker(algorithm: &str, options: &[&str], rank: &str) -> (Value, String) {
    let Output { status, stdout, stderr } = train_and_kill(algorithm, options, rank);
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{algorithm} {options:?}: {status}\n{stderr}");
    (serde_json::from_slice(&stdout).expect(&stderr), stderr)
}

fn is_complete(result: &Value, steps: u64) {
    assert!(result["steps"].as_u64().unwrap() >= steps, "{result}");
    assert_ne!(result["replicas_identical"], Value::Bool(false), "{result}");
}

#[test]
fn with_a_switch_the_others_continue_without_a_worker() {
    let (result, stderr) = kill_worker("a2c", &["--steps", "400000"], "2");
    is_complete(&result, 400_000);
    assert!(stderr.contains("worker 2 failed") && !stderr.contains("restarting the job"), "{stderr}");
}

#[test]
fn a_job_restarts_from_its_checkpoint_after_losing_its_first_worker() {
    let (result, stderr) = kill_worker("a2c", &["--steps", "400000"], "0");
    is_complete(&result, 400_000);
    assert!(stderr.contains("restarting the job from its last checkpoint (restart 1 of 3)"), "{stderr}");
}

#[test]
fn ring_and_parameter_server_jobs_restart_after_losing_any_worker() {
    for aggregator in ["ring", "ps"] {
        let options = ["--steps", "400000", "--aggregator", aggregator];
        let (result, stderr) = kill_worker("a2c", &options, "2");
        is_complete(&result, 400_000);
        assert!(stderr.contains("restarting the job from its last checkpoint"), "{stderr}");
    }
}

#[test]
fn an_asynchronous_job_continues_without_a_worker() {
    for aggregator in ["switch", "ps"] {
        let options = ["--steps", "400000", "--async", "--aggregator", aggregator];
        let (result, stderr) = kill_worker("a2c", &options, "2");
        is_complete(&result, 400_000);
        assert!(!stderr.contains("restarting the job"), "{stderr}");
    }
}

#[test]
fn a_job_without_permitted_restarts_fails() {
    let Output { status, stderr, .. } =
        train_and_kill("a2c", &["--aggregator", "ring", "--restarts", "0"], "1");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && stderr.contains("worker 1 failed"), "{status} {stderr}");
}
