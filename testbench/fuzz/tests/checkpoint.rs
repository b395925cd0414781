//! Fuzz targets: the files of a checkpoint. `docs/fuzzing.md` describes how to run them.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use iswitch::Loopback;
use iswitch_learn::algorithms::checkpoint::{self, MODEL_FILE, ModelFile};
use iswitch_learn::algorithms::ppo::{PpoConfig, PpoTrainer};
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer::Algorithm as _;
use iswitch_learn::env;

const ENV: &str = "CartPole-v1";

/// Returns a trainer for the smallest possible run.
fn trainer() -> PpoTrainer {
    let config = PpoConfig {
        hidden: vec![16],
        environments: Some(1),
        rollout_steps: 4,
        minibatch_size: 4,
        epochs: 1,
        ..PpoConfig::preset(ENV)
    };
    let spec = env::make(ENV).expect("the environment must be available").spec().clone();
    let parameters = config.networks(&spec).parameter_count();
    let alone = Loopback::group(1, parameters).remove(0);
    PpoTrainer::new(config, (0, 1), &|count| env::make_vector(ENV, count), Box::new(alone))
        .expect("the run must be valid")
}

/// Returns the bytes of a tensor file with the correct header length, so that the fuzzer reaches the code that runs
/// after that length has been checked.
fn with_header_len(bytes: &[u8]) -> Option<Vec<u8>> {
    let header = bytes.get(8..)?;
    let end = header.iter().rposition(|byte| *byte == b'}')? + 1;
    Some([&(end as u64).to_le_bytes()[..], header].concat())
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("the file must be writable");
}

/// Fuzzes the file that all workers share.
#[test]
fn checkpoint_model() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join(MODEL_FILE);
    let spec = env::make(ENV).expect("the environment must be available").spec().clone();
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        for bytes in [Some(bytes.to_vec()), with_header_len(bytes)].into_iter().flatten() {
            write(&path, &bytes);
            let file = ModelFile::read(directory.path()).expect("the file must exist");
            let job = file.reader().and_then(|reader| checkpoint::job::<PpoConfig>(&reader));
            if let Err(error) = job {
                assert!(!error.to_string().is_empty());
            }
            let policy = Trained::read(directory.path()).and_then(|trained| trained.policy(&spec));
            if let Err(error) = policy {
                assert!(!error.to_string().is_empty());
            }
        }
    });
}

/// Fuzzes the file of one worker, in a directory that contains a valid model.
#[test]
fn checkpoint_worker() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let mut trainer = trainer();
    checkpoint::save(&mut trainer, directory.path()).expect("the file must be writable");
    let path = directory.path().join("worker-0.0.safetensors");
    assert!(path.exists());
    let mut trainer = AssertUnwindSafe(trainer);
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        for bytes in [Some(bytes.to_vec()), with_header_len(bytes)].into_iter().flatten() {
            write(&path, &bytes);
            if let Err(error) = checkpoint::resume(&mut *trainer, directory.path()) {
                assert!(!error.to_string().is_empty());
            }
        }
    });
}
