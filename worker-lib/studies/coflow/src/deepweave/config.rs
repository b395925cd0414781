//! Hyper-parameters of a training run.

use serde::{Deserialize, Serialize};

use super::net::{Net, NetKind};
use iswitch_study::error::check_counts;
use iswitch_study::{Hyperparameters, StudyError, common_hyperparameters};

/// Source of randomness in iterations that use a policy gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explore {
    /// Random priorities at each decision (algorithm 1 of the paper).
    Actions,
    /// Random steps of a search that starts from the network's priorities.
    Moves,
}

/// All hyper-parameters of a training run. The number of agents is the total over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeepWeaveConfig {
    /// Seed of all random streams.
    pub seed: u64,
    /// Kind of network.
    pub network: NetKind,
    /// Maximum number of coflows of a job. Used only by the paper's network.
    pub coflows_max: usize,
    /// Fraction of the source's coflows that training jobs may contain; the subset is drawn at random.
    pub coflow_share: f64,
    /// Number of agents (N in algorithm 1 of the paper), each of which runs one episode per iteration.
    pub agents: usize,
    /// Number of initial iterations, in which the network learns to imitate a search.
    pub imitation_iterations: u64,
    /// Number of orders that the search tries for each job that has arrived since the previous decision, in iterations
    /// that use the search.
    pub evaluations: u64,
    /// Number of jobs per episode in iterations that use the search, in which each agent has its own jobs.
    pub own_jobs: usize,
    /// Number of optimiser steps in an iteration that imitates a search.
    pub imitation_steps: usize,
    /// Maximum change of a key that the network learns from the search; larger changes are clipped to it. Keys are
    /// natural logarithms.
    pub offset_max: f64,
    /// Total number of iterations.
    pub iterations: u64,
    /// Source of randomness in the iterations after imitation.
    pub explore: Explore,
    /// Standard deviation of random priorities.
    pub action_deviation: f64,
    /// Adam learning rate.
    pub learning_rate: f32,
    /// Mean interarrival times, in seconds, which successive workloads use in turn; 0 means that all jobs of a workload
    /// arrive at once.
    pub interarrivals: Vec<f64>,
    /// Mean number of jobs per episode in the first iteration after imitation. The number is exponentially distributed.
    pub episode_jobs: f64,
    /// Increase in the mean number of jobs per episode from one iteration to the next.
    pub episode_growth: f64,
    /// Maximum number of jobs per episode.
    pub episode_jobs_max: usize,
    /// Maximum number of jobs of a workload in which all jobs arrive at once.
    pub batch_jobs: usize,
    /// Number of iterations between tests.
    pub test_interval: u64,
    /// Number of workloads per test.
    pub test_workloads: usize,
    /// Number of orders that the search tries for each job that has arrived since the previous decision, in a test of a
    /// network of kind `Node`.
    pub test_evaluations: u64,
    /// Number of jobs in each test workload; at most `batch_jobs` if all arrive at once.
    pub test_jobs: usize,
}

impl DeepWeaveConfig {
    /// Returns the default hyper-parameters for a kind of network. Training does not begin with imitation. For the
    /// paper's network, the learning rate is that of the paper.
    pub fn preset(network: NetKind) -> Self {
        let is_node = network == NetKind::Node;
        Self {
            seed: 1,
            network,
            coflows_max: 32,
            coflow_share: 0.5,
            agents: 16,
            imitation_iterations: 0,
            evaluations: 20,
            own_jobs: 40,
            imitation_steps: 20,
            offset_max: 1.0,
            iterations: if is_node { 300 } else { 2000 },
            explore: if is_node { Explore::Moves } else { Explore::Actions },
            action_deviation: if is_node { 0.1 } else { 0.5 },
            learning_rate: if is_node { 5e-3 } else { 1e-3 },
            interarrivals: vec![40.0, 0.0, 20.0, 10.0],
            episode_jobs: 20.0,
            episode_growth: 0.05,
            episode_jobs_max: 120,
            batch_jobs: 20,
            test_interval: 20,
            test_workloads: 16,
            test_evaluations: if is_node { 20 } else { 0 },
            test_jobs: 100,
        }
    }

    /// Creates the network.
    pub fn net(&self) -> Net {
        Net::new(self.network, self.coflows_max)
    }
}

impl Hyperparameters for DeepWeaveConfig {
    common_hyperparameters!(agents);

    fn check(&self) -> Result<(), StudyError> {
        check_counts(&[
            ("coflows_max", self.coflows_max, 4096),
            ("agents", self.agents, 4096),
            ("own_jobs", self.own_jobs, 100_000),
            ("imitation_steps", self.imitation_steps, 100_000),
            ("episode_jobs_max", self.episode_jobs_max, 100_000),
            ("batch_jobs", self.batch_jobs, 100_000),
            ("test_workloads", self.test_workloads, 4096),
            ("test_jobs", self.test_jobs, 100_000),
        ])?;
        for (name, value, is_right, expected) in [
            ("coflow_share", self.coflow_share, self.coflow_share <= 1.0, "a number above 0 and at most 1"),
            ("offset_max", self.offset_max, true, "a number above 0"),
            ("action_deviation", self.action_deviation, true, "a number above 0"),
            ("learning_rate", f64::from(self.learning_rate), true, "a number above 0"),
            ("episode_jobs", self.episode_jobs, true, "a number above 0"),
        ] {
            if !(value.is_finite() && value > 0.0 && is_right) {
                return Err(StudyError::field(name, value, expected));
            }
        }
        let at_least_zero = |value: f64| value.is_finite() && value >= 0.0;
        if !at_least_zero(self.episode_growth) {
            return Err(StudyError::field("episode_growth", self.episode_growth, "a number >= 0"));
        }
        if let Some(wrong) = self.interarrivals.iter().find(|it| !at_least_zero(**it)) {
            return Err(StudyError::field("interarrivals", wrong, "numbers of seconds >= 0"));
        }
        if self.interarrivals.is_empty() {
            return Err(StudyError::field("interarrivals", "empty", "at least one"));
        }
        if self.test_interval == 0 {
            return Err(StudyError::field("test_interval", 0, "at least 1"));
        }
        Ok(())
    }
}
