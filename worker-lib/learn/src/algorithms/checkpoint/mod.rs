//! Checkpoints of a run. A resumed run continues bit for bit as if it had not been interrupted.
//!
//! A run directory contains `model.safetensors`, the state that is replicated on all workers: weights with PyTorch's
//! names and shapes (`actor.0.weight` is `[outputs, inputs]`), the optimiser's moments, statistics, and the returns of
//! the last 100 episodes. The metadata of this file contains the algorithm, the environment, the hyper-parameters and
//! counters. In addition, each worker has one file, `worker-RANK.ADVANCES.safetensors`, with the states of its
//! environments, the positions of their random streams and the contents of their replay buffers. The entries of this
//! file are keyed by environment number, so that a run can resume with a different world size.
//!
//! Every file appears under its final name either completely or not at all, and the file and its name are flushed to
//! disk before the next file is written. The model file is written last. It contains the number of advances (calls of
//! [`Trainer::advance`]) so far, which identifies the worker files that belong to it. Each worker keeps its file with
//! that number until the next model file has been written. Therefore, a crash or disk failure at any time leaves a
//! consistent checkpoint. Every file has a checksum of all of its bytes; a torn or damaged file is rejected.

mod file;
mod slots;

use std::path::{Path, PathBuf};

use iswitch_storage::{Disk, RealDisk, remove_unfinished};

use super::TrainError;
use super::trainer::{Algorithm, Trainer, all_gather};
use crate::env::EnvSpec;

pub use file::{Reader, Writer};
pub use slots::{read_slots, write_slots};

use file::{read_file, write_file};

/// The name of the model file, which is shared by all workers.
pub const MODEL_FILE: &str = "model.safetensors";
/// Minimum number of files that each worker keeps. A worker keeps more than one file, because on a network file system
/// it may still see an older model file.
const KEPT: usize = 2;
/// Saves a checkpoint to `directory`. All workers must call this function after the same number of advances. The
/// workers aggregate once before the model file is written, which ensures that all worker files have been written by
/// then.
///
/// # Errors
/// Fails if this worker or another worker cannot write a file, or if the aggregation fails.
pub fn save(trainer: &mut dyn Trainer, directory: &Path) -> Result<(), TrainError> {
    save_on(&RealDisk, trainer, directory)
}

/// Saves a checkpoint to any disk; see [`save`].
///
/// # Errors
/// See [`save`].
pub fn save_on(disk: &dyn Disk, trainer: &mut dyn Trainer, directory: &Path) -> Result<(), TrainError> {
    const WRITTEN: u64 = 1;
    const FAILED: u64 = 2;
    let rank = trainer.world().rank;
    let advances = trainer.progress().advances;
    // This must be read before the aggregation, because the first worker replaces the model file afterwards.
    let resumable = saved_advances(disk, directory);
    let mut own = Writer::default();
    trainer.write_worker(&mut own);
    let own = create_directory(disk, directory)
        .and_then(|()| write_file(disk, &worker_file(directory, rank, advances), &own.finish()));
    // A failure here must reach all workers. Otherwise, they would wait for this worker in the next round.
    let outcomes = all_gather(trainer, &[if own.is_ok() { WRITTEN } else { FAILED }])?;
    own?;
    if let Some(failed) = outcomes.iter().position(|outcome| outcome[0] == FAILED) {
        let reason = format!("worker {failed} could not write its checkpoint file");
        return Err(TrainError::Checkpoint { path: directory.to_owned(), reason });
    }
    if rank == 0 {
        let (spec, config) = (trainer.spec(), trainer.config_json());
        let run = RunKind { algorithm: trainer.algorithm(), env: &spec.id, config: &config };
        save_model_on(disk, directory, &run, advances, &|writer| trainer.write_model(writer))?;
    }
    // The first worker may still fail to write the model file. Therefore, keep the files that the old model file names.
    remove_others(disk, directory, rank, &[Some(advances), resumable]);
    Ok(())
}

/// Identity of the run to which a model file belongs.
#[derive(Clone, Copy, Debug)]
pub struct RunKind<'a> {
    /// Name of the algorithm, such as `ppo`.
    pub algorithm: &'a str,
    /// Id of the environment.
    pub env: &'a str,
    /// Hyper-parameters, as JSON.
    pub config: &'a str,
}

/// Saves only the model file, which contains the state that is replicated on all workers. `write` adds the tensors of
/// the model to the file.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn save_model(
    directory: &Path,
    run: &RunKind<'_>,
    advances: u64,
    write: &dyn Fn(&mut Writer),
) -> Result<(), TrainError> {
    save_model_on(&RealDisk, directory, run, advances, write)
}

fn save_model_on(
    disk: &dyn Disk,
    directory: &Path,
    run: &RunKind<'_>,
    advances: u64,
    write: &dyn Fn(&mut Writer),
) -> Result<(), TrainError> {
    let mut writer = Writer::default();
    writer.text("algorithm", run.algorithm.to_owned());
    writer.text("env", run.env.to_owned());
    writer.text("config", run.config.to_owned());
    writer.text("advances", advances.to_string());
    write(&mut writer);
    create_directory(disk, directory)?;
    write_file(disk, &directory.join(MODEL_FILE), &writer.finish())
}

/// Restores a fresh `trainer` to the state saved in `directory`. Returns the environments of this worker whose state is
/// missing because the worker that ran them was lost before the checkpoint; these environments start a new episode.
///
/// # Errors
/// Fails if there is no checkpoint, or if it belongs to a different algorithm, environment or network.
pub fn resume(trainer: &mut dyn Trainer, directory: &Path) -> Result<Vec<usize>, TrainError> {
    resume_from(&RealDisk, trainer, directory)
}

