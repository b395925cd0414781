//! Transitions as rows of floats.

use super::{Batch, Transition};
use crate::algorithms::TrainError;
use crate::algorithms::checkpoint::{Reader, Writer};

/// A ring buffer of rows; new rows replace the oldest ones.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    capacity: usize,
    observation_dim: usize,
    action_dim: usize,
    pushed: u64,
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    next_observations: Vec<f32>,
    /// 0 if the episode terminated, otherwise 1.
    goes_on: Vec<f32>,
}

impl Rows {
    pub(super) fn new(capacity: usize, observation_dim: usize, action_dim: usize) -> Self {
        Self {
            capacity,
            observation_dim,
            action_dim,
            pushed: 0,
            observations: Vec::new(),
            actions: Vec::new(),
            rewards: Vec::new(),
            next_observations: Vec::new(),
            goes_on: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rewards.len()
    }

    /// Adds a transition and returns its index.
    pub(super) fn push(&mut self, transition: &Transition<'_>) -> usize {
        let Transition { observation, action, reward, next_observation, terminated, .. } = *transition;
        assert_eq!(
            (observation.len(), action.len(), next_observation.len()),
            (self.observation_dim, self.action_dim, self.observation_dim),
            "unexpected transition lengths"
        );
        let at = (self.pushed % self.capacity as u64) as usize;
        let goes_on = if terminated { 0.0 } else { 1.0 };
        put(&mut self.observations, at, observation);
        put(&mut self.actions, at, action);
        put(&mut self.rewards, at, &[reward]);
        put(&mut self.next_observations, at, next_observation);
        put(&mut self.goes_on, at, &[goes_on]);
        self.pushed += 1;
        at
    }

    pub(super) fn copy_out(&self, batch: &mut Batch) {
        for at in batch.indices.iter().copied() {
            batch.observations.extend_from_slice(row(&self.observations, at, self.observation_dim));
            batch.actions.extend_from_slice(row(&self.actions, at, self.action_dim));
            batch.rewards.push(self.rewards[at]);
            batch.next_observations.extend_from_slice(row(&self.next_observations, at, self.observation_dim));
            batch.goes_on.push(self.goes_on[at]);
        }
    }

    pub(super) fn write(&self, name: &str, writer: &mut Writer) {
        let columns = [
            ("observations", &self.observations, self.observation_dim),
            ("actions", &self.actions, self.action_dim),
            ("rewards", &self.rewards, 1),
            ("next_observations", &self.next_observations, self.observation_dim),
            ("goes_on", &self.goes_on, 1),
        ];
        for (column, values, dim) in columns {
            writer.floats(&format!("{name}.{column}"), vec![self.len(), dim], values);
        }
        writer.text(&format!("{name}.pushed"), self.pushed.to_string());
    }

    pub(super) fn read(&mut self, name: &str, reader: &Reader<'_>) -> Result<(), TrainError> {
        let len = reader.len_f32(&format!("{name}.rewards"))?;
        if len > self.capacity {
            return Err(
                reader.refuse(format!("{name} has {len} transitions, expected at most {}", self.capacity))
            );
        }
        let column =
            |column: &str, dim: usize| reader.floats(&format!("{name}.{column}"), len.saturating_mul(dim));
        self.observations = column("observations", self.observation_dim)?;
        self.actions = column("actions", self.action_dim)?;
        self.rewards = column("rewards", 1)?;
        self.next_observations = column("next_observations", self.observation_dim)?;
        self.goes_on = column("goes_on", 1)?;
        self.pushed = reader.number(&format!("{name}.pushed"))?;
        let is_whole = len == self.capacity || self.pushed == len as u64;
        if is_whole { Ok(()) } else { Err(reader.refuse(format!("{name} has missing transitions"))) }
    }
}

fn row(values: &[f32], at: usize, dim: usize) -> &[f32] {
    &values[at * dim..(at + 1) * dim]
}

/// Copies a row into a column at index `at`; the column grows as needed.
fn put(column: &mut Vec<f32>, at: usize, row: &[f32]) {
    let start = at * row.len();
    if start == column.len() {
        column.extend_from_slice(row);
    } else {
        column[start..start + row.len()].copy_from_slice(row);
    }
}
