//! Evaluation of a trained policy, without learning.

use rand_chacha::ChaCha8Rng;

use super::TrainError;
use super::streams::{Purpose, stream};
use super::trainer::Policy;
use crate::env::scene::Picture;
use crate::env::{EnvSpec, Environment};

/// Outcome of one evaluation episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EvaluationEpisode {
    /// Sum of the unscaled rewards.
    pub episode_return: f64,
    /// Length of the episode, in steps.
    pub length: u32,
    /// Whether the time limit truncated the episode.
    pub truncated: bool,
}

/// A policy and the environment in which it acts, advanced one step at a time.
pub struct Evaluator<'a> {
    policy: &'a mut dyn Policy,
    env: &'a mut dyn Environment,
    spec: EnvSpec,
    rng: ChaCha8Rng,
    stochastic: bool,
    observation: Vec<f32>,
    action: Vec<f32>,
    episode: EvaluationEpisode,
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator that samples actions from the policy if `stochastic` is set, and otherwise takes the most
    /// probable action. Start states and sampled actions are drawn from the evaluation stream of `seed`, so the same
    /// arguments produce the same episodes.
    pub fn new(
        policy: &'a mut dyn Policy,
        env: &'a mut dyn Environment,
        seed: u64,
        stochastic: bool,
    ) -> Self {
        let spec = env.spec().clone();
        Self {
            policy,
            env,
            rng: stream(seed, Purpose::Evaluation, 0),
            stochastic,
            observation: vec![0.0; spec.observation_dim],
            action: vec![0.0; spec.action.stored_dim()],
            spec,
            episode: EvaluationEpisode::default(),
        }
    }

    /// Starts an episode. Call this before the first step and after the end of each episode.
    ///
    /// # Errors
    /// Fails if the environment fails.
    pub fn begin(&mut self) -> Result<(), TrainError> {
        self.env.reset(&mut self.rng, &mut self.observation)?;
        self.policy.begin_episode();
        self.episode = EvaluationEpisode::default();
        Ok(())
    }

    /// Takes one step. Returns the outcome of the episode if this step ended it, otherwise `None`.
    ///
    /// # Errors
    /// Fails if the environment fails.
    pub fn step(&mut self) -> Result<Option<EvaluationEpisode>, TrainError> {
        self.begin_step()?;
        self.finish_step()
    }

    /// Chooses an action and begins the step; the first half of [`Self::step`].
    fn begin_step(&mut self) -> Result<(), TrainError> {
        let rng = if self.stochastic { Some(&mut self.rng) } else { None };
        self.policy.act(&self.observation, rng, &mut self.action);
        Ok(self.env.begin_step(self.spec.to_env(&self.action))?)
    }

    /// Finishes the step that [`Self::begin_step`] began; the second half of [`Self::step`].
    fn finish_step(&mut self) -> Result<Option<EvaluationEpisode>, TrainError> {
        let step = self.env.finish_step(self.spec.to_env(&self.action), &mut self.observation)?;
        self.episode.episode_return += step.reward;
        self.episode.length += 1;
        self.episode.truncated = step.truncated;
        Ok((step.terminated || step.truncated).then_some(self.episode))
    }

    /// Returns a picture of the current state; see [`Environment::picture`].
    ///
    /// # Errors
    /// See [`Environment::picture`].
    pub fn picture(&mut self) -> Result<Option<Picture>, TrainError> {
        Ok(self.env.picture()?)
    }
}

/// Runs `episodes` episodes; see [`Evaluator::new`].
///
/// # Errors
/// Fails if the environment fails.
pub fn evaluate(
    policy: &mut dyn Policy,
    env: &mut dyn Environment,
    episodes: usize,
    seed: u64,
    stochastic: bool,
) -> Result<Vec<EvaluationEpisode>, TrainError> {
    let mut evaluator = Evaluator::new(policy, env, seed, stochastic);
    let mut one = || -> Result<_, TrainError> {
        evaluator.begin()?;
        loop {
            if let Some(episode) = evaluator.step()? {
                return Ok(episode);
            }
        }
    };
    (0..episodes).map(|_| one()).collect()
}

/// Runs the episodes that [`evaluate`] would run with the most probable actions, but in parallel: each environment runs
/// one episode at a time and has a separate policy. Episodes begin in the same order and therefore have the same start
/// states as in [`evaluate`], unless an environment uses a random source of its own, as EnvPool does. `policies` and
/// `environments` must have the same length.
///
/// # Errors
/// Fails if an environment fails.
pub fn evaluate_parallel(
    policies: &mut [Box<dyn Policy>],
    environments: &mut [Box<dyn Environment>],
    episodes: usize,
    seed: u64,
) -> Result<Vec<EvaluationEpisode>, TrainError> {
    let mut outcomes = vec![EvaluationEpisode::default(); episodes];
    let mut waiting = 0..episodes;
    let mut rng = stream(seed, Purpose::Evaluation, 0);
    let mut seats: Vec<_> = policies
        .iter_mut()
        .zip(environments)
        .map(|(policy, env)| Seat {
            evaluator: Evaluator::new(policy.as_mut(), env.as_mut(), seed, false),
            episode: None,
        })
        .collect();
    loop {
        for seat in seats.iter_mut().filter(|seat| seat.episode.is_none()) {
            seat.episode = waiting.next();
            if seat.episode.is_some() {
                // The start states of all episodes come from one stream.
                std::mem::swap(&mut seat.evaluator.rng, &mut rng);
                seat.evaluator.begin()?;
                std::mem::swap(&mut seat.evaluator.rng, &mut rng);
            }
        }
        if seats.iter().all(|seat| seat.episode.is_none()) {
            return Ok(outcomes);
        }
        seats
            .iter_mut()
            .filter(|seat| seat.episode.is_some())
            .try_for_each(|seat| seat.evaluator.begin_step())?;
        for seat in seats.iter_mut().filter(|seat| seat.episode.is_some()) {
            if let Some(outcome) = seat.evaluator.finish_step()?
                && let Some(number) = seat.episode.take()
            {
                outcomes[number] = outcome;
            }
        }
    }
}

/// An environment, its policy, and the index of the episode that runs in it.
struct Seat<'a> {
    evaluator: Evaluator<'a>,
    episode: Option<usize>,
}
