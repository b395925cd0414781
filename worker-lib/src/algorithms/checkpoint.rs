//! Checkpoints of a PPO run, from which it goes on bit for bit.
//!
//! A run directory holds `model.safetensors`, what all workers have alike: weights by name as PyTorch would
//! have them (`actor.0.weight` is `[outputs, inputs]`), the optimiser's moments, the normalisation statistics,
//! the returns of the last 100 episodes, and as metadata the hyper-parameters and counters. Beside it lies one
//! small file for each worker, `worker-RANK.ROLLOUTS.safetensors`: the states of its environments and the
//! positions of their random streams, by the environments' numbers, so that a run can go on with another number
//! of workers.
//!
//! Every file appears whole under its name or not at all. The model file is written last and names the rollout
//! whose worker files belong to it; the last two of each worker are kept. A crash at any moment thus
//! leaves a checkpoint that fits together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::TrainError;
use super::actor_critic::ActorCritic;
use super::environments::EnvironmentSlot;
use super::episodes::RecentReturns;
use super::normalise::Moments;
use super::ppo::{PpoConfig, PpoTrainer, Replica};
use crate::env::EnvSpec;
use crate::nn::Adam;

/// Name of the file that all workers share.
pub const MODEL_FILE: &str = "model.safetensors";
/// Version of both kinds of file.
const FORMAT: &str = "iswitch-ppo-1";
/// Worker files that each worker leaves in place.
const KEPT: usize = 2;

/// The shared part of a checkpoint.
#[derive(Clone, Debug)]
pub struct Model {
    /// Id of the environment.
    pub env: String,
    /// Hyper-parameters of the run.
    pub config: PpoConfig,
    /// Weights, optimiser, statistics and counters.
    pub replica: Replica,
}

/// Saves a checkpoint to `directory`. All workers must call it after the same rollout: it ends in an
/// aggregation, so that the model file is written only when all worker files are.
///
/// # Errors
/// If a file cannot be written here or by another worker, or the aggregation fails.
pub fn save(trainer: &mut PpoTrainer, directory: &Path) -> Result<(), TrainError> {
    const WRITTEN: u64 = 1;
    const FAILED: u64 = 2;
    let rank = trainer.share().rank;
    let rollouts = trainer.replica().rollouts;
    let own = create_directory(directory).and_then(|()| {
        write_file(&worker_file(directory, rank, rollouts), &encode_worker(trainer.slots(), rollouts))
    });
    // All must learn of a failure here, or they would wait for this worker in the next round.
    let outcomes = trainer.all_gather(&[if own.is_ok() { WRITTEN } else { FAILED }])?;
    own?;
    if let Some(failed) = outcomes.iter().position(|outcome| outcome[0] == FAILED) {
        let reason = format!("worker {failed} could not write its part");
        return Err(TrainError::Checkpoint { path: directory.to_owned(), reason });
    }
    if rank == 0 {
        let agent = trainer.agent();
        let bytes = encode_model(trainer.spec().id, trainer.config(), agent, trainer.replica());
        write_file(&directory.join(MODEL_FILE), &bytes)?;
    }
    remove_old(directory, rank);
    Ok(())
}

/// Brings a fresh `trainer` to the state saved in `directory`; gives the environments, of this worker, whose
/// state is missing because the worker that had them was lost before the checkpoint: they start anew.
///
/// # Errors
/// If there is no checkpoint, or it is of another environment or network.
pub fn resume(trainer: &mut PpoTrainer, directory: &Path) -> Result<Vec<usize>, TrainError> {
    let path = directory.join(MODEL_FILE);
    let bytes = read_file(&path)?;
    let model = decode_model(&Reader::new(&path, &bytes)?, trainer.spec(), trainer.config().clone())?;
    let rollouts = model.replica.rollouts;
    let files = worker_files(directory).into_iter().filter(|(_, of, _)| *of == rollouts);
    let buffers = files.map(|(_, _, path)| read_file(&path)).collect::<Result<Vec<_>, _>>()?;
    let parsed: Vec<_> = buffers.iter().map(|bytes| Reader::new(&path, bytes)).collect::<Result<_, _>>()?;
    let (replica, slots) = trainer.state_mut();
    *replica = model.replica;
    let mut missing = Vec::new();
    for slot in slots {
        let name = format!("env.{}.state", slot.index);
        match parsed.iter().find(|file| file.tensors.tensor(&name).is_ok()) {
            Some(file) => decode_slot(file, slot)?,
            None => missing.push(slot.index),
        }
    }
    Ok(missing)
}

