//! All environments of one child process, which is restarted if it fails.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::child::Child;
use super::episode::{Episode, Phase};
use super::message::{self, Description};
use super::{ChildError, GymnasiumOptions, Package};
use crate::env::scene::Frame;
use crate::env::{Action, EnvError, Step, check_state};

/// Number of process failures after which the run fails if no step has succeeded between them.
const FAILURES_MAX: u32 = 5;
/// Maximum number of failed attempts at a step while no other environment is stepping. After the last attempt, the
/// episode is abandoned; if the attempt ended with an exception in the environment's code, the run fails instead.
const ATTEMPTS_MAX: u32 = 2;
/// Number of values before the actions in a saved state: the seed (-1 if there is no episode) and the checksum of the
/// newest observation.
const STATE_HEAD: usize = 2;

/// The environments and their process.
pub(super) struct Vector {
    id: String,
    package: Package,
    options: GymnasiumOptions,
    description: Description,
    pub(super) child: Option<Child>,
    episodes: Vec<Episode>,
    /// Number of process failures since the last successful step.
    failures: u32,
}

impl Vector {
    /// Starts the process and creates the environments in it.
    pub(super) fn new(
        id: &str,
        count: usize,
        package: Package,
        options: &GymnasiumOptions,
    ) -> Result<Self, ChildError> {
        let mut child = Child::start(options)?;
        let request = message::make(id, count, options.renders, package);
        let description = match child.ask(&request).and_then(message::made) {
            Ok(description) => description,
            Err(error) => return Err(error.with_stderr(&child.kill())),
        };
        Ok(Self {
            id: id.to_owned(),
            package,
            options: options.clone(),
            episodes: (0..count).map(|_| Episode::new(&description)).collect(),
            description,
            child: Some(child),
            failures: 0,
        })
    }

    pub(super) fn description(&self) -> &Description {
        &self.description
    }

    /// Starts an episode with a seed drawn from the generator.
    pub(super) fn reset(
        &mut self,
        index: usize,
        rng: &mut ChaCha8Rng,
        observation: &mut [f32],
    ) -> Result<(), EnvError> {
        // Environments pass seeds to libraries that require a non-negative i32.
        let seed = rng.next_u32() >> 1;
        self.episodes[index].clear(seed);
        let mut attempts = 0;
        while let Err(failure) = self.ask_reset(index, seed) {
            attempts += 1;
            self.refuse_exception(&failure, attempts)?;
            self.recover(failure)?;
        }
        self.episodes[index].latest.write(observation);
        Ok(())
    }

    fn ask_reset(&mut self, index: usize, seed: u32) -> Result<(), ChildError> {
        let len_bytes = self.description.observations.len_bytes();
        let answer = self.child.as_mut().ok_or(ChildError::Closed)?.ask(&message::reset(index, seed))?;
        let observed = message::observed(answer, 1, len_bytes)?;
        self.episodes[index].start(observed[0].observation);
        Ok(())
    }

    /// Stores the action, to be sent with the next step request.
    pub(super) fn begin_step(&mut self, index: usize, action: Action<'_>) -> Result<(), EnvError> {
        let action = self.description.actions.encode(action)?;
        let episode = &mut self.episodes[index];
        if episode.phase == Phase::Idle {
            return Err(EnvError::NotReset);
        }
        (episode.begun, episode.outcome) = (Some(action), None);
        Ok(())
    }

    /// Returns the outcome of the step in progress.
    pub(super) fn finish_step(
        &mut self,
        index: usize,
        action: Action<'_>,
        observation: &mut [f32],
    ) -> Result<Step, EnvError> {
        if self.episodes[index].outcome.is_none() {
            if self.episodes[index].begun.is_none() {
                self.begin_step(index, action)?;
            }
            self.step_all_begun()?;
        }
        let episode = &mut self.episodes[index];
        episode.latest.write(observation);
        episode.outcome.take().ok_or(EnvError::NotReset)
    }

    /// Executes all steps that have been begun but not yet executed. A single message requests all of them. After a
    /// failure, the environments are stepped one at a time to find the one that fails.
    fn step_all_begun(&mut self) -> Result<(), EnvError> {
        let mut is_one_by_one = false;
        loop {
            self.episodes.iter_mut().for_each(Episode::end_if_lost);
            let begun = self.episodes.iter().enumerate().filter(|(_, episode)| episode.begun.is_some());
            let indices = begun.map(|(index, _)| index).take(if is_one_by_one { 1 } else { usize::MAX });
            let indices: Vec<_> = indices.collect();
            if indices.is_empty() {
                return Ok(());
            }
            let Err(failure) = self.ask_step(&indices) else {
                self.failures = 0;
                continue;
            };
            if let [index] = indices[..] {
                self.episodes[index].crashes += 1;
                self.refuse_exception(&failure, self.episodes[index].crashes)?;
                if self.episodes[index].crashes == ATTEMPTS_MAX {
                    self.lose(index, "its process failed again at the same step");
                }
            }
            is_one_by_one = true;
            self.recover(failure)?;
        }
    }

    fn ask_step(&mut self, indices: &[usize]) -> Result<(), ChildError> {
        let actions = indices.iter().map(|i| (*i, self.episodes[*i].begun.as_deref().unwrap_or_default()));
        let request = message::step(actions);
        let len_bytes = self.description.observations.len_bytes();
        let answer = self.child.as_mut().ok_or(ChildError::Closed)?.ask(&request)?;
        let observed = message::observed(answer, indices.len(), len_bytes)?;
        for (index, observed) in indices.iter().zip(&observed) {
            self.episodes[*index].advance(observed);
        }
        Ok(())
    }

