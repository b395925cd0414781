//! Deep Q-learning (Mnih et al., 2015) with three extensions: double Q-learning (van Hasselt et al., 2016), duelling
//! networks (Wang et al., 2016) and prioritised replay (Schaul et al., 2016).
//!
//! Implementation details:
//!
//! 1. Image observations use the network of Mnih et al. (1,687,206 parameters with six actions), with pixels scaled to
//!    [0, 1] and rewards clipped to [-1, 1]; losing a life ends the return that is used for learning, but not the
//!    episode. Vector observations use two ReLU layers.
//! 2. Epsilon decreases linearly over the first `exploration_fraction` of the run. Each decision draws both of its
//!    random numbers even if it uses only one, so that the state of the streams does not depend on the outcome.
//! 3. Truncation is not treated as termination: targets bootstrap from the final observation of a truncated episode.
//! 4. The loss is the Huber loss or half the squared error, averaged over the batch. Gradients are clipped by their
//!    global norm after the aggregation; the optimiser is Adam.
//! 5. The target network moves towards the online network by `tau` every `target_update_interval` environment steps;
//!    a `tau` of 1 copies it.
//! 6. Each environment has its own replay buffer; a batch contains the same number of samples from each buffer.

use std::ops::Range;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::config::{Checks, annealed, hyper_parameters};
use super::experience::{ExperienceOptions, uniform_experience};
use super::halves::{Counters, LOSSES, SharedHalf, Tail};
use super::off_policy::{
    Behaviour, OffPolicy, OffPolicyAlgorithm, ReplayLearner, Source, follow, read_with_targets,
    write_with_targets,
};
use super::phases::Phase;
use super::policy_graph::{Outputs, PolicyGraph, Preprocessing};
use super::q_network::{QNetwork, QWorkspace};
use super::remote::{BatchLearner, Rest};
use super::replay::{Batch, Prioritisation};
use super::streams::{Purpose, stream};
use super::trainer::{Algorithm, Mode, Policy, common_accessors};
use super::vector::VectorShape;
use super::vector_env::VectorEnv;
use crate::env::EnvSpec;
use crate::nn::{Adam, clip_global_norm};

hyper_parameters! {
/// Hyper-parameters, named as in CleanRL and Stable-Baselines3. Sizes are totals over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DqnConfig {
    /// Total number of environment steps.
    pub total_steps: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of environments in the job; by default, the smallest multiple of the world size that is at least 4.
    pub environments: Option<usize>,
    /// Capacity of the replay buffer, in transitions (total across all environments).
    pub buffer_size: usize,
    /// Number of samples in one minibatch, in total across all environments.
    pub batch_size: usize,
    /// Number of environment steps, in total across all environments, before learning starts.
    pub learning_starts: u64,
    /// Number of environment steps from one group of updates to the next.
    pub train_every: u64,
    /// Number of updates in a group; 0 means one update per environment step.
    pub updates: u64,
    /// Adam learning rate; the initial value if it is annealed.
    pub learning_rate: f32,
    /// Whether the learning rate decreases linearly to 0 over the run.
    pub anneal_learning_rate: bool,
    /// Adam epsilon.
    pub adam_epsilon: f32,
    /// Discount factor.
    pub gamma: f32,
    /// Number of environment steps from one update of the target network to the next.
    pub target_update_interval: u64,
    /// Interpolation factor of a target network update; 1 copies the online network.
    pub tau: f32,
    /// Initial probability of a random action.
    pub exploration_initial: f32,
    /// Final probability of a random action.
    pub exploration_final: f32,
    /// Fraction of the run over which the probability of a random action decreases.
    pub exploration_fraction: f32,
    /// Euclidean norm to which the aggregated gradient is clipped.
    pub max_grad_norm: f32,
    /// Whether to use the Huber loss, which is linear for errors beyond 1, instead of the squared error.
    pub huber: bool,
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Whether the online network chooses the target's action (double Q-learning).
    pub double: bool,
    /// Whether the network has separate value and advantage streams (duelling).
    pub duelling: bool,
    /// Settings of prioritised replay. If absent, sampling is uniform.
    pub prioritisation: Option<Prioritisation>,
    /// Whether to learn from rewards clipped to [-1, 1].
    pub clip_rewards: bool,
}
}

