//! Trainings with one or more workers.
//!
//! The environments of an iteration are divided by the workers. What each says is summed as integers, so that the
//! network is the same to the last bit however many workers there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::actor_critic;
use super::config::{Network, PlacementConfig};
use super::episodes::Episode;
use super::patent_net::PatentNet;
use super::reinforce::reinforce;
use super::replay::{Replay, Sample};
use super::saved::history;
use super::shared_net::SharedNet;
use super::{ALGORITHM, Trained};
use crate::PlacementError;
use crate::workload::Workload;
use iswitch::GradientAggregator;
use iswitch_learn::algorithms::checkpoint::{self, Reader, RunKind, Writer};
use iswitch_learn::algorithms::exact::{LIMBS, add_fixed, from_fixed, to_fixed};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::{Place, first_bytes};
use iswitch_learn::group::Group;
use iswitch_learn::nn::Adam;

/// PyTorch's default.
const ADAM_EPSILON: f32 = 1e-8;
/// Number of a test's course.
const TEST_COURSE: usize = 0;

/// What one iteration came to. The keys are an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// From 0, which is the network before any learning.
    pub iteration: u64,
    /// Courses that it learnt from.
    pub courses: u64,
    /// Choices in them.
    pub choices: u64,
    /// Mean reward: of the shared network the logarithm of the rule's makespan over its own, on other failures; of the
    /// patent's its (T_Random - T_RL) / T_Random.
    pub reward: Option<f64>,
    /// The makespan of what it is compared with over its own in the test, geometric mean; none where there was no test.
    pub gain: Option<f64>,
    /// Standard error of the logarithm of the gain; 0 for a single draw.
    pub gain_error: Option<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// What an iteration's courses came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt {
    /// Courses, choices, rewards; as integers until they are summed.
    sums: [i128; 3],
}

impl Learnt {
    pub(super) fn add(&mut self, reward: f64, choices: u64) {
        let parts = [1.0, choices as f64, reward];
        add_fixed(&mut self.sums, parts);
    }

    /// Of all workers.
    pub(super) fn sum(mut self, group: &mut Group) -> Result<Self, PlacementError> {
        group.sum(&mut self.sums)?;
        Ok(self)
    }

    fn courses(&self) -> u64 {
        from_fixed(self.sums[0]) as u64
    }

    fn choices(&self) -> u64 {
        from_fixed(self.sums[1]) as u64
    }

    fn reward(&self) -> Option<f64> {
        (self.courses() > 0).then(|| from_fixed(self.sums[2]) / self.courses() as f64)
    }
}

/// The parameters that are being trained.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) parameters: Vec<f32>,
    pub(super) adam: Adam,
}

impl Model {
    /// A step against the gradient, which is the sum of those of all environments of all workers.
    pub(super) fn step(
        &mut self,
        numbers: &mut [i128],
        group: &mut Group,
        learning_rate: f32,
    ) -> Result<(), PlacementError> {
        let gradient = group.sum_exactly(numbers)?;
        self.adam.step(&mut self.parameters, &gradient, learning_rate);
        Ok(())
    }
}

/// How it learns.
#[derive(Clone, Debug)]
enum Learner {
    Shared(Box<SharedNet>),
    Patent(Box<PatentNet>, Replay),
}

/// The best network so far.
#[derive(Clone, Debug)]
struct Best {
    iteration: u64,
    gain: f64,
    parameters: Vec<f32>,
}

/// A training of one worker.
pub struct Training {
    config: PlacementConfig,
    workload: Workload,
    group: Group,
    learner: Learner,
    model: Model,
    best: Option<Best>,
    history: Vec<Iteration>,
    /// Logarithms of makespans of what it is compared with in the tests of this worker.
    reference: Vec<f64>,
    stop: Arc<AtomicBool>,
    has_agreed: bool,
}

/// Floats in the vectors that the workers of a job sum.
///
/// # Errors
/// If a hyper-parameter is out of range.
pub fn vector_len(config: &PlacementConfig) -> Result<usize, PlacementError> {
    config.check()?;
    Ok(config.parameter_count() * LIMBS)
}

