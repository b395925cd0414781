//! Tests with modified checkpoint files, which differ from those that `save` writes.
use std::fs;
use std::path::Path;

use iswitch::Loopback;
use iswitch_learn::algorithms::checkpoint::{self, MODEL_FILE, ModelFile};
use iswitch_learn::algorithms::ppo::{PpoConfig, PpoTrainer};
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer::Algorithm as _;
use iswitch_learn::env;
use serde_json::{Value, json};

const ENV: &str = "CartPole-v1";

fn trainer() -> PpoTrainer {
    let config = PpoConfig {
        hidden: vec![16],
        environments: Some(1),
        rollout_steps: 4,
        minibatch_size: 4,
        ..PpoConfig::preset(ENV)
    };
    let parameters = config.networks(env::make(ENV).unwrap().spec()).parameter_count();
    let alone = Loopback::group(1, parameters).remove(0);
    PpoTrainer::new(config, (0, 1), &|count| env::make_vector(ENV, count), Box::new(alone)).unwrap()
}

/// Modifies the header of a safetensors file and corrects the file's checksum. The file consists of the length of the
/// header, the header as JSON, and the numbers.
fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let bytes = fs::read(path).unwrap();
    let (len, rest) = bytes.split_first_chunk().unwrap();
    let (header, numbers) = rest.split_at(u64::from_le_bytes(*len) as usize);
    let mut header = serde_json::from_slice(header).unwrap();
    change(&mut header);
    let file = |header: &Value| {
        let header = serde_json::to_vec(&header).unwrap();
        [&(header.len() as u64).to_le_bytes()[..], &header, numbers].concat()
    };
    header["__metadata__"]["crc32c"] = json!("00000000");
    header["__metadata__"]["crc32c"] = json!(format!("{:08x}", crc32c::crc32c(&file(&header))));
    fs::write(path, file(&header)).unwrap();
}

/// Reduces a tensor to a single number without dimensions. Because the format does not allow gaps, the remaining
/// numbers are declared as another tensor.
fn without_dimensions(header: &mut Value, name: &str, size: u64) {
    let offsets = header[name]["data_offsets"].clone();
    let (start, end) = (offsets[0].as_u64().unwrap(), offsets[1].as_u64().unwrap());
    let dtype = header[name]["dtype"].clone();
    header[name] = json!({ "dtype": dtype, "shape": [], "data_offsets": [start, start + size] });
    let rest = (end - start - size) / size;
    header["rest"] = json!({ "dtype": dtype, "shape": [rest], "data_offsets": [start + size, end] });
}

#[test]
fn a_worker_file_with_a_scalar_state_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut trainer = trainer();
    checkpoint::save(&mut trainer, directory.path()).unwrap();
    let path = directory.path().join("worker-0.0.safetensors");
    edit(&path, |header| without_dimensions(header, "env.0.state", 8));
    let error = checkpoint::resume(&mut trainer, directory.path()).unwrap_err();
    assert!(!error.to_string().is_empty());
}

#[test]
fn a_model_file_with_scalar_returns_has_one_return() {
    let directory = tempfile::tempdir().unwrap();
    let mut trainer = trainer();
    // Enough steps for several episodes to end.
    for _ in 0..100 {
        trainer.step_rollout().unwrap();
    }
    checkpoint::save(&mut trainer, directory.path()).unwrap();
    let path = directory.path().join(MODEL_FILE);
    edit(&path, |header| without_dimensions(header, "episodes.recent_returns", 4));
    checkpoint::resume(&mut trainer, directory.path()).unwrap();
    assert_eq!(trainer.replica().recent_returns.to_vec().len(), 1);
}

#[test]
fn networks_larger_than_their_file_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    checkpoint::save(&mut trainer(), directory.path()).unwrap();
    let path = directory.path().join(MODEL_FILE);
    let hidden = [json!([u64::MAX]), json!([1_u64 << 40, 1_u64 << 40]), json!([1000, 1000]), json!([0])];
    let hidden = hidden.into_iter().map(|widths| ("hidden", widths));
    let memory = ["lstm", "gru"].into_iter();
    let memory = memory.flat_map(|name| [json!(u64::MAX), json!(1000), json!(0)].map(|width| (name, width)));
    let saved = fs::read(&path).unwrap();
    for (name, value) in hidden.chain(memory) {
        fs::write(&path, &saved).unwrap();
        edit(&path, |header| {
            let metadata = &mut header["__metadata__"]["config"];
            let mut config: Value = serde_json::from_str(metadata.as_str().unwrap()).unwrap();
            config[name] = value.clone();
            *metadata = json!(config.to_string());
        });
        let file = ModelFile::read(directory.path()).unwrap();
        let error = checkpoint::job::<PpoConfig>(&file.reader().unwrap()).unwrap_err().to_string();
        assert!(error.contains(name), "{name} = {value}: {error}");
        let trained = Trained::read(directory.path()).unwrap();
        assert!(trained.policy(env::make(ENV).unwrap().spec()).is_err());
    }
}
