//! Deep deterministic policy gradient (Lillicrap et al., 2016), with the options of TD3 (Fujimoto et al., 2018).
//!
//! Implementation details:
//!
//! 1. Actor and critic have two layers of 128 units with layer normalisation and ReLU; the action enters the critic
//!    at its second layer. These are the networks of the paper, with 40,327 parameters for HalfCheetah.
//! 2. Actor and critic share one aggregation: both gradients are taken at the same parameters and lie side by side in
//!    one vector. Each network has its own Adam optimiser and learning rate.
//! 3. Truncation is not termination: only a terminated episode has no future value.
//! 4. The target networks move by `tau` after each step.
//! 5. Actions are uniform until learning starts; afterwards, Gaussian noise is added to the policy's actions.
//! 6. Each environment has its own replay buffer; a batch has the same number of samples from each.
//! 7. Options of TD3: the smaller of two critics' values, noise on the target's actions, and updates of the policy
//!    and the targets only every few critic updates.

use std::ops::Range;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::config::{Checks, hyper_parameters};
use super::deterministic::{CriticWorkspace, DeterministicActorCritic};
use super::experience::{ExperienceOptions, Schedule};
use super::halves::{Counters, LOSSES, SharedHalf, Tail};
use super::off_policy::{
    Behaviour, OffPolicy, OffPolicyAlgorithm, ReplayLearner, Source, follow, read_with_targets,
    write_with_targets,
};
use super::phases::Phase;
use super::remote::{BatchLearner, Rest};
use super::replay::Batch;
use super::streams::{Purpose, stream};
use super::trainer::{Algorithm, Mode, Policy, common_accessors};
use super::vector::VectorShape;
use super::vector_env::VectorEnv;
use crate::env::EnvSpec;
use crate::nn::{Adam, Workspace};

hyper_parameters! {
/// Hyper-parameters. The names are those of CleanRL and Stable-Baselines3; sizes are global, over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DdpgConfig {
    /// Environment steps of the run.
    pub total_steps: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of environments of the job; by default, the smallest multiple of the world size that is at least 4.
    pub environments: Option<usize>,
    /// Capacity of the replay, in transitions over all environments.
    pub buffer_size: usize,
    /// Number of samples of one minibatch over all environments.
    pub batch_size: usize,
    /// Environment steps before learning begins; until then, actions are uniform.
    pub learning_starts: u64,
    /// Environment steps between two groups of updates.
    pub train_every: u64,
    /// Number of updates in a group; 0 for one update per environment step.
    pub updates: u64,
    /// Adam learning rate of the actor.
    pub actor_learning_rate: f32,
    /// Adam learning rate of the critic.
    pub critic_learning_rate: f32,
    /// Discount factor.
    pub gamma: f32,
    /// Interpolation factor of the target networks in each step.
    pub tau: f32,
    /// Standard deviation of the exploration noise on actions in [-1, 1].
    pub exploration_noise: f32,
    /// Widths of the hidden layers of each network.
    pub hidden: Vec<usize>,
    /// TD3: whether the target is the smaller value of two critics.
    pub twin_critics: bool,
    /// TD3: number of critic updates per update of the policy and the targets.
    pub policy_delay: u64,
    /// TD3: standard deviation of the noise on the target's actions.
    pub target_noise: f32,
    /// TD3: bound of the noise on the target's actions.
    pub target_noise_clip: f32,
}
}

impl DdpgConfig {
    /// Hyper-parameters for continuous control, with the paper's networks.
    fn continuous() -> Self {
        Self {
            total_steps: 1_000_000,
            seed: 1,
            environments: None,
            buffer_size: 1_000_000,
            batch_size: 128,
            learning_starts: 10_000,
            train_every: 1,
            updates: 0,
            actor_learning_rate: 3e-4,
            critic_learning_rate: 3e-4,
            gamma: 0.99,
            tau: 5e-3,
            exploration_noise: 0.1,
            hidden: vec![128, 128],
            twin_critics: false,
            policy_delay: 1,
            target_noise: 0.0,
            target_noise_clip: 0.5,
        }
    }

    /// Returns the number of critics.
    pub fn critics(&self) -> usize {
        if self.twin_critics { 2 } else { 1 }
    }

    /// Creates the networks for an environment.
    ///
    /// # Errors
    /// Fails if the environment has discrete actions.
    pub fn networks(&self, env: &EnvSpec) -> Result<DeterministicActorCritic, TrainError> {
        DeterministicActorCritic::new(env, &self.hidden, self.critics())
    }

