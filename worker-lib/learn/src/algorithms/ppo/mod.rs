//! Proximal policy optimisation (Schulman et al., 2017), synchronous with any number of workers.
//!
//! Implementation details, named as in "The 37 implementation details of PPO" (Huang et al., 2022) where that work
//! names them:
//!
//! 1. Actor and critic are separate networks, each with two tanh layers of 64 units, orthogonal initial weights and
//!    zero initial biases. The log standard deviation does not depend on the state.
//! 2. Adam with an epsilon of 1e-5. The learning rate decreases linearly to 0 over the run.
//! 3. Generalised advantage estimation. Truncation is not termination: if the time limit truncates an episode, the
//!    discounted value of the final observation is added to the last reward.
//! 4. Advantages are normalised over the whole rollout of all workers, not per minibatch, because a worker holds only
//!    its share of a minibatch. The result therefore does not depend on the division of the environments among workers.
//! 5. Clipped surrogate objective, optionally a clipped value loss, and an entropy bonus. Gradients are clipped by
//!    their global norm after the aggregation. The discount factor can rise during the run, so that the horizon is
//!    short at first and long at the end, as for OpenAI Five (Berner et al., 2019).
//! 6. Observations are normalised and clipped to [-10, 10]; rewards are divided by the standard deviation of the
//!    discounted return and clipped to [-10, 10]. The statistics for this purpose cover all workers and are updated
//!    only between rollouts: the samples of a rollout affect the normalisation from the next rollout onwards.
//! 7. Each minibatch contains the same number of samples from each environment. The order in which the samples of an
//!    environment are used is drawn from that environment's own random stream.
//! 8. The environment clips the actions; log-probabilities are those of the unclipped actions.
//! 9. If `lstm` or `gru` is set, a layer of this kind precedes each network (a recurrent policy, as in
//!    Stable-Baselines3's RecurrentPPO). The state of the layer is zero at the start of an episode and is kept from one
//!    rollout to the next. A minibatch then contains one sequence of consecutive steps from each environment instead of
//!    single samples. Gradients flow only within a sequence, which starts from the policy's state at that point of the
//!    rollout. Checkpoints contain the states.
//!
//! A rollout requires `epochs * minibatches` aggregations of gradients and one aggregation of statistics. The
//! statistics include the stop request, so all workers stop after the same rollout.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use self::branch::Observed;
use self::config::MEMORY_MAX;
pub use self::config::PpoConfig;
pub use self::loss::{Losses, Minibatch, PpoLoss};
use self::rollouts::{Collector, Frozen, Rollouts, Tally};
use super::TrainError;
use super::actor_critic::ActorCritic;
use super::checkpoint::{Reader, Writer, read_slots, write_slots};
use super::config::{Checks, to_json};
use super::environments::{EnvFactory, EnvironmentSlot};
use super::episodes::RecentReturns;
use super::normalise::{Deviations, Moments, Normaliser, normalise_or_copy};
use super::on_policy::OnPolicy;
use super::phases::Phase;
use super::policy_graph::{GraphMemory, Outputs, PolicyGraph, Preprocessing, graph_layers};
use super::share::Share;
use super::statistics::RolloutStatistics;
use super::streams::{Purpose, stream};
use super::trainer::{
    Algorithm, Mode, Policy, Progress, Report, Trainer, World, agree, common_accessors, first_bytes,
};
use super::vector::VectorShape;
use crate::env::{ActionSpec, EnvSpec};
use crate::nn::{Adam, Cell, clip_global_norm};
use iswitch::GradientAggregator;

mod branch;
mod config;
mod halves;
mod loss;
mod rollouts;

impl Algorithm for PpoConfig {
    const NAME: &'static str = "ppo";
    const DEFAULT_ENV: &'static str = "PlanarHopper-v0";
    const CHECKPOINT_EVERY: u64 = 50;
    type Family = OnPolicy;

