//! Environments: what an agent acts in.
//!
//! Built in and free of any library: [`CartPole`], [`Pendulum`] and [`PlanarHopper`]. [`MujocoHopper`] and
//! [`HalfCheetah`] open libmujoco at run time. Every other id is left to Gymnasium in a child Python process
//! ([`GymnasiumEnvironment`]). [`make`] finds an environment by the id that Gymnasium users know.

mod cartpole;
mod gymnasium;
mod hopper_task;
mod mujoco;
mod paced;
mod pendulum;
mod planar_hopper;
mod python;
mod time_limit;

use std::borrow::Cow;

use rand_chacha::ChaCha8Rng;

pub use crate::nn::Image as ImageShape;
pub use cartpole::CartPole;
pub use gymnasium::{GymnasiumEnvironment, GymnasiumOptions};
pub use mujoco::{HalfCheetah, MujocoHopper, MujocoLibrary};
pub use paced::Paced;
pub use pendulum::Pendulum;
pub use planar_hopper::PlanarHopper;
pub use time_limit::TimeLimit;

/// What actions an environment takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionSpec {
    /// `dim` numbers; the environment clips each to [-1, 1].
    Continuous {
        /// How many.
        dim: usize,
    },
    /// One of `n` choices.
    Discrete {
        /// How many.
        n: usize,
    },
}

impl ActionSpec {
    /// Floats of an action as learners keep it: a discrete one is its index.
    pub fn stored_dim(self) -> usize {
        match self {
            Self::Continuous { dim } => dim,
            Self::Discrete { .. } => 1,
        }
    }
}

/// What does not change over the life of an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvSpec {
    /// Name for [`make`].
    pub id: Cow<'static, str>,
    /// Floats in an observation.
    pub observation_dim: usize,
    /// Where observations are images: their shape, of `observation_dim` values from 0 to 255.
    pub image: Option<ImageShape>,
    /// What [`Environment::step`] takes.
    pub action: ActionSpec,
    /// Steps after which an episode is truncated.
    pub episode_steps_max: u32,
    /// Mean return of the last 100 episodes at which the task counts as solved; infinite where nobody has said one.
    pub solved_return: f64,
}

impl EnvSpec {
    /// An action that a learner keeps, `[stored_dim]`, as the environment takes it.
    pub fn to_env<'a>(&self, action: &'a [f32]) -> Action<'a> {
        match self.action {
            ActionSpec::Continuous { .. } => Action::Continuous(action),
            ActionSpec::Discrete { .. } => Action::Discrete(action[0] as usize),
        }
    }

    /// An observation as networks want it: images in [0, 1], others as they are.
    pub fn scale_observation(&self, observation: &[f32], scaled: &mut [f32]) {
        if self.image.is_some() {
            scaled.iter_mut().zip(observation).for_each(|(scaled, x)| *scaled = x / 255.0);
        } else {
            scaled.copy_from_slice(observation);
        }
    }
}

/// An agent's choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// One value per dimension, nominally in [-1, 1].
    Continuous(&'a [f32]),
    /// Index of the choice.
    Discrete(usize),
}

/// What one step gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Reward of the step, not scaled.
    pub reward: f64,
    /// The task came to its end: nothing of value follows.
    pub terminated: bool,
    /// The time limit cut the episode: what would have followed still counts, so a learner bootstraps.
    pub truncated: bool,
    /// The agent lost one of several lives. For a value function nothing of value follows, but the episode goes on
    /// and its return counts on: no reset is due.
    pub life_lost: bool,
}

/// Why an environment cannot be made or go on.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// No environment that is built in has this id, and none of Gymnasium can be made by it.
    #[error("unknown environment {id:?}: not built in ({known}), and {reason}", known = known_ids().join(", "))]
    UnknownId {
        /// What was asked for.
        id: String,
        /// Why not by Gymnasium: it does not know the id, or something is to be installed.
        reason: String,
    },
    /// An action of the wrong kind or size.
    #[error("the environment takes {expected:?}, not {actual}")]
    WrongAction {
        /// What it takes.
        expected: ActionSpec,
        /// What it got.
        actual: String,
    },
    /// A saved state of another environment or version.
    #[error("saved state has {actual} numbers, this environment needs {expected}")]
    WrongState {
        /// Numbers needed.
        expected: usize,
        /// Numbers given.
        actual: usize,
    },
    /// A step before the first reset, or after the end of an episode.
    #[error("a step outside of an episode: reset the environment first")]
    NotReset,
    /// An environment in a child process cannot be made or kept going; the text says which, and why.
    #[error("{0}")]
    Gymnasium(String),
    /// libmujoco is missing or unusable; the text says what was looked for.
    #[error("{0}")]
    Mujoco(String),
}

/// A task: reset, then steps until one says terminated or truncated, then reset again.
///
/// All randomness comes from the generator passed to [`Self::reset`], so that the owner can save it.
pub trait Environment: Send {
    /// Shapes and limits.
    fn spec(&self) -> &EnvSpec;

    /// Starts an episode; writes the first observation (`[observation_dim]`).
    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError>;

