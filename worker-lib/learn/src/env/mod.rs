//! Environments in which agents act.
//!
//! [`CartPole`], [`Acrobot`], [`Pendulum`], [`MountainCarContinuous`], [`PlanarHopper`], [`PlanarWalker`],
//! [`PlanarHalfCheetah`] and [`PlanarLander`] are built in and need no external library. The same holds for the
//! variants of [`CartPole`] and [`Pendulum`] without velocities ([`NoVelocity`]). [`MujocoHopper`] and [`HalfCheetah`]
//! load libmujoco at run time. Every other id is passed to Gymnasium or EnvPool in a child Python process
//! ([`GymnasiumEnvironment`]). [`make`] creates an environment from its id; [`make_parallel`] creates many environments
//! that step in several threads or processes.

mod acrobot;
mod action_space;
mod cartpole;
mod gymnasium;
mod half_cheetah_task;
mod hopper_task;
mod lander;
mod legged_task;
mod mountain_car;
mod mujoco;
mod no_velocity;
mod paced;
mod pendulum;
mod planar;
mod python;
pub mod scene;
mod threads;
mod time_limit;

use std::borrow::Cow;
use std::f64::consts::PI;

use rand_chacha::ChaCha8Rng;

use scene::Picture;

pub use crate::nn::Image as ImageShape;
pub use acrobot::Acrobot;
pub use action_space::{ActionSpace, is_bounded};
pub use cartpole::CartPole;
pub use gymnasium::{GymnasiumEnvironment, GymnasiumOptions};
pub use lander::PlanarLander;
pub use mountain_car::MountainCarContinuous;
pub use mujoco::{HalfCheetah, MujocoHopper, MujocoLibrary};
pub use no_velocity::NoVelocity;
pub use paced::Paced;
pub use pendulum::Pendulum;
pub use planar::{PlanarHalfCheetah, PlanarHopper, PlanarWalker};
pub use time_limit::TimeLimit;

/// Kind and size of the actions of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionSpec {
    /// `dim` numbers; the environment clips each to [-1, 1].
    Continuous {
        /// Number of dimensions.
        dim: usize,
    },
    /// One of `n` choices.
    Discrete {
        /// Number of choices.
        n: usize,
    },
}

impl ActionSpec {
    /// Returns the number of floats of an action as learners store it: a discrete action is stored as its index.
    pub fn stored_dim(self) -> usize {
        match self {
            Self::Continuous { dim } => dim,
            Self::Discrete { .. } => 1,
        }
    }
}

/// Largest value of a pixel of an image observation.
pub const PIXEL_MAX: f32 = 255.0;

/// Specification of an environment: the properties that are constant over its lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvSpec {
    /// Id with which [`make`] creates the environment.
    pub id: Cow<'static, str>,
    /// Number of floats in an observation.
    pub observation_dim: usize,
    /// The shape of the observations if they are images, which have `observation_dim` values from 0 to 255; otherwise
    /// `None`.
    pub image: Option<ImageShape>,
    /// Actions that [`Environment::step`] takes.
    pub action: ActionSpec,
    /// Number of steps after which an episode is truncated.
    pub episode_steps_max: u32,
    /// Mean return of the last 100 episodes at which the task is considered solved; infinite if the environment defines
    /// no such return.
    pub solved_return: f64,
}

impl EnvSpec {
    /// Converts a stored action, `[stored_dim]`, to the environment's representation.
    pub fn to_env<'a>(&self, action: &'a [f32]) -> Action<'a> {
        match self.action {
            ActionSpec::Continuous { .. } => Action::Continuous(action),
            ActionSpec::Discrete { .. } => Action::Discrete(action[0] as usize),
        }
    }

    /// Writes the observation to `scaled` as networks expect it: images are scaled to [0, 1], and other observations
    /// are copied.
    pub fn scale_observation(&self, observation: &[f32], scaled: &mut [f32]) {
        if self.image.is_some() {
            scaled.iter_mut().zip(observation).for_each(|(scaled, x)| *scaled = x / PIXEL_MAX);
        } else {
            scaled.copy_from_slice(observation);
        }
    }
}

/// An action of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// One value per dimension, nominally in [-1, 1].
    Continuous(&'a [f32]),
    /// Index of the choice.
    Discrete(usize),
}

/// Outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Unscaled reward of the step.
    pub reward: f64,
    /// Whether the episode terminated at this step. The next state of a terminated episode has no value.
    pub terminated: bool,
    /// Whether the episode was truncated at this step, for example by the time limit. Unlike after a termination, the
    /// next state still has a value, from which a learner bootstraps.
    pub truncated: bool,
    /// Whether the agent lost one of several lives in this step. The value function treats this like the end of the
    /// episode: the next state has no value. The episode and its return continue, however, and the environment must not
    /// be reset.
    pub life_lost: bool,
}

/// Reason why an environment cannot be created or cannot continue.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// The id is not built in, and Gymnasium cannot create an environment with this id.
    #[error(
        "unknown environment {id:?}: the built-in environments are {known}, and {reason}",
        known = known_ids().join(", ")
    )]
    UnknownId {
        /// The requested id.
        id: String,
        /// Reason that Gymnasium gives.
        reason: String,
    },
    /// The id is not built in, and Python or a package that the environment needs is not installed.
    #[error(
        "environment {id:?} is not available: the built-in environments are {known}, and {reason}",
        known = known_ids().join(", ")
    )]
    NotInstalled {
        /// The requested id.
        id: String,
        /// What is missing and how to install it.
        reason: String,
    },
    /// The kind or size of an action does not match the environment.
    #[error("the action is {actual}, but the environment takes {expected:?}")]
    WrongAction {
        /// Actions that the environment accepts.
        expected: ActionSpec,
        /// The action that was passed.
        actual: String,
    },
    /// A saved state belongs to an environment with another id, or to another version of the environment.
    #[error("the saved state has {actual} numbers, expected {expected}")]
    WrongState {
        /// Expected number of values.
        expected: usize,
        /// Actual number of values.
        actual: usize,
    },
    /// A step was taken while no episode was in progress: before the first reset, or after the end of an episode.
    #[error("no episode is running, so no step is possible; reset the environment first")]
    NotReset,
    /// An environment in a child process cannot be created or cannot continue; the message contains the environment's
    /// id and the reason.
    #[error("{0}")]
    Gymnasium(String),
    /// The environment's code repeatedly raised an exception at the same step or reset.
    #[error("the environment {id} raised {exception}")]
    Raised {
        /// The id of the environment.
        id: String,
        /// Type, message and location of the exception.
        exception: String,
    },
    /// libmujoco is missing or unusable; the message lists the locations that were searched.
    #[error("{0}")]
    Mujoco(String),
    /// The operating system cannot start a thread for [`make_parallel`].
    #[error("cannot start a thread for the environments: {0}")]
    Thread(std::io::Error),
}

/// An episodic task. The caller resets it, takes steps until a step reports termination or truncation, and resets it
/// again.
///
/// All randomness comes from the generator that is passed to [`Self::reset`], so the caller can save and restore the
/// generator together with the state of the environment.
pub trait Environment: Send {
    /// Returns the environment's specification, including the shapes of observations and actions.
    fn spec(&self) -> &EnvSpec;

    /// Returns the action space in the environment's own units, for programs that act in another copy of the
    /// environment. In the default implementation, choices start at 0 and the bounds are -1 and 1.
    fn action_space(&self) -> ActionSpace {
        ActionSpace::of(self.spec().action)
    }

    /// Starts an episode and writes the first observation (`[observation_dim]`).
    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError>;

    /// Takes one step and writes the observation that it produces (`[observation_dim]`). At the end of an episode, this
    /// is the final observation.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError>;

    /// Announces the action of the next [`Self::finish_step`], so that environments that share a process can step
    /// together. Callers announce the actions of all environments before they finish any step. The default
    /// implementation does nothing.
    fn begin_step(&mut self, _action: Action<'_>) -> Result<(), EnvError> {
        Ok(())
    }