impl DqnConfig {
    /// Returns hyper-parameters for image observations.
    fn images() -> Self {
        Self {
            total_steps: 10_000_000,
            seed: 1,
            environments: None,
            buffer_size: 100_000,
            batch_size: 32,
            learning_starts: 100_000,
            train_every: 4,
            updates: 1,
            learning_rate: 1e-4,
            anneal_learning_rate: false,
            adam_epsilon: 1e-8,
            gamma: 0.99,
            target_update_interval: 1000,
            tau: 1.0,
            exploration_initial: 1.0,
            exploration_final: 0.01,
            exploration_fraction: 0.1,
            max_grad_norm: 10.0,
            huber: true,
            hidden: vec![512],
            double: false,
            duelling: false,
            prioritisation: None,
            clip_rewards: true,
        }
    }

    /// Creates the network for an environment.
    ///
    /// # Errors
    /// Fails if the environment has continuous actions.
    pub fn network(&self, env: &EnvSpec) -> Result<QNetwork, TrainError> {
        QNetwork::new(env, &self.hidden, self.duelling)
    }

    /// Returns the learning rate after `steps` steps.
    fn learning_rate_after(&self, steps: u64) -> f32 {
        annealed(self.learning_rate, self.anneal_learning_rate, steps as f64 / self.total_steps as f64)
    }

    /// Returns the probability of a random action after `steps` steps.
    fn epsilon(&self, steps: u64) -> f32 {
        let falls_over = self.total_steps as f64 * f64::from(self.exploration_fraction);
        let share = (steps as f64 / falls_over.max(1.0)).min(1.0) as f32;
        self.exploration_initial + (self.exploration_final - self.exploration_initial) * share
    }
}

impl Algorithm for DqnConfig {
    const NAME: &'static str = "dqn";
    const DEFAULT_ENV: &'static str = "CartPole-v1";
    const CHECKPOINT_EVERY: u64 = 500;
    type Family = OffPolicy;

    fn preset(env: &str) -> Self {
        match env {
            "CartPole-v1" | "CartPoleNoVel-v1" => Self {
                total_steps: 500_000,
                buffer_size: 10_000,
                batch_size: 128,
                learning_starts: 10_000,
                train_every: 10,
                updates: 1,
                learning_rate: 2.5e-4,
                target_update_interval: 500,
                exploration_final: 0.05,
                exploration_fraction: 0.5,
                huber: false,
                double: true,
                hidden: vec![120, 84],
                clip_rewards: false,
                ..Self::images()
            },
            "PlanarLander-v0" => Self {
                total_steps: 300_000,
                buffer_size: 50_000,
                batch_size: 128,
                learning_starts: 5_000,
                train_every: 4,
                learning_rate: 5e-4,
                target_update_interval: 500,
                exploration_final: 0.05,
                exploration_fraction: 0.3,
                double: true,
                hidden: vec![120, 84],
                clip_rewards: false,
                ..Self::images()
            },
            _ => Self::images(),
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        let mut checks = Checks::default();
        checks
            .experience(&self.experience(), self.total_steps)
            .positive("target_update_interval", self.target_update_interval)
            .above_zero("learning_rate", self.learning_rate)
            .above_zero("adam_epsilon", self.adam_epsilon)
            .above_zero("max_grad_norm", self.max_grad_norm)
            .unit("gamma", self.gamma)
            .unit("tau", self.tau)
            .unit("exploration_initial", self.exploration_initial)
            .unit("exploration_final", self.exploration_final)
            .unit("exploration_fraction", self.exploration_fraction)
            .widths("hidden", &self.hidden);
        if let Some(how) = self.prioritisation {
            checks
                .unit("prioritisation.alpha", how.alpha)
                .unit("prioritisation.beta", how.beta)
                .above_zero("prioritisation.epsilon", how.epsilon);
        }
        checks.result()
    }

    common_accessors!();

    fn vector_shape(&self, env: &EnvSpec, _mode: Mode) -> Result<VectorShape, TrainError> {
        Ok(Tail::after(self.network(env)?.parameter_count()))
    }

    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError> {
        let network = self.network(env)?;
        Ok(Box::new(DqnPolicy {
            parameters: reader.parameters("", network.tensors())?,
            work: network.workspace(1),
            scaled: vec![0.0; env.observation_dim],
            spec: env.clone(),
            network,
        }))
    }
}

impl OffPolicyAlgorithm for DqnConfig {
    type Behaviour = DqnBehaviour;
    type Learner = DqnLearner;