impl Training {
    /// At its start. `aggregator` must sum vectors of [`vector_len`] floats. The patent's network knows GPUs by their
    /// place: it is trained on the GPUs of one draw, whose number is the seed.
    ///
    /// # Errors
    /// If a hyper-parameter is out of range, the network is not for the cluster, or there are no such scenarios.
    pub fn new(
        config: PlacementConfig,
        mut workload: Workload,
        place: Place,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, PlacementError> {
        let group = Group::new(place, config.environments, vector_len(&config)?, aggregator)?;
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
        // What cannot be simulated is best told now.
        Episode::of_training(&config, &workload, 0, 0)?;
        let adam = Adam::new(parameters.len(), ADAM_EPSILON);
        Ok(Self {
            workload,
            group,
            learner,
            model: Model { parameters, adam },
            best: None,
            history: Vec::new(),
            reference: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            has_agreed: false,
            config,
        })
    }

    /// The hyper-parameters.
    pub fn config(&self) -> &PlacementConfig {
        &self.config
    }

    /// This worker's place.
    pub fn place(&self) -> Place {
        self.group.place()
    }

    /// What sums.
    pub fn aggregator(&self) -> &dyn GradientAggregator {
        self.group.aggregator()
    }

    /// Set it to end after the present iteration, of which nothing is kept.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// All iterations so far.
    pub fn history(&self) -> &[Iteration] {
        &self.history
    }

    /// The iteration with the best test so far.
    pub fn best(&self) -> Option<&Iteration> {
        let best = self.best.as_ref()?;
        self.history.iter().find(|record| record.iteration == best.iteration)
    }

    /// The policy with the best test so far.
    pub fn best_policy(&self) -> Option<Trained> {
        let best = self.best.as_ref()?;
        Some(Trained::new(self.config.clone(), best.parameters.as_slice().into()))
    }

    /// The policy as it is now.
    pub fn policy(&self) -> Trained {
        Trained::new(self.config.clone(), self.model.parameters.as_slice().into())
    }

    /// All iterations are done.
    pub fn is_finished(&self) -> bool {
        self.history.len() as u64 > self.config.iterations
    }

    /// The next iteration, together with the other workers; the first is the test of the network before any learning.
    /// Nothing if it was stopped before its end.
    ///
    /// # Errors
    /// If an aggregation fails, or the workers were started with different settings.
    pub fn advance(&mut self) -> Result<Option<&Iteration>, PlacementError> {
        if !self.has_agreed {
            self.group.agree([self.job_digest(), self.digest()])?;
            self.has_agreed = true;
        }
        let begin = Instant::now();
        let iteration = self.history.len() as u64;
        let before = (self.model.clone(), self.learner.clone());
        let learnt = if iteration > 0 { self.learn(iteration)? } else { Learnt::default() };
        let is_tested =
            iteration.is_multiple_of(self.config.test_interval) || iteration == self.config.iterations;
        let test = if is_tested { Some(self.test()?) } else { None };
        if self.is_stopped()? {
            (self.model, self.learner) = before;
            return Ok(None);
        }
        let record = Iteration {
            iteration,
            courses: learnt.courses(),
            choices: learnt.choices(),
            reward: learnt.reward(),
            gain: test.map(|(gain, _)| gain),
            gain_error: test.map(|(_, error)| error),
            seconds: begin.elapsed().as_secs_f64(),
        };
        self.keep_best(&record);
        self.history.push(record);
        Ok(self.history.last())
    }

    fn learn(&mut self, iteration: u64) -> Result<Learnt, PlacementError> {
        let Self { config, workload, group, learner, model, .. } = self;
        match learner {
            Learner::Shared(net) => reinforce(config, workload, iteration, (net, model), group),
            Learner::Patent(net, replay) => {
                actor_critic::learn(config, workload, iteration, (net.as_mut(), model, replay), group)
            }
        }
    }

    /// Whether any worker was told to stop: all must then leave the same iteration.
    fn is_stopped(&mut self) -> Result<bool, PlacementError> {
        let mut sums = [i128::from(self.stop.load(Ordering::Relaxed))];
        self.group.sum(&mut sums)?;
        Ok(sums[0] > 0)
    }

    /// Makespans of what it is compared with over those of the network, which takes the best choice each time: the
    /// geometric mean, and the standard error of its logarithm.
    fn test(&mut self) -> Result<(f64, f64), PlacementError> {
        let Place { rank, workers } = self.group.place();
        let own: Vec<usize> = (rank..self.config.test_draws).step_by(workers).collect();
        let policy = self.policy();
        let mut sums = [0, 0, own.len() as i128];
        for (at, number) in own.into_iter().enumerate() {
            let episode = Episode::of_test(&self.config, &self.workload, number)?;
            if self.reference.len() == at {
                let mut rule = self.config.reference().build(&episode.scenario, episode.draw)?;
                let outcome = episode.run(rule.as_mut(), Purpose::Failures, TEST_COURSE)?;
                self.reference.push(outcome.makespan.ln());
            }
            let mut placer = policy.placer(&self.workload.cluster)?;
            let outcome = episode.run(placer.as_mut(), Purpose::Failures, TEST_COURSE)?;
            let gain = self.reference[at] - outcome.makespan.ln();
            sums[0] += to_fixed(gain);
            sums[1] += to_fixed(gain * gain);
        }
        self.group.sum(&mut sums)?;
        let count = sums[2].max(1) as f64;
        let (mean, square) = (from_fixed(sums[0]) / count, from_fixed(sums[1]) / count);
        let error = ((square - mean * mean).max(0.0) / (count - 1.0).max(1.0)).sqrt();
        Ok((mean.exp(), error))
    }

    fn keep_best(&mut self, record: &Iteration) {
        let Some((gain, error)) = record.gain.zip(record.gain_error) else { return };
        // Of many tests of networks that are no better than the rule, the best is better by chance.
        let is_sure = gain.ln() > self.config.significance * error;
        let may_replace = |best: &Best| gain > best.gain && (is_sure || self.config.significance == 0.0);
        if self.best.as_ref().is_none_or(may_replace) {
            let parameters = self.model.parameters.clone();
            self.best = Some(Best { iteration: record.iteration, gain, parameters });
        }
    }

    /// Digest of what all workers have alike.
    pub fn digest(&self) -> u64 {
        let mut hash = Sha256::new();
        hash.update(bytemuck::cast_slice::<f32, u8>(&self.model.parameters));
        if let Learner::Patent(_, replay) = &self.learner {
            hash.update(bytemuck::cast_slice::<u64, u8>(&replay.encode()));
        }
        hash.update(self.history.len().to_le_bytes());
        self.history
            .iter()
            .filter_map(|record| record.reward)
            .for_each(|reward| hash.update(reward.to_le_bytes()));
        first_bytes(hash)
    }

    /// Whether all workers have the same; all must call it at the same time.
    ///
    /// # Errors
    /// If the aggregation fails.
    pub fn replicas_identical(&mut self) -> Result<bool, PlacementError> {
        Ok(self.group.is_identical(self.digest())?)
    }

    /// Digest of what must be the same for all workers from the start.
    fn job_digest(&self) -> u64 {
        let hash = Sha256::new().chain_update(self.config_json());
        first_bytes(hash.chain_update(self.workload.digest().to_le_bytes()))
    }

    fn config_json(&self) -> String {
        serde_json::to_string(&self.config).expect("hyper-parameters are plain data")
    }

    /// Saves the state after the last iteration; all workers have the same.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, directory: &std::path::Path) -> Result<(), PlacementError> {
        let config = self.config_json();
        let run = RunKind { algorithm: ALGORITHM, env: "placement", config: &config };
        checkpoint::save_model(directory, &run, self.history.len() as u64, &|writer| self.write(writer))?;
        Ok(())
    }