    /// Finishes a step that [`Self::begin_step`] announced: takes the action, or waits for the result of an action
    /// already taken. The caller must pass the announced action again, because an environment that does nothing in
    /// [`Self::begin_step`] has not stored it. The observation and the result are those of [`Self::step`], which the
    /// default implementation calls.
    fn finish_step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.step(action, observation)
    }

    /// Returns a picture of the current state, or `None` if the environment cannot be displayed. Gymnasium environments
    /// must have been created with [`GymnasiumOptions::renders`].
    ///
    /// # Errors
    /// Fails if the environment can be displayed, but a library that it requires fails.
    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(None)
    }

    /// Returns the state, possibly in the middle of an episode, for [`Self::restore_state`].
    fn save_state(&self) -> Vec<f64>;

    /// Restores a saved state. From then on, the environment behaves exactly, bit for bit, like the one whose state was
    /// saved.
    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError>;
}

type Maker = fn() -> Result<Box<dyn Environment>, EnvError>;

/// The built-in ids and their constructors.
const REGISTRY: [(&str, Maker); 13] = [
    (cartpole::ID, || Ok(Box::new(TimeLimit::new(CartPole::new())))),
    (acrobot::ID, || Ok(Box::new(TimeLimit::new(Acrobot::new())))),
    (pendulum::ID, || Ok(Box::new(TimeLimit::new(Pendulum::new())))),
    (mountain_car::ID, || Ok(Box::new(TimeLimit::new(MountainCarContinuous::new())))),
    (no_velocity::CART_POLE_ID, || Ok(Box::new(TimeLimit::new(NoVelocity::cart_pole())))),
    (no_velocity::PENDULUM_ID, || Ok(Box::new(TimeLimit::new(NoVelocity::pendulum())))),
    (planar::HOPPER_ID, || Ok(Box::new(TimeLimit::new(PlanarHopper::new())))),
    (planar::WALKER_ID, || Ok(Box::new(TimeLimit::new(PlanarWalker::new())))),
    (planar::HALF_CHEETAH_ID, || Ok(Box::new(TimeLimit::new(PlanarHalfCheetah::new())))),
    (lander::ID, || Ok(Box::new(TimeLimit::new(PlanarLander::new())))),
    (lander::CONTINUOUS_ID, || Ok(Box::new(TimeLimit::new(PlanarLander::continuous())))),
    (mujoco::HOPPER_ID, || Ok(Box::new(TimeLimit::new(MujocoHopper::new()?)))),
    (mujoco::HALF_CHEETAH_ID, || Ok(Box::new(TimeLimit::new(HalfCheetah::new()?)))),
];

/// Creates the environment with the given id, including its time limit. A built-in environment takes precedence over a
/// Gymnasium environment with the same id. The prefix `gymnasium:` always selects the Gymnasium environment, and the
/// prefix `envpool:` selects the EnvPool environment.
///
/// # Errors
/// [`EnvError::UnknownId`], which lists the built-in ids, if no environment has this id; [`EnvError::NotInstalled`] if
/// Python or a package is missing; [`EnvError::Mujoco`] if the environment needs libmujoco and it cannot be loaded.
pub fn make(id: &str) -> Result<Box<dyn Environment>, EnvError> {
    Ok(make_vector(id, 1)?.remove(0))
}

/// Creates `count` environments with the same id. Gymnasium environments share one process: to step them together, call
/// [`Environment::begin_step`] on every environment before finishing a step on any of them.
///
/// # Errors
/// See [`make`].
pub fn make_vector(id: &str, count: usize) -> Result<Vec<Box<dyn Environment>>, EnvError> {
    make_parallel(id, count, 1)
}

/// Creates environments as [`make_vector`] does, but steps them in `threads` threads. Gymnasium environments step in
/// `threads` processes instead, and EnvPool environments in `threads` threads of a single process. `threads` is clamped
/// to the range from 1 to `count`. Steps run in parallel if all of them are announced with [`Environment::begin_step`]
/// before the first one is finished. The results do not depend on `threads`.
///
/// # Errors
/// See [`make`]; [`EnvError::Thread`] if a thread cannot be started. An error of an announced step is returned by
/// [`Environment::finish_step`].
pub fn make_parallel(id: &str, count: usize, threads: usize) -> Result<Vec<Box<dyn Environment>>, EnvError> {
    make_parallel_with(id, count, threads, &GymnasiumOptions::default())
}

