//! Soft actor-critic (SAC) with an automatically tuned temperature (Haarnoja et al., 2018, "Soft actor-critic
//! algorithms and applications").
//!
//! Implementation details:
//!
//! 1. The actor and the critics have two layers of 256 units with ReLU; the action enters a critic at its first layer.
//!    The parameters of all layers are initialised as in PyTorch: they are drawn uniformly within a bound that depends
//!    on the fan-in.
//! 2. The policy is a Gaussian whose samples pass through the hyperbolic tangent. Its mean and log standard deviation
//!    are outputs of the same layer; the latter is clipped to [-20, 2], as in the published code.
//! 3. The log-density of an action includes the derivative of the hyperbolic tangent, in a form that is accurate near
//!    -1 and 1; implementations often add a constant of 1e-6 to the derivative instead.
//! 4. For the targets, one action is sampled from the current policy; a target contains the smaller of the two target
//!    critics' values for this action, and an entropy bonus. The policy is trained to maximise the smaller of the two
//!    critics' values for a sampled action; the gradient flows through the action (reparameterisation).
//! 5. The temperature follows the gradient of `log_alpha * (entropy - target_entropy)`, as in Stable-Baselines3, from
//!    an initial value of 1. The default target is minus the number of action dimensions. `log_alpha` is part of the
//!    parameter vector, so it is aggregated with the gradients and identical on all workers.
//! 6. The critics, the policy and the temperature share one aggregation: their gradients are computed at the same
//!    parameters and concatenated in one vector. Each has its own Adam optimiser and learning rate. The published code
//!    instead updates the critics before it computes the other gradients.
//! 7. The target critics move towards the learned critics by the fraction `tau` after each update. The policy has no
//!    target network.
//! 8. Actions are uniformly random until learning starts; afterwards, they are samples of the policy. In an
//!    evaluation, the action is the hyperbolic tangent of the mean.
//! 9. Truncation is not treated as termination: targets bootstrap from the final observation of a truncated episode.
//! 10. Each environment has its own replay buffer and draws the noise for its own samples; a batch contains the same
//!     number of samples from each buffer.

use std::ops::Range;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};

pub use self::loss::{Losses, Networks, Noise, SacLoss};
pub use self::networks::SoftActorCritic;
use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::config::{Checks, hyper_parameters};
use super::experience::{ExperienceOptions, uniform_experience};
use super::halves::{Counters, LOSSES, SharedHalf, Tail};
use super::off_policy::{Behaviour, OffPolicy, OffPolicyAlgorithm, ReplayLearner, Source, follow};
use super::policy_graph::{Outputs, PolicyGraph, Preprocessing, graph_layers, keep_outputs};
use super::remote::{BatchLearner, Rest};
use super::replay::Batch;
use super::streams::{Purpose, stream};
use super::trainer::{Algorithm, Mode, Policy, common_accessors};
use super::vector::VectorShape;
use super::vector_env::VectorEnv;
use crate::env::EnvSpec;
use crate::nn::{Activation, Adam, SquashedGaussian, Workspace};

mod loss;
mod networks;

/// Adam epsilon (PyTorch's default).
const ADAM_EPSILON: f32 = 1e-8;

hyper_parameters! {
/// Hyper-parameters, named as in CleanRL and Stable-Baselines3. Sizes are totals over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SacConfig {
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
    /// Number of environment steps before learning starts; until then, actions are uniformly random.
    pub learning_starts: u64,
    /// Number of environment steps from one group of updates to the next.
    pub train_every: u64,
    /// Number of updates in a group; 0 means one update per environment step.
    pub updates: u64,
    /// Adam learning rate of the actor.
    pub actor_learning_rate: f32,
    /// Adam learning rate of the critics.
    pub critic_learning_rate: f32,
    /// Adam learning rate of the logarithm of the temperature.
    pub alpha_learning_rate: f32,
    /// Discount factor.
    pub gamma: f32,
    /// Interpolation factor of the target critics per update.
    pub tau: f32,
    /// Whether the temperature is learned; if so, it starts at 1.
    pub autotune: bool,
    /// Temperature, the weight of the entropy, if it is not learned.
    pub alpha: f32,
    /// Policy entropy, in nats, that the learned temperature is adjusted to reach; by default, minus the number of
    /// action dimensions.
    pub target_entropy: Option<f32>,
    /// Widths of the hidden layers of each network.
    pub hidden: Vec<usize>,
}
}

