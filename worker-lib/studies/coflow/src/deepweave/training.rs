//! Training by imitation of a search, and by the policy gradient of algorithm 1.
//!
//! The N agents of an iteration are divided by the workers. Each agent's gradient, what the baselines and the tests
//! need is summed as integers, so that the network is the same to the last bit however many workers there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::agent::DeepWeave;
use super::config::{DeepWeaveConfig, Explore};
use super::episodes::{Task, mean_time, test_jobs};
use super::imitation::imitate;
use super::lookahead::Lookahead;
use super::net::Net;
use super::reinforce::{explore_actions, explore_moves};
use super::trained::history;
use super::{ALGORITHM, CoflowError};
use crate::policy::PolicySpec;
use iswitch::GradientAggregator;
use iswitch_learn::algorithms::checkpoint::{self, Reader, RunKind, Writer};
use iswitch_learn::algorithms::exact::{LIMBS, add_fixed, from_fixed, to_fixed};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::{Place, first_bytes};
use iswitch_learn::group::Group;
use iswitch_learn::nn::Adam;

/// PyTorch's default.
const ADAM_EPSILON: f32 = 1e-8;

/// How an iteration learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Not: the test before any learning.
    Start,
    /// From a search.
    Imitation,
    /// From rewards.
    Gradient,
}

/// What one iteration came to. The keys are an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// From 0, which is the network before any learning.
    pub iteration: u64,
    /// How it learnt.
    pub phase: Phase,
    /// Jobs of all its episodes.
    pub jobs: u64,
    /// Decisions of all its episodes.
    pub decisions: u64,
    /// Mean job completion time of its episodes, in seconds.
    pub job_time: Option<f64>,
    /// JobSEBF's mean completion time over the network's without a search in the test, geometric mean over workloads;
    /// none where there was no test.
    pub gain: Option<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// What an iteration's episodes came to, sums over all workers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learnt {
    pub(super) jobs: u64,
    pub(super) decisions: u64,
    /// Seconds of all jobs.
    pub(super) job_time: f64,
}

/// The same while they are added up, as integers: jobs, decisions, seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals([i128; 3]);

impl Totals {
    /// An episode of one agent.
    pub(super) fn add(&mut self, decisions: usize, job_times: &[f64]) {
        let parts = [job_times.len() as f64, decisions as f64, job_times.iter().sum()];
        add_fixed(&mut self.0, parts);
    }

    /// Of all workers.
    pub(super) fn sum(mut self, group: &mut Group) -> Result<Learnt, CoflowError> {
        group.sum(&mut self.0)?;
        let [jobs, decisions, job_time] = self.0.map(from_fixed);
        Ok(Learnt { jobs: jobs as u64, decisions: decisions as u64, job_time })
    }
}

/// The best network so far.
#[derive(Clone, Debug)]
struct Best {
    iteration: u64,
    gain: f64,
    parameters: Vec<f32>,
}

/// The network that is being trained.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) net: Net,
    pub(super) parameters: Vec<f32>,
    pub(super) adam: Adam,
}

impl Model {
    /// A policy with the network as it is.
    pub(super) fn policy(&self) -> DeepWeave {
        DeepWeave::new(self.net.clone(), self.parameters.as_slice().into())
    }

    /// A step against the gradient, which is the sum of those of all agents of all workers.
    pub(super) fn step(
        &mut self,
        numbers: &mut [i128],
        group: &mut Group,
        learning_rate: f32,
    ) -> Result<(), CoflowError> {
        let gradient = group.sum_exactly(numbers)?;
        self.adam.step(&mut self.parameters, &gradient, learning_rate);
        Ok(())
    }
}

/// A training of one worker.
pub struct Training {
    config: DeepWeaveConfig,
    task: Task,
    /// Jobs of training have only some of the coflows.
    practice: Task,
    group: Group,
    model: Model,
    best: Option<Best>,
    history: Vec<Iteration>,
    /// JobSEBF's mean completion times in the tests, of this worker.
    reference: Vec<f64>,
    stop: Arc<AtomicBool>,
    has_agreed: bool,
}

/// Floats in the vectors that the workers of a job sum.
///
/// # Errors
/// If a hyper-parameter is out of range.
pub fn vector_len(config: &DeepWeaveConfig) -> Result<usize, CoflowError> {
    config.check()?;
    Ok(config.net().parameter_count() * LIMBS)
}