/// Resumes from any disk; see [`resume`].
///
/// # Errors
/// Returns the errors of [`resume`].
pub fn resume_from(
    disk: &dyn Disk,
    trainer: &mut dyn Trainer,
    directory: &Path,
) -> Result<Vec<usize>, TrainError> {
    let path = directory.join(MODEL_FILE);
    let bytes = read_file(disk, &path)?;
    let model = Reader::new(&path, &bytes)?;
    check_kind(&model, trainer.algorithm(), trainer.spec())?;
    let advances: u64 = model.number("advances")?;
    let files: Vec<_> =
        worker_files(disk, directory).into_iter().filter(|(_, of, _)| *of == advances).collect();
    let buffers = files.iter().map(|(_, _, path)| read_file(disk, path)).collect::<Result<Vec<_>, _>>()?;
    let parsed = files
        .iter()
        .zip(&buffers)
        .map(|((_, _, path), bytes)| Reader::new(path, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    trainer.read_model(&model)?;
    trainer.read_worker(&parsed)
}

/// Content of a model file in memory.
#[derive(Debug)]
pub struct ModelFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl ModelFile {
    /// Reads a model file. If `path` is a run directory, reads the model file in it.
    ///
    /// # Errors
    /// Fails if there is no model file.
    pub fn read(path: &Path) -> Result<Self, TrainError> {
        let path = if path.is_file() { path.to_owned() } else { path.join(MODEL_FILE) };
        Ok(Self { bytes: read_file(&RealDisk, &path)?, path })
    }

    /// Returns a reader of the file's contents.
    ///
    /// # Errors
    /// Fails if the file is not a checkpoint.
    pub fn reader(&self) -> Result<Reader<'_>, TrainError> {
        Reader::new(&self.path, &self.bytes)
    }
}

/// Returns the environment and the hyper-parameters of the run that wrote the model file.
///
/// # Errors
/// Fails if the file belongs to a different algorithm, or if its environment or hyper-parameters cannot be read.
pub fn job<A: Algorithm>(reader: &Reader<'_>) -> Result<(String, A), TrainError> {
    check_algorithm(reader, A::NAME)?;
    let refuse =
        |error: &dyn std::fmt::Display| reader.refuse(format!("its hyper-parameters are invalid: {error}"));
    let config: A = serde_json::from_str(reader.text("config")?).map_err(|error| refuse(&error))?;
    config.check().map_err(|error| refuse(&error))?;
    reader.check_widths(config.hidden(), config.memory())?;
    Ok((reader.text("env")?.to_owned(), config))
}

/// Rejects a file whose algorithm is not `expected`.
pub fn check_algorithm(reader: &Reader<'_>, expected: &str) -> Result<(), TrainError> {
    let actual = reader.text("algorithm")?;
    if actual == expected {
        return Ok(());
    }
    Err(reader.refuse(format!(
        "it holds a run of algorithm {actual}, not {expected}; resume it with {actual}, or name another run"
    )))
}

/// Rejects a model file whose algorithm or environment differs from the given one.
///
/// # Errors
/// Fails if the algorithm of the file is not `algorithm`, or if its environment is not that of `spec`.
pub fn check_kind(reader: &Reader<'_>, algorithm: &str, spec: &EnvSpec) -> Result<(), TrainError> {
    check_algorithm(reader, algorithm)?;
    let env = reader.text("env")?;
    if *env == *spec.id {
        return Ok(());
    }
    Err(reader.refuse(format!("it holds a run of environment {env}, not {}", spec.id)))
}

fn worker_file(directory: &Path, rank: usize, advances: u64) -> PathBuf {
    directory.join(format!("worker-{rank}.{advances}.safetensors"))
}

/// Returns the rank, the number of advances and the path for every worker file in the directory.
fn worker_files(disk: &dyn Disk, directory: &Path) -> Vec<(usize, u64, PathBuf)> {
    let parse = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("worker-")?.strip_suffix(".safetensors")?;
        let (rank, advances) = name.split_once('.')?;
        Some((rank.parse().ok()?, advances.parse().ok()?, path.clone()))
    };
    disk.list(directory).unwrap_or_default().into_iter().filter_map(parse).collect()
}

/// Returns the number of advances in the model file, or `None` if there is no readable model file.
fn saved_advances(disk: &dyn Disk, directory: &Path) -> Option<u64> {
    let path = directory.join(MODEL_FILE);
    let bytes = disk.read(&path).ok()?;
    Reader::new(&path, &bytes).ok()?.number("advances").ok()
}

/// Removes the files of a worker, except the two newest ones and those whose number of advances is in `kept`. Also
/// removes the leftovers of failed writes.
fn remove_others(disk: &dyn Disk, directory: &Path, rank: usize, kept: &[Option<u64>]) {
    let mut own: Vec<_> =
        worker_files(disk, directory).into_iter().filter(|(of, _, _)| *of == rank).collect();
    own.sort_by_key(|(_, advances, _)| std::cmp::Reverse(*advances));
    let old = own.into_iter().skip(KEPT).filter(|(_, advances, _)| !kept.contains(&Some(*advances)));
    for (_, _, path) in old {
        if let Err(error) = disk.remove(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove an old checkpoint file");
        }
    }
    remove_unfinished(disk, directory, &format!("worker-{rank}."));
}

fn create_directory(disk: &dyn Disk, directory: &Path) -> Result<(), TrainError> {
    let made = disk.create_directory(directory);
    made.map_err(|error| TrainError::File { path: directory.to_owned(), error })
}
