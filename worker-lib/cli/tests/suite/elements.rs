//! Tests of `iswitch train --wire`.
use std::process::{Command, Output};

use serde_json::Value;

/// Trains A2C for a few steps with the given options.
fn train(options: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_iswitch"))
        .args(["train", "a2c", "--steps", "20000", "--json", "--quiet", "--out"])
        .arg(directory.path())
        .args(options)
        .output()
        .unwrap()
}

#[test]
fn workers_train_with_sixteen_bit_elements() {
    for options in [&["--wire", "bf16"][..], &["--wire", "f16-f32"], &["--wire", "f16", "--async"]] {
        let Output { status, stdout, stderr } = train(&[options, &["--workers", "2"]].concat());
        assert!(status.success(), "{options:?}: {}", String::from_utf8_lossy(&stderr));
        let result: Value = serde_json::from_slice(&stdout).unwrap();
        assert!(result["steps"].as_u64().is_some_and(|steps| steps >= 20_000), "{options:?}: {result}");
        assert_ne!(result["replicas_identical"], false, "{options:?}: {result}");
        assert!(result["final_return"].as_f64().is_some_and(|it| it >= 9.0), "{options:?}: {result}");
    }
}

#[test]
fn impossible_element_types_are_refused_before_the_workers_start() {
    let refusals = [
        (
            &["--wire", "bf16", "--aggregator", "ring", "--workers", "2"][..],
            "--wire bf16 requires --aggregator switch, but this job uses ring",
        ),
        (&["--wire", "f8"], "invalid value 'f8' for '--wire <TYPES>'"),
    ];
    for (options, reason) in refusals {
        let Output { status, stderr, .. } = train(options);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && stderr.contains(reason), "{options:?}: {stderr}");
    }
}
