//! A year of operation in minutes: an operator's actions, drawn at random, on a daemon that serves several jobs. Every
//! sum must be exact, no job may end that the operator did not end, and each action's pause is measured.

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
    /// Number of jobs of the daemon. Every second job has a key. Beside them, one job has two switches of its own.
    pub jobs: usize,
    /// Number of workers of each job.
    pub workers: usize,
    /// Number of actions.
    pub actions: usize,
    /// Actions to draw from.
    pub only: Vec<Action>,
    /// Seed of the draws.
    pub seed: u64,
}

impl Plan {
    /// Returns a plan with all kinds of actions.
    pub fn new(jobs: usize, workers: usize, actions: usize, seed: u64) -> Self {
        Self { jobs, workers, actions, only: Action::VARIANTS.to_vec(), seed }
    }

    /// Returns the kinds of actions in the order in which they are carried out: each kind once, then draws.
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
    /// Longest round of the job that the action was about, if it was about one and this job continued.
    pub target: Option<Duration>,
    /// Longest round of the other jobs of the daemon, if there are any.
    pub others: Option<Duration>,
    /// Longest round of the job with two switches.
    pub pair: Option<Duration>,
}

/// Carries out a plan.
///
/// # Errors
/// Fails at the first sum that is wrong, job that ends although no action has ended it, job that makes no progress
/// after an action, or action whose outcome is not the documented one.
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
