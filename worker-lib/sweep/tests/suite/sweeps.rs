//! Sweeps that train: results, repetition, failures and interruptions.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(300);

/// Returns the command of a sweep of A2C on CartPole-v1 with one worker.
fn sweep(out: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-sweep"));
    command.args(["train", "a2c", "--workers", "1", "--json", "--quiet", "--out"]).arg(out).args(options);
    command
}

fn run(out: &Path, options: &[&str]) -> (Output, Value) {
    let output = sweep(out, options).output().unwrap();
    let result = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output, result)
}

/// Returns the final return of each run of a configuration.
fn returns(result: &Value, configuration: usize) -> Vec<f64> {
    let runs = result["configurations"][configuration]["runs"].as_array().unwrap();
    runs.iter().map(|run| run["final_return"].as_f64().unwrap()).collect()
}

#[test]
fn each_configuration_is_trained_with_each_seed() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        ["--steps", "4000", "--seeds", "3", "--first-seed", "7", "--grid", "gamma=0.9,0.99", "--jobs", "2"];
    let (output, result) = run(directory.path(), &options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (at, gamma) in ["0.9", "0.99"].into_iter().enumerate() {
        let summary = &result["configurations"][at];
        assert_eq!((&summary["settings"]["gamma"], &summary["finished"]), (&gamma.into(), &3.into()));
        let returns = returns(&result, at);
        let mean = returns.iter().sum::<f64>() / 3.0;
        let estimate = &summary["estimate"];
        // The interquartile mean of three values is their mean, because a quarter of three, rounded down, is zero.
        assert!((estimate["iqm"].as_f64().unwrap() - mean).abs() < 1e-9, "{estimate} {returns:?}");
        assert!(estimate["low"].as_f64() < estimate["high"].as_f64(), "{estimate}");
    }
    assert_ne!(returns(&result, 0), returns(&result, 1));
    let file = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file("results.json")).unwrap(), result);
    let csv = file("results.csv");
    assert_eq!(csv.lines().next(), Some("gamma,seed,state,final_return,solved,steps,seconds,error"));
    let row = csv.lines().find(|row| row.starts_with("0.99,8,finished,")).expect(&csv);
    assert_eq!(row.split(',').nth(3), Some(returns(&result, 1)[1].to_string().as_str()));
    assert_eq!(csv.lines().count(), 7);
    let report = file("report.md");
    assert!(report.contains("| gamma=0.9 | 0 of 3 | "), "{report}");
    assert!(file("curves.svg").contains("gamma=0.99"));
}

#[test]
fn finished_runs_are_not_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let (_, first) = run(directory.path(), &["--steps", "2000", "--seeds", "2"]);
    let modified = |seed: u64| {
        directory.path().join(format!("preset/seed-{seed}/result.json")).metadata().unwrap().modified()
    };
    let before = [1, 2].map(|seed| modified(seed).unwrap());
    let (output, second) = run(directory.path(), &["--steps", "2000", "--seeds", "3"]);
    assert!(output.status.success());
    assert_eq!([1, 2].map(|seed| modified(seed).unwrap()), before);
    assert_eq!(returns(&second, 0)[..2], returns(&first, 0));
    assert_eq!(returns(&second, 0).len(), 3);
    // A sweep with other arguments neither uses nor overwrites the runs of this sweep, unless `--force` is given.
    let other = sweep(directory.path(), &["--steps", "3000", "--seeds", "3"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&other.stderr);
    assert!(!other.status.success() && other.stdout.is_empty());
    assert!(
        stderr.contains("holds a run of `iswitch train a2c --steps=2000 --workers=1 --seed=1`, not of"),
        "{stderr}"
    );
    let (output, forced) = run(directory.path(), &["--steps", "3000", "--seeds", "2", "--force"]);
    assert!(output.status.success());
    assert_eq!(forced["configurations"][0]["runs"][0]["steps"], 3000);
}

#[test]
fn a_failed_run_does_not_end_the_sweep() {
    let directory = tempfile::tempdir().unwrap();
    // The directory of the second run already contains a run that the sweep has not started. The process of the second
    // run refuses to overwrite it.
    let foreign = directory.path().join("preset/seed-2");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("model.safetensors"), "of another run").unwrap();
    let (output, result) = run(directory.path(), &["--steps", "2000", "--seeds", "3"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("seed-2 failed: "), "{stderr}");
    let summary = &result["configurations"][0];
    assert_eq!((&summary["finished"], &summary["failed"]), (&2.into(), &1.into()));
    let error = summary["runs"][1]["error"].as_str().unwrap();
    assert!(error.contains("already holds a run"), "{error}");
    assert_eq!(fs::read_to_string(foreign.join("model.safetensors")).unwrap(), "of another run");
}

#[test]
fn an_interrupted_sweep_continues_its_runs_from_their_checkpoints() {
    let directory = tempfile::tempdir().unwrap();
    let (out, reference) = (directory.path().join("interrupted"), directory.path().join("reference"));
    let options = ["--steps", "100000", "--seeds", "2", "--jobs", "1", "--checkpoint-every", "1"];
    let mut command = sweep(&out, &options);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !out.join("preset/seed-1/model.safetensors").exists() {
        assert!(begin.elapsed() < PATIENCE, "expected a checkpoint within the time limit");
        std::thread::sleep(Duration::from_millis(5));
    }
    // While a sweep runs, a second sweep cannot use its directory.
    let second = sweep(&out, &options).output().unwrap();
    assert!(String::from_utf8_lossy(&second.stderr).contains("another sweep"), "{second:?}");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let interrupted = child.wait_with_output().unwrap();
    assert_eq!(interrupted.status.signal(), Some(15), "{interrupted:?}");
    let stopped: Value = serde_json::from_slice(&interrupted.stdout).unwrap();
    assert_eq!(stopped["configurations"][0]["finished"], 0, "{stopped}");
    let (output, result) = run(&out, &options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, expected) = run(&reference, &options);
    assert_eq!(returns(&result, 0), returns(&expected, 0));
    // The first run consists of two invocations, each of which writes its own events.
    let files = fs::read_dir(out.join("preset/seed-1")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("events.")).count(), 2);
}