    fn write(&self, writer: &mut Writer) {
        let tensors = self.config.tensors();
        writer.text("workload", self.workload.digest().to_string());
        writer.text("history", serde_json::to_string(&self.history).expect("records are plain data"));
        writer.parameters("", tensors.clone(), &self.model.parameters);
        writer.adam("adam", &self.model.adam);
        if let Learner::Patent(_, replay) = &self.learner {
            let words = replay.encode();
            writer.bytes("replay", &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
            writer.text("replay_samples", replay.len().to_string());
        }
        if let Some(best) = &self.best {
            writer.parameters("best.", tensors, &best.parameters);
            writer.text("best_iteration", best.iteration.to_string());
        }
    }

    /// Goes on from what [`Self::save`] wrote; see [`Saved`](super::saved::Saved).
    pub(super) fn restore(&mut self, reader: &Reader<'_>) -> Result<(), PlacementError> {
        let (saved, own): (u64, u64) = (reader.number("workload")?, self.workload.digest());
        if saved != own {
            let reason = "it was trained with other jobs, GPUs or rules: give the same".to_owned();
            return Err(reader.refuse(reason).into());
        }
        let tensors = self.config.tensors();
        self.model.parameters = reader.parameters("", tensors.clone())?;
        reader.adam("adam", self.model.parameters.len(), &mut self.model.adam)?;
        self.history = history(reader)?;
        if let Learner::Patent(_, replay) = &mut self.learner {
            *replay = read_replay(reader, &self.config)?;
        }
        let iteration = reader.number("best_iteration")?;
        let gain = self.history.iter().find(|it| it.iteration == iteration).and_then(|it| it.gain);
        let gain = gain.ok_or_else(|| reader.refuse("its best iteration has no test".to_owned()))?;
        self.best = Some(Best { iteration, gain, parameters: reader.parameters("best.", tensors)? });
        Ok(())
    }
}

/// The replay buffer of a file.
fn read_replay(reader: &Reader<'_>, config: &PlacementConfig) -> Result<Replay, PlacementError> {
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