impl SacConfig {
    /// Returns hyper-parameters for continuous control. CleanRL and Haarnoja et al. agree on all of them except the
    /// critics' learning rate, for which this preset follows Haarnoja et al. and Stable-Baselines3.
    fn continuous() -> Self {
        Self {
            total_steps: 1_000_000,
            seed: 1,
            environments: None,
            buffer_size: 1_000_000,
            batch_size: 256,
            learning_starts: 5_000,
            train_every: 1,
            updates: 0,
            actor_learning_rate: 3e-4,
            critic_learning_rate: 3e-4,
            alpha_learning_rate: 3e-4,
            gamma: 0.99,
            tau: 5e-3,
            autotune: true,
            alpha: 0.2,
            target_entropy: None,
            hidden: vec![256, 256],
        }
    }

    /// Creates the networks for an environment.
    ///
    /// # Errors
    /// Fails if the environment has discrete actions.
    pub fn networks(&self, env: &EnvSpec) -> Result<SoftActorCritic, TrainError> {
        SoftActorCritic::new(env, &self.hidden)
    }
}

impl Algorithm for SacConfig {
    const NAME: &'static str = "sac";
    const DEFAULT_ENV: &'static str = "Pendulum-v1";
    const CHECKPOINT_EVERY: u64 = 500;
    type Family = OffPolicy;

    fn preset(env: &str) -> Self {
        match env {
            "Pendulum-v1" => Self {
                total_steps: 40_000,
                buffer_size: 40_000,
                batch_size: 128,
                learning_starts: 1_000,
                actor_learning_rate: 1e-3,
                critic_learning_rate: 1e-3,
                alpha_learning_rate: 1e-3,
                gamma: 0.98,
                hidden: vec![64, 64],
                ..Self::continuous()
            },
            _ => Self::continuous(),
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        let mut checks = Checks::default();
        checks
            .experience(&self.experience(), self.total_steps)
            .above_zero("actor_learning_rate", self.actor_learning_rate)
            .above_zero("critic_learning_rate", self.critic_learning_rate)
            .above_zero("alpha_learning_rate", self.alpha_learning_rate)
            .unit("gamma", self.gamma)
            .unit("tau", self.tau)
            .above_zero("alpha", self.alpha)
            .widths("hidden", &self.hidden);
        if let Some(entropy) = self.target_entropy {
            checks.finite("target_entropy", entropy);
        }
        checks.result()
    }

    common_accessors!();

    fn vector_shape(&self, env: &EnvSpec, _mode: Mode) -> Result<VectorShape, TrainError> {
        Ok(Tail::after(self.networks(env)?.parameter_count()))
    }

    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError> {
        let agent = self.networks(env)?;
        Ok(Box::new(SacPolicy {
            parameters: reader.parameters("", agent.tensors())?,
            work: agent.actor().workspace(1),
            agent,
        }))
    }
}

impl OffPolicyAlgorithm for SacConfig {
    type Behaviour = SacBehaviour;
    type Learner = SacLearner;

    fn experience(&self) -> ExperienceOptions {
        uniform_experience!(self)
    }

    fn acting(&self, spec: &EnvSpec) -> Result<Range<usize>, TrainError> {
        Ok(self.networks(spec)?.actor_range())
    }

    fn behaviour(&self, spec: &EnvSpec, environments: usize) -> Result<SacBehaviour, TrainError> {
        let agent = self.networks(spec)?;
        let learning_starts = self.learning_starts;
        Ok(SacBehaviour { work: agent.actor().workspace(environments), learning_starts, agent })
    }

    fn learner(&self, spec: &EnvSpec, samples: usize, source: Source) -> Result<SacLearner, TrainError> {
        let agent = self.networks(spec)?;
        Ok(SacLearner {
            gamma: self.gamma,
            target_entropy: self.target_entropy.unwrap_or(-(agent.action_dim() as f32)),
            loss: SacLoss::new(agent, samples),
            noise: Noise::default(),
            rng: source.rng(self.seed),
        })
    }