    fn experience(&self) -> ExperienceOptions {
        ExperienceOptions {
            prioritisation: self.prioritisation,
            clip_rewards: self.clip_rewards,
            ..uniform_experience!(self)
        }
    }

    fn acting(&self, spec: &EnvSpec) -> Result<Range<usize>, TrainError> {
        Ok(0..self.network(spec)?.parameter_count())
    }

    fn behaviour(&self, spec: &EnvSpec, environments: usize) -> Result<DqnBehaviour, TrainError> {
        let network = self.network(spec)?;
        Ok(DqnBehaviour { work: network.workspace(environments), config: self.clone(), network })
    }

    fn learner(&self, spec: &EnvSpec, samples: usize, _source: Source) -> Result<DqnLearner, TrainError> {
        Ok(DqnLearner { loss: DqnLoss::new(self.network(spec)?, samples), config: self.clone() })
    }

    fn rest(mut self, spec: &EnvSpec) -> Result<Rest, TrainError> {
        let network = self.network(spec)?;
        let parameters = network.initial_parameters(&mut stream(self.seed, Purpose::Weights, 0));
        let shared = DqnShared {
            adam: Adam::new(parameters.len(), self.adam_epsilon),
            network,
            target_moved_at: 0,
            config: self.clone(),
        };
        Ok(Rest::new(&mut self, Tail::after(parameters.len()), parameters.repeat(2), Box::new(shared)))
    }
}

/// The loss of Q-learning and its gradient, with buffers for the intermediate results of a batch.
#[derive(Clone, Debug)]
pub struct DqnLoss {
    network: QNetwork,
    work: QWorkspace,
    targets: Vec<f32>,
    errors: Vec<f32>,
    delta: Vec<f32>,
}

impl DqnLoss {
    /// Creates the loss for batches of up to `batch_max` samples.
    pub fn new(network: QNetwork, batch_max: usize) -> Self {
        let work = network.workspace(batch_max);
        Self { network, work, targets: vec![], errors: vec![], delta: vec![] }
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of the mean loss. `model` holds the parameters of
    /// the online network, followed by those of the target network. Returns the loss, and the mean of the values that
    /// the network assigns to the chosen actions.
    pub fn gradient(
        &mut self,
        config: &DqnConfig,
        model: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
    ) -> [f32; 2] {
        let _forward = Phase::Forward.enter();
        self.find_targets(config, model, batch);
        let parameters = &model[..self.network.parameter_count()];
        let (actions, samples) = (self.network.actions(), batch.rewards.len());
        let values = self.network.values(parameters, &batch.observations, &mut self.work);
        self.errors.clear();
        self.delta.clear();
        self.delta.resize(values.len(), 0.0);
        let (mut loss, mut mean_value) = (0.0, 0.0);
        for (i, target) in self.targets.iter().enumerate() {
            let taken = i * actions + batch.actions[i] as usize;
            let error = values[taken] - target;
            self.errors.push(error);
            let slope = if config.huber { error.clamp(-1.0, 1.0) } else { error };
            // Equals half the squared error where the slope is not clamped.
            loss += batch.weights[i] * slope * (error - 0.5 * slope);
            mean_value += values[taken];
            self.delta[taken] = batch.weights[i] * slope / samples as f32;
        }
        let backward = Phase::Backward.enter();
        self.network.backward(parameters, &batch.observations, &self.delta, &mut self.work, gradient);
        drop(backward);
        [loss / samples as f32, mean_value / samples as f32]
    }

    /// Computes `r + gamma * max Q'(s', .)`, where Q' is the target network. If `double` is set, the online network Q
    /// chooses the action, and Q' estimates the value of this action.
    fn find_targets(&mut self, config: &DqnConfig, model: &[f32], batch: &Batch) {
        let (parameters, target) = model.split_at(self.network.parameter_count());
        let actions = self.network.actions();
        let mut chosen = Vec::new();
        if config.double {
            let values = self.network.values(parameters, &batch.next_observations, &mut self.work);
            chosen.extend(values.chunks_exact(actions).map(best));
        }
        let values = self.network.values(target, &batch.next_observations, &mut self.work);
        self.targets.clear();
        for (i, row) in values.chunks_exact(actions).enumerate() {
            let action = chosen.get(i).copied().unwrap_or_else(|| best(row));
            self.targets.push(batch.rewards[i] + config.gamma * batch.goes_on[i] * row[action]);
        }
    }
}

/// Returns the index of the largest value, or the first such index if there are several.
fn best(values: &[f32]) -> usize {
    let mut best = 0;
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}

/// Epsilon-greedy action selection.
pub(super) struct DqnBehaviour {
    config: DqnConfig,
    network: QNetwork,
    work: QWorkspace,
}

impl Behaviour for DqnBehaviour {
    fn choose(&mut self, parameters: &[f32], steps: u64, acting: &mut VectorEnv, actions: &mut Vec<f32>) {
        let epsilon = self.config.epsilon(steps);
        let values = self.network.values(parameters, acting.observations(), &mut self.work);
        actions.clear();
        let count = self.network.actions();
        for (row, slot) in values.chunks_exact(count).zip(acting.slots_mut()) {
            let (chance, random) = (slot.action_rng.random::<f32>(), slot.action_rng.random_range(0..count));
            actions.push(if chance < epsilon { random } else { best(row) } as f32);
        }
    }
}

/// The learner of DQN, which computes gradients from batches of transitions.
pub(super) struct DqnLearner {
    config: DqnConfig,
    loss: DqnLoss,
}

impl ReplayLearner for DqnLearner {}

impl BatchLearner for DqnLearner {
    fn gradient(&mut self, model: &[f32], batch: &Batch, gradient: &mut [f32]) -> [f32; LOSSES] {
        let [loss, value] = self.loss.gradient(&self.config, model, batch, gradient);
        [loss, value, 0.0, 0.0]
    }