    fn preset(env: &str) -> Self {
        match env {
            // Rewards are normalised, because only two of five runs with unscaled rewards reached the target
            // (docs/results/training.md).
            "CartPoleNoVel-v1" => Self {
                lstm: Some(64),
                total_steps: 200_000,
                rollout_steps: 1024,
                minibatch_size: 256,
                learning_rate: 1e-3,
                gamma: 0.98,
                gae_lambda: 0.8,
                clip_range_value: None,
                ..Self::continuous()
            },
            "PendulumNoVel-v1" => Self {
                lstm: Some(64),
                total_steps: 400_000,
                rollout_steps: 4096,
                minibatch_size: 512,
                learning_rate: 1e-3,
                gamma: 0.9,
                clip_range_value: None,
                ..Self::continuous()
            },
            "CartPole-v1" => Self {
                total_steps: 200_000,
                rollout_steps: 1024,
                minibatch_size: 64,
                learning_rate: 5e-4,
                gae_lambda: 0.95,
                clip_range_value: None,
                normalise_observations: false,
                normalise_rewards: false,
                ..Self::continuous()
            },
            // These values avoid local optima: standing still (a return of 1000), a slow gait (up to 2000) and a dash
            // that ends in a fall. With many environments, each rollout contains different gaits. The long horizon
            // makes a stable gait worthwhile, and the entropy bonus keeps the policy exploring. Without clipping of the
            // value loss, the value estimates adapt to a faster gait immediately. docs/results/training.md compares
            // these values with others.
            "PlanarHopper-v0" => Self {
                environments_min: Some(16),
                learning_rate: 7e-4,
                gamma: 0.995,
                clip_range_value: None,
                entropy_coefficient: 0.01,
                ..Self::continuous()
            },
            "PlanarWalker-v0" | "PlanarHalfCheetah-v0" => Self {
                total_steps: 2_000_000,
                environments_min: Some(16),
                gamma: 0.995,
                ..Self::continuous()
            },
            // A landing takes up to 1000 steps and is rewarded mainly at its end, so the horizon is long. The rollouts
            // are long so that they contain whole episodes.
            "PlanarLander-v0" | "PlanarLanderContinuous-v0" => Self {
                environments_min: Some(16),
                rollout_steps: 16_384,
                epochs: 4,
                gamma: 0.999,
                gae_lambda: 0.98,
                entropy_coefficient: 0.01,
                ..Self::continuous()
            },
            _ => Self::continuous(),
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        let mut checks = Checks::default();
        checks
            .positive("total_steps", self.total_steps)
            .positive("epochs", self.epochs as u64)
            .not_negative("learning_rate", self.learning_rate)
            .unit("gamma", self.gamma)
            .unit("gae_lambda", self.gae_lambda)
            .above_zero("clip_range", self.clip_range)
            .not_negative("entropy_coefficient", self.entropy_coefficient)
            .not_negative("value_coefficient", self.value_coefficient)
            .above_zero("max_grad_norm", self.max_grad_norm)
            .above_zero("adam_epsilon", self.adam_epsilon)
            .finite("log_std_init", self.log_std_init)
            .widths("hidden", &self.hidden);
        if let Some(range) = self.clip_range_value {
            checks.above_zero("clip_range_value", range);
        }
        if let Some(least) = self.environments_min {
            checks.positive("environments_min", least as u64);
        }
        if let Some(end) = self.gamma_final {
            checks.below_one("gamma", self.gamma).below_one("gamma_final", end);
        }
        if let (Some(lstm), Some(gru)) = (self.lstm, self.gru) {
            return Err(TrainError::Config(format!(
                "lstm is {lstm} and gru is {gru}, expected one of them to be null: a policy has one kind of memory"
            )));
        }
        if let Some((cell, width)) = self.memory() {
            checks.one_to(cell.name(), width as u64, MEMORY_MAX);
        }
        checks.result()
    }

    common_accessors!();

    fn memory(&self) -> Option<(Cell, usize)> {
        let lstm = self.lstm.map(|width| (Cell::Lstm, width));
        lstm.or_else(|| self.gru.map(|width| (Cell::Gru, width)))
    }

    fn vector_shape(&self, env: &EnvSpec, mode: Mode) -> Result<VectorShape, TrainError> {
        let agent = self.networks(env);
        Ok(match mode {
            Mode::Synchronous => VectorShape { gradient: agent.parameter_count(), exact: 0 },
            Mode::Asynchronous => halves::Layout::new(&agent).vector_shape(),
        })
    }

    fn trainer(
        self,
        world: World,
        factory: &EnvFactory,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Box<dyn Trainer>, TrainError> {
        Ok(Box::new(PpoTrainer::new(self, (world.rank, world.size), factory, aggregator)?))
    }

    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError> {
        let agent = self.networks(env);
        // These tensors suffice for acting; synchronous and asynchronous runs store them under the same names.
        let moments = Moments::read("observation", agent.observation_dim(), reader)?;
        let moments = self.normalise_observations.then_some(moments);
        Ok(Box::new(PpoPolicy {
            networks: PpoLoss::new(agent.clone(), 1),
            normalised: vec![0.0; agent.observation_dim()],
            output: vec![0.0; agent.actor().outputs()],
            state: vec![0.0; agent.state_len()],
            parameters: reader.parameters("", agent.tensors())?,
            normaliser: moments.as_ref().map(Normaliser::new),
            moments,
            agent,
        }))
    }
}

/// A trained policy, with the statistics that normalised observations during its training.
struct PpoPolicy {
    agent: ActorCritic,
    parameters: Vec<f32>,
    /// Moments of the observations, if the policy normalises them.
    moments: Option<Moments>,
    normaliser: Option<Normaliser>,
    networks: PpoLoss,
    normalised: Vec<f32>,
    /// Means or logits.
    output: Vec<f32>,
    /// State of a recurrent policy before the current observation, `[state_len]`; empty if the policy is not recurrent.
    state: Vec<f32>,
}

impl PpoPolicy {
    /// Computes the means or logits for an observation, without advancing the state.
    fn forward(&mut self, observation: &[f32]) {
        normalise_or_copy(self.normaliser.as_ref(), observation, &mut self.normalised);
        let observed = Observed { observations: &self.normalised, states: &self.state, starts: &[false] };
        self.output.copy_from_slice(self.networks.policy(&self.parameters, &observed));
    }
}

impl Policy for PpoPolicy {
    fn begin_episode(&mut self) {
        self.state.fill(0.0);
    }

    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]) {
        self.forward(observation);
        self.networks.write_states(&mut self.state);
        match rng {
            Some(rng) => {
                self.agent.sample(&self.parameters, &self.output, rng, action);
            }
            None => self.agent.mode(&self.output, action),
        }
    }

