//! Acting and learning with a deterministic policy. DDPG and TD3 use this module.

use std::ops::Range;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use super::DeterministicActorCritic;
use super::loss::{DeterministicLoss, Losses, Networks};
use crate::algorithms::TrainError;
use crate::algorithms::checkpoint::{Reader, Writer};
use crate::algorithms::config::Checks;
use crate::algorithms::experience::ExperienceOptions;
use crate::algorithms::halves::{Counters, LOSSES, SharedHalf, Tail};
use crate::algorithms::off_policy::{
    Behaviour, OffPolicyAlgorithm, ReplayLearner, Source, follow, read_with_targets, write_with_targets,
};
use crate::algorithms::policy_graph::{Outputs, PolicyGraph, Preprocessing, graph_layers};
use crate::algorithms::remote::{BatchLearner, Rest};
use crate::algorithms::replay::Batch;
use crate::algorithms::streams::{Purpose, stream};
use crate::algorithms::trainer::{Algorithm, Mode, Policy};
use crate::algorithms::vector_env::VectorEnv;
use crate::env::EnvSpec;
use crate::nn::{Adam, Workspace};

/// Adam epsilon (PyTorch's default).
const ADAM_EPSILON: f32 = 1e-8;

/// Hyper-parameters that DDPG and TD3 share. They are described in detail in `DdpgConfig` and `Td3Config`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) experience: ExperienceOptions,
    pub(crate) actor_learning_rate: f32,
    pub(crate) critic_learning_rate: f32,
    pub(crate) gamma: f32,
    pub(crate) tau: f32,
    /// Standard deviation of the exploration noise on actions in [-1, 1].
    pub(crate) exploration_noise: f32,
    /// Number of critic updates per update of the policy and the target networks.
    pub(crate) policy_delay: u64,
    /// The standard deviation of the noise that is added to the target policy's actions, and the bound on this noise.
    pub(crate) target_noise: f32,
    pub(crate) target_noise_clip: f32,
}

impl Settings {
    /// Checks that all hyper-parameters are in range.
    pub(crate) fn check(&self, total_steps: u64, hidden: &[usize]) -> Result<(), TrainError> {
        Checks::default()
            .experience(&self.experience, total_steps)
            .positive("policy_delay", self.policy_delay)
            .above_zero("actor_learning_rate", self.actor_learning_rate)
            .above_zero("critic_learning_rate", self.critic_learning_rate)
            .unit("gamma", self.gamma)
            .unit("tau", self.tau)
            .not_negative("exploration_noise", self.exploration_noise)
            .not_negative("target_noise", self.target_noise)
            .not_negative("target_noise_clip", self.target_noise_clip)
            .widths("hidden", hidden)
            .result()
    }

    /// Appends `count` values of noise for the target policy's actions to `noise`. The values are zero if the noise is
    /// disabled.
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

/// An algorithm with a deterministic policy.
pub(crate) trait DeterministicAlgorithm: Algorithm {
    fn settings(&self) -> Settings;

    /// Creates the networks for an environment.
    fn agent(&self, env: &EnvSpec) -> Result<DeterministicActorCritic, TrainError>;
}

impl<C: DeterministicAlgorithm> OffPolicyAlgorithm for C {
    type Behaviour = NoisyBehaviour;
    type Learner = DeterministicLearner;

    fn experience(&self) -> ExperienceOptions {
        self.settings().experience
    }

    fn acting(&self, spec: &EnvSpec) -> Result<Range<usize>, TrainError> {
        Ok(self.agent(spec)?.actor_range())
    }

    fn behaviour(&self, spec: &EnvSpec, environments: usize) -> Result<NoisyBehaviour, TrainError> {
        let agent = self.agent(spec)?;
        Ok(NoisyBehaviour { work: agent.actor().workspace(environments), settings: self.settings(), agent })
    }

    fn learner(
        &self,
        spec: &EnvSpec,
        samples: usize,
        source: Source,
    ) -> Result<DeterministicLearner, TrainError> {
        let settings = self.settings();
        Ok(DeterministicLearner {
            loss: DeterministicLoss::new(self.agent(spec)?, samples),
            noise: Vec::new(),
            rng: source.rng(settings.experience.seed),
            iterations: 0,
            // Without synchronisation, a worker does not know to which update its gradient will contribute.
            always_policy: matches!(source, Source::Own(Mode::Asynchronous)),
            settings,
        })
    }

