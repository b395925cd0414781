//! Command lines that are rejected before any run starts.

use std::process::Command;

/// Returns the error of a sweep with these options.
fn error(options: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("sweep");
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-sweep"));
    let output = command.args(["train", "ppo", "--out"]).arg(&out).args(options).output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{options:?}: {output:?}");
    assert!(!out.exists(), "{options:?} has created the directory");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn invalid_sweeps_are_refused_by_name() {
    let refusals = [
        (&["--seed", "3"][..], "--seed does not apply to a sweep"),
        (&["--resume"], "--resume does not apply to a sweep"),
        (&["--switch", "127.0.0.1:7711"], "--switch does not apply to a sweep"),
        (&["--seeds", "0"], "invalid value '0' for '--seeds <N>'"),
        (
            &["--seeds", "2", "--first-seed", "18446744073709551615"],
            "--first-seed 18446744073709551615: with 2 seeds",
        ),
        (&["--grid", "gamma"], "expected NAME=VALUE,VALUE"),
        (&["--grid", "gama=0.9"], "--set gama: no such hyper-parameter; expected one of "),
        (&["--grid", "gamma=0.9,7"], "gamma is 7.0, expected 0 to 1"),
        (&["--grid", "seed=1,2"], "--grid cannot set seed; use --seeds and --first-seed"),
        (
            &["--grid", "gamma=0.9,0.99", "--set", "gamma=0.5"],
            "--grid gamma: --set sets the same hyper-parameter",
        ),
        (&["--grid", "epochs=4,8", "--epochs", "2"], "--grid epochs: --epochs sets the same hyper-parameter"),
        (&["--env", "Nowhere-v0", "--workers", "1"], "Nowhere-v0"),
    ];
    for (options, reason) in refusals {
        let error = error(options);
        assert!(error.contains(reason), "{options:?}: {error}");
    }
}
