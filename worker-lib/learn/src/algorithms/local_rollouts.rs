//! An on-policy learner with its actor in the same process.

use super::TrainError;
use super::checkpoint::{Reader, Writer, read_slots, write_slots};
use super::environments::EnvironmentSlot;
use super::halves::{LocalHalf, Tail};
use super::remote::{RolloutActor, RolloutLearner};
use crate::env::EnvSpec;

/// What has environments whose state can be saved.
pub(super) trait HasSlots {
    /// The environments.
    fn slots(&self) -> &[EnvironmentSlot];
    /// The environments.
    fn slots_mut(&mut self) -> &mut [EnvironmentSlot];
}

/// Acts for a rollout, learns from it, and again.
pub(super) struct LocalRollouts<A, L> {
    actor: A,
    learner: L,
    /// What came with the last rollout.
    statistics: Vec<f32>,
}

impl<A, L> LocalRollouts<A, L> {
    /// With so many floats of statistics.
    pub(super) fn new(actor: A, learner: L, statistics: usize) -> Self {
        Self { actor, learner, statistics: vec![0.0; statistics] }
    }
}

impl<A: RolloutActor + HasSlots, L: RolloutLearner> LocalHalf for LocalRollouts<A, L> {
    fn spec(&self) -> &EnvSpec {
        self.actor.spec()
    }

    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<Tail, TrainError> {
        let Self { actor, learner, statistics } = self;
        let mut tail = Tail::default();
        if learner.wants_rollout() {
            tail = actor.roll_out(model, learner.buffer_mut(), statistics)?;
            learner.begin(statistics);
        }
        Ok(Tail { losses: learner.gradient(model, gradient), ..tail })
    }

    fn skipped(&mut self) {
        self.learner.skipped();
    }

    fn write(&self, writer: &mut Writer) {
        write_slots(writer, self.actor.slots());
    }

    fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        read_slots(files, self.actor.slots_mut())
    }
}
