//! Hyper-parameters of the training.

use serde::{Deserialize, Serialize};

use super::patent_net::PatentNet;
use super::shared_net::SharedNet;
use crate::options::Checkpoint;
use crate::policy::PolicySpec;
use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_study::error::check_counts;
use iswitch_study::{Hyperparameters, StudyError, common_hyperparameters};

/// Network to train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Network that scores GPUs and jobs one by one and adjusts the decisions of a rule; for clusters of any size.
    Shared,
    /// The patent's network, for a fixed number of GPUs.
    Patent,
}

/// Definition of T_Random: the makespan of random placement that serves as the baseline of a run's reward in the
/// patent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomReference {
    /// Mean makespan of the best of several random plans. The plan is chosen and measured on two independent sets of
    /// failures, neither of which the policy's run uses.
    Independent,
    /// Lowest makespan of several random simulated runs on the same failures as the policy's run, as in the patent's
    /// text.
    Hindsight,
}

/// Maximum number of GPUs in a cluster for the patent's network.
const GPUS_MAX: usize = 4096;

/// All hyper-parameters of a training run. The number of environments is the total over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementConfig {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Network to train.
    pub network: Network,
    /// Number of GPUs in the cluster that the network is trained on.
    pub gpus: usize,
    /// Whether the shared network may suspend jobs.
    pub suspends: bool,
    /// Number of iterations.
    pub iterations: u64,
    /// Number of environments in an iteration, each of which is a draw of jobs and GPUs.
    pub environments: usize,
    /// Number of simulated runs of each environment, each with its own failures.
    pub courses: usize,
    /// Minimum failure-rate factor. The factor of each environment is drawn from the log-uniform distribution between
    /// `factor_min` and `factor_max`.
    pub factor_min: f64,
    /// Maximum failure-rate factor.
    pub factor_max: f64,
    /// Work between checkpoints, in seconds; environments use the values in turn. 0 means no checkpoints.
    pub checkpoint_intervals: Vec<f64>,
    /// Whether jobs use the checkpoint interval of Young and Daly instead of `checkpoint_intervals`.
    #[serde(default)]
    pub young_daly: bool,
    /// Time to write a checkpoint, in seconds; above 0 with `young_daly`.
    pub checkpoint_cost: f64,
    /// Adam learning rate in the first iteration; it decays linearly to 0.
    pub learning_rate: f32,
    /// Weight of the entropy of the policy's choices in the objective.
    pub entropy_weight: f32,
    /// Temperature at which the shared network samples the order of the queue.
    pub order_temperature: f64,
    /// Temperature at which the shared network samples GPUs.
    pub pick_temperature: f64,
    /// Standard deviation with which the shared network samples the logarithm of the interval between suspensions.
    pub save_deviation: f64,
    /// Whether rewards count the work that failures were expected to undo instead of the work that they actually undid.
    /// A regression determines how much of the makespan the difference explains. This option is not suitable for
    /// workloads in which the placers' estimates of failure rates are wrong.
    pub shaping: bool,
    /// Number of random placements, the best of which defines T_Random.
    pub random_placements: usize,
    /// Definition of T_Random.
    pub random_reference: RandomReference,
    /// Minimum reward of the patent's network. The reward is always below 1, because a makespan is above 0.
    pub reward_min: f64,
    /// Capacity of the replay buffer, in samples.
    pub replay_capacity: usize,
    /// Number of optimiser steps per iteration. Each step uses as many samples as the iteration has produced.
    pub updates: usize,
    /// Maximum weight of a sample. The weight is the ratio of the current probability of the sample's action to its
    /// probability when the action was taken.
    pub ratio_max: f32,
    /// Weight of the value network's squared error.
    pub value_weight: f32,
    /// Number of iterations between tests.
    pub test_interval: u64,
    /// Number of draws in a test.
    pub test_draws: usize,
    /// Number of standard errors by which the shared network must outperform its rule in a test before it replaces the
    /// rule. With 0, the network with the best test result is used, even if it is best by chance.
    pub significance: f64,
}

impl PlacementConfig {
    /// Returns the default hyper-parameters of `network` for a cluster with `gpus` GPUs.
    pub fn preset(network: Network, gpus: usize) -> Self {
        let is_shared = network == Network::Shared;
        Self {
            seed: 1,
            network,
            gpus,
            suspends: is_shared,
            iterations: if is_shared { 300 } else { 150 },
            environments: if is_shared { 16 } else { 8 },
            courses: if is_shared { 16 } else { 4 },
            factor_min: if is_shared { 3.0 } else { 30.0 },
            factor_max: 1000.0,
            checkpoint_intervals: if is_shared { vec![0.0, 0.0, 0.0, 86_400.0] } else { vec![0.0] },
            young_daly: false,
            checkpoint_cost: 60.0,
            learning_rate: if is_shared { 1e-3 } else { 3e-4 },
            entropy_weight: if is_shared { 1e-4 } else { 1e-2 },
            order_temperature: 0.3,
            pick_temperature: 0.3,
            save_deviation: 0.3,
            shaping: true,
            random_placements: 10,
            random_reference: RandomReference::Independent,
            reward_min: -1.0,
            replay_capacity: 20_000,
            updates: 2,
            ratio_max: 2.0,
            value_weight: 0.5,
            test_interval: 20,
            test_draws: 256,
            significance: if is_shared { 2.6 } else { 0.0 },
        }
    }