    /// Returns an error if `failure` is an exception in the environment's code and no attempt at the same step or reset
    /// is left. A further attempt would raise the same exception.
    fn refuse_exception(&self, failure: &ChildError, attempts: u32) -> Result<(), EnvError> {
        match failure {
            ChildError::Raised(exception) if attempts >= ATTEMPTS_MAX => {
                Err(EnvError::Raised { id: self.id.clone(), exception: exception.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Marks an episode as lost, so that its next step reports a truncation.
    fn lose(&mut self, index: usize, reason: &str) {
        tracing::warn!(env = self.id, index, reason, "abandoned an episode");
        self.episodes[index].phase = Phase::Lost;
    }

    /// Restarts the process and replays each episode from its seed and actions.
    fn recover(&mut self, failure: ChildError) -> Result<(), EnvError> {
        let mut outcome = Err(failure);
        while let Err(failure) = outcome {
            self.failures += 1;
            let stderr = self.child.take().map(|mut child| child.kill()).unwrap_or_default();
            let failure = failure.with_stderr(&stderr);
            if self.failures >= FAILURES_MAX {
                return Err(failure.into_env_error(&self.id, self.failures));
            }
            tracing::warn!(env = self.id, %failure, "restarting the environment process");
            outcome = self.start_again();
        }
        Ok(())
    }

    fn start_again(&mut self) -> Result<(), ChildError> {
        let child = self.child.insert(Child::start(&self.options)?);
        let request = message::make(&self.id, self.episodes.len(), self.options.renders, self.package);
        let description = message::made(child.ask(&request)?)?;
        if description != self.description {
            return Err(ChildError::Protocol(format!(
                "after a restart, its environment is {description:?}, expected {:?}",
                self.description
            )));
        }
        for index in 0..self.episodes.len() {
            if self.episodes[index].phase == Phase::Running {
                let digest = self.episodes[index].latest.digest();
                self.replay(index, digest)?;
            }
        }
        Ok(())
    }

    /// Restores the episode of an environment by replaying its actions from its seed. If the replay fails or its result
    /// does not have the checksum `digest`, the episode is lost.
    fn replay(&mut self, index: usize, digest: u32) -> Result<(), ChildError> {
        if let Package::EnvPool { .. } = self.package {
            self.lose(index, "EnvPool cannot restore an episode in progress");
            return Ok(());
        }
        let outcome = self.ask_replay(index, digest);
        match &outcome {
            Ok(true) => {}
            Ok(false) => {
                self.lose(index, "its replay led to a different state: the environment is not deterministic");
            }
            Err(_) => self.lose(index, "the process failed during its replay"),
        }
        outcome.map(|_| ())
    }

    fn ask_replay(&mut self, index: usize, digest: u32) -> Result<bool, ChildError> {
        let episode = &mut self.episodes[index];
        let count = episode.actions.len() / self.description.actions.len_bytes();
        let request = message::replay(index, episode.seed, count, &episode.actions);
        let answer = self.child.as_mut().ok_or(ChildError::Closed)?.ask(&request)?;
        let replayed = message::replayed(answer, self.description.observations.len_bytes())?;
        Ok(episode.take_over(&replayed, digest))
    }

    /// Returns an image of the current state, and the time between two steps of the display, in seconds.
    pub(super) fn picture(&mut self, index: usize) -> Result<(Frame, f64), EnvError> {
        let request = message::render(index);
        let answer = self.child.as_mut().ok_or(ChildError::Closed).and_then(|child| child.ask(&request));
        let (frame, rate) = answer
            .and_then(message::rendered)
            .map_err(|error| EnvError::Gymnasium(format!("{} cannot be rendered: {error}", self.id)))?;
        Ok((frame, rate.recip()))
    }

    pub(super) fn save_state(&self, index: usize) -> Vec<f64> {
        let episode = &self.episodes[index];
        let is_running = episode.phase == Phase::Running;
        let seed = if is_running { f64::from(episode.seed) } else { -1.0 };
        let mut state = vec![seed, f64::from(episode.latest.digest())];
        state.extend(self.description.actions.numbers(&episode.actions));
        state
    }

    pub(super) fn restore_state(&mut self, index: usize, state: &[f64]) -> Result<(), EnvError> {
        let per_action = self.description.actions.len_bytes() / 4;
        let Some(([seed, digest], actions)) = state.split_first_chunk::<STATE_HEAD>() else {
            return check_state(state, STATE_HEAD);
        };
        if actions.len() % per_action != 0 {
            let expected = STATE_HEAD + actions.len().next_multiple_of(per_action);
            return Err(EnvError::WrongState { expected, actual: state.len() });
        }
        let episode = &mut self.episodes[index];
        episode.clear(*seed as u32);
        episode.actions = self.description.actions.encode_numbers(actions);
        if *seed < 0.0 {
            self.lose(index, "no episode was running when the checkpoint was saved");
            return Ok(());
        }
        match self.replay(index, *digest as u32) {
            Ok(()) => Ok(()),
            Err(failure) => self.recover(failure),
        }
    }
}
