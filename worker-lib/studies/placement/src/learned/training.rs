//! Training with one or more workers.
//!
//! The environments of an iteration are divided among the workers. The workers' contributions to the gradient are
//! summed as integers, so the network is bit-identical for any number of workers.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Trained;
use super::actor_critic;
use super::config::{Network, PlacementConfig};
use super::episodes::Episode;
use super::patent_net::PatentNet;
use super::reinforce::reinforce;
use super::replay::{Replay, Sample};
use super::shared_net::SharedNet;
use crate::workload::Workload;
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::algorithms::exact::{LIMBS, from_fixed, to_fixed};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::World;
use iswitch_study::{Mark, Record, Study, StudyError, Weights};

/// Index of the simulated run that a test uses in each episode.
const TEST_COURSE: usize = 0;

/// Record of one iteration. The JSON keys are part of the public interface and must not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Number of the iteration; 0 denotes the network before any training.
    pub iteration: u64,
    /// Number of simulated runs that the iteration learned from.
    pub courses: u64,
    /// Number of choices in these runs.
    pub choices: u64,
    /// Mean reward. For the shared network, the reward is the logarithm of a ratio: the rule's makespan (on independent
    /// failures) divided by the network's. For the patent's network, it is (T_Random - T_RL) / T_Random, where T_Random
    /// is the makespan of random placement and T_RL that of the network.
    pub reward: Option<f64>,
    /// Ratio of the reference policy's makespan to the network's, as a geometric mean over the test scenarios. `None`
    /// if the network was not tested after this iteration.
    pub gain: Option<f64>,
    /// Standard error of the logarithm of the gain; 0 if there is only one test scenario.
    pub gain_error: Option<f64>,
    /// Duration of the iteration, in seconds.
    pub seconds: f64,
}

impl Record for Iteration {
    fn mark(&self) -> Mark {
        Mark { iteration: self.iteration, is_tested: self.gain.is_some(), result: self.reward }
    }

    fn without_time(self) -> Self {
        Self { seconds: 0.0, ..self }
    }
}

/// Totals of an iteration: simulated runs, choices and rewards.
pub(super) type Totals = iswitch_study::Totals<3>;

/// Context of the current iteration.
pub(super) type Step<'a> = iswitch_study::Step<'a, PlacementConfig>;

/// Training run of one worker.
pub type Training = iswitch_study::Training<PlacementStudy>;
/// Checkpoint of a training run.
pub type Saved = iswitch_study::Saved<PlacementStudy>;

/// Network in training, with the state of its learning method.
#[derive(Clone, Debug)]
enum Learner {
    Shared(Box<SharedNet>),
    Patent(Box<PatentNet>, Replay),
}

/// State that iterations change.
#[derive(Clone, Debug)]
pub struct State {
    learner: Learner,
    weights: Weights,
}

/// Study that trains a placement network. The patent's network identifies GPUs by their index, so it is trained on the
/// GPUs of a single draw, whose number is the seed.
#[derive(Debug)]
pub struct PlacementStudy {
    workload: Workload,
    state: State,
    /// Logarithms of the reference policy's makespans in the tests of this worker.
    reference: Vec<f64>,
}

impl PlacementStudy {
    fn learn(&mut self, step: &mut Step<'_>) -> Result<[f64; 3], StudyError> {
        let Self { workload, state: State { learner, weights }, .. } = self;
        match learner {
            _ if step.iteration == 0 => Ok([0.0; 3]),
            Learner::Shared(net) => reinforce(step, workload, (net, weights)),
            Learner::Patent(net, replay) => {
                actor_critic::learn(step, workload, (net.as_mut(), weights, replay))
            }
        }
    }

