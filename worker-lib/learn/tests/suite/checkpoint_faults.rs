//! Checkpoints on a simulated disk that fails, tears writes and loses data at random, as determined by a seed. The
//! tests check that a complete checkpoint survives and that a torn one is rejected.
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use iswitch::Loopback;
use iswitch_learn::algorithms::checkpoint::{self, MODEL_FILE};
use iswitch_learn::algorithms::ppo::{PpoConfig, PpoTrainer};
use iswitch_learn::algorithms::trainer::{Algorithm as _, Trainer as _};
use iswitch_learn::env;
use iswitch_storage::Disk as _;
use iswitch_storage::simulated::SimulatedDisk;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const ENV: &str = "CartPole-v1";
const DIRECTORY: &str = "/run";
const WORKERS: usize = 2;
const SEEDS: u64 = 100;
const ROUNDS: usize = 6;
/// Upper bound on the number of disk operations before a failure. It exceeds the number of operations that all workers
/// need to save a checkpoint.
const OPERATIONS: u64 = 24;
const FAILURE_CHANCE: f64 = 0.15;

fn trainers() -> Vec<PpoTrainer> {
    let config = PpoConfig {
        hidden: vec![16],
        environments: Some(WORKERS),
        rollout_steps: 4,
        minibatch_size: 4,
        ..PpoConfig::preset(ENV)
    };
    let spec = env::make(ENV).unwrap().spec().clone();
    let len = config.networks(&spec).parameter_count();
    let group = Loopback::group(WORKERS, len).into_iter().enumerate();
    let make = |(rank, alone)| {
        let vector = &|count| env::make_vector(ENV, count);
        PpoTrainer::new(config.clone(), (rank, WORKERS), vector, Box::new(alone)).unwrap()
    };
    group.map(make).collect()
}

/// Runs `work` on all workers concurrently and returns the results by rank.
fn together<T: Send>(trainers: &mut [PpoTrainer], work: impl Fn(&mut PpoTrainer) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = trainers.iter_mut().map(|trainer| scope.spawn(|| work(trainer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Resumes trainers from the checkpoint on a disk, and checks that the checkpoint contains all environments.
fn resumed(disk: &SimulatedDisk) -> Result<Vec<PpoTrainer>, String> {
    let mut all = trainers();
    for trainer in &mut all {
        let missing = checkpoint::resume_from(disk, trainer, Path::new(DIRECTORY));
        let missing = missing.map_err(|error| error.to_string())?;
        assert!(missing.is_empty(), "environments {missing:?} are missing in all files");
    }
    Ok(all)
}

/// Checks that the checkpoint on a disk is one of the `allowed` ones. `allowed` maps the number of advances of each
/// allowed checkpoint to its digest.
fn check(disk: &SimulatedDisk, allowed: &BTreeMap<u64, u64>, when: &str) -> Vec<PpoTrainer> {
    let found = resumed(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
    for trainer in &found {
        let advances = trainer.progress().advances;
        assert_eq!(
            allowed.get(&advances),
            Some(&trainer.digest()),
            "{when}: advance {advances}, {allowed:?}"
        );
    }
    found
}

#[test]
fn a_complete_checkpoint_survives_disk_failures_and_crashes() {
    let directory = Path::new(DIRECTORY);
    let (mut saved, mut failed) = (0, 0);
    for seed in 0..SEEDS {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut disk = SimulatedDisk::new(seed);
        let mut workers = trainers();
        together(&mut workers, |worker| checkpoint::save_on(&disk, worker, directory).unwrap());
        let mut allowed = BTreeMap::from([(0, workers[0].digest())]);
        for round in 0..ROUNDS {
            let when = format!("seed {seed}, round {round}");
            match rng.random_range(0..3) {
                0 => {}
                1 => disk.fail_with_chance(FAILURE_CHANCE),
                _ => disk.stop_after(Some(rng.random_range(0..OPERATIONS))),
            }
            // The files that a failed save left behind may belong to a later advance than the files of the next save.
            let advances = rng.random_range(1..4);
            let outcomes = together(&mut workers, |worker| {
                (0..advances).for_each(|_| drop(worker.advance().unwrap()));
                checkpoint::save_on(&disk, worker, directory)
            });
            let (advances, digest) = (workers[0].progress().advances, workers[0].digest());
            // Worker 0 writes the model file, which completes the checkpoint.
            if outcomes[0].is_ok() {
                allowed.clear();
                saved += 1;
            } else {
                failed += 1;
            }
            allowed.insert(advances, digest);
            check(&disk.crash(), &allowed, &when);
            let is_crash = rng.random();
            let left = if is_crash { disk.crash() } else { disk.clone() };
            let found = check(&left, &allowed, &when);
            disk.fail_with_chance(0.0);
            disk.stop_after(None);
            if outcomes.iter().any(Result::is_err) {
                // The job restarts from the remaining files. Without a crash, the new file name may not be durable yet.
                (disk, workers) = (left, found);
                if is_crash {
                    allowed = BTreeMap::from([(workers[0].progress().advances, workers[0].digest())]);
                }
            }
        }
    }
    assert!(saved > SEEDS && failed > SEEDS, "{saved} saved, {failed} failed");
}

#[test]
fn a_torn_or_damaged_checkpoint_file_is_refused_with_its_path() {
    let directory = Path::new(DIRECTORY);
    let files = [MODEL_FILE, "worker-0.1.safetensors", "worker-1.1.safetensors"];
    for seed in 0..SEEDS {
        let disk = SimulatedDisk::new(seed);
        let mut workers = trainers();
        together(&mut workers, |worker| {
            worker.advance().unwrap();
            checkpoint::save_on(&disk, worker, directory).unwrap();
        });
        resumed(&disk).unwrap();
        let file = directory.join(files[seed as usize % files.len()]);
        let before = disk.read(&file).unwrap();
        disk.damage(&file);
        assert_ne!(disk.read(&file).unwrap(), before);
        let error = resumed(&disk).map(|_| ()).unwrap_err();
        assert!(error.starts_with(&format!("checkpoint {}: it is damaged", file.display())), "{error}");
    }
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let mut workers = trainers();
    together(&mut workers, |worker| checkpoint::save(worker, directory.path()).unwrap());
    let path = directory.path().join(MODEL_FILE);
    let whole = std::fs::read(&path).unwrap();
    for (at, bit) in (0..whole.len()).step_by(3).flat_map(|at| [(at, at % 8), (at, 5)]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        std::fs::write(&path, bytes).unwrap();
        let outcome = checkpoint::resume(&mut workers[0], directory.path());
        assert!(outcome.is_err(), "bit {bit} of byte {at} of {}", whole.len());
    }
    std::fs::write(&path, whole).unwrap();
    checkpoint::resume(&mut workers[0], directory.path()).unwrap();
}
