//! Gymnasium and EnvPool environments in a child Python process, connected through pipes.
//!
//! Any Python interpreter that can import the package works. No package is linked, so neither the version nor the
//! licence of the imported packages affects this program. All environments of a vector share one process, and one
//! message executes all steps that have been begun ([`Environment::begin_step`]).
//!
//! - **Observations**: a Box of numbers, flattened to f32, or images of bytes, `[height, width, channels]` from 0 to
//!   255.
//! - **Actions**: Discrete, or a Box of floats. Each dimension is scaled from [-1, 1] to its bounds; in a dimension
//!   without bounds, the value is passed unchanged, neither clipped nor scaled.
//! - **Atari games** (`ALE/Pong-v5`, `PongNoFrameskip-v4`) are preprocessed as in Mnih et al. (2015). Each action is
//!   repeated for four frames, and the image is the pixel-wise maximum of the last two frames. Images are greyscale,
//!   84 x 84, and an observation is a stack of the last four images. An episode begins with up to 30 no-op actions, and
//!   with FIRE in games that have this action. Losing a life is reported ([`Step::life_lost`]) but does not end the
//!   episode.
//! - **Determinism**: each episode has its own seed, drawn from the generator passed to [`Environment::reset`]. If the
//!   environment follows Gymnasium's rule that the seed and the actions determine everything, runs are exactly
//!   reproducible. This includes runs that continue from a saved state. A saved state consists of the seed and the
//!   actions of the current episode, and is restored by replaying these actions.
//! - **Failures**: if a process crashes or does not answer in time, it is restarted and its episodes are replayed. An
//!   episode is truncated if its replay fails or diverges, or if its next step fails twice. Five failures without a
//!   successful step in between end the run with an error.
//! - **EnvPool** (`envpool:Pong-v5`) steps all environments with one call. It accepts seeds only at creation, so an
//!   episode cannot be replayed: after a failure, and in a restored state, running episodes are truncated. The first
//!   seed of each environment determines all of its episodes.

mod action;
mod child;
mod episode;
mod latest;
mod message;
#[cfg(test)]
mod tests;
mod vector;

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;

use super::scene::Picture;
use super::{Action, ActionSpace, EnvError, EnvSpec, Environment, Step, python};
use crate::nn::Image;
use message::{Actions, Description, Observations};
use vector::Vector;

/// Prefix of an id that selects Gymnasium's environment even if a built-in one exists.
const PREFIX: &str = "gymnasium:";
/// Prefix of an id that selects EnvPool's environment.
const ENVPOOL_PREFIX: &str = "envpool:";
/// Default response timeout. The longest wait is for the first import of all packages from a slow disk.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Options for the Python process: its start and its response timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GymnasiumOptions {
    /// Name or path of the Python interpreter.
    pub python: PathBuf,
    /// Time without any message after which a process is considered hung. Steps take milliseconds, the start takes
    /// seconds, and a long replay sends messages in between.
    pub answer_timeout: Duration,
    /// Whether the environments are created with the render mode `rgb_array`.
    pub renders: bool,
}

impl Default for GymnasiumOptions {
    /// Returns the interpreter named by the environment variable `ISWITCH_PYTHON`, or `python3`, with a timeout of
    /// two minutes.
    fn default() -> Self {
        Self { python: python::program(), answer_timeout: ANSWER_TIMEOUT, renders: false }
    }
}

/// Failure of the child process.
#[derive(Debug, thiserror::Error)]
enum ChildError {
    #[error(
        "{} cannot be started ({error}); install Python with Gymnasium, or set {} to an interpreter that has it",
        python.display(), python::VARIABLE
    )]
    Start { python: PathBuf, error: std::io::Error },
    #[error("it exited")]
    Closed,
    #[error("it did not answer in time")]
    Timeout,
    #[error("pipe: {0}")]
    Pipe(#[from] std::io::Error),
    #[error("{0}")]
    Protocol(String),
    #[error("{text}")]
    Refused { kind: Refusal, text: String },
    #[error("an environment raised {0}")]
    Raised(String),
    #[error("{error}; end of its standard error: {stderr}")]
    Said { error: Box<ChildError>, stderr: String },
}

/// Reason why a child process cannot create environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// A package is not installed.
    NotInstalled,
    /// The environment cannot be used with this library.
    NotSupported,
    /// The package has no environment of this name.
    Unknown,
}

impl Refusal {
    fn of(code: u8) -> Self {
        match code {
            1 => Self::NotInstalled,
            3 => Self::Unknown,
            _ => Self::NotSupported,
        }
    }
}

impl From<rustix::io::Errno> for ChildError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Pipe(error.into())
    }
}

