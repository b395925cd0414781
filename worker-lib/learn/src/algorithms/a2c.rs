//! Advantage actor-critic (Mnih et al., 2016, but without the paper's threads), synchronous or asynchronous.
//!
//! Implementation details:
//!
//! 1. For image observations, one network has policy and value outputs (866,439 parameters with six actions). Pixels
//!    are scaled to [0, 1], and rewards are clipped to [-1, 1]. Losing a life ends the return that is used for
//!    learning, but not the episode. For vector observations, there are two networks with two tanh layers each. The
//!    initialisation is orthogonal, with zero biases.
//! 2. Each gradient covers `steps_per_env` steps of every environment. The targets are the returns over these steps
//!    plus the discounted value of the final observation (generalised advantage estimation with a lambda of 1).
//! 3. Truncation is not termination: if the time limit truncates an episode, the discounted value of the final
//!    observation is added to the last reward.
//! 4. The optimiser is RMSProp in PyTorch's form, with an epsilon of 1e-5 that is added outside the square root. The
//!    learning rate decays linearly to 0 over the run. Gradients are clipped by their global norm after aggregation.
//! 5. Advantages are not normalised.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::TrainError;
use super::actor_critic::{Head, sample_action};
use super::checkpoint::{Reader, Writer};
use super::config::{Checks, annealed, hyper_parameters};
use super::environments::EnvironmentSlot;
use super::halves::{Counters, LOSSES, SharedHalf, Tail};
use super::on_policy::{HasSlots, OnPolicy, OnPolicyAlgorithm};
use super::phases::Phase;
use super::policy_graph::{Outputs, PolicyGraph, Preprocessing};
use super::policy_value::{PolicyValue, PolicyValueWorkspace};
use super::remote::{Rest, RolloutActor, RolloutLearner};
use super::rollout::RolloutBuffer;
use super::share::{Share, environments_of};
use super::streams::{Purpose, stream};
use super::trainer::{Algorithm, Mode, Policy, World, common_accessors};
use super::vector::VectorShape;
use crate::env::{ActionSpec, EnvSpec};
use crate::nn::{Categorical, RmsProp, clip_global_norm};

hyper_parameters! {
/// Hyper-parameters of A2C, named as in Stable-Baselines3. Sizes are totals over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct A2cConfig {
    /// Total number of environment steps in the run.
    pub total_steps: u64,
    /// Seed of all random number streams.
    pub seed: u64,
    /// Number of environments in the job. By default, it is the smallest multiple of the world size that is at least 8,
    /// or 16 if rewards are clipped.
    pub environments: Option<usize>,
    /// Number of steps of each environment per gradient (`n_steps`).
    pub steps_per_env: usize,
    /// Initial RMSProp learning rate.
    pub learning_rate: f32,
    /// Whether the learning rate decays linearly to 0 over `total_steps`.
    pub anneal_learning_rate: bool,
    /// Discount factor.
    pub gamma: f32,
    /// Lambda of generalised advantage estimation.
    pub gae_lambda: f32,
    /// Weight of the entropy bonus.
    pub entropy_coefficient: f32,
    /// Weight of the value function's loss.
    pub value_coefficient: f32,
    /// Maximum Euclidean norm of the aggregated gradient, to which larger gradients are clipped.
    pub max_grad_norm: f32,
    /// Decay factor of RMSProp's running mean of squared gradients.
    pub rmsprop_decay: f32,
    /// Epsilon of RMSProp, added to the denominator for numerical stability.
    pub rmsprop_epsilon: f32,
    /// Initial logarithm of the policy's standard deviation, for continuous actions.
    pub log_std_init: f32,
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Whether the rewards used for learning are clipped to [-1, 1].
    pub clip_rewards: bool,
}
}

impl A2cConfig {
    fn vectors() -> Self {
        Self {
            total_steps: 1_000_000,
            seed: 1,
            environments: None,
            steps_per_env: 5,
            learning_rate: 7e-4,
            anneal_learning_rate: true,
            gamma: 0.99,
            gae_lambda: 1.0,
            entropy_coefficient: 0.0,
            value_coefficient: 0.5,
            max_grad_norm: 0.5,
            rmsprop_decay: 0.99,
            rmsprop_epsilon: 1e-5,
            log_std_init: 0.0,
            hidden: vec![64, 64],
            clip_rewards: false,
        }
    }

    /// Creates the networks for an environment.
    pub fn networks(&self, env: &EnvSpec) -> PolicyValue {
        PolicyValue::new(env, &self.hidden)
    }
}