    /// Appends `count` values of noise for the target's actions; zeros if the noise is disabled.
    fn draw_target_noise(&self, count: usize, rng: &mut ChaCha8Rng, noise: &mut Vec<f32>) {
        if self.target_noise == 0.0 {
            noise.resize(noise.len() + count, 0.0);
            return;
        }
        let bound = self.target_noise_clip;
        noise.extend((0..count).map(|_| {
            let drawn: f32 = StandardNormal.sample(rng);
            (self.target_noise * drawn).clamp(-bound, bound)
        }));
    }
}

impl Algorithm for DdpgConfig {
    const NAME: &'static str = "ddpg";
    const DEFAULT_ENV: &'static str = "Pendulum-v1";
    const CHECKPOINT_EVERY: u64 = 500;
    type Family = OffPolicy;

    fn preset(env: &str) -> Self {
        match env {
            "Pendulum-v1" => Self {
                total_steps: 40_000,
                buffer_size: 40_000,
                learning_starts: 1_000,
                gamma: 0.95,
                ..Self::continuous()
            },
            _ => Self::continuous(),
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        Checks::default()
            .positive("total_steps", self.total_steps)
            .learning_starts(self.learning_starts, self.total_steps)
            .positive("buffer_size", self.buffer_size as u64)
            .positive("batch_size", self.batch_size as u64)
            .positive("train_every", self.train_every)
            .positive("policy_delay", self.policy_delay)
            .above_zero("actor_learning_rate", self.actor_learning_rate)
            .above_zero("critic_learning_rate", self.critic_learning_rate)
            .unit("gamma", self.gamma)
            .unit("tau", self.tau)
            .not_negative("exploration_noise", self.exploration_noise)
            .not_negative("target_noise", self.target_noise)
            .not_negative("target_noise_clip", self.target_noise_clip)
            .widths("hidden", &self.hidden)
            .result()
    }

    common_accessors!();

    fn vector_shape(&self, env: &EnvSpec, _mode: Mode) -> Result<VectorShape, TrainError> {
        Ok(Tail::after(self.networks(env)?.parameter_count()))
    }

    fn policy(self, reader: &Reader<'_>, env: &EnvSpec) -> Result<Box<dyn Policy>, TrainError> {
        let agent = self.networks(env)?;
        Ok(Box::new(DdpgPolicy {
            parameters: reader.parameters("", agent.tensors())?,
            work: agent.actor().workspace(1),
            noise: self.exploration_noise,
            agent,
        }))
    }
}

impl OffPolicyAlgorithm for DdpgConfig {
    type Behaviour = DdpgBehaviour;
    type Learner = DdpgLearner;

    fn experience(&self) -> ExperienceOptions {
        ExperienceOptions {
            seed: self.seed,
            buffer_size: self.buffer_size,
            batch_size: self.batch_size,
            schedule: Schedule {
                learning_starts: self.learning_starts,
                train_every: self.train_every,
                updates: self.updates,
            },
            prioritisation: None,
            clip_rewards: false,
        }
    }

    fn acting(&self, spec: &EnvSpec) -> Result<Range<usize>, TrainError> {
        Ok(self.networks(spec)?.actor_range())
    }

    fn behaviour(&self, spec: &EnvSpec, environments: usize) -> Result<DdpgBehaviour, TrainError> {
        let agent = self.networks(spec)?;
        Ok(DdpgBehaviour { work: agent.actor().workspace(environments), config: self.clone(), agent })
    }

    fn learner(&self, spec: &EnvSpec, samples: usize, source: Source) -> Result<DdpgLearner, TrainError> {
        Ok(DdpgLearner {
            loss: DdpgLoss::new(self.networks(spec)?, samples),
            noise: Vec::new(),
            rng: match source {
                Source::Own(_) => None,
                Source::Elsewhere(rank) => Some(stream(self.seed, Purpose::Minibatches, rank)),
            },
            iterations: 0,
            // Without synchronisation, a worker does not know which update its gradient becomes part of.
            always_policy: matches!(source, Source::Own(Mode::Asynchronous)),
            config: self.clone(),
        })
    }

