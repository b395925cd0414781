//! Training by imitation of a search, and by the policy gradient of the paper's algorithm 1.
//!
//! The N agents of an iteration are divided among the workers. Gradients, baselines and test results are summed as
//! integers, so the trained network is bit-identical for any number of workers.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use strum::IntoEnumIterator as _;

use super::agent::DeepWeave;
use super::config::{DeepWeaveConfig, Explore};
use super::episodes::{Task, mean_time, test_jobs};
use super::imitation::imitate;
use super::lookahead::Lookahead;
use super::net::Net;
use super::reinforce::{explore_actions, explore_moves};
use crate::policy::PolicySpec;
use crate::simulation::{Fabric, Rates};
use crate::workload::Job;
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::algorithms::exact::{LIMBS, from_fixed, to_fixed};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::World;
use iswitch_study::{Mark, Record, Study, StudyError, Weights, names};

/// Names of the checkpoint entries that record the model of rates and the fabric used in training.
const RATES: &str = "rates";
const FABRIC: &str = "fabric";

/// Phase of the training to which an iteration belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Initial test, before any learning.
    Start,
    /// Imitation of a search.
    Imitation,
    /// Policy gradient.
    Gradient,
}

/// Record of one iteration. The JSON keys are part of the public interface and must not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Number of the iteration. Iteration 0 is the test of the network before any learning.
    pub iteration: u64,
    /// Phase of the training.
    pub phase: Phase,
    /// Number of jobs in all episodes.
    pub jobs: u64,
    /// Number of decisions in all episodes.
    pub decisions: u64,
    /// Mean job completion time over all episodes, in seconds; `None` if the iteration has no episodes.
    pub job_time: Option<f64>,
    /// Mean job completion time of JobSEBF divided by that of the network, as the geometric mean over test workloads;
    /// `None` if the network was not tested in this iteration. A network of kind `Node` is tested with the search.
    pub gain: Option<f64>,
    /// Duration of the iteration, in seconds.
    pub seconds: f64,
}

impl Record for Iteration {
    fn mark(&self) -> Mark {
        Mark { iteration: self.iteration, is_tested: self.gain.is_some(), result: self.job_time }
    }

    fn without_time(self) -> Self {
        Self { seconds: 0.0, ..self }
    }
}

/// Totals over the episodes of an iteration on all workers: number of jobs, number of decisions, and sum of the
/// completion times of all jobs in seconds.
pub(super) type Totals = iswitch_study::Totals<3>;

/// Network in training.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) net: Net,
    pub(super) weights: Weights,
}

impl Model {
    /// Returns a policy with the current parameters of the network.
    pub(super) fn policy(&self) -> DeepWeave {
        DeepWeave::new(self.net.clone(), self.weights.parameters.as_slice().into())
    }
}

/// Context of the current iteration.
pub(super) type Step<'a> = iswitch_study::Step<'a, DeepWeaveConfig>;

/// Training run of one worker.
pub type Training = iswitch_study::Training<DeepWeaveStudy>;
/// Checkpoint of a training run.
pub type Saved = iswitch_study::Saved<DeepWeaveStudy>;

/// Study of coflow scheduling: jobs, and the network that is trained for them.
#[derive(Debug)]
pub struct DeepWeaveStudy {
    task: Task,
    /// Task of training episodes, whose jobs are drawn from a subset of the coflows.
    practice: Task,
    model: Model,
    /// Mean job completion time of JobSEBF in each test workload of this worker.
    reference: Vec<f64>,
}

impl DeepWeaveStudy {
    fn learn(&mut self, step: &mut Step<'_>) -> Result<(Phase, [f64; 3]), StudyError> {
        let (task, model) = (&self.practice, &mut self.model);
        Ok(match (step.iteration, step.config.explore) {
            (0, _) => (Phase::Start, [0.0; 3]),
            (iteration, _) if iteration <= step.config.imitation_iterations => {
                (Phase::Imitation, imitate(step, task, model)?)
            }
            (_, Explore::Moves) => (Phase::Gradient, explore_moves(step, task, model)?),
            (_, Explore::Actions) => (Phase::Gradient, explore_actions(step, task, model)?),
        })
    }

