//! Experience replay: a ring buffer of transitions, sampled uniformly or by priority.

mod frames;
mod priorities;
mod rows;

use rand::{Rng, RngExt};

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use crate::env::EnvSpec;
use frames::Frames;
use priorities::Priorities;
use rows::Rows;

/// One step of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<'a> {
    /// Observation before the action, `[observation_dim]`.
    pub observation: &'a [f32],
    /// Action, `[action_dim]`; a discrete action is represented by its index.
    pub action: &'a [f32],
    /// Reward, scaled for the learner.
    pub reward: f32,
    /// Observation that the step produced, `[observation_dim]`; at the end of an episode, its final observation.
    pub next_observation: &'a [f32],
    /// Whether the episode terminated at this step. The next state then has no value. False if the time limit truncated
    /// the episode.
    pub terminated: bool,
    /// Whether this transition is the last one of its episode.
    pub episode_ends: bool,
}

/// Transitions drawn from a buffer. Row `i` of each field belongs to transition `i`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Index of each transition in the buffer, `[batch]`.
    pub indices: Vec<usize>,
    /// Observations before the actions, `[batch, observation_dim]`.
    pub observations: Vec<f32>,
    /// Actions, `[batch, action_dim]`.
    pub actions: Vec<f32>,
    /// Rewards, `[batch]`.
    pub rewards: Vec<f32>,
    /// Observations that the steps produced, `[batch, observation_dim]`.
    pub next_observations: Vec<f32>,
    /// 0 if the episode terminated, otherwise 1, `[batch]`.
    pub goes_on: Vec<f32>,
    /// Importance weights, `[batch]`: at most 1, and all equal to 1 if sampling is uniform.
    pub weights: Vec<f32>,
}

impl Batch {
    /// Removes all rows.
    pub fn clear(&mut self) {
        self.indices.clear();
        for column in self.columns() {
            column.clear();
        }
    }

    /// Appends the rows of another batch.
    pub fn append(&mut self, other: &Self) {
        self.indices.extend_from_slice(&other.indices);
        self.observations.extend_from_slice(&other.observations);
        self.actions.extend_from_slice(&other.actions);
        self.rewards.extend_from_slice(&other.rewards);
        self.next_observations.extend_from_slice(&other.next_observations);
        self.goes_on.extend_from_slice(&other.goes_on);
        self.weights.extend_from_slice(&other.weights);
    }

    /// Divides the importance weights by their maximum, so that the greatest is 1 (Schaul et al., 2016).
    pub fn normalise_weights(&mut self) {
        let greatest = self.weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        self.weights.iter_mut().for_each(|weight| *weight /= greatest);
    }

    fn columns(&mut self) -> [&mut Vec<f32>; 6] {
        let Self { observations, actions, rewards, next_observations, goes_on, weights, .. } = self;
        [observations, actions, rewards, next_observations, goes_on, weights]
    }
}

/// The most recent transitions of an environment, up to a capacity.
#[derive(Clone, Debug)]
pub struct Replay {
    store: Store,
    priorities: Option<Priorities>,
}

#[derive(Clone, Debug)]
enum Store {
    Rows(Rows),
    Frames(Frames),
}

/// Prioritised sampling, which draws transitions with large errors more often (Schaul et al., 2016).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prioritisation {
    /// Exponent of the priority: 0 gives uniform sampling, and 1 makes the probability proportional to the error.
    pub alpha: f32,
    /// Exponent of the importance weights: 0 applies no correction, 1 a full correction.
    pub beta: f32,
    /// Constant added to each error, so that every transition can be drawn.
    pub epsilon: f32,
}

impl Prioritisation {
    /// Returns the unnormalised importance weight of a transition that was drawn with probability `probability` from
    /// `len` transitions.
    pub fn weight(&self, len: f64, probability: f64) -> f32 {
        (len * probability).powf(-f64::from(self.beta)) as f32
    }
}

impl Replay {
    /// Creates a buffer for `capacity` transitions. Memory is allocated as transitions are added.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the capacity is 0.
    pub fn new(
        capacity: usize,
        observation_dim: usize,
        action_dim: usize,
        prioritisation: Option<Prioritisation>,
    ) -> Result<Self, TrainError> {
        check_capacity(capacity, 1)?;
        let store = Store::Rows(Rows::new(capacity, observation_dim, action_dim));
        Ok(Self { store, priorities: prioritisation.map(|how| Priorities::new(capacity, how)) })
    }