    fn rest(mut self, spec: &EnvSpec) -> Result<Rest, TrainError> {
        let agent = self.networks(spec)?;
        let parameters = agent.initial_parameters(&mut stream(self.seed, Purpose::Weights, 0));
        let actor_len = agent.actor_range().len();
        let shared = DdpgShared {
            actor_adam: Adam::new(actor_len, ADAM_EPSILON),
            critic_adam: Adam::new(parameters.len() - actor_len, ADAM_EPSILON),
            agent,
            config: self.clone(),
        };
        Ok(Rest::new(&mut self, Tail::after(parameters.len()), parameters.repeat(2), Box::new(shared)))
    }
}

/// Epsilon of Adam: PyTorch's default.
const ADAM_EPSILON: f32 = 1e-8;

/// Parts of the loss, as means over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Mean value of the policy's actions, negated; 0 in a step that does not update the policy.
    pub policy: f64,
    /// Squared error of the first critic's values.
    pub value: f64,
    /// Mean value of the chosen actions.
    pub mean_value: f64,
}

impl Losses {
    /// Returns the losses in the format of a tail.
    fn reported(&self) -> [f32; LOSSES] {
        [self.policy, self.value, self.mean_value, 0.0].map(|loss| loss as f32)
    }
}

/// The losses and their gradients, with buffers for the intermediate results of a batch.
#[derive(Clone, Debug)]
pub struct DdpgLoss {
    agent: DeterministicActorCritic,
    actor: Workspace,
    critic: CriticWorkspace,
    next_actions: Vec<f32>,
    targets: Vec<f32>,
    /// Errors of the first critic's values against their targets, for the last batch.
    errors: Vec<f32>,
    delta: Vec<f32>,
}

impl DdpgLoss {
    /// Creates the losses for batches of up to `batch_max` samples.
    pub fn new(agent: DeterministicActorCritic, batch_max: usize) -> Self {
        let (actor, critic) = (agent.actor().workspace(batch_max), agent.critic_workspace(batch_max));
        Self { agent, actor, critic, next_actions: vec![], targets: vec![], errors: vec![], delta: vec![] }
    }

    /// Returns the errors of the values against their targets for the last batch, which determine priorities.
    pub fn errors(&self) -> &[f32] {
        &self.errors
    }

    /// Overwrites `gradient` (`[parameter_count]`) with the gradient of the critics' loss and, if `with_policy`, of
    /// the policy's loss; otherwise the policy's part is zero. `noise` `[batch, action_dim]` is added to the target's
    /// actions, which are clipped to [-1, 1].
    pub fn gradient(
        &mut self,
        gamma: f32,
        networks: &Networks<'_>,
        batch: &Batch,
        noise: &[f32],
        with_policy: bool,
        gradient: &mut [f32],
    ) -> Losses {
        let _forward = Phase::Forward.enter();
        self.find_targets(gamma, networks.targets, batch, noise);
        let mut losses = Losses::default();
        for number in (0..self.agent.critics()).rev() {
            (losses.value, losses.mean_value) =
                self.critic_gradient(number, networks.parameters, batch, gradient);
        }
        let by_actor = &mut gradient[self.agent.actor_range()];
        if with_policy {
            losses.policy = self.policy_gradient(networks.parameters, batch, by_actor);
        } else {
            by_actor.fill(0.0);
        }
        losses
    }

    /// Computes `r + gamma * Q'(s', mu'(s') + noise)` with the smaller value of the critics.
    fn find_targets(&mut self, gamma: f32, targets: &[f32], batch: &Batch, noise: &[f32]) {
        let agent = &self.agent;
        let actor = &targets[agent.actor_range()];
        let actions = agent.actor().forward(actor, &batch.next_observations, &mut self.actor);
        self.next_actions.clear();
        self.next_actions.extend(actions.iter().zip(noise).map(|(a, n)| (a + n).clamp(-1.0, 1.0)));
        self.targets.clear();
        self.targets.resize(batch.rewards.len(), f32::INFINITY);
        for number in 0..agent.critics() {
            let critic = &targets[agent.critic_range(number)];
            let values = agent.values(critic, &batch.next_observations, &self.next_actions, &mut self.critic);
            self.targets.iter_mut().zip(values).for_each(|(least, value)| *least = least.min(*value));
        }
        for (i, target) in self.targets.iter_mut().enumerate() {
            *target = batch.rewards[i] + gamma * batch.goes_on[i] * *target;
        }
    }