impl Training {
    /// At its start. `aggregator` must sum vectors of [`vector_len`] floats.
    ///
    /// # Errors
    /// If a hyper-parameter is out of range, or a shape has more coflows than the network has room for.
    pub fn new(
        config: DeepWeaveConfig,
        task: Task,
        place: Place,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, CoflowError> {
        let group = Group::new(place, config.agents, vector_len(&config)?, aggregator)?;
        let net = config.net();
        let source = task.source.part(config.coflow_share, &mut stream(config.seed, Purpose::Rates, 0));
        net.check(&source.one_of_each())?;
        let parameters = net.initial_parameters(&mut stream(config.seed, Purpose::Weights, 0));
        let adam = Adam::new(parameters.len(), ADAM_EPSILON);
        Ok(Self {
            practice: Task { source, fabric: task.fabric },
            task,
            group,
            model: Model { net, parameters, adam },
            best: None,
            history: Vec::new(),
            reference: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            has_agreed: false,
            config,
        })
    }

    /// The hyper-parameters.
    pub fn config(&self) -> &DeepWeaveConfig {
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

    /// Set it to end an iteration before its end: nothing of it is kept.
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
    pub fn best_policy(&self) -> Option<DeepWeave> {
        let best = self.best.as_ref()?;
        Some(DeepWeave::new(self.model.net.clone(), best.parameters.as_slice().into()))
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
    pub fn advance(&mut self) -> Result<Option<&Iteration>, CoflowError> {
        if !self.has_agreed {
            self.group.agree([self.job_digest(), self.digest()])?;
            self.has_agreed = true;
        }
        let begin = Instant::now();
        let iteration = self.history.len() as u64;
        let before = self.model.clone();
        let mut learnt = Learnt::default();
        let mut phase = Phase::Start;
        if iteration > 0 {
            let is_imitation = iteration <= self.config.imitation_iterations;
            phase = if is_imitation { Phase::Imitation } else { Phase::Gradient };
            learnt = self.learn(phase, iteration)?;
        }
        let is_tested =
            iteration.is_multiple_of(self.config.test_interval) || iteration == self.config.iterations;
        let gain = if is_tested { Some(self.test()?) } else { None };
        if self.is_stopped()? {
            self.model = before;
            return Ok(None);
        }
        let record = Iteration {
            iteration,
            phase,
            jobs: learnt.jobs,
            decisions: learnt.decisions,
            job_time: (learnt.jobs > 0).then(|| learnt.job_time / learnt.jobs as f64),
            gain,
            seconds: begin.elapsed().as_secs_f64(),
        };
        self.keep_best(&record);
        self.history.push(record);
        Ok(self.history.last())
    }

    fn learn(&mut self, phase: Phase, iteration: u64) -> Result<Learnt, CoflowError> {
        let Self { config, practice: task, model, group, .. } = self;
        match (phase, config.explore) {
            (Phase::Start, _) => Ok(Learnt::default()),
            (Phase::Imitation, _) => imitate(config, task, iteration, model, group),
            (Phase::Gradient, Explore::Moves) => explore_moves(config, task, iteration, model, group),
            (Phase::Gradient, Explore::Actions) => explore_actions(config, task, iteration, model, group),
        }
    }

    /// Whether any worker was told to stop: all must then leave the same iteration.
    fn is_stopped(&mut self) -> Result<bool, CoflowError> {
        let mut sums = [i128::from(self.stop.load(Ordering::Relaxed))];
        self.group.sum(&mut sums)?;
        Ok(sums[0] > 0)
    }

    /// JobSEBF's mean completion times over the network's.
    fn test(&mut self) -> Result<f64, CoflowError> {
        let Place { rank, workers } = self.group.place();
        let own: Vec<usize> = (rank..self.config.test_workloads).step_by(workers).collect();
        let mut sums = [0, own.len() as i128];
        for (at, workload) in own.into_iter().enumerate() {
            let jobs = test_jobs(&self.config, &self.task.source, workload);
            if self.reference.len() == at {
                let mut policy = PolicySpec::JobSebf.build(self.task.fabric.capacity);
                self.reference.push(mean_time(&self.task, &jobs, policy.as_mut())?);
            }
            let time = mean_time(&self.task, &jobs, &mut self.tested_policy(workload))?;
            sums[0] += to_fixed((self.reference[at] / time).ln());
        }
        self.group.sum(&mut sums)?;
        Ok((from_fixed(sums[0]) / sums[1] as f64).exp())
    }

    /// A network on top of JobSEBF is tested with a search behind it, as it is used.
    fn tested_policy(&self, workload: usize) -> DeepWeave {
        let policy = self.model.policy();
        if !self.model.net.is_residual() || self.config.test_evaluations == 0 {
            return policy;
        }
        let rng = stream(self.config.seed, Purpose::Evaluation, self.config.test_workloads + workload);
        policy.with_lookahead(Lookahead::new(self.config.test_evaluations, rng))
    }

    fn keep_best(&mut self, record: &Iteration) {
        let Some(gain) = record.gain else { return };
        if self.best.as_ref().is_none_or(|best| gain > best.gain) {
            let parameters = self.model.parameters.clone();
            self.best = Some(Best { iteration: record.iteration, gain, parameters });
        }
    }

    /// Digest of what all workers have alike.
    pub fn digest(&self) -> u64 {
        let mut hash = Sha256::new();
        hash.update(bytemuck::cast_slice::<f32, u8>(&self.model.parameters));
        hash.update(self.history.len().to_le_bytes());
        self.history
            .iter()
            .filter_map(|record| record.job_time)
            .for_each(|time| hash.update(time.to_le_bytes()));
        first_bytes(hash)
    }

    /// Whether all workers have the same; all must call it at the same time.
    ///
    /// # Errors
    /// If the aggregation fails.
    pub fn replicas_identical(&mut self) -> Result<bool, CoflowError> {
        Ok(self.group.is_identical(self.digest())?)
    }

    /// Digest of what must be the same for all workers from the start.
    fn job_digest(&self) -> u64 {
        let hash = Sha256::new().chain_update(self.config_json());
        first_bytes(hash.chain_update(self.task.source.digest().to_le_bytes()))
    }

    fn config_json(&self) -> String {
        serde_json::to_string(&self.config).expect("hyper-parameters are plain data")
    }

    /// Saves the state after the last iteration; all workers have the same.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, directory: &std::path::Path) -> Result<(), CoflowError> {
        let config = self.config_json();
        let run = RunKind { algorithm: ALGORITHM, env: "coflows", config: &config };
        checkpoint::save_model(directory, &run, self.history.len() as u64, &|writer| self.write(writer))?;
        Ok(())
    }

    fn write(&self, writer: &mut Writer) {
        writer.text("source", self.task.source.digest().to_string());
        writer.text("history", serde_json::to_string(&self.history).expect("records are plain data"));
        writer.parameters("", self.model.net.tensors(), &self.model.parameters);
        writer.adam("adam", &self.model.adam);
        if let Some(best) = &self.best {
            writer.parameters("best.", self.model.net.tensors(), &best.parameters);
            writer.text("best_iteration", best.iteration.to_string());
        }
    }

    /// Goes on from what [`Self::save`] wrote; see [`Saved`](super::trained::Saved).
    pub(super) fn restore(&mut self, reader: &Reader<'_>) -> Result<(), CoflowError> {
        let (saved, own): (u64, u64) = (reader.number("source")?, self.task.source.digest());
        if saved != own {
            let reason = "it was trained with other coflows or shapes: give the same files".to_owned();
            return Err(reader.refuse(reason).into());
        }
        let tensors = self.model.net.tensors();
        self.model.parameters = reader.parameters("", tensors.clone())?;
        reader.adam("adam", self.model.parameters.len(), &mut self.model.adam)?;
        self.history = history(reader)?;
        if reader.has("best.own.0.weight") || reader.has("best.f.0.weight") {
            let iteration = reader.number("best_iteration")?;
            let gain = self.history.iter().find(|it| it.iteration == iteration).and_then(|it| it.gain);
            let gain = gain.ok_or_else(|| reader.refuse("its best iteration has no test".to_owned()))?;
            self.best = Some(Best { iteration, gain, parameters: reader.parameters("best.", tensors)? });
        }
        Ok(())
    }
}
