//! Tests that `iswitch train` with a switch and several workers is reproducible.
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the tensors of the model file of a run, without the header of the file.
pub(crate) fn tensors(out: &Path) -> Vec<u8> {
    let file = fs::read(out.join("model.safetensors")).unwrap();
    let (len, rest) = file.split_first_chunk().unwrap();
    rest[u64::from_le_bytes(*len) as usize..].to_vec()
}

/// Trains with four workers and returns the tensors of the model.
fn train(algorithm: &str, options: &[&str], out: &Path) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_iswitch"))
        .args(["train", algorithm, "--workers", "4", "--json", "--quiet", "--out"])
        .arg(out)
        .args(options)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    tensors(out)
}

/// Runs are reproducible only if the contributions are added in a fixed order: the sum of four floats depends on the
/// order of the additions, and the packets of four processes arrive in a different order in each run.
#[test]
fn equal_seeds_give_equal_models() {
    let directory = tempfile::tempdir().unwrap();
    for (algorithm, steps) in [("ppo", "16384"), ("a2c", "40000")] {
        let run = |number: u32, seed: &str| {
            let out = directory.path().join(format!("{algorithm}-{number}"));
            train(algorithm, &["--steps", steps, "--seed", seed], &out)
        };
        let first = run(1, "5");
        assert!(first == run(2, "5"), "{algorithm}: two runs with the same seed have different models");
        assert!(first != run(3, "6"), "{algorithm}: two seeds have the same model");
    }
}