    /// Writes the gradient of one critic. Returns the loss and the mean value.
    fn critic_gradient(
        &mut self,
        number: usize,
        parameters: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
    ) -> (f64, f64) {
        let (agent, range) = (&self.agent, self.agent.critic_range(number));
        let critic = &parameters[range.clone()];
        let values = agent.values(critic, &batch.observations, &batch.actions, &mut self.critic);
        let count = values.len();
        self.errors.clear();
        self.errors.extend(values.iter().zip(&self.targets).map(|(value, target)| value - target));
        let mean_value = values.iter().map(|value| f64::from(*value)).sum::<f64>() / count as f64;
        let weighted = self.errors.iter().zip(&batch.weights);
        let loss = weighted.clone().map(|(error, weight)| f64::from(weight * error * error)).sum::<f64>();
        self.delta.clear();
        self.delta.extend(weighted.map(|(error, weight)| 2.0 * weight * error / count as f32));
        let _backward = Phase::Backward.enter();
        agent.critic_gradient(
            critic,
            &batch.observations,
            &self.delta,
            &mut self.critic,
            &mut gradient[range],
        );
        (loss / count as f64, mean_value)
    }

    /// Writes the gradient of the policy. Returns the loss: the negated mean value of the policy's actions according
    /// to the first critic.
    fn policy_gradient(&mut self, parameters: &[f32], batch: &Batch, by_actor: &mut [f32]) -> f64 {
        let agent = &self.agent;
        let (actor, critic) = (&parameters[agent.actor_range()], &parameters[agent.critic_range(0)]);
        let actions = agent.actor().forward(actor, &batch.observations, &mut self.actor);
        let values = agent.values(critic, &batch.observations, actions, &mut self.critic);
        let count = values.len();
        let loss = -values.iter().map(|value| f64::from(*value)).sum::<f64>() / count as f64;
        let _backward = Phase::Backward.enter();
        let by_actions = self.actor.output_delta(count * agent.action_dim());
        agent.action_gradient(critic, -1.0 / count as f32, &mut self.critic, by_actions);
        agent.actor().backward(actor, &batch.observations, &mut self.actor, by_actor);
        loss
    }
}

/// Parameters at which a gradient is taken, each `[parameter_count]`.
#[derive(Clone, Copy, Debug)]
pub struct Networks<'a> {
    /// Parameters of the networks that learn.
    pub parameters: &'a [f32],
    /// Parameters of the target networks.
    pub targets: &'a [f32],
}

/// Action selection of DDPG: the policy's actions with added noise, or uniform actions before learning starts.
pub(super) struct DdpgBehaviour {
    config: DdpgConfig,
    agent: DeterministicActorCritic,
    work: Workspace,
}

impl Behaviour for DdpgBehaviour {
    fn choose(&mut self, parameters: &[f32], steps: u64, acting: &mut VectorEnv, actions: &mut Vec<f32>) {
        let is_warming_up = steps < self.config.learning_starts;
        let chosen = self.agent.actor().forward(parameters, acting.observations(), &mut self.work);
        actions.clear();
        for (row, slot) in chosen.chunks_exact(self.agent.action_dim()).zip(acting.slots_mut()) {
            let rng = &mut slot.action_rng;
            actions.extend(row.iter().map(|action| {
                if is_warming_up {
                    return rng.random_range(-1.0..1.0);
                }
                let noise: f32 = StandardNormal.sample(rng);
                (action + self.config.exploration_noise * noise).clamp(-1.0, 1.0)
            }));
        }
    }
}

/// Learner of DDPG, which computes gradients from batches of transitions.
pub(super) struct DdpgLearner {
    config: DdpgConfig,
    loss: DdpgLoss,
    /// Noise for the target's actions, `[batch, action_dim]`.
    noise: Vec<f32>,
    /// Generator of the noise; `None` if the noise comes from the random streams of the environments.
    rng: Option<ChaCha8Rng>,
    iterations: u64,
    /// Whether every gradient includes that of the policy, regardless of `policy_delay`.
    always_policy: bool,
}

impl ReplayLearner for DdpgLearner {
    fn draw(&mut self, samples: usize, acting: &mut VectorEnv) {
        self.noise.clear();
        let slots = acting.slots_mut();
        let each = samples / slots.len() * self.loss.agent.action_dim();
        for slot in slots {
            self.config.draw_target_noise(each, &mut slot.minibatch_rng, &mut self.noise);
        }
    }
}