/// Reads the shared part of the checkpoint in `directory`, for a known environment.
///
/// # Errors
/// If there is none, or it does not fit.
pub fn load_model(directory: &Path, spec: &EnvSpec) -> Result<Model, TrainError> {
    let path = directory.join(MODEL_FILE);
    let bytes = read_file(&path)?;
    let reader = Reader::new(&path, &bytes)?;
    decode_model(&reader, spec, decode_job(&reader)?.1)
}

/// Environment and hyper-parameters of the run whose checkpoint is in `directory`.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn read_job(directory: &Path) -> Result<(String, PpoConfig), TrainError> {
    let path = directory.join(MODEL_FILE);
    let bytes = read_file(&path)?;
    let reader = Reader::new(&path, &bytes)?;
    decode_job(&reader)
}

fn decode_job(reader: &Reader<'_>) -> Result<(String, PpoConfig), TrainError> {
    let config: PpoConfig = serde_json::from_str(reader.text("config")?)
        .map_err(|error| reader.refuse(format!("its hyper-parameters: {error}")))?;
    config.check().map_err(|error| reader.refuse(format!("its hyper-parameters: {error}")))?;
    check_widths(reader, &config.hidden)?;
    Ok((reader.text("env")?.to_owned(), config))
}

/// Networks whose weights cannot be in the file are not made.
fn check_widths(reader: &Reader<'_>, hidden: &[usize]) -> Result<(), TrainError> {
    let floats = reader.len_bytes / size_of::<f32>();
    let fits = |len: Option<usize>| len.is_some_and(|len| len <= floats);
    let do_fit = fits(hidden.iter().copied().try_fold(0, usize::checked_add))
        && hidden.windows(2).all(|pair| fits(pair[0].checked_mul(pair[1])));
    if do_fit {
        Ok(())
    } else {
        Err(reader.refuse(format!("hidden is {hidden:?}, but there are {floats} floats")))
    }
}

fn decode_model(reader: &Reader<'_>, spec: &EnvSpec, config: PpoConfig) -> Result<Model, TrainError> {
    let env = reader.text("env")?;
    if env != spec.id {
        return Err(reader.refuse(format!("it is of environment {env}, not {}", spec.id)));
    }
    let agent = config.networks(spec);
    let replica = decode_replica(reader, &config, &agent)?;
    Ok(Model { env: env.to_owned(), config, replica })
}

fn encode_model(env: &str, config: &PpoConfig, agent: &ActorCritic, replica: &Replica) -> Vec<u8> {
    let mut writer = Writer::default();
    for tensor in agent.tensors() {
        writer.floats(&tensor.name, tensor.shape, &replica.parameters[tensor.range]);
    }
    let parameters = vec![agent.parameter_count()];
    writer.floats("optimiser.first_moment", parameters.clone(), &replica.adam.first_moment);
    writer.floats("optimiser.second_moment", parameters, &replica.adam.second_moment);
    for (name, moments) in
        [("observation", &replica.observation_moments), ("return", &replica.return_moments)]
    {
        writer.doubles(&format!("{name}.mean"), &moments.mean);
        writer.doubles(&format!("{name}.variance"), &moments.variance);
        writer.doubles(&format!("{name}.count"), &[moments.count]);
    }
    let returns = replica.recent_returns.to_vec();
    writer.floats("episodes.recent_returns", vec![returns.len()], &returns);
    writer.text("env", env.to_owned());
    writer.text("config", serde_json::to_string(config).expect("hyper-parameters are plain data"));
    writer.text("rollouts", replica.rollouts.to_string());
    writer.text("steps", replica.steps.to_string());
    writer.text("iterations", replica.iterations.to_string());
    writer.text("optimiser_steps", replica.adam.steps.to_string());
    writer.finish()
}