impl Algorithm for A2cConfig {
    const NAME: &'static str = "a2c";
    const DEFAULT_ENV: &'static str = "CartPole-v1";
    const CHECKPOINT_EVERY: u64 = 50;
    type Family = OnPolicy;

    fn preset(env: &str) -> Self {
        match env {
            "CartPole-v1" | "CartPoleNoVel-v1" => {
                Self { total_steps: 500_000, gae_lambda: 0.95, ..Self::vectors() }
            }
            "Pendulum-v1"
            | "PendulumNoVel-v1"
            | "PlanarHopper-v0"
            | "PlanarWalker-v0"
            | "PlanarHalfCheetah-v0"
            | "PlanarLander-v0"
            | "PlanarLanderContinuous-v0"
            | "Hopper-v5"
            | "HalfCheetah-v5" => Self::vectors(),
            _ => Self {
                total_steps: 10_000_000,
                entropy_coefficient: 0.01,
                value_coefficient: 0.25,
                hidden: vec![512],
                clip_rewards: true,
                ..Self::vectors()
            },
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        Checks::default()
            .positive("total_steps", self.total_steps)
            .positive("steps_per_env", self.steps_per_env as u64)
            .above_zero("learning_rate", self.learning_rate)
            .unit("gamma", self.gamma)
            .unit("gae_lambda", self.gae_lambda)
            .not_negative("entropy_coefficient", self.entropy_coefficient)
            .not_negative("value_coefficient", self.value_coefficient)
            .above_zero("max_grad_norm", self.max_grad_norm)
            .unit("rmsprop_decay", self.rmsprop_decay)
            .above_zero("rmsprop_epsilon", self.rmsprop_epsilon)
            .finite("log_std_init", self.log_std_init)
            .widths("hidden", &self.hidden)
            .result()
    }

    common_accessors!();

    fn vector_shape(&self, env: &EnvSpec, _mode: Mode) -> Result<VectorShape, TrainError> {
        Ok(Tail::after(self.networks(env).parameter_count()))
    }

    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError> {
        let networks = self.networks(env);
        Ok(Box::new(A2cPolicy {
            parameters: reader.parameters("", networks.tensors())?,
            work: networks.workspace(1),
            scaled: vec![0.0; env.observation_dim],
            spec: env.clone(),
            networks,
        }))
    }
}

impl OnPolicyAlgorithm for A2cConfig {
    type Actor = A2cActor;
    type Learner = A2cLearner;

    fn share_of(&self, world: World) -> Result<Share, TrainError> {
        let least = if self.clip_rewards { 16 } else { 8 };
        let environments = environments_of(self.environments, least, world.size);
        let steps = self.steps_per_env.saturating_mul(environments);
        Share::new(world.rank, world.size, Some(environments), steps, steps)
    }

    fn actor(&self, spec: EnvSpec, slots: Vec<EnvironmentSlot>) -> A2cActor {
        A2cActor::new(self, spec, slots)
    }

    fn learner(&self, share: &Share, spec: &EnvSpec) -> A2cLearner {
        A2cLearner::new(self, spec, share.local_environments().len())
    }

    fn rest(mut self, spec: &EnvSpec) -> Rest {
        let networks = self.networks(spec);
        let parameters =
            networks.initial_parameters(self.log_std_init, &mut stream(self.seed, Purpose::Weights, 0));
        let shared = A2cShared {
            rmsprop: RmsProp::new(parameters.len(), self.rmsprop_decay, self.rmsprop_epsilon),
            networks,
            config: self.clone(),
        };
        Rest::new(&mut self, Tail::after(parameters.len()), parameters, Box::new(shared))
    }
}

/// The actor of A2C, which fills one rollout at a time.
pub(super) struct A2cActor {
    spec: EnvSpec,
    gamma: f32,
    clip_rewards: bool,
    networks: PolicyValue,
    slots: Vec<EnvironmentSlot>,
    /// Observations in the form that the networks expect, `[environments, observation_dim]`.
    observations: Vec<f32>,
    work: PolicyValueWorkspace,
    tail: Tail,
}

impl A2cActor {
    fn new(config: &A2cConfig, spec: EnvSpec, slots: Vec<EnvironmentSlot>) -> Self {
        let networks = config.networks(&spec);
        Self {
            observations: vec![0.0; slots.len() * spec.observation_dim],
            work: networks.workspace(slots.len()),
            tail: Tail::default(),
            gamma: config.gamma,
            clip_rewards: config.clip_rewards,
            networks,
            spec,
            slots,
        }
    }