impl BatchLearner for DdpgLearner {
    fn gradient(&mut self, model: &[f32], batch: &Batch, gradient: &mut [f32]) -> [f32; LOSSES] {
        if let Some(rng) = &mut self.rng {
            self.noise.clear();
            self.config.draw_target_noise(batch.actions.len(), rng, &mut self.noise);
        }
        self.iterations += 1;
        let with_policy = self.always_policy || self.iterations.is_multiple_of(self.config.policy_delay);
        let (parameters, targets) = model.split_at(gradient.len());
        let networks = Networks { parameters, targets };
        let losses =
            self.loss.gradient(self.config.gamma, &networks, batch, &self.noise, with_policy, gradient);
        losses.reported()
    }

    fn errors(&self) -> &[f32] {
        self.loss.errors()
    }

    fn write(&self, writer: &mut Writer) {
        writer.text("local_iterations", self.iterations.to_string());
    }

    fn read(&mut self, files: &[Reader<'_>]) -> Result<(), TrainError> {
        if let Some(file) = files.first() {
            self.iterations = file.number("local_iterations")?;
        }
        Ok(())
    }
}

struct DdpgShared {
    config: DdpgConfig,
    agent: DeterministicActorCritic,
    actor_adam: Adam,
    critic_adam: Adam,
}

impl SharedHalf for DdpgShared {
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters) {
        let (parameters, targets) = model.split_at_mut(gradient.len());
        let actor_len = self.agent.actor_range().len();
        let (actor, critics) = parameters.split_at_mut(actor_len);
        let (by_actor, by_critics) = gradient.split_at(actor_len);
        self.critic_adam.step(critics, by_critics, self.config.critic_learning_rate);
        if counters.iterations.is_multiple_of(self.config.policy_delay) {
            self.actor_adam.step(actor, by_actor, self.config.actor_learning_rate);
            follow(targets, parameters, self.config.tau);
        }
    }

    fn loss_names(&self) -> &'static [&'static str] {
        &["losses/actor_loss", "losses/qf1_loss", "losses/qf1_values"]
    }

    fn write(&self, model: &[f32], writer: &mut Writer) {
        write_with_targets(writer, || self.agent.tensors(), model);
        writer.adam("actor_optimiser", &self.actor_adam);
        writer.adam("critic_optimiser", &self.critic_adam);
    }

    fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError> {
        read_with_targets(reader, || self.agent.tensors(), model)?;
        let actor_len = self.agent.actor_range().len();
        reader.adam("actor_optimiser", actor_len, &mut self.actor_adam)?;
        reader.adam("critic_optimiser", self.agent.parameter_count() - actor_len, &mut self.critic_adam)
    }
}

/// The deterministic policy of a trained actor. If it receives a random generator, it adds noise to the actions.
struct DdpgPolicy {
    agent: DeterministicActorCritic,
    parameters: Vec<f32>,
    work: Workspace,
    noise: f32,
}