fn decode_replica(
    reader: &Reader<'_>,
    config: &PpoConfig,
    agent: &ActorCritic,
) -> Result<Replica, TrainError> {
    let parameter_count = agent.parameter_count();
    let mut adam = Adam::new(0, config.adam_epsilon);
    // First: then there are as many parameters as the file can hold.
    adam.first_moment = reader.floats("optimiser.first_moment", parameter_count)?;
    let mut parameters = vec![0.0; parameter_count];
    for tensor in agent.tensors() {
        let values = reader.floats(&tensor.name, tensor.range.len())?;
        parameters[tensor.range].copy_from_slice(&values);
    }
    adam.second_moment = reader.floats("optimiser.second_moment", parameter_count)?;
    adam.steps = reader.number("optimiser_steps")?;
    let moments = |name: &str, dim: usize| -> Result<Moments, TrainError> {
        Ok(Moments {
            mean: reader.doubles(&format!("{name}.mean"), dim)?,
            variance: reader.doubles(&format!("{name}.variance"), dim)?,
            count: reader.doubles(&format!("{name}.count"), 1)?[0],
        })
    };
    let returns = reader.len("episodes.recent_returns", Dtype::F32)?;
    Ok(Replica {
        parameters,
        adam,
        observation_moments: moments("observation", agent.observation_dim())?,
        return_moments: moments("return", 1)?,
        recent_returns: RecentReturns::from_saved(&reader.floats("episodes.recent_returns", returns)?),
        rollouts: reader.number("rollouts")?,
        steps: reader.number("steps")?,
        iterations: reader.number("iterations")?,
    })
}

fn encode_worker(slots: &[EnvironmentSlot], rollouts: u64) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.text("rollouts", rollouts.to_string());
    for slot in slots {
        let name = |what: &str| format!("env.{}.{what}", slot.index);
        writer.doubles(&name("state"), &slot.env.save_state());
        writer.floats(&name("observation"), vec![slot.observation.len()], &slot.observation);
        let episode = [slot.episode_return, f64::from(slot.episode_length), slot.discounted_return];
        writer.doubles(&name("episode"), &episode);
        writer.text(&name("action_rng"), slot.action_rng.get_word_pos().to_string());
        writer.text(&name("reset_rng"), slot.reset_rng.get_word_pos().to_string());
        writer.text(&name("minibatch_rng"), slot.minibatch_rng.get_word_pos().to_string());
    }
    writer.finish()
}

fn decode_slot(file: &Reader<'_>, slot: &mut EnvironmentSlot) -> Result<(), TrainError> {
    let name = |what: &str| format!("env.{}.{what}", slot.index);
    let numbers = file.len(&name("state"), Dtype::F64)?;
    let state = file.doubles(&name("state"), numbers)?;
    let observation = file.floats(&name("observation"), slot.observation.len())?;
    let episode = file.doubles(&name("episode"), 3)?;
    let (actions, resets, minibatches) = (
        file.number(&name("action_rng"))?,
        file.number(&name("reset_rng"))?,
        file.number(&name("minibatch_rng"))?,
    );
    slot.env.restore_state(&state)?;
    slot.observation = observation;
    (slot.episode_return, slot.episode_length, slot.discounted_return) =
        (episode[0], episode[1] as u32, episode[2]);
    slot.action_rng.set_word_pos(actions);
    slot.reset_rng.set_word_pos(resets);
    slot.minibatch_rng.set_word_pos(minibatches);
    Ok(())
}

fn worker_file(directory: &Path, rank: usize, rollouts: u64) -> PathBuf {
    directory.join(format!("worker-{rank}.{rollouts}.safetensors"))
}

/// Rank, rollouts and path of every worker file.
fn worker_files(directory: &Path) -> Vec<(usize, u64, PathBuf)> {
    let parse = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("worker-")?.strip_suffix(".safetensors")?;
        let (rank, rollouts) = name.split_once('.')?;
        Some((rank.parse().ok()?, rollouts.parse().ok()?, path.clone()))
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| parse(entry.path())).collect()
}

fn remove_old(directory: &Path, rank: usize) {
    let mut own: Vec<_> = worker_files(directory).into_iter().filter(|(of, _, _)| *of == rank).collect();
    own.sort_by_key(|(_, rollouts, _)| std::cmp::Reverse(*rollouts));
    for (_, _, path) in own.iter().skip(KEPT) {
        if let Err(error) = std::fs::remove_file(path) {
            tracing::warn!(path = %path.display(), %error, "an old checkpoint file stays");
        }
    }
}