/// Creates environments as [`make_vector`] does, with a Python interpreter chosen by the caller.
///
/// # Errors
/// See [`make`].
pub fn make_vector_with(
    id: &str,
    count: usize,
    options: &GymnasiumOptions,
) -> Result<Vec<Box<dyn Environment>>, EnvError> {
    make_parallel_with(id, count, 1, options)
}

fn make_parallel_with(
    id: &str,
    count: usize,
    threads: usize,
    options: &GymnasiumOptions,
) -> Result<Vec<Box<dyn Environment>>, EnvError> {
    let sizes = threads::group_sizes(count, threads);
    let builtin = REGISTRY.iter().find(|(known, _)| *known == id);
    let groups = match builtin {
        Some((_, maker)) => {
            sizes.iter().map(|size| (0..*size).map(|_| maker()).collect()).collect::<Result<_, _>>()?
        }
        None => gymnasium::groups(id, &sizes, options)?,
    };
    threads::in_threads(groups)
}

/// Returns the built-in ids.
pub fn known_ids() -> Vec<&'static str> {
    REGISTRY.iter().map(|(id, _)| *id).collect()
}

/// Returns the values of a continuous action, each clipped to [-1, 1]. Returns an error that describes `action` if it
/// is not a continuous action with `DIM` values.
fn clipped<const DIM: usize>(action: Action<'_>) -> Result<[f64; DIM], EnvError> {
    match action {
        Action::Continuous(values) if values.len() == DIM => {
            Ok(std::array::from_fn(|i| f64::from(values[i]).clamp(-1.0, 1.0)))
        }
        other => Err(EnvError::WrongAction {
            expected: ActionSpec::Continuous { dim: DIM },
            actual: format!("{other:?}"),
        }),
    }
}

/// Returns the index of a discrete action. Returns an error that describes `action` if it is not one of `n` choices.
fn chosen(action: Action<'_>, n: usize) -> Result<usize, EnvError> {
    match action {
        Action::Discrete(choice) if choice < n => Ok(choice),
        other => {
            Err(EnvError::WrongAction { expected: ActionSpec::Discrete { n }, actual: format!("{other:?}") })
        }
    }
}

/// Reduces an angle, in rad, to the equivalent angle in [-PI, PI).
fn reduced(angle: f64) -> f64 {
    (angle + PI).rem_euclid(2.0 * PI) - PI
}

fn check_state(state: &[f64], expected: usize) -> Result<(), EnvError> {
    if state.len() == expected { Ok(()) } else { Err(EnvError::WrongState { expected, actual: state.len() }) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Returns the environment. If the machine lacks a prerequisite, prints a message and returns `None`.
    pub(in crate::env) fn available<E>(made: Result<E, EnvError>) -> Option<E> {
        match made {
            Ok(env) => Some(env),
            Err(error) => {
                let thread = std::thread::current();
                let line = format!("SKIPPED {}: {error}", thread.name().unwrap_or("test"));
                assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
                // Writes directly to stderr, because the test harness would capture the output of `eprintln!`.
                let _ = writeln!(std::io::stderr(), "{line}");
                None
            }
        }
    }

    #[test]
    fn an_id_that_needs_python_lists_the_built_in_environments() {
        let options = GymnasiumOptions { python: "/nowhere/python3".into(), ..GymnasiumOptions::default() };
        let error = make_vector_with("Pong", 1, &options).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some(
                "environment \"Pong\" is not available: the built-in environments are CartPole-v1, Acrobot-v1, \
                 Pendulum-v1, MountainCarContinuous-v0, CartPoleNoVel-v1, PendulumNoVel-v1, PlanarHopper-v0, \
                 PlanarWalker-v0, PlanarHalfCheetah-v0, PlanarLander-v0, PlanarLanderContinuous-v0, Hopper-v5, \
                 HalfCheetah-v5, and /nowhere/python3 cannot be started (No such file or directory (os error 2)); \
                 install Python with Gymnasium, or set ISWITCH_PYTHON to an interpreter that has it"
            )
        );
    }

    #[test]
    fn actions_of_another_kind_are_refused() {
        let mut env = make("PlanarHopper-v0").unwrap();
        let mut observation = [0.0; 11];
        let error = env.step(Action::Discrete(1), &mut observation).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the action is Discrete(1), but the environment takes Continuous { dim: 3 }"
        );
    }
}
