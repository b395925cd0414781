//! Experience replay: a ring of transitions, sampled uniformly or by priority.

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

/// What one step of an environment was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<'a> {
    /// What was acted on, `[observation_dim]`.
    pub observation: &'a [f32],
    /// `[action_dim]`; a discrete action is its index.
    pub action: &'a [f32],
    /// Scaled as the learner wants it.
    pub reward: f32,
    /// What the step led to, also at the end of an episode, `[observation_dim]`.
    pub next_observation: &'a [f32],
    /// Nothing of value follows. Not set where only the time limit cut the episode.
    pub terminated: bool,
    /// The next transition is of another episode.
    pub episode_ends: bool,
}

/// Transitions that were drawn; row `i` of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Where in the buffer each lies, `[batch]`.
    pub indices: Vec<usize>,
    /// `[batch, observation_dim]`.
    pub observations: Vec<f32>,
    /// `[batch, action_dim]`.
    pub actions: Vec<f32>,
    /// `[batch]`.
    pub rewards: Vec<f32>,
    /// `[batch, observation_dim]`.
    pub next_observations: Vec<f32>,
    /// 1 where something follows, 0 where the episode terminated, `[batch]`.
    pub goes_on: Vec<f32>,
    /// Importance weights, at most 1; all 1 if drawn uniformly, `[batch]`.
    pub weights: Vec<f32>,
}

impl Batch {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.indices.clear();
        for column in self.columns() {
            column.clear();
        }
    }

    /// Adds the rows of another.
    pub fn append(&mut self, other: &Self) {
        self.indices.extend_from_slice(&other.indices);
        self.observations.extend_from_slice(&other.observations);
        self.actions.extend_from_slice(&other.actions);
        self.rewards.extend_from_slice(&other.rewards);
        self.next_observations.extend_from_slice(&other.next_observations);
        self.goes_on.extend_from_slice(&other.goes_on);
        self.weights.extend_from_slice(&other.weights);
    }

    /// Divides importance weights by the greatest (Schaul et al., 2016).
    pub fn normalise_weights(&mut self) {
        let greatest = self.weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        self.weights.iter_mut().for_each(|weight| *weight /= greatest);
    }

    fn columns(&mut self) -> [&mut Vec<f32>; 6] {
        let Self { observations, actions, rewards, next_observations, goes_on, weights, .. } = self;
        [observations, actions, rewards, next_observations, goes_on, weights]
    }
}

/// The last transitions of an environment, up to a capacity.
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

/// How much more often a transition with a large error is drawn (Schaul et al., 2016).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prioritisation {
    /// 0 is uniform, 1 in proportion to the error.
    pub alpha: f32,
    /// How far importance weights undo that: 0 not at all, 1 wholly.
    pub beta: f32,
    /// Added to each error, so that none is never drawn.
    pub epsilon: f32,
}

impl Prioritisation {
    /// Importance weight, before normalisation, of a transition that is drawn with this probability out of `len`.
    pub fn weight(&self, len: f64, probability: f64) -> f32 {
        (len * probability).powf(-f64::from(self.beta)) as f32
    }
}

impl Replay {
    /// Room for `capacity` transitions, which is taken as they come.
    ///
    /// # Errors
    /// [`TrainError::Config`] without room.
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

    /// For an environment. Of images, whose channels are its last frames in [0, 1], each frame is kept once, as bytes;
    /// actions are then discrete.
    ///
    /// # Errors
    /// [`TrainError::Config`] without room.
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

    /// Transitions that are there; of images there are a few less.
    pub fn len(&self) -> usize {
        match &self.store {
            Store::Rows(rows) => rows.len(),
            Store::Frames(frames) => frames.len(),
        }
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in a transition; the oldest gives way to it where there is no room.
    ///
    /// # Panics
    /// If a length differs from the one given at construction.
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
    /// If the buffer is empty.
    pub fn sample(&self, count: usize, rng: &mut impl Rng, batch: &mut Batch) {
        assert!(!self.is_empty(), "nothing to draw from");
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

    /// Tells the errors of a batch that was drawn, one for each row. Without prioritisation nothing happens.
    pub fn update_priorities(&mut self, indices: &[usize], errors: &[f32]) {
        if let Some(priorities) = &mut self.priorities {
            indices.iter().zip(errors).for_each(|(index, error)| priorities.set(*index, *error));
        }
    }

    /// For a checkpoint.
    pub fn write(&self, name: &str, writer: &mut Writer) {
        match &self.store {
            Store::Rows(rows) => rows.write(name, writer),
            Store::Frames(frames) => frames.write(name, writer),
        }
        if let Some(priorities) = &self.priorities {
            writer.doubles(&format!("{name}.priorities"), &priorities.save());
        }
    }

    /// Whether one of that name is in a file.
    pub fn is_in(name: &str, reader: &Reader<'_>) -> bool {
        reader.has(&format!("{name}.rewards"))
    }

    /// Takes in what [`Self::write`] wrote.
    ///
    /// # Errors
    /// If it does not fit.
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
    Err(TrainError::Config(format!("a replay buffer of {capacity} transitions, expected at least {least}")))
}

#[cfg(test)]
mod tests;