    fn check_weights(&self) -> Result<(), StudyError> {
        let at_least_zero = |value: f64| value.is_finite() && value >= 0.0;
        for (name, value) in [
            ("checkpoint_cost", self.checkpoint_cost),
            ("entropy_weight", f64::from(self.entropy_weight)),
            ("value_weight", f64::from(self.value_weight)),
            ("significance", self.significance),
        ] {
            if !at_least_zero(value) {
                return Err(StudyError::field(name, value, "a number >= 0"));
            }
        }
        if let Some(wrong) = self.checkpoint_intervals.iter().find(|it| !at_least_zero(**it)) {
            return Err(StudyError::field("checkpoint_intervals", wrong, "numbers of seconds >= 0"));
        }
        if self.young_daly && self.checkpoint_cost == 0.0 {
            return Err(StudyError::field("checkpoint_cost", 0, "a number above 0 with young_daly"));
        }
        if self.checkpoint_intervals.is_empty() {
            return Err(StudyError::field("checkpoint_intervals", "empty", "at least one interval"));
        }
        if self.test_interval == 0 {
            return Err(StudyError::field("test_interval", 0, "at least 1"));
        }
        Ok(())
    }

    /// Checks that the network can be used for a cluster with `gpus` GPUs.
    ///
    /// # Errors
    /// Fails if this is the patent's network and `gpus` is not the number of GPUs for which it was created.
    pub fn check_gpus(&self, gpus: usize) -> Result<(), StudyError> {
        if self.network == Network::Shared || gpus == self.gpus {
            return Ok(());
        }
        let expected = format!("{}, for which the patent's network was created", self.gpus);
        Err(StudyError::field("number of GPUs in the cluster", gpus, expected))
    }

    /// Returns the checkpoint setting of the environment numbered `number`.
    pub(super) fn checkpoint(&self, number: usize) -> Checkpoint {
        if self.young_daly {
            return Checkpoint::YoungDaly { cost: self.checkpoint_cost };
        }
        match self.checkpoint_intervals[number % self.checkpoint_intervals.len()] {
            0.0 => Checkpoint::None,
            interval => Checkpoint::Periodic { interval, cost: self.checkpoint_cost },
        }
    }

    /// Returns the Adam learning rate in an iteration.
    pub(super) fn learning_rate(&self, iteration: u64) -> f32 {
        let left = (self.iterations + 1).saturating_sub(iteration) as f32 / self.iterations.max(1) as f32;
        self.learning_rate * left
    }

    /// Returns the policy with which the trained network is compared: for the shared network, the rule from which it
    /// starts; for the patent's network, random placement.
    pub fn reference(&self) -> PolicySpec {
        match (self.network, self.suspends) {
            (Network::Shared, true) => PolicySpec::Saving,
            (Network::Shared, false) => PolicySpec::LongestReliable,
            (Network::Patent, _) => PolicySpec::Random,
        }
    }

    /// Returns the number of the network's parameters.
    pub fn parameter_count(&self) -> usize {
        match self.network {
            Network::Shared => SharedNet::new().parameter_count(),
            Network::Patent => PatentNet::count(self.gpus),
        }
    }

    /// Returns the names and positions of the network's tensors.
    pub(super) fn tensors(&self) -> Vec<NamedTensor> {
        match self.network {
            Network::Shared => SharedNet::new().tensors(),
            Network::Patent => PatentNet::new(self.gpus).tensors(),
        }
    }
}

impl Hyperparameters for PlacementConfig {
    common_hyperparameters!(environments);

    fn check(&self) -> Result<(), StudyError> {
        // Only the patent's network has an output for each GPU.
        if self.network == Network::Patent {
            check_counts(&[("gpus", self.gpus, GPUS_MAX)])?;
        }
        check_counts(&[
            ("environments", self.environments, 4096),
            ("courses", self.courses, 4096),
            ("random_placements", self.random_placements, 10_000),
            ("replay_capacity", self.replay_capacity, 10_000_000),
            ("updates", self.updates, 10_000),
            ("test_draws", self.test_draws, 4096),
        ])?;
        for (name, value) in [
            ("factor_min", self.factor_min),
            ("learning_rate", f64::from(self.learning_rate)),
            ("order_temperature", self.order_temperature),
            ("pick_temperature", self.pick_temperature),
            ("save_deviation", self.save_deviation),
            ("ratio_max", f64::from(self.ratio_max)),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(StudyError::field(name, value, "a number above 0"));
            }
        }
        if !(self.factor_max.is_finite() && self.factor_max >= self.factor_min) {
            let expected = format!("a number >= factor_min ({})", self.factor_min);
            return Err(StudyError::field("factor_max", self.factor_max, expected));
        }
        if !(self.reward_min.is_finite() && self.reward_min < 0.0) {
            return Err(StudyError::field("reward_min", self.reward_min, "a number below 0"));
        }
        self.check_weights()
    }
}
