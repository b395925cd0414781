//! The statistics that workers exchange once per rollout, as one vector through the gradient aggregator.
//!
//! The vector has the length of the gradient. It starts with sums, each a fixed-point number in limbs (see
//! [`exact`](super::exact)), followed by one span for each environment of the job, to which only the environment's
//! worker writes:
//!
//! | floats | content |
//! |---|---|
//! | `sums * 8` | sums over all environments |
//! | for each environment: 1 | number of episodes that follow |
//! | `episodes_max * 3` | return, length, and the step at which the episode ended |
//! | rest | zero |
//!
//! `episodes_max` is the smaller of 100 and the number of steps of an environment in a rollout, so that the spans
//! always contain the last 100 episodes of the job. Sums are added as integers, environment by environment, so that
//! they depend neither on the order of arrival nor on the assignment of environments to workers.

use super::TrainError;
use super::episodes::{Episode, RecentReturns};
use super::exact::{LIMBS, WORKERS_MAX, all_reduce_uniform, from_fixed, read_limbs, to_fixed, write_limbs};
use super::share::Share;
use iswitch::GradientAggregator;

/// Number of floats of one episode.
const EPISODE: usize = 3;

/// Statistics that workers exchange once per rollout.
#[derive(Clone, Debug)]
pub struct RolloutStatistics {
    environments: usize,
    episodes_max: usize,
    sums: Vec<i128>,
    episodes: Vec<Episode>,
    vector: Vec<f32>,
}

impl RolloutStatistics {
    /// Allocates `sums` sums and the episodes of `share`'s job in vectors of `gradient_len` floats.
    ///
    /// # Errors
    /// [`TrainError::Config`] if they do not fit, or if the job has more workers than exact integer sums allow.
    pub fn new(share: &Share, sums: usize, gradient_len: usize) -> Result<Self, TrainError> {
        let episodes_max = RecentReturns::WINDOW.min(share.steps_per_env);
        let needed = sums * LIMBS + share.environments * (1 + EPISODE * episodes_max);
        if needed > gradient_len {
            return Err(TrainError::Config(format!(
                "the statistics of {} environments need {needed} floats, but the gradient has only {gradient_len}",
                share.environments
            )));
        }
        if share.workers > WORKERS_MAX {
            return Err(TrainError::Config(format!(
                "workers is {}, expected at most {WORKERS_MAX}",
                share.workers
            )));
        }
        Ok(Self {
            environments: share.environments,
            episodes_max,
            sums: vec![0; sums],
            episodes: Vec::new(),
            vector: vec![0.0; gradient_len],
        })
    }

    /// Clears the statistics of the last rollout.
    pub fn clear(&mut self) {
        self.sums.fill(0);
        self.episodes.clear();
    }

    /// Adds one environment's contribution to a sum. Must be called once per environment and sum, so that the result
    /// does not depend on the assignment of environments to workers.
    pub fn add(&mut self, sum: usize, value: f64) {
        self.sums[sum] = self.sums[sum].wrapping_add(to_fixed(value));
    }

    /// Records an episode that ended on this worker.
    pub fn push_episode(&mut self, episode: Episode) {
        self.episodes.push(episode);
    }

    /// Replaces the local sums and episodes with those of all workers.
    ///
    /// # Errors
    /// Fails if the aggregation fails.
    pub fn reduce(&mut self, aggregator: &mut dyn GradientAggregator) -> Result<(), TrainError> {
        let mut vector = std::mem::take(&mut self.vector);
        let outcome = all_reduce_uniform(aggregator, &mut vector, |vector| self.write(vector));
        self.vector = vector;
        outcome?;
        self.read();
        Ok(())
    }

    /// Returns a sum over all environments.
    pub fn total(&self, sum: usize) -> f64 {
        from_fixed(self.sums[sum])
    }

    /// Returns the episodes that ended on any worker; at most the last `episodes_max` of each environment.
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    fn span(&self) -> usize {
        1 + EPISODE * self.episodes_max
    }

    fn write(&self, vector: &mut [f32]) {
        let (sums, spans) = vector.split_at_mut(self.sums.len() * LIMBS);
        sums.chunks_exact_mut(LIMBS).zip(&self.sums).for_each(|(floats, sum)| write_limbs(*sum, floats));
        for (index, span) in spans.chunks_exact_mut(self.span()).take(self.environments).enumerate() {
            let own = self.episodes.iter().rev().filter(|episode| episode.environment == index);
            let mut count = 0.0;
            for (floats, episode) in span[1..].chunks_exact_mut(EPISODE).zip(own) {
                floats.copy_from_slice(&[episode.episode_return, episode.length as f32, episode.step as f32]);
                count += 1.0;
            }
            span[0] = count;
        }
    }

    fn read(&mut self) {
        let (sums, spans) = self.vector.split_at(self.sums.len() * LIMBS);
        self.sums
            .iter_mut()
            .zip(sums.chunks_exact(LIMBS))
            .for_each(|(sum, floats)| *sum = read_limbs(floats));
        self.episodes.clear();
        let span = 1 + EPISODE * self.episodes_max;
        for (environment, span) in spans.chunks_exact(span).take(self.environments).enumerate() {
            let episodes = span[1..].chunks_exact(EPISODE).take(span[0] as usize);
            self.episodes.extend(episodes.map(|floats| Episode {
                step: floats[2] as usize,
                environment,
                episode_return: floats[0],
                length: floats[1] as u32,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch::Loopback;

    fn run(workers: usize) -> Vec<(f64, f64, Vec<Episode>)> {
        let threads: Vec<_> = Loopback::group(workers, 2000)
            .into_iter()
            .enumerate()
            .map(|(rank, mut member)| {
                std::thread::spawn(move || {
                    let share = Share::new(rank, workers, Some(4), 512, 64).unwrap();
                    let mut statistics = RolloutStatistics::new(&share, 2, 2000).unwrap();
                    for environment in share.local_environments() {
                        statistics.add(0, 0.1 * environment as f64 - 0.25);
                        statistics.add(1, 1e-9 * environment as f64);
                        for step in 0..environment {
                            let episode_return = -1.5 * step as f32;
                            let length = environment as u32;
                            statistics.push_episode(Episode { step, environment, episode_return, length });
                        }
                    }
                    statistics.reduce(&mut member).unwrap();
                    let mut episodes = statistics.episodes().to_vec();
                    episodes.sort_by_key(|episode| (episode.step, episode.environment));
                    (statistics.total(0), statistics.total(1), episodes)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    #[test]
    fn statistics_do_not_depend_on_the_number_of_workers() {
        let alone = run(1).remove(0);
        assert!((alone.0 + 0.4).abs() < 1e-15 && (alone.1 - 6e-9).abs() < 1e-18);
        assert_eq!(alone.2.len(), 6);
        for workers in [2, 4] {
            assert!(run(workers).iter().all(|got| *got == alone));
        }
    }

    #[test]
    fn the_latest_episodes_are_kept_if_there_are_too_many() {
        let share = Share::new(0, 1, Some(1), 300, 50).unwrap();
        let mut statistics = RolloutStatistics::new(&share, 0, 301).unwrap();
        for step in 0..250 {
            statistics.push_episode(Episode { step, environment: 0, episode_return: 1.0, length: 1 });
        }
        statistics.reduce(&mut Loopback::alone(301)).unwrap();
        assert_eq!(statistics.episodes().len(), 100);
        assert!(statistics.episodes().iter().all(|episode| episode.step >= 150));
        assert!(RolloutStatistics::new(&share, 0, 300).is_err());
    }
}
