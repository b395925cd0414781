//! The most recent episodes of all workers.

use std::collections::VecDeque;

/// One finished episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// Step of the rollout at which the episode ended, in `0..steps_per_env`.
    pub step: usize,
    /// Index of the episode's environment among all environments of the job.
    pub environment: usize,
    /// Sum of the unscaled rewards.
    pub episode_return: f32,
    /// Length of the episode, in steps.
    pub length: u32,
}

/// Returns of the last 100 episodes of the job. Episodes are ordered by rollout, then by the step at which they ended,
/// then by the number of the environment. This order is identical on all workers and does not depend on the division of
/// the environments among workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecentReturns {
    returns: VecDeque<f32>,
}

impl RecentReturns {
    /// Maximum number of episodes kept.
    pub const WINDOW: usize = 100;

    /// Creates the collection from the returns that [`Self::to_vec`] returned.
    pub fn from_saved(returns: &[f32]) -> Self {
        Self { returns: returns.iter().copied().collect() }
    }

    /// Returns the sum of rewards of each episode kept, oldest episode first.
    pub fn to_vec(&self) -> Vec<f32> {
        self.returns.iter().copied().collect()
    }

    /// Adds the episodes of a rollout, in any order.
    pub fn extend(&mut self, mut episodes: Vec<Episode>) {
        episodes.sort_by_key(|episode| (episode.step, episode.environment));
        self.returns.extend(episodes.iter().map(|episode| episode.episode_return));
        let surplus = self.returns.len().saturating_sub(Self::WINDOW);
        self.returns.drain(..surplus);
    }

    /// Returns the mean return of the episodes kept (at most 100), or `None` before the first episode has ended.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.returns.iter().map(|x| f64::from(*x)).sum();
        (!self.returns.is_empty()).then(|| sum / self.returns.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hundred_returns_are_kept_in_order_of_episode_end() {
        let mut recent = RecentReturns::default();
        assert_eq!(recent.mean(), None);
        let episode =
            |step, environment, episode_return| Episode { step, environment, episode_return, length: 1 };
        recent.extend(vec![episode(5, 1, 3.0), episode(5, 0, 2.0), episode(1, 3, 1.0)]);
        assert_eq!(recent.to_vec(), [1.0, 2.0, 3.0]);
        recent.extend((0..98).map(|step| episode(step, 0, 10.0)).collect());
        assert_eq!(recent.to_vec()[..3], [2.0, 3.0, 10.0]);
        assert_eq!(recent.mean(), Some((5.0 + 980.0) / 100.0));
        assert_eq!(RecentReturns::from_saved(&recent.to_vec()), recent);
    }
}