    fn scores(&mut self, observation: &[f32]) -> &[f32] {
        self.forward(observation);
        match self.agent.action() {
            ActionSpec::Discrete { .. } => &self.output,
            ActionSpec::Continuous { .. } => &[],
        }
    }

    fn graph(&self) -> PolicyGraph {
        let actor = &self.parameters[self.agent.actor_range()];
        let [of_memory, _] = self.agent.memory_ranges();
        PolicyGraph {
            preprocessing: self.moments.as_ref().map_or(Preprocessing::None, Preprocessing::normalise),
            memory: self.agent.memory().map(|layer| GraphMemory::new(layer, &self.parameters[of_memory])),
            layers: graph_layers(self.agent.actor(), actor, None),
            streams: None,
            outputs: Outputs::of_policy(self.agent.action()),
        }
    }
}

/// The state that is replicated on all workers; the contents of a checkpoint's model file.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// Parameters of the networks, `[parameter_count]`.
    pub parameters: Vec<f32>,
    /// The optimiser.
    pub adam: Adam,
    /// Moments of the observations.
    pub observation_moments: Moments,
    /// Moments of the discounted return.
    pub return_moments: Moments,
    /// Returns of the last 100 episodes.
    pub recent_returns: RecentReturns,
    /// Number of completed rollouts.
    pub rollouts: u64,
    /// Number of completed environment steps, over all workers.
    pub steps: u64,
    /// Number of gradients aggregated and applied.
    pub iterations: u64,
}

impl Replica {
    fn new(config: &PpoConfig, agent: &ActorCritic) -> Self {
        let mut rng = stream(config.seed, Purpose::Weights, 0);
        Self {
            parameters: agent.initial_parameters(config.log_std_init, &mut rng),
            adam: Adam::new(agent.parameter_count(), config.adam_epsilon),
            observation_moments: Moments::new(agent.observation_dim()),
            return_moments: Moments::new(1),
            recent_returns: RecentReturns::default(),
            rollouts: 0,
            steps: 0,
            iterations: 0,
        }
    }

    fn write(&self, agent: &ActorCritic, writer: &mut Writer) {
        writer.parameters("", agent.tensors(), &self.parameters);
        writer.adam("optimiser", &self.adam);
        for (name, moments) in [("observation", &self.observation_moments), ("return", &self.return_moments)]
        {
            moments.write(name, writer);
        }
        writer.mean_return(self.recent_returns.mean());
        let returns = self.recent_returns.to_vec();
        writer.floats("episodes.recent_returns", vec![returns.len()], &returns);
        writer.text("rollouts", self.rollouts.to_string());
        writer.text("steps", self.steps.to_string());
        writer.text("iterations", self.iterations.to_string());
    }

