//! The environments that this worker runs, each with its random streams and the state that persists between steps.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use super::TrainError;
use super::episodes::Episode;
use super::normalise::Deviations;
use super::phases::Phase;
use super::share::Share;
use super::streams::{Purpose, stream};
use crate::env::{Action, EnvError, EnvSpec, Environment, Step};

/// Function that creates the given number of environments for this worker. The environments may share a child process.
pub type EnvFactory = dyn Fn(usize) -> Result<Vec<Box<dyn Environment>>, EnvError>;

/// One of the job's environments, with its random streams and the state of its current episode.
pub struct EnvironmentSlot {
    /// Index of the environment among all environments of the job.
    pub index: usize,
    /// The environment.
    pub env: Box<dyn Environment>,
    /// Random stream from which actions are sampled.
    pub action_rng: ChaCha8Rng,
    /// Random stream that determines the start state of each episode.
    pub reset_rng: ChaCha8Rng,
    /// Random stream that determines the order in which this environment's samples enter minibatches.
    pub minibatch_rng: ChaCha8Rng,
    /// Current observation before normalisation, `[observation_dim]`.
    pub observation: Vec<f32>,
    /// Sum of the rewards of the current episode.
    pub episode_return: f64,
    /// Number of steps of the current episode.
    pub episode_length: u32,
    /// Whether the most recent step ended the episode, by termination or truncation.
    pub ended: bool,
    /// Whether the most recent step ended the episode by truncation.
    pub truncated: bool,
    /// Discounted sum of the rewards of the current episode; its variance determines how rewards are scaled.
    pub discounted_return: f64,
    /// State of a recurrent policy after the preceding step, `[state_len]`: zero at the start of an episode, and empty
    /// if the policy is not recurrent.
    pub memory: Vec<f32>,
    /// For each element of the observation, its deviations during this rollout from its mean before the rollout,
    /// `[observation_dim]`.
    pub observation_deviations: Vec<Deviations>,
    /// Deviations of the discounted return during this rollout from its mean before the rollout.
    pub return_deviations: Deviations,
}

impl EnvironmentSlot {
    fn new(env: Box<dyn Environment>, seed: u64, index: usize) -> Result<Self, TrainError> {
        let dim = env.spec().observation_dim;
        let mut slot = Self {
            index,
            env,
            action_rng: stream(seed, Purpose::Actions, index),
            reset_rng: stream(seed, Purpose::Resets, index),
            minibatch_rng: stream(seed, Purpose::Minibatches, index),
            observation: vec![0.0; dim],
            episode_return: 0.0,
            episode_length: 0,
            ended: false,
            truncated: false,
            discounted_return: 0.0,
            memory: vec![],
            observation_deviations: vec![Deviations::default(); dim],
            return_deviations: Deviations::default(),
        };
        slot.reset()?;
        Ok(slot)
    }

    /// Starts the next episode.
    pub fn reset(&mut self) -> Result<(), TrainError> {
        let _phase = Phase::Environment.enter();
        (self.episode_return, self.episode_length, self.discounted_return) = (0.0, 0, 0.0);
        self.memory.fill(0.0);
        Ok(self.env.reset(&mut self.reset_rng, &mut self.observation)?)
    }

    /// Takes one step. Afterwards, `observation` holds the observation that the step produced. If the step ended the
    /// episode, this is the final observation: the caller may need its value, so the next episode starts only with a
    /// call of [`Self::reset`].
    pub fn step(&mut self, action: Action<'_>, gamma: f64, return_mean: f64) -> Result<Step, TrainError> {
        self.begin_step(action)?;
        self.finish_step(action, gamma, return_mean)
    }

    /// Begins a step; the first half of [`Self::step`]. The caller begins the step of every slot before it finishes any
    /// of them, so that environments that share a process step together.
    pub fn begin_step(&mut self, action: Action<'_>) -> Result<(), TrainError> {
        let _phase = Phase::Environment.enter();
        Ok(self.env.begin_step(action)?)
    }

    /// Finishes the step that [`Self::begin_step`] began with the same action; the second half of [`Self::step`].
    pub fn finish_step(
        &mut self,
        action: Action<'_>,
        gamma: f64,
        return_mean: f64,
    ) -> Result<Step, TrainError> {
        let phase = Phase::Environment.enter();
        let step = self.env.finish_step(action, &mut self.observation)?;
        drop(phase);
        self.episode_return += step.reward;
        self.episode_length += 1;
        self.ended = step.terminated || step.truncated;
        self.truncated = step.truncated;
        self.discounted_return = gamma * self.discounted_return + step.reward;
        self.return_deviations.add(self.discounted_return, return_mean);
        Ok(step)
    }

    /// Adds the deviations of the current observation from `means` to the statistics of the rollout.
    pub fn count_observation(&mut self, means: &[f64]) {
        for (i, deviations) in self.observation_deviations.iter_mut().enumerate() {
            deviations.add(f64::from(self.observation[i]), means[i]);
        }
    }

    /// Clears the statistics at the start of a rollout.
    pub fn clear_deviations(&mut self) {
        self.observation_deviations.fill(Deviations::default());
        self.return_deviations = Deviations::default();
    }

    /// Returns the record of the episode that the most recent step ended; `step` is the index of that step in the
    /// rollout.
    pub fn finished_episode(&self, step: usize) -> Episode {
        Episode {
            step,
            environment: self.index,
            episode_return: self.episode_return as f32,
            length: self.episode_length,
        }
    }
}

/// Creates the environments of `share`, each at the start of its first episode.
///
/// # Errors
/// Fails if an environment cannot be created or reset.
pub fn local_slots(
    share: &Share,
    seed: u64,
    factory: &EnvFactory,
) -> Result<(EnvSpec, Vec<EnvironmentSlot>), TrainError> {
    slots(share.local_environments(), seed, factory)
}

/// Creates the environments with the given indices among all environments of the job, each at the start of its first
/// episode. There must be at least one index.
///
/// # Errors
/// See [`local_slots`].
pub fn slots(
    indices: Range<usize>,
    seed: u64,
    factory: &EnvFactory,
) -> Result<(EnvSpec, Vec<EnvironmentSlot>), TrainError> {
    let environments = factory(indices.len())?;
    if environments.len() != indices.len() || indices.is_empty() {
        let (made, wanted) = (environments.len(), indices.len().max(1));
        return Err(TrainError::Config(format!(
            "the factory created {made} environments, expected {wanted}"
        )));
    }
    let slots: Vec<_> = indices
        .zip(environments)
        .map(|(index, env)| EnvironmentSlot::new(env, seed, index))
        .collect::<Result<_, TrainError>>()?;
    let spec = slots[0].env.spec().clone();
    Ok((spec, slots))
}
