//! Environments of Gymnasium, in a child Python process that this one talks to through pipes.
//!
//! Any Python that can import Gymnasium will do: nothing is linked, so that neither its version nor the licence of
//! what it imports matters to this program. All environments of a vector live in one process, and those that have
//! begun a step ([`Environment::begin_step`]) are stepped with one message.
//!
//! - **Observations**: a Box of numbers, flattened to f32, or images of bytes, `[height, width, channels]` from 0 to
//!   255.
//! - **Actions**: Discrete, or a Box of floats. Each dimension is stretched from [-1, 1] to its bounds; one without
//!   bounds is passed as it is, neither clipped nor scaled.
//! - **Atari games** (`ALE/Pong-v5`, `PongNoFrameskip-v4`) are preprocessed as Mnih et al. (2015) did: each action for
//!   four frames, the brighter of the last two, grey, 84 x 84, the last four such images, up to 30 idle actions at the
//!   start, and FIRE where the game has it. A lost life is told ([`Step::life_lost`]), and the episode goes on.
//! - **Determinism**: each episode has a seed of its own, drawn from the generator given to [`Environment::reset`].
//!   Where the environment keeps to Gymnasium's rule that a seed and the actions decide everything, runs repeat
//!   exactly, and so does what a saved state goes on with: it is the seed and the actions, which are replayed.
//! - **Failures**: a process that crashes or does not answer in time is started again, and the episodes in it are
//!   replayed. An episode whose replay fails or leads elsewhere is cut (`truncated`); so is one whose next step fails
//!   twice. Five failures without one step in between are an error.

mod action;
mod child;
mod episode;
mod latest;
mod message;
#[cfg(test)]
mod tests;
mod vector;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;

use super::{Action, EnvError, EnvSpec, Environment, Step, python};
use crate::nn::Image;
use message::{Description, Observations};
use vector::Vector;

/// Before an id, asks for Gymnasium's environment even where one is built in.
pub(super) const PREFIX: &str = "gymnasium:";
/// Importing everything for the first time on a slow disk takes longest.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// How Python is started and waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GymnasiumOptions {
    /// Program name or path.
    pub python: PathBuf,
    /// A process that says nothing for so long is taken for hung. Steps take milliseconds, the start seconds; a long
    /// replay is not silent.
    pub answer_timeout: Duration,
}

impl Default for GymnasiumOptions {
    /// The Python that the environment variable `ISWITCH_PYTHON` names, or else `python3`; two minutes.
    fn default() -> Self {
        Self { python: python::program(), answer_timeout: ANSWER_TIMEOUT }
    }
}

/// What went wrong with the child process.
#[derive(Debug, thiserror::Error)]
enum ChildError {
    #[error(
        "{} cannot be started ({error}); install Python with Gymnasium, or name one in {}",
        python.display(), python::VARIABLE
    )]
    Start { python: PathBuf, error: std::io::Error },
    #[error("it ended")]
    Closed,
    #[error("it did not answer in time")]
    Timeout,
    #[error("pipe: {0}")]
    Pipe(#[from] std::io::Error),
    #[error("{0}")]
    Protocol(String),
    #[error("{text}")]
    Refused { is_missing: bool, text: String },
    #[error("{error}; the end of its stderr: {stderr}")]
    Said { error: Box<ChildError>, stderr: String },
}

impl From<rustix::io::Errno> for ChildError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Pipe(error.into())
    }
}

impl ChildError {
    /// With what the process wrote last, if that says more.
    fn with_stderr(self, stderr: &str) -> Self {
        if stderr.is_empty() || matches!(self, Self::Refused { .. } | Self::Start { .. }) {
            return self;
        }
        Self::Said { error: Box::new(self), stderr: stderr.to_owned() }
    }

    fn into_env_error(self, id: &str, failures: u32) -> EnvError {
        EnvError::Gymnasium(format!(
            "{id}: the environments' process failed {failures} times in a row: {self}"
        ))
    }
}

/// One environment of a child process. It lives as long as the last one of its process.
pub struct GymnasiumEnvironment {
    spec: EnvSpec,
    index: usize,
    vector: Arc<Mutex<Vector>>,
}

impl GymnasiumEnvironment {
    /// `count` environments of the `id` in one process. The prefix `gymnasium:` is taken off.
    ///
    /// # Errors
    /// [`EnvError::UnknownId`] if Python or a package is missing, or Gymnasium does not know the id, and says what to
    /// install; [`EnvError::Gymnasium`] if the environment's spaces are not supported or the process fails.
    pub fn vector(id: &str, count: usize, options: &GymnasiumOptions) -> Result<Vec<Self>, EnvError> {
        let name = id.strip_prefix(PREFIX).unwrap_or(id);
        // Without environments nobody could say what they are like.
        let vector = Vector::new(name, count.max(1), options).map_err(|error| match error {
            ChildError::Start { .. } | ChildError::Refused { is_missing: true, .. } if name == id => {
                EnvError::UnknownId { id: id.to_owned(), reason: error.to_string() }
            }
            ChildError::Start { .. } | ChildError::Refused { .. } => {
                EnvError::Gymnasium(format!("{id}: {error}"))
            }
            error => EnvError::Gymnasium(format!("{id}: the environments' process failed: {error}")),
        })?;
        let spec = spec(id, vector.description());
        let vector = Arc::new(Mutex::new(vector));
        let one = |index| Self { spec: spec.clone(), index, vector: Arc::clone(&vector) };
        Ok((0..count).map(one).collect())
    }

    fn vector_mut(&self) -> MutexGuard<'_, Vector> {
        self.vector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spec(id: &str, description: &Description) -> EnvSpec {
    let image = match description.observations {
        Observations::Floats(_) => None,
        Observations::Images { frame, stack } => Some(Image { channels: frame.channels * stack, ..frame }),
    };
    EnvSpec {
        id: id.to_owned().into(),
        observation_dim: match description.observations {
            Observations::Floats(len) => len,
            Observations::Images { frame, stack } => frame.len() * stack,
        },
        image,
        action: description.actions.spec(),
        episode_steps_max: description.episode_steps_max.unwrap_or(u32::MAX),
        solved_return: description.solved_return.unwrap_or(f64::INFINITY),
    }
}

impl Environment for GymnasiumEnvironment {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.vector_mut().reset(self.index, rng, observation)
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.begin_step(action)?;
        self.finish_step(action, observation)
    }

    fn begin_step(&mut self, action: Action<'_>) -> Result<(), EnvError> {
        self.vector_mut().begin_step(self.index, action)
    }

    fn finish_step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.vector_mut().finish_step(self.index, action, observation)
    }

    fn save_state(&self) -> Vec<f64> {
        self.vector_mut().save_state(self.index)
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        self.vector_mut().restore_state(self.index, state)
    }
}