    /// Tests the network. Returns the mean job completion time of JobSEBF divided by that of the network, as the
    /// geometric mean over test workloads.
    fn test(&mut self, step: &mut Step<'_>) -> Result<f64, StudyError> {
        let config = step.config;
        let World { rank, size: workers } = step.group.world();
        let own: Vec<usize> = (rank..config.test_workloads).step_by(workers).collect();
        let mut sums = [0, own.len() as i128];
        for (at, workload) in own.into_iter().enumerate() {
            let jobs = test_jobs(config, &self.task.source, workload);
            if self.reference.len() == at {
                let mut policy = PolicySpec::JobSebf.build(self.task.fabric.capacity);
                self.reference.push(mean_time(&self.task, &jobs, policy.as_mut())?);
            }
            let time = mean_time(&self.task, &jobs, &mut self.tested_policy(config, workload))?;
            sums[0] += to_fixed((self.reference[at] / time).ln());
        }
        step.group.sum(&mut sums)?;
        Ok((from_fixed(sums[0]) / sums[1] as f64).exp())
    }

    /// Returns the policy to test. A network of kind `Node` is tested with the search, because it is intended for use
    /// with the search.
    fn tested_policy(&self, config: &DeepWeaveConfig, workload: usize) -> DeepWeave {
        let policy = self.model.policy();
        if !self.model.net.is_residual() || config.test_evaluations == 0 {
            return policy;
        }
        let rng = stream(config.seed, Purpose::Evaluation, config.test_workloads + workload);
        policy.with_lookahead(Lookahead::new(config.test_evaluations, rng))
    }
}

impl Study for DeepWeaveStudy {
    const ALGORITHM: &'static str = "coflow";
    type Config = DeepWeaveConfig;
    type Task = Task;
    type Iteration = Iteration;
    type State = Weights;

    fn vector_len(config: &DeepWeaveConfig) -> Result<usize, StudyError> {
        Ok(config.net().parameter_count() * LIMBS)
    }

    fn new(config: &DeepWeaveConfig, task: Task) -> Result<Self, StudyError> {
        let net = config.net();
        let source = task.source.part(config.coflow_share, &mut stream(config.seed, Purpose::Rates, 0));
        net.check(&source.one_of_each())?;
        let parameters = net.initial_parameters(&mut stream(config.seed, Purpose::Weights, 0));
        Ok(Self {
            practice: Task { source, fabric: task.fabric.clone() },
            task,
            model: Model { net, weights: Weights::new(parameters) },
            reference: Vec::new(),
        })
    }

    fn state(&mut self) -> &mut Weights {
        &mut self.model.weights
    }

    fn parameters(&self) -> &[f32] {
        &self.model.weights.parameters
    }

    fn iterate(&mut self, step: &mut Step<'_>) -> Result<Option<Iteration>, StudyError> {
        let (phase, [jobs, decisions, job_time]) = self.learn(step)?;
        let gain = if step.is_tested(step.config.test_interval) { Some(self.test(step)?) } else { None };
        if step.is_stopped_anywhere()? {
            return Ok(None);
        }
        Ok(Some(Iteration {
            iteration: step.iteration,
            phase,
            jobs: jobs as u64,
            decisions: decisions as u64,
            job_time: (jobs > 0.0).then_some(job_time / jobs),
            gain,
            seconds: step.seconds(),
        }))
    }

    fn is_better(_: &DeepWeaveConfig, new: &Iteration, best: Option<&Iteration>) -> bool {
        new.gain.is_some_and(|gain| best.and_then(|best| best.gain).is_none_or(|best| gain > best))
    }

    fn environment(&self) -> String {
        "coflows".to_owned()
    }

    fn hash_task(&self, hash: &mut Sha256) {
        hash.update(self.task.source.digest().to_le_bytes());
        hash.update(self.task.fabric.to_record());
    }

