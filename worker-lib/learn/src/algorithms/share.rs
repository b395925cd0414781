//! Division of a job's global batch among environments and workers.

use std::ops::Range;

use super::TrainError;

/// Lower limit on the default number of environments in a job.
pub(super) const ENVIRONMENTS_MIN: usize = 4;

/// Returns the number of environments in a job: `given`, if present; otherwise the smallest multiple of `workers` that
/// is at least `least`.
pub(super) fn environments_of(given: Option<usize>, least: usize, workers: usize) -> usize {
    given.unwrap_or_else(|| least.next_multiple_of(workers.max(1)))
}

/// A worker's share of a job's batches and environments.
///
/// Sizes are totals over the job and are divided among its environments, so that the number of workers does not affect
/// what is learned. A size that does not divide evenly is rounded so that all shares are equal; the accessors return
/// the rounded sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Rank of this worker, starting from 0.
    pub rank: usize,
    /// Number of workers in the job.
    pub workers: usize,
    /// Number of environments in the job; a multiple of `workers`.
    pub environments: usize,
    /// Steps of each environment in one rollout; a multiple of `minibatch_per_env`.
    pub steps_per_env: usize,
    /// Number of samples from each environment in one minibatch.
    pub minibatch_per_env: usize,
}

impl Share {
    /// Divides rollouts of about `rollout_steps` steps and minibatches of about `minibatch_size` samples among
    /// `environments` environments (by default the smallest multiple of `workers` that is at least 4).
    ///
    /// # Errors
    /// Returns [`TrainError::Config`] if `workers`, `environments`, `rollout_steps` or `minibatch_size` is zero, if
    /// `rank` is not less than `workers`, if `environments` is not a multiple of `workers`, or if `minibatch_size` is
    /// greater than `rollout_steps`.
    pub fn new(
        rank: usize,
        workers: usize,
        environments: Option<usize>,
        rollout_steps: usize,
        minibatch_size: usize,
    ) -> Result<Self, TrainError> {
        let refuse = |reason: String| Err(TrainError::Config(reason));
        if workers == 0 || rank >= workers {
            return refuse(format!("rank is {rank}, expected less than the number of workers ({workers})"));
        }
        let environments = environments_of(environments, ENVIRONMENTS_MIN, workers);
        if environments == 0 || !environments.is_multiple_of(workers) {
            return refuse(format!(
                "{environments} environments cannot be divided equally among {workers} workers"
            ));
        }
        if rollout_steps == 0 || minibatch_size == 0 || minibatch_size > rollout_steps {
            return refuse(format!(
                "minibatch_size is {minibatch_size}, expected 1 to the size of a rollout ({rollout_steps} steps)"
            ));
        }
        let minibatch_per_env = (minibatch_size / environments).max(1);
        let steps_per_env = rollout_steps.div_ceil(environments).next_multiple_of(minibatch_per_env);
        Ok(Self { rank, workers, environments, steps_per_env, minibatch_per_env })
    }

    /// Returns the indices of this worker's environments among all environments of the job.
    pub fn local_environments(&self) -> Range<usize> {
        let each = self.environments / self.workers;
        self.rank * each..(self.rank + 1) * each
    }

    /// Returns the number of steps of one rollout over all workers.
    pub fn rollout_steps(&self) -> usize {
        self.steps_per_env * self.environments
    }

    /// Returns the number of samples of one minibatch over all workers.
    pub fn minibatch_size(&self) -> usize {
        self.minibatch_per_env * self.environments
    }

    /// Returns the number of minibatches in one pass over a rollout.
    pub fn minibatches(&self) -> usize {
        self.steps_per_env / self.minibatch_per_env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_four_workers_share_four_environments() {
        for workers in [1, 2, 4] {
            let share = Share::new(workers - 1, workers, None, 2048, 64).unwrap();
            assert_eq!((share.environments, share.steps_per_env, share.minibatch_per_env), (4, 512, 16));
            assert_eq!(share.local_environments(), 4 - 4 / workers..4);
            assert_eq!(share.minibatches(), 32);
        }
    }

    #[test]
    fn shares_are_rounded_to_be_equal_for_any_number_of_workers() {
        for workers in 1..=256 {
            let share = Share::new(0, workers, None, 2048, 64).unwrap();
            assert!(share.environments >= 4 && share.environments.is_multiple_of(workers));
            assert_eq!(share.minibatches() * share.minibatch_size(), share.rollout_steps());
            assert!((2048..2048 + 256 + 64).contains(&share.rollout_steps()), "{share:?}");
        }
        assert_eq!(Share::new(0, 3, None, 2048, 64).unwrap().environments, 6);
    }

    #[test]
    fn impossible_divisions_of_the_work_are_reported() {
        let error = |rank, workers, environments| {
            Share::new(rank, workers, environments, 2048, 64).unwrap_err().to_string()
        };
        assert_eq!(error(0, 4, Some(6)), "6 environments cannot be divided equally among 4 workers");
        assert_eq!(error(2, 2, None), "rank is 2, expected less than the number of workers (2)");
    }
}