fn create_directory(directory: &Path) -> Result<(), TrainError> {
    std::fs::create_dir_all(directory).map_err(|error| TrainError::File { path: directory.to_owned(), error })
}

/// Writes a file that appears whole under its name: to a temporary one, flushed to the disk, then renamed.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    let temporary = path.with_extension("safetensors.part");
    let write = || {
        let mut file = std::fs::File::create(&temporary)?;
        std::io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|error| TrainError::File { path: path.to_owned(), error })
}

fn read_file(path: &Path) -> Result<Vec<u8>, TrainError> {
    std::fs::read(path).map_err(|error| TrainError::File { path: path.to_owned(), error })
}

/// Collects tensors and metadata for one file.
#[derive(Default)]
struct Writer {
    tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
    metadata: HashMap<String, String>,
}

impl Writer {
    fn floats(&mut self, name: &str, shape: Vec<usize>, values: &[f32]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.push((name.to_owned(), Dtype::F32, shape, bytes));
    }

    fn doubles(&mut self, name: &str, values: &[f64]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.push((name.to_owned(), Dtype::F64, vec![values.len()], bytes));
    }

    fn text(&mut self, key: &str, value: String) {
        self.metadata.insert(key.to_owned(), value);
    }

    fn finish(mut self) -> Vec<u8> {
        self.text("format", FORMAT.to_owned());
        let views = self.tensors.iter().map(|(name, dtype, shape, bytes)| {
            (name, TensorView::new(*dtype, shape.clone(), bytes).expect("shape and bytes agree"))
        });
        serialize(views, Some(self.metadata.clone())).expect("names are unique")
    }
}

/// Reads tensors and metadata of one file, and says what is wrong with it.
struct Reader<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
    metadata: HashMap<String, String>,
    len_bytes: usize,
}

impl<'a> Reader<'a> {
    fn new(path: &'a Path, bytes: &'a [u8]) -> Result<Self, TrainError> {
        let refuse = |reason: String| TrainError::Checkpoint { path: path.to_owned(), reason };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| refuse(error.to_string()))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| refuse(error.to_string()))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        match metadata.get("format").map(String::as_str) {
            Some(FORMAT) => Ok(Self { path, tensors, metadata, len_bytes: bytes.len() }),
            Some(other) => Err(refuse(format!("format {other}, this version reads {FORMAT}"))),
            None => Err(refuse("not a checkpoint of iswitch".to_owned())),
        }
    }

    fn refuse(&self, reason: String) -> TrainError {
        TrainError::Checkpoint { path: self.path.to_owned(), reason }
    }

    fn text(&self, key: &str) -> Result<&str, TrainError> {
        let value = self.metadata.get(key).map(String::as_str);
        value.ok_or_else(|| self.refuse(format!("{key} is missing")))
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, TrainError> {
        self.text(key)?.parse().map_err(|_| self.refuse(format!("{key} is not a number")))
    }

    fn tensor(&self, name: &str, dtype: Dtype) -> Result<TensorView<'_>, TrainError> {
        match self.tensors.tensor(name) {
            Ok(view) if view.dtype() == dtype && view.shape().len() <= 2 => Ok(view),
            Ok(view) => Err(self.refuse(format!("{name} is {:?} {:?}", view.dtype(), view.shape()))),
            Err(error) => Err(self.refuse(format!("{name}: {error}"))),
        }
    }

    /// Numbers in a tensor. One without dimensions has one.
    fn len(&self, name: &str, dtype: Dtype) -> Result<usize, TrainError> {
        Ok(self.tensor(name, dtype)?.shape().iter().product())
    }

    fn floats(&self, name: &str, len: usize) -> Result<Vec<f32>, TrainError> {
        let view = self.tensor(name, Dtype::F32)?;
        let values: Vec<f32> =
            view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        self.check_len(name, values.len(), len)?;
        Ok(values)
    }

    fn doubles(&self, name: &str, len: usize) -> Result<Vec<f64>, TrainError> {
        let view = self.tensor(name, Dtype::F64)?;
        let values: Vec<f64> =
            view.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        self.check_len(name, values.len(), len)?;
        Ok(values)
    }

    fn check_len(&self, name: &str, actual: usize, expected: usize) -> Result<(), TrainError> {
        if actual == expected {
            return Ok(());
        }
        Err(self.refuse(format!("{name} has {actual} numbers, this run needs {expected}")))
    }
}