    fn read(reader: &Reader<'_>, config: &PpoConfig, agent: &ActorCritic) -> Result<Self, TrainError> {
        let mut adam = Adam::new(0, config.adam_epsilon);
        reader.adam("optimiser", agent.parameter_count(), &mut adam)?;
        let returns = reader.len_f32("episodes.recent_returns")?;
        Ok(Self {
            parameters: reader.parameters("", agent.tensors())?,
            adam,
            observation_moments: Moments::read("observation", agent.observation_dim(), reader)?,
            return_moments: Moments::read("return", 1, reader)?,
            recent_returns: RecentReturns::from_saved(&reader.floats("episodes.recent_returns", returns)?),
            rollouts: reader.number("rollouts")?,
            steps: reader.number("steps")?,
            iterations: reader.number("iterations")?,
        })
    }

    /// Returns a digest of the whole replica. Workers compare their digests to check that their replicas are equal.
    pub fn digest(&self) -> u64 {
        let mut hash = Sha256::new();
        let floats = [&self.parameters, &self.adam.first_moment, &self.adam.second_moment];
        floats.iter().for_each(|vector| hash.update(bytemuck::cast_slice::<f32, u8>(vector)));
        for moments in [&self.observation_moments, &self.return_moments] {
            hash.update(bytemuck::cast_slice::<f64, u8>(&moments.mean));
            hash.update(bytemuck::cast_slice::<f64, u8>(&moments.variance));
        }
        let counters = [self.rollouts, self.steps, self.iterations, self.adam.steps];
        hash.update(bytemuck::cast_slice::<u64, u8>(&counters));
        first_bytes(hash)
    }
}

/// Outcome of one rollout and of the update that follows it. Counters and episodes cover all workers; losses cover this
/// worker's share of the minibatches.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutReport {
    /// Number of rollouts so far.
    pub rollouts: u64,
    /// Number of environment steps so far.
    pub steps: u64,
    /// Number of gradients aggregated so far.
    pub iterations: u64,
    /// Number of episodes that ended in this rollout.
    pub episodes: usize,
    /// Mean return of the episodes that ended in this rollout; `None` if none did.
    pub episodic_return: Option<f64>,
    /// Mean length of the episodes that ended in this rollout, in steps; `None` if none did.
    pub episodic_length: Option<f64>,
    /// Mean return of the last 100 episodes.
    pub mean_return: Option<f64>,
    /// Learning rate of this rollout's update.
    pub learning_rate: f32,
    /// Losses, averaged over the minibatches of the update.
    pub losses: Losses,
    /// Time spent acting.
    pub rollout_time: Duration,
    /// Time spent learning, including the aggregations.
    pub update_time: Duration,
    /// Whether a worker has requested a stop. If so, all workers stop after this rollout.
    pub stopped: bool,
    /// Whether the run has completed `total_steps` environment steps.
    pub finished: bool,
}

// Indices of the sums in the vector of statistics.
const SUM_STEPS: usize = 0;
const SUM_STOP: usize = 1;
const SUM_ADVANTAGE: usize = 2;
const SUM_ADVANTAGE_SQUARES: usize = 3;
const SUM_RETURN: usize = 4;
const SUM_RETURN_SQUARES: usize = 5;
const SUM_OBSERVATION: usize = 6;

/// A training run: a state machine that advances by whole rollouts.
pub struct PpoTrainer {
    config: PpoConfig,
    aggregator: Box<dyn GradientAggregator>,
    replica: Replica,
    rollouts: Rollouts,
    stop: Arc<AtomicBool>,
    agreed: bool,
    // Reused buffers, so that the training loops do not allocate.
    statistics: RolloutStatistics,
    gradient: Vec<f32>,
    aggregation_times: Vec<Duration>,
}