    /// Creates a buffer for an environment. If the observations are images, their channels must be the most recent
    /// frames, with values in [0, 1], and actions must be discrete; the buffer then stores each frame only once, as
    /// bytes.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the capacity is too small.
    pub fn for_environment(
        capacity: usize,
        env: &EnvSpec,
        action_dim: usize,
        prioritisation: Option<Prioritisation>,
    ) -> Result<Self, TrainError> {
        let Some(image) = env.image else {
            return Self::new(capacity, env.observation_dim, action_dim, prioritisation);
        };
        check_capacity(capacity, frames::CAPACITY_MIN.max(2 * image.channels))?;
        let store = Store::Frames(Frames::new(capacity, image));
        Ok(Self { store, priorities: prioritisation.map(|how| Priorities::new(capacity, how)) })
    }

    /// Returns the number of stored entries. For image observations, it slightly exceeds the number of transitions.
    pub fn len(&self) -> usize {
        match &self.store {
            Store::Rows(rows) => rows.len(),
            Store::Frames(frames) => frames.len(),
        }
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a transition. If the buffer is full, the transition replaces the oldest one.
    ///
    /// # Panics
    /// Panics if the length of the observation or action is not the one given at construction.
    pub fn push(&mut self, transition: Transition<'_>) {
        let Self { store, priorities } = self;
        let at = match store {
            Store::Rows(rows) => rows.push(&transition),
            Store::Frames(frames) => frames.push(&transition, |lost| {
                if let Some(priorities) = priorities {
                    priorities.clear(lost);
                }
            }),
        };
        if let Some(priorities) = priorities {
            priorities.set_greatest(at);
        }
    }

    /// Draws `count` transitions, with replacement, into `batch`.
    ///
    /// # Panics
    /// Panics if the buffer is empty.
    pub fn sample(&self, count: usize, rng: &mut impl Rng, batch: &mut Batch) {
        assert!(!self.is_empty(), "expected at least one transition to draw");
        batch.clear();
        match &self.priorities {
            None => {
                batch.indices.extend((0..count).map(|_| self.draw(rng)));
                batch.weights.resize(count, 1.0);
            }
            Some(priorities) => priorities.sample(count, self.len(), rng, batch),
        }
        match &self.store {
            Store::Rows(rows) => rows.copy_out(batch),
            Store::Frames(frames) => frames.copy_out(batch),
        }
    }

    fn draw(&self, rng: &mut impl Rng) -> usize {
        loop {
            let at = rng.random_range(0..self.len());
            match &self.store {
                Store::Frames(frames) if !frames.is_drawable(at) => {}
                _ => return at,
            }
        }
    }

    /// Updates the priorities of transitions that were drawn, given the index and the error of each. Does nothing if
    /// replay is not prioritised.
    pub fn update_priorities(&mut self, indices: &[usize], errors: &[f32]) {
        if let Some(priorities) = &mut self.priorities {
            indices.iter().zip(errors).for_each(|(index, error)| priorities.set(*index, *error));
        }
    }

    /// Writes the buffer to a checkpoint.
    pub fn write(&self, name: &str, writer: &mut Writer) {
        match &self.store {
            Store::Rows(rows) => rows.write(name, writer),
            Store::Frames(frames) => frames.write(name, writer),
        }
        if let Some(priorities) = &self.priorities {
            writer.doubles(&format!("{name}.priorities"), &priorities.save());
        }
    }

    /// Returns whether a checkpoint file contains a buffer with the given name.
    pub fn is_in(name: &str, reader: &Reader<'_>) -> bool {
        reader.has(&format!("{name}.rewards"))
    }

    /// Restores the state that [`Self::write`] wrote.
    ///
    /// # Errors
    /// Fails if the saved state does not match this buffer.
    pub fn read(&mut self, name: &str, reader: &Reader<'_>) -> Result<(), TrainError> {
        match &mut self.store {
            Store::Rows(rows) => rows.read(name, reader)?,
            Store::Frames(frames) => frames.read(name, reader)?,
        }
        if let Some(priorities) = &mut self.priorities {
            let saved = reader.doubles(&format!("{name}.priorities"), priorities.slots() + 1)?;
            priorities.restore(&saved);
        }
        Ok(())
    }
}

fn check_capacity(capacity: usize, least: usize) -> Result<(), TrainError> {
    if capacity >= least {
        return Ok(());
    }
    Err(TrainError::Config(format!(
        "the capacity of the replay buffer is {capacity} transitions, expected at least {least}"
    )))
}

#[cfg(test)]
mod tests;