    fn errors(&self) -> &[f32] {
        &self.loss.errors
    }
}

struct DqnShared {
    config: DqnConfig,
    network: QNetwork,
    adam: Adam,
    /// Number of environment steps at the last update of the target network.
    target_moved_at: u64,
}

impl SharedHalf for DqnShared {
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters) {
        clip_global_norm(gradient, self.config.max_grad_norm);
        let (parameters, target) = model.split_at_mut(gradient.len());
        self.adam.step(parameters, gradient, self.config.learning_rate_after(counters.steps));
        if counters.steps - self.target_moved_at >= self.config.target_update_interval {
            self.target_moved_at = counters.steps;
            follow(target, parameters, self.config.tau);
        }
    }

    fn loss_names(&self) -> &'static [&'static str] {
        &["losses/td_loss", "losses/q_values"]
    }

    fn write(&self, model: &[f32], writer: &mut Writer) {
        write_with_targets(writer, || self.network.tensors(), model);
        writer.adam("optimiser", &self.adam);
        writer.text("target_moved_at", self.target_moved_at.to_string());
    }

    fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError> {
        read_with_targets(reader, || self.network.tensors(), model)?;
        reader.adam("optimiser", self.network.parameter_count(), &mut self.adam)?;
        self.target_moved_at = reader.number("target_moved_at")?;
        Ok(())
    }
}

/// Policy of a trained network. It is epsilon-greedy if `act` receives a random generator, and greedy otherwise.
struct DqnPolicy {
    network: QNetwork,
    parameters: Vec<f32>,
    work: QWorkspace,
    spec: EnvSpec,
    scaled: Vec<f32>,
}

impl Policy for DqnPolicy {
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]) {
        const EPSILON: f32 = 0.05;
        action[0] = best(self.scores(observation)) as f32;
        if let Some(rng) = rng
            && rng.random::<f32>() < EPSILON
        {
            action[0] = rng.random_range(0..self.network.actions()) as f32;
        }
    }

    fn scores(&mut self, observation: &[f32]) -> &[f32] {
        self.spec.scale_observation(observation, &mut self.scaled);
        self.network.values(&self.parameters, &self.scaled, &mut self.work)
    }

    fn graph(&self) -> PolicyGraph {
        let (layers, streams) = self.network.graph_layers(&self.parameters);
        let preprocessing = Preprocessing::of(&self.spec);
        PolicyGraph { preprocessing, memory: None, layers, streams, outputs: Outputs::QValues }
    }
}
