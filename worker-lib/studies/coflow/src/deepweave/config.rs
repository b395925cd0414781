//! Hyper-parameters.

use serde::{Deserialize, Serialize};

use super::net::{Net, NetKind};
use iswitch_study::error::check_counts;
use iswitch_study::{Hyperparameters, StudyError, common_hyperparameters};

/// What is random while the policy gradient is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explore {
    /// Priorities, at each decision (algorithm 1 of the paper).
    Actions,
    /// The steps of a search behind the network's priorities.
    Moves,
}

/// All hyper-parameters of a training. Numbers of agents are over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeepWeaveConfig {
    /// Of everything random.
    pub seed: u64,
    /// Which network.
    pub network: NetKind,
    /// Most coflows of a job, for the paper's network.
    pub coflows_max: usize,
    /// Share of the coflows, a random part of them, that training jobs are made of.
    pub coflow_share: f64,
    /// Episodes of an iteration: N of algorithm 1.
    pub agents: usize,
    /// Iterations in which a search is imitated, before others.
    pub imitation_iterations: u64,
    /// Orders that a search tries for each job that arrives, while it is imitated or learns where to look.
    pub evaluations: u64,
    /// Jobs of an episode of an agent that has its own: where a search is imitated or learns.
    pub own_jobs: usize,
    /// Steps of the optimiser in an imitated iteration.
    pub imitation_steps: usize,
    /// Beyond this many e-folds the search's changes of keys are not followed.
    pub offset_max: f64,
    /// Iterations in all.
    pub iterations: u64,
    /// What is random after imitation.
    pub explore: Explore,
    /// Standard deviation of random priorities.
    pub action_deviation: f64,
    /// Of Adam.
    pub learning_rate: f32,
    /// Mean distances of arrivals in seconds, used in turn; 0: all arrive at once.
    pub interarrivals: Vec<f64>,
    /// Mean number of jobs of an episode, of an exponential distribution, in the first iteration after imitation.
    pub episode_jobs: f64,
    /// More of them in each iteration.
    pub episode_growth: f64,
    /// Jobs of an episode, at most.
    pub episode_jobs_max: usize,
    /// Jobs that arrive at once, at most.
    pub batch_jobs: usize,
    /// Iterations between tests.
    pub test_interval: u64,
    /// Workloads of a test.
    pub test_workloads: usize,
    /// Orders that are tried for each job that arrives in a test of a network on top of JobSEBF.
    pub test_evaluations: u64,
    /// Jobs of each of them; where all arrive at once `batch_jobs`.
    pub test_jobs: usize,
}

impl DeepWeaveConfig {
    /// Of a network. The paper gives Adam's rate; the paper's network learns from nothing, as there.
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

    /// The network.
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
            ("coflow_share", self.coflow_share, self.coflow_share <= 1.0, "a number above 0, at most 1"),
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
            return Err(StudyError::field("episode_growth", self.episode_growth, "a number of at least 0"));
        }
        if let Some(wrong) = self.interarrivals.iter().find(|it| !at_least_zero(**it)) {
            return Err(StudyError::field("interarrivals", wrong, "numbers of seconds of at least 0"));
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