impl PpoTrainer {
    /// Creates a trainer at the start of a run, for worker `rank` of `workers`. `factory` creates this worker's
    /// environments. `aggregator` must aggregate vectors with one float for each network parameter.
    ///
    /// # Errors
    /// Fails if a hyper-parameter is out of range, if an environment cannot be created, or if the length of the
    /// aggregator's vectors is not the number of network parameters.
    pub fn new(
        mut config: PpoConfig,
        (rank, workers): (usize, usize),
        factory: &EnvFactory,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, TrainError> {
        config.check()?;
        let share = config.share(rank, workers)?;
        // The number of environments is fixed from here on, so that a run resumed with more workers keeps them.
        config.environments = Some(share.environments);
        let rollouts = Rollouts::new(&config, share, factory)?;
        let Rollouts { share, collector: Collector { agent, spec, .. }, .. } = &rollouts;
        let (actual, expected) = (agent.parameter_count(), aggregator.gradient_len());
        if actual != expected {
            return Err(iswitch::AggregateError::WrongLength { actual, expected }.into());
        }
        let iterations = share.minibatches() * config.epochs;
        Ok(Self {
            replica: Replica::new(&config, agent),
            stop: Arc::default(),
            agreed: false,
            statistics: RolloutStatistics::new(
                share,
                SUM_OBSERVATION + 2 * spec.observation_dim,
                aggregator.element_types(),
            )?,
            gradient: vec![0.0; actual],
            aggregation_times: Vec::with_capacity(iterations),
            config,
            aggregator,
            rollouts,
        })
    }

    /// Returns the hyper-parameters of the run.
    pub fn config(&self) -> &PpoConfig {
        &self.config
    }

    /// Returns this worker's share of the run.
    pub fn share(&self) -> &Share {
        &self.rollouts.share
    }

    /// Returns the environment's specification, including the shapes of observations and actions.
    pub fn spec(&self) -> &EnvSpec {
        &self.rollouts.collector.spec
    }

    /// Returns the shapes of the networks.
    pub fn agent(&self) -> &ActorCritic {
        &self.rollouts.collector.agent
    }

    /// Returns the state that is replicated on all workers.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Returns this worker's environments.
    pub fn slots(&self) -> &[EnvironmentSlot] {
        &self.rollouts.collector.slots
    }

    /// Returns the flag that, when set, makes all workers stop at the end of the current or the next rollout.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns the total number of rollouts in the run.
    pub fn rollouts_total(&self) -> u64 {
        self.config.total_steps.div_ceil(self.rollouts.share.rollout_steps() as u64)
    }

    /// Returns whether the run is complete.
    pub fn finished(&self) -> bool {
        self.replica.rollouts >= self.rollouts_total()
    }

    /// Acts for one rollout, then learns from it together with the other workers.
    ///
    /// # Errors
    /// Fails if an environment or an aggregation fails, or if the workers were started with different hyper-parameters
    /// or from different checkpoints. The trainer is then unusable; resume from a checkpoint.
    pub fn step_rollout(&mut self) -> Result<RolloutReport, TrainError> {
        if !self.agreed {
            agree(self)?;
            self.agreed = true;
        }
        let begin = Instant::now();
        self.act()?;
        let rollout_time = begin.elapsed();
        let sampling = Phase::Sample.enter();
        self.rollouts.estimate_advantages(self.gamma());
        self.exchange_statistics()?;
        drop(sampling);
        let stopped = self.statistics.total(SUM_STOP) > 0.0;
        let learning_rate = self.learning_rate();
        let losses = self.learn(learning_rate)?;
        self.replica.rollouts += 1;
        self.replica.steps += self.statistics.total(SUM_STEPS) as u64;
        let episodes = self.statistics.episodes();
        let mean = |total: f64| (!episodes.is_empty()).then(|| total / episodes.len() as f64);
        let report = RolloutReport {
            rollouts: self.replica.rollouts,
            steps: self.replica.steps,
            iterations: self.replica.iterations,
            episodes: episodes.len(),
            episodic_return: mean(episodes.iter().map(|episode| f64::from(episode.episode_return)).sum()),
            episodic_length: mean(episodes.iter().map(|episode| f64::from(episode.length)).sum()),
            mean_return: self.replica.recent_returns.mean(),
            learning_rate,
            losses,
            rollout_time,
            update_time: begin.elapsed().saturating_sub(rollout_time),
            stopped,
            finished: self.finished(),
        };
        Ok(report)
    }

    /// Returns the completed fraction of the run.
    fn part(&self) -> f64 {
        self.replica.rollouts as f64 / self.rollouts_total() as f64
    }

    fn learning_rate(&self) -> f32 {
        self.config.learning_rate_after(self.part())
    }

    fn gamma(&self) -> f32 {
        self.config.gamma_after(self.part())
    }

    /// Fills the buffer with one rollout of the local environments.
    fn act(&mut self) -> Result<(), TrainError> {
        let _phase = Phase::Act.enter();
        let Replica { parameters, observation_moments, return_moments, .. } = &self.replica;
        let normaliser = self.config.normalise_observations.then(|| Normaliser::new(observation_moments));
        let with = Frozen {
            parameters,
            normaliser: normaliser.as_ref(),
            reward_scale: self.config.normalise_rewards.then(|| return_moments.scale()[0]),
            gamma: self.gamma(),
        };
        self.statistics.clear();
        self.rollouts.collector.slots.iter_mut().for_each(EnvironmentSlot::clear_deviations);
        let mut tally = DeviationsFromMeans {
            observation: &observation_moments.mean,
            discounted_return: return_moments.mean[0],
            statistics: &mut self.statistics,
        };
        self.rollouts.collect(&with, &mut tally)
    }

    /// Exchanges the rollout's statistics with the other workers, then updates the moments and the recent episodes and
    /// determines the mean and variance used to normalise advantages.
    fn exchange_statistics(&mut self) -> Result<(), TrainError> {
        let (steps, dim) = (self.rollouts.share.steps_per_env, self.rollouts.collector.spec.observation_dim);
        let advantages = self.rollouts.buffer.advantages.chunks_exact(steps);
        for (slot, advantages) in self.rollouts.collector.slots.iter().zip(advantages) {
            let mut sums = Deviations::default();
            advantages.iter().for_each(|advantage| sums.add(f64::from(*advantage), 0.0));
            self.statistics.add(SUM_STEPS, steps as f64);
            self.statistics.add(SUM_ADVANTAGE, sums.sum);
            self.statistics.add(SUM_ADVANTAGE_SQUARES, sums.sum_squares);
            self.statistics.add(SUM_RETURN, slot.return_deviations.sum);
            self.statistics.add(SUM_RETURN_SQUARES, slot.return_deviations.sum_squares);
            for (j, deviations) in slot.observation_deviations.iter().enumerate() {
                self.statistics.add(SUM_OBSERVATION + j, deviations.sum);
                self.statistics.add(SUM_OBSERVATION + dim + j, deviations.sum_squares);
            }
        }
        if self.stop.load(Ordering::Relaxed) {
            self.statistics.add(SUM_STOP, 1.0);
        }
        let aggregating = Phase::Aggregation.enter();
        self.statistics.reduce(self.aggregator.as_mut())?;
        drop(aggregating);
        let count = self.statistics.total(SUM_STEPS);
        let total = |sum, sum_squares| Deviations {
            sum: self.statistics.total(sum),
            sum_squares: self.statistics.total(sum_squares),
        };
        let of_observations: Vec<_> =
            (0..dim).map(|j| total(SUM_OBSERVATION + j, SUM_OBSERVATION + dim + j)).collect();
        self.replica.observation_moments.merge(count, &of_observations);
        self.replica.return_moments.merge(count, &[total(SUM_RETURN, SUM_RETURN_SQUARES)]);
        self.replica.recent_returns.extend(self.statistics.episodes().to_vec());
        let advantages = total(SUM_ADVANTAGE, SUM_ADVANTAGE_SQUARES);
        let mean = advantages.sum / count;
        let variance = (advantages.sum_squares / count - mean * mean).max(0.0);
        self.rollouts.buffer.normalise_advantages(mean, variance);
        Ok(())
    }

    /// Trains on the rollout for all epochs. Returns the mean losses.
    fn learn(&mut self, learning_rate: f32) -> Result<Losses, TrainError> {
        self.aggregation_times.clear();
        let mut losses = Losses::default();
        for _ in 0..self.config.epochs {
            self.rollouts.shuffle();
            for number in 0..self.rollouts.share.minibatches() {
                losses.add(&self.learn_once(number, learning_rate)?);
            }
        }
        Ok(losses.scaled(1.0 / (self.config.epochs * self.rollouts.share.minibatches()) as f64))
    }

    /// Trains on minibatch `number`: computes the gradient of this worker's share, aggregates it with the other
    /// workers, and applies the update.
    fn learn_once(&mut self, number: usize, learning_rate: f32) -> Result<Losses, TrainError> {
        let sampling = Phase::Sample.enter();
        let parameters = &mut self.replica.parameters;
        self.rollouts.draw(number, parameters);
        drop(sampling);
        let mut losses = self.rollouts.gradient(&self.config, parameters, &mut self.gradient);
        let aggregating = Phase::Aggregation.enter();
        let begin = Instant::now();
        self.aggregator.all_reduce_mean(&mut self.gradient)?;
        self.aggregation_times.push(begin.elapsed());
        drop(aggregating);
        let _updating = Phase::Update.enter();
        let norm = clip_global_norm(&mut self.gradient, self.config.max_grad_norm);
        self.replica.adam.step(parameters, &self.gradient, learning_rate);
        self.replica.iterations += 1;
        losses.gradient_norm = f64::from(norm);
        Ok(losses)
    }
}

/// A tally that records the deviations of a rollout from the means before the rollout, and the episodes that ended.
struct DeviationsFromMeans<'a> {
    observation: &'a [f64],
    discounted_return: f64,
    statistics: &'a mut RolloutStatistics,
}