    fn scale_observations(&mut self) {
        let rows = self.observations.chunks_exact_mut(self.spec.observation_dim);
        for (slot, row) in self.slots.iter().zip(rows) {
            self.spec.scale_observation(&slot.observation, row);
        }
    }

    /// Executes step `t` of the rollout in each environment.
    fn act(&mut self, model: &[f32], buffer: &mut RolloutBuffer, t: usize) -> Result<(), TrainError> {
        self.scale_observations();
        self.networks.forward(model, &self.observations, &mut self.work);
        let (dim, action_dim) = (self.spec.observation_dim, self.spec.action.stored_dim());
        let log_std = &model[self.networks.log_std_range()];
        for (k, slot) in self.slots.iter_mut().enumerate() {
            let i = k * buffer.steps + t;
            buffer.values[i] = self.work.values[k];
            buffer.observations[i * dim..(i + 1) * dim]
                .copy_from_slice(&self.observations[k * dim..(k + 1) * dim]);
            let action = &mut buffer.actions[i * action_dim..(i + 1) * action_dim];
            let outputs = &self.work.outputs[k * self.networks.outputs()..(k + 1) * self.networks.outputs()];
            sample_action(self.spec.action, outputs, log_std, &mut slot.action_rng, action);
            slot.begin_step(self.spec.to_env(action))?;
        }
        (0..self.slots.len()).try_for_each(|k| self.finish_step(model, buffer, k, t))
    }

    fn finish_step(
        &mut self,
        model: &[f32],
        buffer: &mut RolloutBuffer,
        k: usize,
        t: usize,
    ) -> Result<(), TrainError> {
        let action_dim = self.spec.action.stored_dim();
        let i = k * buffer.steps + t;
        let slot = &mut self.slots[k];
        let action = &buffer.actions[i * action_dim..(i + 1) * action_dim];
        let step = slot.finish_step(self.spec.to_env(action), 0.0, 0.0)?;
        let reward = if self.clip_rewards { step.reward.clamp(-1.0, 1.0) } else { step.reward };
        buffer.rewards[i] = reward as f32;
        buffer.dones[i] = slot.ended || step.life_lost;
        self.tail.steps += 1.0;
        if !slot.ended {
            return Ok(());
        }
        if slot.truncated {
            let row = &mut self.observations[..self.spec.observation_dim];
            self.spec.scale_observation(&slot.observation, row);
            self.networks.forward(model, row, &mut self.work);
            buffer.rewards[i] += self.gamma * self.work.values[0];
        }
        self.tail.count_episode(slot);
        slot.reset()
    }
}

impl RolloutActor for A2cActor {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn roll_out(
        &mut self,
        model: &[f32],
        buffer: &mut RolloutBuffer,
        _statistics: &mut [f32],
    ) -> Result<Tail, TrainError> {
        let _acting = Phase::Act.enter();
        for t in 0..buffer.steps {
            self.act(model, buffer, t)?;
        }
        self.scale_observations();
        self.networks.forward(model, &self.observations, &mut self.work);
        buffer.last_values.copy_from_slice(&self.work.values[..self.slots.len()]);
        Ok(std::mem::take(&mut self.tail))
    }
}

impl HasSlots for A2cActor {
    fn slots(&self) -> &[EnvironmentSlot] {
        &self.slots
    }

    fn slots_mut(&mut self) -> &mut [EnvironmentSlot] {
        &mut self.slots
    }
}

/// The learner of A2C, which computes one gradient from each rollout.
pub(super) struct A2cLearner {
    config: A2cConfig,
    networks: PolicyValue,
    action: ActionSpec,
    buffer: RolloutBuffer,
    work: PolicyValueWorkspace,
}

impl A2cLearner {
    fn new(config: &A2cConfig, spec: &EnvSpec, environments: usize) -> Self {
        let (networks, steps) = (config.networks(spec), config.steps_per_env);
        let action_dim = spec.action.stored_dim();
        Self {
            buffer: RolloutBuffer::new(environments, steps, spec.observation_dim, action_dim),
            work: networks.workspace(environments * steps),
            action: spec.action,
            networks,
            config: config.clone(),
        }
    }