    /// Acts once; writes the next observation (`[observation_dim]`), also at the end of an episode.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError>;

    /// Announces the action that [`Self::finish_step`] will be given next, so that environments which share a process
    /// act together: announce it to all of them before the first one finishes. The default does nothing.
    fn begin_step(&mut self, _action: Action<'_>) -> Result<(), EnvError> {
        Ok(())
    }

    /// Second half of a step that [`Self::begin_step`] has announced: acts, or waits for what the action has led to.
    /// Takes the same action again, because an environment that acts only now has not kept it, and writes and gives
    /// what [`Self::step`] does. The default is [`Self::step`].
    fn finish_step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        self.step(action, observation)
    }

    /// The state in the middle of an episode, for [`Self::restore_state`].
    fn save_state(&self) -> Vec<f64>;

    /// Goes on from a saved state, bit for bit as the environment that saved it would have.
    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError>;
}

type Maker = fn() -> Result<Box<dyn Environment>, EnvError>;

/// Every id with what makes it.
const REGISTRY: [(&str, Maker); 5] = [
    (cartpole::ID, || Ok(Box::new(TimeLimit::new(CartPole::new())))),
    (pendulum::ID, || Ok(Box::new(TimeLimit::new(Pendulum::new())))),
    (planar_hopper::ID, || Ok(Box::new(TimeLimit::new(PlanarHopper::new())))),
    (mujoco::HOPPER_ID, || Ok(Box::new(TimeLimit::new(MujocoHopper::new()?)))),
    (mujoco::HALF_CHEETAH_ID, || Ok(Box::new(TimeLimit::new(HalfCheetah::new()?)))),
];

/// Makes an environment by its id, time limit included: one that is built in, or else Gymnasium's. The prefix
/// `gymnasium:` asks for Gymnasium's in any case.
///
/// # Errors
/// [`EnvError::UnknownId`] lists what is built in, and says what is missing for others; an environment that needs a
/// library says which.
pub fn make(id: &str) -> Result<Box<dyn Environment>, EnvError> {
    Ok(make_vector(id, 1)?.remove(0))
}

/// Makes `count` environments of that id. Those of Gymnasium share one process: announce the steps of all to
/// [`Environment::begin_step`] before finishing any.
///
/// # Errors
/// As [`make`].
pub fn make_vector(id: &str, count: usize) -> Result<Vec<Box<dyn Environment>>, EnvError> {
    make_vector_with(id, count, &GymnasiumOptions::default())
}

/// As [`make_vector`], with a Python of the caller's choice.
///
/// # Errors
/// As [`make`].
pub fn make_vector_with(
    id: &str,
    count: usize,
    options: &GymnasiumOptions,
) -> Result<Vec<Box<dyn Environment>>, EnvError> {
    if let Some((_, maker)) = REGISTRY.iter().find(|(known, _)| *known == id) {
        return (0..count).map(|_| maker()).collect();
    }
    let all = GymnasiumEnvironment::vector(id, count, options)?;
    Ok(all.into_iter().map(|env| Box::new(env) as Box<dyn Environment>).collect())
}

/// Ids that are built in.
pub fn known_ids() -> Vec<&'static str> {
    REGISTRY.iter().map(|(id, _)| *id).collect()
}

/// The values of a continuous action, each clipped to [-1, 1], or the error that says what came instead.
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

fn check_state(state: &[f64], expected: usize) -> Result<(), EnvError> {
    if state.len() == expected { Ok(()) } else { Err(EnvError::WrongState { expected, actual: state.len() }) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// What was made, or nothing where the machine lacks what it needs; says so.
    pub(in crate::env) fn available<E>(made: Result<E, EnvError>) -> Option<E> {
        match made {
            Ok(env) => Some(env),
            Err(error) => {
                let thread = std::thread::current();
                let line = format!("SKIPPED {}: {error}", thread.name().unwrap_or("test"));
                assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
                // Past the capture of the test harness, so that it shows.
                let _ = writeln!(std::io::stderr(), "{line}");
                None
            }
        }
    }

    #[test]
    fn an_unknown_id_without_python_lists_what_is_built_in() {
        let options = GymnasiumOptions { python: "/nowhere/python3".into(), ..GymnasiumOptions::default() };
        let error = make_vector_with("Pong", 1, &options).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some(
                "unknown environment \"Pong\": not built in (CartPole-v1, Pendulum-v1, PlanarHopper-v0, Hopper-v5, \
                 HalfCheetah-v5), and /nowhere/python3 cannot be started (No such file or directory (os error 2)); \
                 install Python with Gymnasium, or name one in ISWITCH_PYTHON"
            )
        );
    }

    #[test]
    fn actions_of_another_kind_are_refused() {
        let mut env = make("PlanarHopper-v0").unwrap();
        let mut observation = [0.0; 11];
        let error = env.step(Action::Discrete(1), &mut observation).unwrap_err();
        assert_eq!(error.to_string(), "the environment takes Continuous { dim: 3 }, not Discrete(1)");
    }
}
