//! The state of one of the child's environments as tracked by this process, with the data needed to restore it.

use super::latest::Latest;
use super::message::{Description, Observed, Replayed};
use crate::env::Step;

/// Phase of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No episode is in progress: the environment has not been reset, or its episode has ended.
    Idle,
    /// In an episode.
    Running,
    /// The process failed and the episode could not be restored by a replay. The environment's next step reports a
    /// truncation.
    Lost,
}

/// The current episode of one environment.
#[derive(Debug)]
pub(super) struct Episode {
    pub(super) phase: Phase,
    pub(super) seed: u32,
    /// Encoded actions since the start of the episode, concatenated.
    pub(super) actions: Vec<u8>,
    pub(super) latest: Latest,
    /// Encoded action of the step in progress.
    pub(super) begun: Option<Vec<u8>>,
    /// Outcome of the step in progress, once known.
    pub(super) outcome: Option<Step>,
    /// Number of process failures at this step while no other environment was stepping.
    pub(super) crashes: u32,
}

impl Episode {
    pub(super) fn new(description: &Description) -> Self {
        Self {
            phase: Phase::Idle,
            seed: 0,
            actions: Vec::new(),
            latest: Latest::new(description.observations),
            begun: None,
            outcome: None,
            crashes: 0,
        }
    }

    /// Discards the current episode.
    pub(super) fn clear(&mut self, seed: u32) {
        (self.phase, self.seed, self.crashes) = (Phase::Idle, seed, 0);
        self.actions.clear();
        (self.begun, self.outcome) = (None, None);
    }

    /// Starts the episode with its first observation.
    pub(super) fn start(&mut self, observation: &[u8]) {
        self.phase = Phase::Running;
        self.latest.start(observation);
    }

    /// Applies the outcome of the step in progress.
    pub(super) fn advance(&mut self, observed: &Observed<'_>) {
        self.actions.extend(self.begun.take().unwrap_or_default());
        self.crashes = 0;
        self.latest.push(observed.observation);
        if observed.terminated || observed.truncated {
            self.phase = Phase::Idle;
        }
        self.outcome = Some(Step {
            reward: observed.reward,
            terminated: observed.terminated,
            truncated: observed.truncated && !observed.terminated,
            life_lost: observed.life_lost,
        });
    }

    /// Applies the result of a replay. Returns whether the replay reached the expected state: an unfinished episode
    /// whose newest observation has the checksum `digest`. If it did not, marks the episode as lost.
    pub(super) fn take_over(&mut self, replayed: &Replayed<'_>, digest: u32) -> bool {
        self.latest.start(replayed.observations[0]);
        replayed.observations[1..].iter().for_each(|observation| self.latest.push(observation));
        let is_same = !replayed.ended && self.latest.digest() == digest;
        self.phase = if is_same { Phase::Running } else { Phase::Lost };
        is_same
    }

    /// If the episode is lost and a step is in progress, ends the episode by truncating it at this step.
    pub(super) fn end_if_lost(&mut self) {
        if self.phase == Phase::Lost && self.begun.take().is_some() {
            self.phase = Phase::Idle;
            self.outcome = Some(Step { reward: 0.0, terminated: false, truncated: true, life_lost: false });
        }
    }
}