    fn write(&self, _: &DeepWeaveConfig, writer: &mut Writer) {
        writer.text("source", self.task.source.digest().to_string());
        writer.text(RATES, self.task.fabric.rates.to_string());
        writer.text(FABRIC, self.task.fabric.to_record());
        self.model.weights.write(self.model.net.tensors(), writer);
    }

    fn read(&mut self, _: &DeepWeaveConfig, reader: &Reader<'_>) -> Result<(), StudyError> {
        let (saved, own): (u64, u64) = (reader.number("source")?, self.task.source.digest());
        if saved != own {
            let reason = "it was trained with coflows or shapes that differ from those of this run; pass the files of \
                          the original run";
            return Err(reader.refuse(reason.to_owned()).into());
        }
        let own = self.task.fabric.rates;
        if let Some(saved) = rates(reader)?.filter(|saved| *saved != own) {
            let reason = format!("it was trained with --rates {saved}, but this run has --rates {own}");
            return Err(reader.refuse(reason).into());
        }
        if fabric(reader)?.is_some_and(|saved| saved != self.task.fabric) {
            let reason = "it was trained on a fabric that differs from that of this run; pass the --ports, --capacity \
                          and --fabric of the original run";
            return Err(reader.refuse(reason.to_owned()).into());
        }
        self.model.weights.read(self.model.net.tensors(), reader)
    }

    fn write_best(config: &DeepWeaveConfig, parameters: &[f32], writer: &mut Writer) {
        writer.parameters("best.", config.net().tensors(), parameters);
    }

    fn read_best(config: &DeepWeaveConfig, reader: &Reader<'_>) -> Result<Vec<f32>, StudyError> {
        Ok(reader.parameters("best.", config.net().tensors())?)
    }

    fn check_file(config: &DeepWeaveConfig, reader: &Reader<'_>) -> Result<(), StudyError> {
        Ok(reader.check_parameters(config.net().parameter_count())?)
    }
}

/// Returns the model of rates that a checkpoint records; `None` for checkpoints of earlier versions, which do not
/// record it.
fn rates(reader: &Reader<'_>) -> Result<Option<Rates>, StudyError> {
    let parse = |text| names::parse("model of rates", text, Rates::iter(), "");
    let recorded = reader.text(RATES).ok().map(parse).transpose();
    recorded.map_err(|error| reader.refuse(error.to_string()).into())
}

/// Returns the fabric that a checkpoint records; `None` for checkpoints of earlier versions, which do not record it.
fn fabric(reader: &Reader<'_>) -> Result<Option<Fabric>, StudyError> {
    let recorded = reader.text(FABRIC).ok().map(Fabric::parse_record).transpose();
    recorded.map_err(|error| reader.refuse(error.to_string()).into())
}

impl DeepWeave {
    /// Returns the fabric on which a policy was trained, with the model of rates, or `None` if the checkpoint was
    /// written by an earlier version, which did not record the fabric.
    ///
    /// # Errors
    /// Fails if the file is damaged.
    pub fn fabric_of_saved(saved: &Saved) -> Result<Option<Fabric>, StudyError> {
        fabric(&saved.reader()?)
    }

    /// Returns the model of rates under which a policy was trained, or `None` if the checkpoint was written by an
    /// earlier version, which did not record the model.
    ///
    /// # Errors
    /// Fails if the file is damaged, or if it names an unknown model.
    pub fn rates_of_saved(saved: &Saved) -> Result<Option<Rates>, StudyError> {
        rates(&saved.reader()?)
    }

    /// Returns the policy with the best test result in a training run, or `None` before the first test.
    pub fn of_training(training: &Training) -> Option<Self> {
        Some(Self::new(training.config().net(), training.best_parameters()?.into()))
    }

    /// Returns the policy with the best test result in a checkpoint, for use with these jobs.
    ///
    /// # Errors
    /// Fails if no policy has been tested, or if a job has more coflows than the network supports.
    pub fn of_saved(saved: &Saved, jobs: &[Job]) -> Result<Self, StudyError> {
        let net = saved.config().net();
        net.check(jobs)?;
        Ok(Self::new(net, saved.best_parameters()?.into()))
    }
}
