//! Tests of command lines that are refused before any file is written.

use std::fs;

use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::actor_critic::ActorCritic;
use iswitch_learn::algorithms::checkpoint::{RunKind, Writer, save_model};
use iswitch_learn::algorithms::trainer::Algorithm as _;
use iswitch_learn::env;

use crate::runs::{export, train};

const CART_POLE: &str = "CartPole-v1";

#[test]
fn invalid_exports_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    train(A2cConfig::preset(CART_POLE), CART_POLE, &run);
    let model = fs::read(run.join("model.safetensors")).unwrap();
    let refusals = [
        ("policy.pt", &[][..], "expected the extension .onnx, .safetensors or .json, or the option --format"),
        ("policy.onnx", &["--episodes", "5"], "--episodes applies only to --format hub"),
        ("policy.onnx", &["--episodes", "0"], "invalid value '0' for '--episodes <N>'"),
        ("policy.onnx", &["--seed", "5"], "--seed applies only to --format hub and --test-data"),
        ("policy.onnx", &["--test-rows", "5"], "--test-data <FILE>"),
        ("policy.onnx", &["--format", "keras"], "invalid value 'keras' for '--format <FORMAT>'"),
        ("run", &["--format", "onnx"], "is a directory, expected a file"),
        (
            "run",
            &["--format", "hub", "--force"],
            "is the checkpoint of a run, which an export never replaces",
        ),
        ("run/model.safetensors", &["--force"], "is the checkpoint of a run, which an export never replaces"),
    ];
    for (out, options, reason) in refusals {
        let output = export(&run, &directory.path().join(out), options);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(reason), "{out} {options:?}: {error}");
    }
    let file = directory.path().join("policy.onnx");
    let twice = export(&run, &file, &["--test-data", file.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&twice.stderr);
    assert!(error.contains("policy.onnx would be written twice"), "{error}");
    assert_eq!(fs::read(run.join("model.safetensors")).unwrap(), model);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn directories_without_a_policy_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("policy.onnx");
    let error = |run: &str| {
        let output = export(&directory.path().join(run), &out, &[]);
        assert!(!output.status.success() && !out.exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let missing = error("nothing");
    assert!(
        missing.contains("no policy to export") && missing.contains("nothing/model.safetensors"),
        "{missing}"
    );
    let study = RunKind { algorithm: "route", env: "butterfly", config: "{}" };
    save_model(&directory.path().join("study"), &study, 1, &|_| {}).unwrap();
    let other = error("study");
    assert!(other.contains("only `iswitch route evaluate` can run"), "{other}");
}

#[test]
fn diverged_policies_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (run, out) = (directory.path().join("run"), directory.path().join("policy.json"));
    let config = A2cConfig::preset(CART_POLE);
    let agent = ActorCritic::new(env::make(CART_POLE).unwrap().spec(), &config.hidden);
    let mut parameters = vec![0.5; agent.parameter_count()];
    parameters[7] = f32::NAN;
    let kind = RunKind { algorithm: "a2c", env: CART_POLE, config: &serde_json::to_string(&config).unwrap() };
    let write = |writer: &mut Writer| {
        writer.parameters("", agent.tensors(), &parameters);
        writer.text("steps", "5".to_owned());
    };
    save_model(&run, &kind, 1, &write).unwrap();
    let output = export(&run, &out, &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = "layers, layer 0: a parameter is NaN, expected a finite number; training has diverged";
    assert!(!output.status.success() && error.contains(expected), "{error}");
    assert!(!out.exists());
}
