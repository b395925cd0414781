//! Tests of the `--env-threads` option of `iswitch train` and `iswitch eval`.
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::reproducible::tensors;

fn iswitch(arguments: &[&str], run: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iswitch")).args(arguments).arg(run).output().unwrap()
}

#[test]
fn runs_and_evaluations_do_not_depend_on_the_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let train = ["train", "ppo", "--workers", "2", "--environments", "6", "--steps", "6000", "--quiet"];
    let run = |threads: &str| {
        let out = directory.path().join(threads);
        let options = ["--set", "minibatch_size=96", "--set", "rollout_steps=1536"];
        let output = iswitch(&[&train[..], &options, &["--env-threads", threads, "--out"]].concat(), &out);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    };
    let [one, two] = [run("1"), run("2")];
    assert!(tensors(&one) == tensors(&two), "the models differ");
    let config = fs::read_to_string(two.join("config.toml")).unwrap();
    assert!(config.contains("\nenv_threads = 2\n"), "{config}");
    let evaluated = |threads: &str| {
        let output = iswitch(&["eval", "--json", "--episodes", "5", "--env-threads", threads], &one);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(evaluated("1"), evaluated("3"));
}

#[test]
fn useless_options_are_refused() {
    let refused = |arguments: &[&str]| {
        let output = iswitch(arguments, Path::new("runs/none"));
        assert!(!output.status.success(), "{arguments:?} was accepted");
        String::from_utf8(output.stderr).unwrap()
    };
    let error = refused(&["train", "ppo", "--env-threads", "0", "--out"]);
    assert!(error.contains("invalid value '0' for '--env-threads <N>': 0 is not in 1..=65535"), "{error}");
    for other in ["--stochastic", "--video=a.gif"] {
        let error = refused(&["eval", "--env-threads", "2", other]);
        assert!(error.contains("'--env-threads <N>' cannot be used with '--"), "{error}");
    }
}