impl Policy for DdpgPolicy {
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]) {
        let actor = &self.parameters[self.agent.actor_range()];
        action.copy_from_slice(self.agent.actor().forward(actor, observation, &mut self.work));
        let Some(rng) = rng else { return };
        for value in action {
            let noise: f32 = StandardNormal.sample(rng);
            *value = (*value + self.noise * noise).clamp(-1.0, 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{ActionSpec, EnvSpec};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    const BATCH: usize = 6;

    fn agent(critics: usize) -> DeterministicActorCritic {
        let action = ActionSpec::Continuous { dim: 2 };
        let spec = EnvSpec {
            id: "test".into(),
            observation_dim: 3,
            image: None,
            action,
            episode_steps_max: 1,
            solved_return: 0.0,
        };
        DeterministicActorCritic::new(&spec, &[7, 5], critics).unwrap()
    }

    fn random(len: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    fn batch() -> Batch {
        Batch {
            indices: (0..BATCH).collect(),
            observations: random(BATCH * 3, 1),
            actions: random(BATCH * 2, 2),
            rewards: random(BATCH, 3),
            next_observations: random(BATCH * 3, 4),
            goes_on: vec![1.0, 0.0, 1.0, 1.0, 0.0, 1.0],
            weights: vec![1.0, 0.5, 0.25, 1.0, 0.75, 1.0],
        }
    }

    /// Each part of the gradient must match its own loss: the critics' part the error of the values, the actor's part
    /// the first critic's values.
    #[test]
    fn gradients_agree_with_finite_differences() {
        for critics in [1, 2] {
            let (agent, batch) = (agent(critics), batch());
            let (parameters, targets) =
                (random(agent.parameter_count(), 5), random(agent.parameter_count(), 6));
            let noise = random(BATCH * 2, 7);
            let mut loss = DdpgLoss::new(agent.clone(), BATCH);
            let mut run = |parameters: &[f32], critic: usize| {
                let mut gradient = vec![f32::NAN; agent.parameter_count()];
                let networks = Networks { parameters, targets: &targets };
                let losses = loss.gradient(0.9, &networks, &batch, &noise, true, &mut gradient);
                let value = loss.critic_gradient(critic, parameters, &batch, &mut gradient.clone()).0;
                (gradient, losses.policy, value)
            };
            let (gradient, ..) = run(&parameters, 0);
            assert!(gradient.iter().all(|x| x.is_finite()));
            let mut outliers = 0;
            for i in 0..parameters.len() {
                let critic = (0..critics).find(|number| agent.critic_range(*number).contains(&i));
                let mut loss_at = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[i] += step;
                    let (_, policy, value) = run(&moved, critic.unwrap_or(0));
                    if critic.is_some() { value } else { policy }
                };
                let numeric = (loss_at(1e-3) - loss_at(-1e-3)) / 2e-3;
                let error = (f64::from(gradient[i]) - numeric).abs();
                outliers += usize::from(error > 2e-3 + 1e-2 * numeric.abs());
            }
            // The ReLU has a kink, where finite differences are inaccurate.
            assert!(
                outliers <= parameters.len() / 25,
                "{critics} critics: {outliers} of {}",
                parameters.len()
            );
        }
    }

    #[test]
    fn the_target_of_a_terminated_transition_is_its_reward() {
        let (agent, batch) = (agent(2), batch());
        let parameters = random(agent.parameter_count(), 5);
        let mut loss = DdpgLoss::new(agent, BATCH);
        loss.find_targets(0.9, &parameters, &batch, &[0.0; BATCH * 2]);
        for (i, target) in loss.targets.iter().enumerate() {
            let is_reward = target.to_bits() == batch.rewards[i].to_bits();
            assert_eq!(is_reward, batch.goes_on[i] == 0.0, "{i}: {target}");
        }
    }

    #[test]
    fn twin_critics_use_the_smaller_value() {
        let (both, batch) = (agent(2), batch());
        let parameters = random(both.parameter_count(), 5);
        let mut twin = DdpgLoss::new(both.clone(), BATCH);
        twin.find_targets(0.9, &parameters, &batch, &[0.0; BATCH * 2]);
        let of_one = |number: usize| {
            let one = agent(1);
            let own = [&parameters[both.actor_range()], &parameters[both.critic_range(number)]].concat();
            let mut loss = DdpgLoss::new(one, BATCH);
            loss.find_targets(0.9, &own, &batch, &[0.0; BATCH * 2]);
            loss.targets
        };
        let (first, second) = (of_one(0), of_one(1));
        assert_ne!(first, second);
        let lesser: Vec<_> = first.iter().zip(&second).map(|(a, b)| a.min(*b)).collect();
        assert_eq!(twin.targets, lesser);
    }

    #[test]
    fn a_delayed_policy_update_has_no_actor_gradient() {
        let (agent, batch) = (agent(1), batch());
        let parameters = random(agent.parameter_count(), 5);
        let networks = Networks { parameters: &parameters, targets: &parameters };
        let mut gradient = vec![1.0; agent.parameter_count()];
        let mut loss = DdpgLoss::new(agent.clone(), BATCH);
        loss.gradient(0.9, &networks, &batch, &[0.0; BATCH * 2], false, &mut gradient);
        assert!(gradient[agent.actor_range()].iter().all(|x| *x == 0.0));
        assert!(gradient[agent.critic_range(0)].iter().any(|x| *x != 0.0));
    }

    #[test]
    fn options_out_of_range_are_reported_by_name() {
        let check = |change: fn(&mut DdpgConfig)| {
            let mut config = DdpgConfig::preset("Pendulum-v1");
            change(&mut config);
            config.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|config| config.gamma = 1.5), Err("gamma is 1.5, expected 0 to 1".to_owned()));
        assert_eq!(
            check(|config| config.batch_size = 0),
            Err("batch_size is 0, expected at least 1".to_owned())
        );
        let error = check(|config| config.hidden = vec![]).unwrap_err();
        assert_eq!(error, "hidden is [], expected at least one width, none of them 0");
    }
}
