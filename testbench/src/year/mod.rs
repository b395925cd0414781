//! A year of operation in minutes: random operator actions on a daemon that serves several jobs. Every sum must be
//! exact, a job may end only if the operator ends it, and the pause that each action causes is measured.

mod action;
mod job;
mod pair;
mod site;
pub mod table;

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use strum::VariantArray as _;

use crate::contest::Progress;

pub use action::Action;
pub use table::Table;

use site::Site;

/// Settings of a year.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of jobs of the daemon. Every second job has a key. In addition to these jobs, one job has two switches
    /// of its own.
    pub jobs: usize,
    /// Number of workers of each job.
    pub workers: usize,
    /// Number of actions.
    pub actions: usize,
    /// Actions to draw from.
    pub only: Vec<Action>,
    /// Seed for the random choices.
    pub seed: u64,
}

impl Plan {
    /// Returns a plan with all kinds of actions.
    pub fn new(jobs: usize, workers: usize, actions: usize, seed: u64) -> Self {
        Self { jobs, workers, actions, only: Action::VARIANTS.to_vec(), seed }
    }

    /// Returns the kinds of actions in the order in which they are carried out: each kind once, then random kinds.
    fn draw(&self, rng: &mut ChaCha8Rng) -> Vec<Action> {
        let all = &self.only;
        let drawn = (all.len()..self.actions).map(|_| all[rng.random_range(0..all.len())]);
        all.iter().copied().take(self.actions).chain(drawn).collect()
    }
}

/// An action and its effect on the jobs.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    /// The action.
    pub action: Action,
    /// Longest round of the target job; `None` if the target job did not continue during the action.
    pub target: Option<Duration>,
    /// Longest round of the other jobs of the daemon, if there are any.
    pub others: Option<Duration>,
    /// Longest round of the job with two switches.
    pub pair: Option<Duration>,
}

/// Carries out a plan.
///
/// # Errors
/// Fails if a sum is wrong, if a job ends although no action has ended it, if a job makes no progress after an action,
/// or if the outcome of an action is not the documented one.
///
/// # Panics
/// Panics if the networks or processes cannot be created. Call [`iswitch_harness::requirements::networks_and`] first.
pub fn run(plan: &Plan, progress: &Progress) -> Result<Table, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    let mut site = Site::new(plan.jobs, plan.workers);
    let mut pauses = Vec::with_capacity(plan.actions);
    progress.begin(plan.actions);
    for (i, action) in plan.draw(&mut rng).into_iter().enumerate() {
        let target = rng.random_range(0..plan.jobs);
        progress.step(&format!("{:>4} {action} (job {target})", i + 1));
        let outcome = site.carry_out(action, target, &mut rng);
        pauses.push(outcome.map_err(|error| {
            format!("action {} of seed {}, {action} (job {target}): {error}", i + 1, plan.seed)
        })?);
    }
    progress.end();
    let rounds = site.end()?;
    Ok(Table { plan: plan.clone(), pauses, rounds })
}