    fn rest(mut self, spec: &EnvSpec) -> Result<Rest, TrainError> {
        let agent = self.networks(spec)?;
        let temperature = if self.autotune { 1.0 } else { self.alpha };
        let rng = &mut stream(self.seed, Purpose::Weights, 0);
        let mut model = agent.initial_parameters(temperature, rng);
        let shape = Tail::after(model.len());
        model.extend_from_within(agent.critic_range());
        let shared = SacShared {
            actor_adam: Adam::new(agent.actor_range().len(), ADAM_EPSILON),
            critic_adam: Adam::new(agent.critic_range().len(), ADAM_EPSILON),
            alpha_adam: Adam::new(1, ADAM_EPSILON),
            agent,
            config: self.clone(),
        };
        Ok(Rest::new(&mut self, shape, model, Box::new(shared)))
    }
}

/// Action selection: samples of the policy, or uniformly random actions until learning starts.
pub(super) struct SacBehaviour {
    agent: SoftActorCritic,
    work: Workspace,
    learning_starts: u64,
}

impl Behaviour for SacBehaviour {
    fn choose(&mut self, parameters: &[f32], steps: u64, acting: &mut VectorEnv, actions: &mut Vec<f32>) {
        let dim = self.agent.action_dim();
        let outputs = self.agent.actor().forward(parameters, acting.observations(), &mut self.work);
        actions.clear();
        for (row, slot) in outputs.chunks_exact(2 * dim).zip(acting.slots_mut()) {
            let (start, rng) = (actions.len(), &mut slot.action_rng);
            if steps < self.learning_starts {
                actions.extend((0..dim).map(|_| rng.random_range(-1.0..1.0_f32)));
                continue;
            }
            draw_normal(dim, rng, actions);
            SquashedGaussian::from_output(row).transform(&mut actions[start..]);
        }
    }
}

/// Draws `count` standard normal numbers and appends them to `noise`.
fn draw_normal(count: usize, rng: &mut ChaCha8Rng, noise: &mut Vec<f32>) {
    noise.extend((0..count).map(|_| -> f32 { StandardNormal.sample(rng) }));
}

/// Learner that computes gradients from batches of transitions.
pub(super) struct SacLearner {
    gamma: f32,
    target_entropy: f32,
    loss: SacLoss,
    noise: Noise,
    /// Random generator of the noise; `None` if the noise comes from the random streams of the environments.
    rng: Option<ChaCha8Rng>,
}

impl SacLearner {
    fn clear_noise(&mut self) {
        self.noise.next.clear();
        self.noise.current.clear();
    }
}

impl ReplayLearner for SacLearner {
    fn draw(&mut self, samples: usize, acting: &mut VectorEnv) {
        self.clear_noise();
        let slots = acting.slots_mut();
        let each = samples / slots.len() * self.loss.agent().action_dim();
        for slot in slots {
            draw_normal(each, &mut slot.minibatch_rng, &mut self.noise.next);
            draw_normal(each, &mut slot.minibatch_rng, &mut self.noise.current);
        }
    }
}

impl BatchLearner for SacLearner {
    fn gradient(&mut self, model: &[f32], batch: &Batch, gradient: &mut [f32]) -> [f32; LOSSES] {
        if let Some(mut rng) = self.rng.take() {
            self.clear_noise();
            draw_normal(batch.actions.len(), &mut rng, &mut self.noise.next);
            draw_normal(batch.actions.len(), &mut rng, &mut self.noise.current);
            self.rng = Some(rng);
        }
        let (parameters, target_critics) = model.split_at(gradient.len());
        let networks = Networks { parameters, target_critics };
        let Self { gamma, target_entropy, loss, noise, .. } = self;
        let losses = loss.gradient(*gamma, *target_entropy, &networks, batch, noise, gradient);
        [losses.policy as f32, losses.value as f32, losses.mean_value as f32, losses.temperature]
    }

    fn errors(&self) -> &[f32] {
        self.loss.errors()
    }
}

struct SacShared {
    config: SacConfig,
    agent: SoftActorCritic,
    actor_adam: Adam,
    critic_adam: Adam,
    alpha_adam: Adam,
}

impl SharedHalf for SacShared {
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], _counters: &Counters) {
        let (parameters, target_critics) = model.split_at_mut(gradient.len());
        let step = |adam: &mut Adam, range: Range<usize>, parameters: &mut [f32], rate: f32| {
            adam.step(&mut parameters[range.clone()], &gradient[range], rate);
        };
        let (config, critics) = (&self.config, self.agent.critic_range());
        step(&mut self.actor_adam, self.agent.actor_range(), parameters, config.actor_learning_rate);
        step(&mut self.critic_adam, critics.clone(), parameters, config.critic_learning_rate);
        if config.autotune {
            let at = self.agent.temperature_index();
            step(&mut self.alpha_adam, at..at + 1, parameters, config.alpha_learning_rate);
        }
        follow(target_critics, &parameters[critics], config.tau);
    }

    fn loss_names(&self) -> &'static [&'static str] {
        &["losses/actor_loss", "losses/qf1_loss", "losses/qf1_values", "losses/alpha"]
    }

    fn write(&self, model: &[f32], writer: &mut Writer) {
        let (parameters, target_critics) = model.split_at(self.agent.parameter_count());
        writer.parameters("", self.agent.tensors(), parameters);
        writer.parameters("target.", self.agent.critics().tensors(0), target_critics);
        writer.adam("actor_optimiser", &self.actor_adam);
        writer.adam("critic_optimiser", &self.critic_adam);
        writer.adam("alpha_optimiser", &self.alpha_adam);
    }

    fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError> {
        let (parameters, target_critics) = model.split_at_mut(self.agent.parameter_count());
        parameters.copy_from_slice(&reader.parameters("", self.agent.tensors())?);
        target_critics.copy_from_slice(&reader.parameters("target.", self.agent.critics().tensors(0))?);
        reader.adam("actor_optimiser", self.agent.actor_range().len(), &mut self.actor_adam)?;
        reader.adam("critic_optimiser", self.agent.critic_range().len(), &mut self.critic_adam)?;
        reader.adam("alpha_optimiser", 1, &mut self.alpha_adam)
    }
}

