//! One environment in the child, as this side knows it: what it takes to bring it back.

use super::latest::Latest;
use super::message::{Description, Observed, Replayed};
use crate::env::Step;

/// Where an environment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not reset, or at the end of an episode.
    Idle,
    /// In an episode.
    Running,
    /// The episode was lost with a process and could not be replayed: its next step says that it was truncated.
    Lost,
}

/// The running episode of one environment.
#[derive(Debug)]
pub(super) struct Episode {
    pub(super) phase: Phase,
    pub(super) seed: u32,
    /// Encoded actions since the start, one after the other.
    pub(super) actions: Vec<u8>,
    pub(super) latest: Latest,
    /// The action that was begun, encoded.
    pub(super) begun: Option<Vec<u8>>,
    /// What it led to.
    pub(super) outcome: Option<Step>,
    /// Processes that ended at this step when no other environment was stepped.
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

    /// Forgets the episode that was.
    pub(super) fn clear(&mut self, seed: u32) {
        (self.phase, self.seed, self.crashes) = (Phase::Idle, seed, 0);
        self.actions.clear();
        (self.begun, self.outcome) = (None, None);
    }

    /// Takes in the first observation.
    pub(super) fn start(&mut self, observation: &[u8]) {
        self.phase = Phase::Running;
        self.latest.start(observation);
    }

    /// Takes in what the begun action has led to.
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

    /// Whether the replay has led to where this episode was, whose observation had this checksum. Takes it in if so;
    /// the episode is lost otherwise.
    pub(super) fn take_over(&mut self, replayed: &Replayed<'_>, digest: u32) -> bool {
        self.latest.start(replayed.observations[0]);
        replayed.observations[1..].iter().for_each(|observation| self.latest.push(observation));
        let is_same = !replayed.ended && self.latest.digest() == digest;
        self.phase = if is_same { Phase::Running } else { Phase::Lost };
        is_same
    }

    /// If the episode was lost, that is what the begun action has led to.
    pub(super) fn end_if_lost(&mut self) {
        if self.phase == Phase::Lost && self.begun.take().is_some() {
            self.phase = Phase::Idle;
            self.outcome = Some(Step { reward: 0.0, terminated: false, truncated: true, life_lost: false });
        }
    }
}
