//! Tests of the files that the command writes.

use std::fs;

use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::trainer::Algorithm as _;
use serde_json::Value;

use crate::runs::{export, exported, train};

const CART_POLE: &str = "CartPole-v1";

#[test]
fn existing_files_are_replaced_only_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let (run, file) = (directory.path().join("run"), directory.path().join("new/policy.onnx"));
    train(A2cConfig::preset(CART_POLE), CART_POLE, &run);
    let text = exported(&run, &file, &[]);
    assert!(text.starts_with("A2C on CartPole-v1 after "), "{text}");
    let bytes = fs::read(&file).unwrap();
    let refused = export(&run, &file, &[]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("exists; replace it with --force"),
        "{refused:?}"
    );
    fs::write(&file, "old").unwrap();
    let result: Value = serde_json::from_str(&exported(&run, &file, &["--force", "--json"])).unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert_eq!(result["files"][0]["bytes"], bytes.len());
    assert_eq!((&result["format"], &result["evaluation"]), (&"onnx".into(), &Value::Null));
}

#[test]
fn a_folder_for_the_hub_states_the_measured_returns() {
    let directory = tempfile::tempdir().unwrap();
    let (run, folder) = (directory.path().join("run"), directory.path().join("hub"));
    train(A2cConfig::preset(CART_POLE), CART_POLE, &run);
    let options = ["--format", "hub", "--episodes", "3", "--json"];
    let result: Value = serde_json::from_str(&exported(&run, &folder, &options)).unwrap();
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["README.md", "config.json", "model.onnx", "model.safetensors"]);
    let card = fs::read_to_string(folder.join("README.md")).unwrap();
    let returns = |name: &str| result["evaluation"][name].as_f64().unwrap();
    let value = format!("{:.2} +/- {:.2}", returns("mean_return"), returns("std_return"));
    assert!(card.contains(&format!("      value: {value}\n")) && card.contains("over 3 episodes"), "{card}");
    assert!(card.starts_with("---\nlibrary_name: iswitch\n"), "{card}");
}

#[test]
fn test_data_holds_the_requested_number_of_observations() {
    let directory = tempfile::tempdir().unwrap();
    let (run, data) = (directory.path().join("run"), directory.path().join("test.safetensors"));
    train(A2cConfig::preset(CART_POLE), CART_POLE, &run);
    let options = ["--test-data", data.to_str().unwrap(), "--test-rows", "77"];
    exported(&run, &directory.path().join("policy.json"), &options);
    let bytes = fs::read(&data).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("observation").unwrap().shape(), [77, 4]);
    assert_eq!(tensors.tensor("action").unwrap().shape(), [77]);
    assert_eq!(tensors.tensor("logits").unwrap().shape(), [77, 2]);
}