/// The policy of a trained actor. It chooses the squashed mean or, if it is given a random generator, a sample.
struct SacPolicy {
    agent: SoftActorCritic,
    parameters: Vec<f32>,
    work: Workspace,
}

impl Policy for SacPolicy {
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]) {
        let actor = &self.parameters[self.agent.actor_range()];
        let output = self.agent.actor().forward(actor, observation, &mut self.work);
        let head = SquashedGaussian::from_output(output);
        match rng {
            Some(rng) => {
                action.iter_mut().for_each(|noise| *noise = StandardNormal.sample(rng));
                head.transform(action);
            }
            None => head.mode(action),
        }
    }

    fn graph(&self) -> PolicyGraph {
        let actor = &self.parameters[self.agent.actor_range()];
        let mut layers = graph_layers(self.agent.actor(), actor, None);
        keep_outputs(&mut layers, self.agent.action_dim());
        // The most probable action is the hyperbolic tangent of the mean.
        if let Some(last) = layers.last_mut() {
            last.activation = Activation::Tanh;
        }
        PolicyGraph {
            preprocessing: Preprocessing::None,
            layers,
            memory: None,
            streams: None,
            outputs: Outputs::Action,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::critics::samples::{BATCH, batch, random, spec};

    fn updated(config: &SacConfig) -> (SoftActorCritic, Vec<f32>, Vec<f32>) {
        let rest = config.clone().rest(&spec()).unwrap();
        let agent = config.networks(&spec()).unwrap();
        let (mut model, mut replica) = (rest.model.clone(), rest.replica);
        let mut sum = random(agent.parameter_count(), 3);
        sum.resize(rest.shape.len(), 0.0);
        replica.apply(&mut model, &sum, 1);
        (agent, rest.model, model)
    }

    #[test]
    fn only_a_learned_temperature_moves() {
        let learned = SacConfig { hidden: vec![8], ..SacConfig::preset("any") };
        let (agent, before, after) = updated(&learned);
        let at = agent.temperature_index();
        assert_eq!(before[at], 0.0);
        assert!((after[at] - before[at]).abs() > 1e-5);
        let fixed = SacConfig { autotune: false, alpha: 0.3, ..learned };
        let (_, before, after) = updated(&fixed);
        assert!((before[at].exp() - 0.3).abs() < 1e-6);
        assert_eq!(before[at].to_bits(), after[at].to_bits());
    }

    #[test]
    fn the_target_critics_follow_the_critics() {
        let config = SacConfig { hidden: vec![8], tau: 0.25, ..SacConfig::preset("any") };
        let (agent, before, after) = updated(&config);
        let targets = agent.parameter_count()..before.len();
        let critics = agent.critic_range();
        assert_eq!(before[targets.clone()], before[critics.clone()]);
        for (i, target) in after[targets].iter().enumerate() {
            let (old, new) = (before[critics.start + i], after[critics.start + i]);
            assert!(old != new && (target - (0.75 * old + 0.25 * new)).abs() < 1e-6, "{i}");
        }
    }

    #[test]
    fn the_target_entropy_defaults_to_minus_the_action_dimensions() {
        let slope_of = |target_entropy: Option<f32>| {
            let config = SacConfig { hidden: vec![8], target_entropy, ..SacConfig::preset("any") };
            let mut learner = config.learner(&spec(), BATCH, Source::Elsewhere(0)).unwrap();
            let model = config.clone().rest(&spec()).unwrap().model;
            let mut gradient = vec![0.0; config.networks(&spec()).unwrap().parameter_count()];
            learner.gradient(&model, &batch(), &mut gradient);
            *gradient.last().unwrap()
        };
        assert_eq!(slope_of(None), slope_of(Some(-2.0)));
        assert!((slope_of(Some(-3.0)) - slope_of(None) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn options_out_of_range_are_reported_by_name() {
        let check = |change: fn(&mut SacConfig)| {
            let mut config = SacConfig::preset("Pendulum-v1");
            change(&mut config);
            config.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        let error = check(|config| config.alpha = 0.0).unwrap_err();
        assert_eq!(error, "alpha is 0.0, expected a number above 0");
        let error = check(|config| config.target_entropy = Some(f32::NAN)).unwrap_err();
        assert_eq!(error, "target_entropy is NaN, expected a number");
        let error = check(|config| config.learning_starts = 40_000).unwrap_err();
        assert_eq!(error, "learning_starts is 40000, expected fewer than the 40000 steps of the whole run");
    }
}
