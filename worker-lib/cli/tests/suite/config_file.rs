//! Tests of `iswitch train` with configuration files: repeated runs, overridden entries and resumed runs.
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::reproducible::tensors;

/// Runs `iswitch train` in a directory.
fn train(directory: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch"));
    command.current_dir(directory).arg("train").args(options).args(["--json", "--quiet"]).output().unwrap()
}

fn succeed(directory: &Path, options: &[&str]) -> Value {
    let Output { status, stdout, stderr } = train(directory, options);
    assert!(status.success(), "{options:?}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

#[test]
fn the_configuration_in_the_run_directory_repeats_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let options =
        ["--workers", "3", "--seed", "5", "--steps", "12000", "--wire", "bf16", "--environments", "6"];
    let own = ["--set", "gamma=0.97", "--set", "max_grad_norm=1e-1", "--out", "first"];
    succeed(here, &[&["a2c", "--env", "CartPole-v1"], &options[..], &own].concat());
    let result = succeed(here, &["--config", "first/config.toml", "--out", "second"]);
    assert_eq!(result["workers"], 3, "{result}");
    assert!(tensors(&here.join("first")) == tensors(&here.join("second")), "the models differ");
    let text = |run: &str| fs::read_to_string(here.join(run).join("config.toml")).unwrap();
    assert_eq!(text("first"), text("second"));

    succeed(here, &["--config=first/config.toml", "--seed", "6", "--set", "gamma=0.96", "--out", "third"]);
    assert!(
        tensors(&here.join("first")) != tensors(&here.join("third")),
        "another seed gives the same model"
    );
    let expected = text("first").replace("seed = 5", "seed = 6").replace("gamma = 0.97", "gamma = 0.96");
    assert_eq!(text("third"), expected);
}

#[test]
fn the_printed_configuration_is_a_configuration_file() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let list = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch"));
        let output = command.current_dir(here).arg("train").args(options).arg("--list-parameters").output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let text = list(&["ppo", "--env", "Pendulum-v1", "--lr", "1e-5", "--async", "--staleness", "1"]);
    fs::write(here.join("run.toml"), &text).unwrap();
    assert_eq!(list(&["--config", "run.toml"]), text);
    assert_eq!(list(&["ppo", "--config", "run.toml", "--async=false"]).matches("async = false").count(), 1);
}

#[test]
fn invalid_files_are_refused_by_file_line_and_key() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("run.toml"), "algorithm = 'ppo'\n\n[hyper_parameters]\ngama = 0.9\n")
        .unwrap();
    let refusals = [
        (&["--config", "run.toml"][..], "iswitch: run.toml, line 4: gama: no such hyper-parameter"),
        (&["a2c", "--config", "run.toml"], "run.toml, line 1: algorithm is \"ppo\", expected \"a2c\""),
        (&["--config", "nowhere.toml"], "configuration file nowhere.toml: No such file"),
        (&["ppo", "--config", "run.toml", "--resume"], "cannot be used with"),
        (&["--resume"], "runs holds no checkpoint that matches the options"),
    ];
    for (options, reason) in refusals {
        let Output { status, stderr, .. } = train(directory.path(), options);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && stderr.contains(reason), "{options:?}: {stderr}");
    }
}

#[test]
fn without_a_directory_the_newest_run_is_resumed_as_it_was_started() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let begin = |options: &[&str]| succeed(here, &[&["a2c", "--steps", "4000"], options].concat());
    begin(&["--workers", "2"]);
    begin(&["--workers", "2", "--wire", "bf16"]);
    begin(&["--workers", "1", "--seed", "2"]);
    let rows = |run: &str| {
        let path = here.join("runs").join(run).join("progress.csv");
        fs::read_to_string(path).unwrap().lines().count()
    };
    let [first, second, third] = ["a2c-CartPole-v1-1", "a2c-CartPole-v1-1-2", "a2c-CartPole-v1-2"];
    let before = [first, second, third].map(rows);

    let result = succeed(here, &["--resume", "--seed", "1", "--steps", "8000"]);
    assert_eq!((&result["workers"], &result["steps"]), (&2.into(), &8000.into()));
    assert!(rows(second) > before[1] && rows(first) == before[0] && rows(third) == before[2]);
    let config = fs::read_to_string(here.join("runs").join(second).join("config.toml")).unwrap();
    assert!(config.contains("wire = \"bf16\"") && config.contains("total_steps = 8000"), "{config}");

    // The second run is now the newest one.
    let result = succeed(here, &["a2c", "--resume", "--steps", "10000"]);
    assert_eq!((&result["workers"], rows(third)), (&2.into(), before[2]), "{result}");
}