impl Tally for DeviationsFromMeans<'_> {
    fn return_mean(&self) -> f64 {
        self.discounted_return
    }

    fn observed(&mut self, slot: &mut EnvironmentSlot) {
        slot.count_observation(self.observation);
    }

    fn stepped(&mut self, _slot: &EnvironmentSlot) {}

    fn ended(&mut self, slot: &EnvironmentSlot, step: usize) {
        self.statistics.push_episode(slot.finished_episode(step));
    }
}

impl Trainer for PpoTrainer {
    fn algorithm(&self) -> &'static str {
        PpoConfig::NAME
    }

    fn config_json(&self) -> String {
        to_json(&self.config)
    }

    fn spec(&self) -> &EnvSpec {
        &self.rollouts.collector.spec
    }

    fn world(&self) -> World {
        World { rank: self.rollouts.share.rank, size: self.rollouts.share.workers }
    }

    fn aggregator(&mut self) -> &mut dyn GradientAggregator {
        self.aggregator.as_mut()
    }

    fn aggregation_times(&self) -> &[Duration] {
        &self.aggregation_times
    }

    fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    fn loss_names(&self) -> &'static [&'static str] {
        &[
            "charts/learning_rate",
            "losses/policy_loss",
            "losses/value_loss",
            "losses/entropy",
            "losses/approx_kl",
            "losses/clipfrac",
            "losses/gradient_norm",
        ]
    }

    fn advance(&mut self) -> Result<Report, TrainError> {
        let report = self.step_rollout()?;
        let losses = report.losses;
        Ok(Report {
            episodic_return: report.episodic_return,
            episodic_length: report.episodic_length,
            losses: vec![
                f64::from(report.learning_rate),
                losses.policy,
                losses.value,
                losses.entropy,
                losses.approx_kl,
                losses.clip_fraction,
                losses.gradient_norm,
            ],
            elapsed: report.rollout_time + report.update_time,
            stopped: report.stopped,
        })
    }

    fn progress(&self) -> Progress {
        Progress {
            advances: self.replica.rollouts,
            steps: self.replica.steps,
            total_steps: self.rollouts_total() * self.rollouts.share.rollout_steps() as u64,
            iterations: self.replica.iterations,
            mean_return: self.replica.recent_returns.mean(),
            finished: self.finished(),
        }
    }

    fn digest(&self) -> u64 {
        self.replica.digest()
    }

    /// Describes how sizes were rounded, or returns `None` if the requested sizes divide evenly.
    fn note(&self) -> Option<String> {
        let (config, share) = (&self.config, &self.rollouts.share);
        let (rollout, minibatch) = (share.rollout_steps(), share.minibatch_size());
        ((rollout, minibatch) != (config.rollout_steps, config.minibatch_size)).then(|| {
            format!(
                "{} environments: rollouts rounded from {} to {rollout} steps, minibatches from {} to {minibatch} \
                 samples",
                share.environments, config.rollout_steps, config.minibatch_size
            )
        })
    }

    fn write_model(&self, writer: &mut Writer) {
        self.replica.write(&self.rollouts.collector.agent, writer);
    }

    fn read_model(&mut self, reader: &Reader<'_>) -> Result<(), TrainError> {
        self.replica = Replica::read(reader, &self.config, &self.rollouts.collector.agent)?;
        Ok(())
    }

    fn write_worker(&self, writer: &mut Writer) {
        write_slots(writer, &self.rollouts.collector.slots);
    }

    fn read_worker(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        read_slots(files, &mut self.rollouts.collector.slots)
    }
}