    /// Tests the network without exploration. Returns the geometric mean, over all draws, of the ratio of the reference
    /// policy's makespan to the network's, and the standard error of this mean's logarithm.
    fn test(&mut self, step: &mut Step<'_>) -> Result<(f64, f64), StudyError> {
        let config = step.config;
        let World { rank, size: workers } = step.group.world();
        let own: Vec<usize> = (rank..config.test_draws).step_by(workers).collect();
        let policy = Trained::new(config.clone(), self.parameters().into());
        let mut sums = [0, 0, own.len() as i128];
        for (at, number) in own.into_iter().enumerate() {
            let episode = Episode::of_test(config, &self.workload, number)?;
            if self.reference.len() == at {
                let mut rule = config.reference().build(&episode.scenario, episode.draw)?;
                let outcome = episode.run(rule.as_mut(), Purpose::Failures, TEST_COURSE)?;
                self.reference.push(outcome.makespan.ln());
            }
            let mut placer = policy.placer(&self.workload.cluster)?;
            let outcome = episode.run(placer.as_mut(), Purpose::Failures, TEST_COURSE)?;
            let gain = self.reference[at] - outcome.makespan.ln();
            sums[0] += to_fixed(gain);
            sums[1] += to_fixed(gain * gain);
        }
        step.group.sum(&mut sums)?;
        let count = sums[2].max(1) as f64;
        let (mean, square) = (from_fixed(sums[0]) / count, from_fixed(sums[1]) / count);
        let error = ((square - mean * mean).max(0.0) / (count - 1.0).max(1.0)).sqrt();
        Ok((mean.exp(), error))
    }
}

impl Study for PlacementStudy {
    /// Name of the algorithm, which is also the name of the command.
    const ALGORITHM: &'static str = "place";
    type Config = PlacementConfig;
    type Task = Workload;
    type Iteration = Iteration;
    type State = State;

    fn vector_len(config: &PlacementConfig) -> Result<usize, StudyError> {
        Ok(config.parameter_count() * LIMBS)
    }

    fn new(config: &PlacementConfig, mut workload: Workload) -> Result<Self, StudyError> {
        config.check_gpus(workload.cluster.gpus())?;
        let rng = &mut stream(config.seed, Purpose::Weights, 0);
        let (learner, parameters) = match config.network {
            Network::Shared => {
                let net = SharedNet::new();
                let parameters = net.initial_parameters(rng);
                (Learner::Shared(Box::new(net)), parameters)
            }
            Network::Patent => {
                workload.failures = workload.failures.fixed(&workload.cluster, config.seed)?;
                let net = PatentNet::new(config.gpus);
                let parameters = net.initial_parameters(rng);
                (Learner::Patent(Box::new(net), Replay::new(config.replay_capacity)), parameters)
            }
        };
        // A scenario that cannot be simulated is reported here, before the training starts.
        Episode::of_training(config, &workload, 0, 0)?;
        let state = State { learner, weights: Weights::new(parameters) };
        Ok(Self { workload, state, reference: Vec::new() })
    }

    fn state(&mut self) -> &mut State {
        &mut self.state
    }

    fn parameters(&self) -> &[f32] {
        &self.state.weights.parameters
    }

    fn iterate(&mut self, step: &mut Step<'_>) -> Result<Option<Iteration>, StudyError> {
        let [courses, choices, reward] = self.learn(step)?;
        let test = if step.is_tested(step.config.test_interval) { Some(self.test(step)?) } else { None };
        if step.is_stopped_anywhere()? {
            return Ok(None);
        }
        Ok(Some(Iteration {
            iteration: step.iteration,
            courses: courses as u64,
            choices: choices as u64,
            reward: (courses > 0.0).then_some(reward / courses),
            gain: test.map(|(gain, _)| gain),
            gain_error: test.map(|(_, error)| error),
            seconds: step.seconds(),
        }))
    }