    /// Writes the gradient. Returns the means, over the rollout, of the policy loss, the value loss and the entropy.
    fn learn(&mut self, model: &[f32], gradient: &mut [f32]) -> [f32; 3] {
        let Self { config, networks, buffer, work, action: kind } = self;
        let (samples, width) = (buffer.returns.len(), networks.outputs());
        let action_dim = kind.stored_dim();
        let scale = 1.0 / samples as f32;
        let _forward = Phase::Forward.enter();
        networks.forward(model, &buffer.observations, work);
        gradient[networks.log_std_range()].fill(0.0);
        work.by_outputs[..samples * width].fill(0.0);
        let mut losses = [0.0; 3];
        for i in 0..samples {
            let row = i * width..(i + 1) * width;
            let action = &buffer.actions[i * action_dim..(i + 1) * action_dim];
            let log_std = &model[networks.log_std_range()];
            let head = Head::new(*kind, &work.outputs[row.clone()], log_std);
            let advantage = buffer.advantages[i];
            let by_log_std = &mut gradient[networks.log_std_range()];
            let by_row = &mut work.by_outputs[row];
            let entropy_scale = -config.entropy_coefficient * scale;
            head.add_gradient(action, -advantage * scale, entropy_scale, by_row, by_log_std);
            let error = work.values[i] - buffer.returns[i];
            work.by_values[i] = 2.0 * config.value_coefficient * error * scale;
            losses[0] -= advantage * head.log_prob(action) * scale;
            losses[1] += error * error * scale;
            losses[2] += head.entropy() * scale;
        }
        let _backward = Phase::Backward.enter();
        networks.backward(model, &buffer.observations, samples, work, gradient);
        losses
    }
}

impl RolloutLearner for A2cLearner {
    fn wants_rollout(&self) -> bool {
        true
    }

    fn buffer_mut(&mut self) -> &mut RolloutBuffer {
        &mut self.buffer
    }

    fn begin(&mut self, _model: &[f32], _statistics: &[f32]) {
        let _sampling = Phase::Sample.enter();
        self.buffer.estimate_advantages(self.config.gamma, self.config.gae_lambda);
    }

    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> [f32; LOSSES] {
        let [policy, value, entropy] = self.learn(model, gradient);
        [policy, value, entropy, 0.0]
    }
}

struct A2cShared {
    config: A2cConfig,
    networks: PolicyValue,
    rmsprop: RmsProp,
}

impl SharedHalf for A2cShared {
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters) {
        clip_global_norm(gradient, self.config.max_grad_norm);
        let part = counters.steps as f64 / self.config.total_steps as f64;
        let rate = annealed(self.config.learning_rate, self.config.anneal_learning_rate, part);
        self.rmsprop.step(model, gradient, rate);
    }

    fn loss_names(&self) -> &'static [&'static str] {
        &["losses/policy_loss", "losses/value_loss", "losses/entropy"]
    }

    fn write(&self, model: &[f32], writer: &mut Writer) {
        writer.parameters("", self.networks.tensors(), model);
        writer.floats("optimiser.mean_square", vec![model.len()], &self.rmsprop.mean_square);
    }

    fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError> {
        model.copy_from_slice(&reader.parameters("", self.networks.tensors())?);
        self.rmsprop.mean_square = reader.floats("optimiser.mean_square", model.len())?;
        Ok(())
    }
}

struct A2cPolicy {
    networks: PolicyValue,
    parameters: Vec<f32>,
    work: PolicyValueWorkspace,
    spec: EnvSpec,
    scaled: Vec<f32>,
}

impl A2cPolicy {
    fn forward(&mut self, observation: &[f32]) {
        self.spec.scale_observation(observation, &mut self.scaled);
        self.networks.forward(&self.parameters, &self.scaled, &mut self.work);
    }
}

impl Policy for A2cPolicy {
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]) {
        self.forward(observation);
        let outputs = &self.work.outputs[..self.networks.outputs()];
        match (rng, self.spec.action) {
            (Some(rng), spec) => {
                let log_std = &self.parameters[self.networks.log_std_range()];
                sample_action(spec, outputs, log_std, rng, action);
            }
            (None, ActionSpec::Continuous { .. }) => action.copy_from_slice(outputs),
            (None, ActionSpec::Discrete { .. }) => action[0] = Categorical { logits: outputs }.mode() as f32,
        }
    }

    fn scores(&mut self, observation: &[f32]) -> &[f32] {
        self.forward(observation);
        match self.spec.action {
            ActionSpec::Discrete { n } => &self.work.outputs[..n],
            ActionSpec::Continuous { .. } => &[],
        }
    }

    fn graph(&self) -> PolicyGraph {
        PolicyGraph {
            preprocessing: Preprocessing::of(&self.spec),
            layers: self.networks.graph_layers(&self.parameters),
            memory: None,
            streams: None,
            outputs: Outputs::of_policy(self.spec.action),
        }
    }
}