impl ChildError {
    /// Adds `stderr`, the last lines that the process wrote to stderr, unless they are empty or the error already
    /// contains its cause.
    fn with_stderr(self, stderr: &str) -> Self {
        if stderr.is_empty() || matches!(self, Self::Refused { .. } | Self::Start { .. } | Self::Raised(_)) {
            return self;
        }
        Self::Said { error: Box::new(self), stderr: stderr.to_owned() }
    }

    fn into_env_error(self, id: &str, failures: u32) -> EnvError {
        EnvError::Gymnasium(format!("{id}: the environment process failed {failures} times in a row: {self}"))
    }
}

/// Python package that creates the environments of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Package {
    Gymnasium,
    /// EnvPool, which steps the environments in `threads` threads.
    EnvPool {
        threads: usize,
    },
}

/// Creates groups of environments of the given sizes, in order. Each group has a separate process; all processes start
/// at the same time. EnvPool uses a single group, with as many threads as there are sizes.
///
/// # Errors
/// See [`GymnasiumEnvironment::vector`].
pub(super) fn groups(
    id: &str,
    sizes: &[usize],
    options: &GymnasiumOptions,
) -> Result<Vec<Vec<Box<dyn Environment>>>, EnvError> {
    let boxed = |all: Vec<GymnasiumEnvironment>| {
        all.into_iter().map(|env| Box::new(env) as Box<dyn Environment>).collect::<Vec<_>>()
    };
    if sizes.len() <= 1 || id.starts_with(ENVPOOL_PREFIX) {
        let all = GymnasiumEnvironment::in_threads(id, sizes.iter().sum(), sizes.len(), options)?;
        return Ok(vec![boxed(all)]);
    }
    thread::scope(|scope| {
        let make = |size: &usize| GymnasiumEnvironment::vector(id, *size, options);
        let started: Vec<_> = sizes.iter().map(|size| scope.spawn(move || make(size))).collect();
        let made = started.into_iter().map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        made.map(|all| Ok(boxed(all?))).collect()
    })
}

/// One environment of a child process. The process ends when its last environment is dropped.
pub struct GymnasiumEnvironment {
    spec: EnvSpec,
    index: usize,
    vector: Arc<Mutex<Vector>>,
}

impl GymnasiumEnvironment {
    /// Creates `count` environments with the given `id` in one process: EnvPool environments if the id has the prefix
    /// `envpool:`, otherwise Gymnasium environments. The prefix `gymnasium:` is removed.
    ///
    /// # Errors
    /// [`EnvError::UnknownId`] if Gymnasium has no environment with this id. [`EnvError::NotInstalled`] if Python or a
    /// package is missing; the message says what to install. [`EnvError::Gymnasium`] if the environment's spaces are
    /// not supported or the process fails.
    pub fn vector(id: &str, count: usize, options: &GymnasiumOptions) -> Result<Vec<Self>, EnvError> {
        Self::in_threads(id, count, 1, options)
    }

    /// Creates environments like [`Self::vector`]; EnvPool environments step in `threads` threads.
    fn in_threads(
        id: &str,
        count: usize,
        threads: usize,
        options: &GymnasiumOptions,
    ) -> Result<Vec<Self>, EnvError> {
        let (name, package) = match id.strip_prefix(ENVPOOL_PREFIX) {
            Some(name) => (name, Package::EnvPool { threads }),
            None => (id.strip_prefix(PREFIX).unwrap_or(id), Package::Gymnasium),
        };
        // The process describes the environments that it has created, so it must create at least one.
        let vector = Vector::new(name, count.max(1), package, options).map_err(|error| match error {
            ChildError::Refused { kind: Refusal::Unknown, .. } if name == id => {
                EnvError::UnknownId { id: id.to_owned(), reason: error.to_string() }
            }
            ChildError::Start { .. } | ChildError::Refused { kind: Refusal::NotInstalled, .. }
                if name == id =>
            {
                EnvError::NotInstalled { id: id.to_owned(), reason: error.to_string() }
            }
            ChildError::Start { .. } | ChildError::Refused { .. } => {
                EnvError::Gymnasium(format!("{id}: {error}"))
            }
            error => EnvError::Gymnasium(format!("{id}: the environment process failed: {error}")),
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

    fn action_space(&self) -> ActionSpace {
        let vector = self.vector_mut();
        let description = vector.description();
        match &description.actions {
            Actions::Discrete(n) => ActionSpace::Discrete { n: *n, start: description.first_choice },
            Actions::Continuous(bounds) => ActionSpace::Continuous { bounds: bounds.clone() },
        }
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

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        let (frame, step_seconds) = self.vector_mut().picture(self.index)?;
        Ok(Some(Picture::Frame { frame, step_seconds }))
    }

    fn save_state(&self) -> Vec<f64> {
        self.vector_mut().save_state(self.index)
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        self.vector_mut().restore_state(self.index, state)
    }
}