    fn is_better(config: &PlacementConfig, new: &Iteration, best: Option<&Iteration>) -> bool {
        let Some((gain, error)) = new.gain.zip(new.gain_error) else { return false };
        // Without this condition, the best of many test results would exceed the rule's by chance even if no network
        // were better than the rule.
        let is_sure = config.significance == 0.0 || gain.ln() > config.significance * error;
        best.and_then(|best| best.gain).is_none_or(|best| gain > best && is_sure)
    }

    fn environment(&self) -> String {
        "placement".to_owned()
    }

    fn hash_task(&self, hash: &mut Sha256) {
        hash.update(self.workload.digest().to_le_bytes());
    }

    fn hash_state(&self, hash: &mut Sha256) {
        if let Learner::Patent(_, replay) = &self.state.learner {
            hash.update(bytemuck::cast_slice::<u64, u8>(&replay.encode()));
        }
    }

    fn write(&self, config: &PlacementConfig, writer: &mut Writer) {
        writer.text("workload", self.workload.digest().to_string());
        self.state.weights.write(config.tensors(), writer);
        if let Learner::Patent(_, replay) = &self.state.learner {
            let words = replay.encode();
            writer.bytes("replay", &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
            writer.text("replay_samples", replay.len().to_string());
        }
    }

    fn read(&mut self, config: &PlacementConfig, reader: &Reader<'_>) -> Result<(), StudyError> {
        let (saved, own): (u64, u64) = (reader.number("workload")?, self.workload.digest());
        if saved != own {
            let reason = "it was trained with jobs, GPUs or rules that differ from those of this run; pass the options \
                          and files of the original run";
            return Err(reader.refuse(reason.to_owned()).into());
        }
        self.state.weights.read(config.tensors(), reader)?;
        if let Learner::Patent(_, replay) = &mut self.state.learner {
            *replay = read_replay(reader, config)?;
        }
        Ok(())
    }

    fn write_best(config: &PlacementConfig, parameters: &[f32], writer: &mut Writer) {
        writer.parameters("best.", config.tensors(), parameters);
    }

    fn read_best(config: &PlacementConfig, reader: &Reader<'_>) -> Result<Vec<f32>, StudyError> {
        let parameters = reader.parameters("best.", config.tensors())?;
        if parameters.iter().any(|it| !it.is_finite()) {
            return Err(reader.refuse("its parameters are not all finite numbers".to_owned()).into());
        }
        Ok(parameters)
    }

    fn check_file(config: &PlacementConfig, reader: &Reader<'_>) -> Result<(), StudyError> {
        Ok(reader.check_parameters(config.parameter_count())?)
    }
}

impl Trained {
    /// Returns the policy with the best test result of a training run; `None` if there was no test.
    pub fn best_of(training: &Training) -> Option<Self> {
        Some(Self::new(training.config().clone(), training.best_parameters()?.into()))
    }

    /// Returns the current policy of a training run.
    pub fn of_training(training: &Training) -> Self {
        Self::new(training.config().clone(), training.study().parameters().into())
    }

    /// Returns the policy with the best test result of a saved training run.
    ///
    /// # Errors
    /// Fails if there was no test, or the file is damaged.
    pub fn of_saved(saved: &Saved) -> Result<Self, StudyError> {
        Ok(Self::new(saved.config().clone(), saved.best_parameters()?.into()))
    }
}

/// Reads the replay buffer from a file.
fn read_replay(reader: &Reader<'_>, config: &PlacementConfig) -> Result<Replay, StudyError> {
    let broken = || reader.refuse("its replay buffer is damaged".to_owned());
    let samples: usize = reader.number("replay_samples")?;
    let words = Sample::words(config.gpus);
    let len = samples.checked_mul(words * size_of::<u64>()).ok_or_else(broken)?;
    let bytes = reader.bytes("replay", len)?;
    let all: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut replay = Replay::new(config.replay_capacity);
    for sample in all.chunks_exact(words) {
        replay.push(Sample::decode(sample, config.gpus).ok_or_else(broken)?);
    }
    Ok(replay)
}