    fn rest(mut self, spec: &EnvSpec) -> Result<Rest, TrainError> {
        let (agent, settings) = (self.agent(spec)?, self.settings());
        let seed = settings.experience.seed;
        let parameters = agent.initial_parameters(&mut stream(seed, Purpose::Weights, 0));
        let shared = DeterministicShared {
            actor_adam: Adam::new(agent.actor_range().len(), ADAM_EPSILON),
            critic_adam: Adam::new(agent.critic_range().len(), ADAM_EPSILON),
            agent,
            settings,
        };
        Ok(Rest::new(&mut self, Tail::after(parameters.len()), parameters.repeat(2), Box::new(shared)))
    }
}

/// Action selection: uniformly random actions before learning starts, and afterwards the policy's actions with added
/// noise.
pub(crate) struct NoisyBehaviour {
    settings: Settings,
    agent: DeterministicActorCritic,
    work: Workspace,
}

impl Behaviour for NoisyBehaviour {
    fn choose(&mut self, parameters: &[f32], steps: u64, acting: &mut VectorEnv, actions: &mut Vec<f32>) {
        let is_warming_up = steps < self.settings.experience.schedule.learning_starts;
        let chosen = self.agent.actor().forward(parameters, acting.observations(), &mut self.work);
        actions.clear();
        for (row, slot) in chosen.chunks_exact(self.agent.action_dim()).zip(acting.slots_mut()) {
            let rng = &mut slot.action_rng;
            actions.extend(row.iter().map(|action| {
                if is_warming_up {
                    return rng.random_range(-1.0..1.0);
                }
                let noise: f32 = StandardNormal.sample(rng);
                (action + self.settings.exploration_noise * noise).clamp(-1.0, 1.0)
            }));
        }
    }
}

/// Learner that computes gradients from batches of transitions.
pub(crate) struct DeterministicLearner {
    settings: Settings,
    loss: DeterministicLoss,
    /// Noise that is added to the target policy's actions, `[batch, action_dim]`.
    noise: Vec<f32>,
    /// Random generator of the noise; `None` if the noise is drawn from the random streams of the environments.
    rng: Option<ChaCha8Rng>,
    iterations: u64,
    /// Whether every gradient includes that of the policy, regardless of `policy_delay`.
    always_policy: bool,
}

impl ReplayLearner for DeterministicLearner {
    fn draw(&mut self, samples: usize, acting: &mut VectorEnv) {
        self.noise.clear();
        let slots = acting.slots_mut();
        let each = samples / slots.len() * self.loss.agent().action_dim();
        for slot in slots {
            self.settings.draw_target_noise(each, &mut slot.minibatch_rng, &mut self.noise);
        }
    }
}

impl BatchLearner for DeterministicLearner {
    fn gradient(&mut self, model: &[f32], batch: &Batch, gradient: &mut [f32]) -> [f32; LOSSES] {
        if let Some(rng) = &mut self.rng {
            self.noise.clear();
            self.settings.draw_target_noise(batch.actions.len(), rng, &mut self.noise);
        }
        self.iterations += 1;
        let with_policy = self.always_policy || self.iterations.is_multiple_of(self.settings.policy_delay);
        let (parameters, targets) = model.split_at(gradient.len());
        let networks = Networks { parameters, targets };
        let Losses { policy, value, mean_value } =
            self.loss.gradient(self.settings.gamma, &networks, batch, &self.noise, with_policy, gradient);
        [policy, value, mean_value, 0.0].map(|loss| loss as f32)
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

struct DeterministicShared {
    settings: Settings,
    agent: DeterministicActorCritic,
    actor_adam: Adam,
    critic_adam: Adam,
}

impl SharedHalf for DeterministicShared {
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters) {
        let (parameters, targets) = model.split_at_mut(gradient.len());
        let actor_len = self.agent.actor_range().len();
        let (actor, critics) = parameters.split_at_mut(actor_len);
        let (by_actor, by_critics) = gradient.split_at(actor_len);
        self.critic_adam.step(critics, by_critics, self.settings.critic_learning_rate);
        if counters.iterations.is_multiple_of(self.settings.policy_delay) {
            self.actor_adam.step(actor, by_actor, self.settings.actor_learning_rate);
            follow(targets, parameters, self.settings.tau);
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
        reader.adam("actor_optimiser", self.agent.actor_range().len(), &mut self.actor_adam)?;
        reader.adam("critic_optimiser", self.agent.critic_range().len(), &mut self.critic_adam)
    }
}

/// Loads the trained actor from a model file.
pub(crate) fn policy(
    algorithm: &impl DeterministicAlgorithm,
    reader: &Reader<'_>,
    env: &EnvSpec,
) -> Result<Box<dyn Policy>, TrainError> {
    let agent = algorithm.agent(env)?;
    Ok(Box::new(NoisyPolicy {
        parameters: reader.parameters("", agent.tensors())?,
        work: agent.actor().workspace(1),
        noise: algorithm.settings().exploration_noise,
        agent,
    }))
}

/// Policy of a trained actor. If `act` receives a random generator, noise is added to the actions; otherwise, the
/// policy is deterministic.
struct NoisyPolicy {
    agent: DeterministicActorCritic,
    parameters: Vec<f32>,
    work: Workspace,
    noise: f32,
}

impl Policy for NoisyPolicy {
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]) {
        let actor = &self.parameters[self.agent.actor_range()];
        action.copy_from_slice(self.agent.actor().forward(actor, observation, &mut self.work));
        let Some(rng) = rng else { return };
        for value in action {
            let noise: f32 = StandardNormal.sample(rng);
            *value = (*value + self.noise * noise).clamp(-1.0, 1.0);
        }
    }

    fn graph(&self) -> PolicyGraph {
        let actor = &self.parameters[self.agent.actor_range()];
        PolicyGraph {
            preprocessing: Preprocessing::None,
            layers: graph_layers(self.agent.actor(), actor, None),
            memory: None,
            streams: None,
            outputs: Outputs::Action,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::td3::Td3Config;
    use rand::SeedableRng as _;

    #[test]
    fn the_noise_of_the_target_is_clipped() {
        let config = Td3Config { target_noise: 0.2, target_noise_clip: 0.3, ..Td3Config::preset("any") };
        let mut noise = Vec::new();
        config.settings().draw_target_noise(10_000, &mut ChaCha8Rng::seed_from_u64(1), &mut noise);
        // The absolute value of a normal variable exceeds 1.5 standard deviations with a probability of 0.134.
        let clipped = noise.iter().filter(|x| x.abs() == 0.3).count();
        assert!(noise.iter().all(|x| x.abs() <= 0.3) && (1_200..1_500).contains(&clipped), "{clipped}");
        let variance = noise.iter().map(|x| x * x).sum::<f32>() / 1e4;
        // The variance is below 0.04, that of the normal distribution, because the tails are clipped.
        assert!((0.028..0.036).contains(&variance), "{variance}");
    }
}
