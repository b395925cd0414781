//! The statistics that workers exchange once per rollout, through the gradient aggregator.
//!
//! The exchanged values begin with sums, each a fixed-point number that is split into limbs (see
//! [`exact`](super::exact)). The sums are followed by one span for each environment of the job, to which only the
//! worker that runs the environment contributes. With 32-bit elements in the packets, the layout is:
//!
//! | floats | content |
//! |---|---|
//! | `sums * 8` | sums over all environments |
//! | for each environment: 1 | number of episodes that follow |
//! | `episodes_max * 3` | return, length, and the step at which the episode ended |
//! | remainder | zero |
//!
//! With 16-bit elements, each of these numbers takes more floats. `episodes_max` is the smaller of 100 and the number
//! of steps of an environment in a rollout, so the spans always contain the last 100 episodes of the job. Workers add
//! each environment's contribution to a sum as an integer, so the sum depends neither on the order of arrival nor on
//! the assignment of environments to workers.

use super::TrainError;
use super::episodes::{Episode, RecentReturns};
use super::exact::{Limbs, all_reduce_uniform, from_fixed, to_fixed};
use super::share::Share;
use iswitch::{ElementTypes, GradientAggregator};

/// Number of values that describe an episode.
const EPISODE: usize = 3;

/// Statistics that workers exchange once per rollout.
#[derive(Clone, Debug)]
pub struct RolloutStatistics {
    episodes_max: usize,
    limbs: Limbs,
    sums: Vec<i128>,
    episodes: Vec<Episode>,
    values: Vec<f32>,
}

impl RolloutStatistics {
    /// Allocates space for `sums` sums and for the episodes of `share`'s job, for an aggregator whose packets have the
    /// element types `elements`.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the elements cannot hold exact sums over the job's workers.
    pub fn new(share: &Share, sums: usize, elements: ElementTypes) -> Result<Self, TrainError> {
        let mut statistics = Self {
            episodes_max: RecentReturns::WINDOW.min(share.steps_per_env),
            limbs: Limbs::new(elements, share.workers)?,
            sums: vec![0; sums],
            episodes: Vec::new(),
            values: Vec::new(),
        };
        let len = sums * statistics.limbs.of_sum() + share.environments * statistics.span();
        statistics.values = vec![0.0; len];
        Ok(statistics)
    }

    /// Clears the statistics of the previous rollout.
    pub fn clear(&mut self) {
        self.sums.fill(0);
        self.episodes.clear();
    }

    /// Adds one environment's contribution to the sum with index `sum`. Must be called once for each environment and
    /// sum, so that the result does not depend on the assignment of environments to workers.
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
        let mut values = std::mem::take(&mut self.values);
        let outcome = all_reduce_uniform(aggregator, &mut values, |values| self.write(values));
        self.values = values;
        outcome?;
        self.read();
        Ok(())
    }

    /// Returns the total of the sum with index `sum` over all environments of the job.
    pub fn total(&self, sum: usize) -> f64 {
        from_fixed(self.sums[sum])
    }

    /// Returns the episodes that ended on any worker: for each environment, at most the last `episodes_max`.
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// Returns the number of floats in the span of one environment, which holds the number of its finished episodes,
    /// followed by these episodes.
    fn span(&self) -> usize {
        (1 + EPISODE * self.episodes_max) * self.limbs.of_f32()
    }

    fn write(&self, values: &mut [f32]) {
        let (limbs, number) = (self.limbs, self.limbs.of_f32());
        let (sums, spans) = values.split_at_mut(self.sums.len() * limbs.of_sum());
        let places = sums.chunks_exact_mut(limbs.of_sum());
        places.zip(&self.sums).for_each(|(floats, sum)| limbs.write_sum(*sum, floats));
        for (index, span) in spans.chunks_exact_mut(self.span()).enumerate() {
            let own = self.episodes.iter().rev().filter(|episode| episode.environment == index);
            let own: Vec<_> = own.take(self.episodes_max).collect();
            let numbers = own
                .iter()
                .flat_map(|episode| [episode.episode_return, episode.length as f32, episode.step as f32]);
            let numbers = [own.len() as f32].into_iter().chain(numbers);
            span.chunks_exact_mut(number).zip(numbers).for_each(|(floats, x)| limbs.write_f32(x, floats));
        }
    }

    fn read(&mut self) {
        let (limbs, number) = (self.limbs, self.limbs.of_f32());
        let (sums, spans) = self.values.split_at(self.sums.len() * limbs.of_sum());
        let places = sums.chunks_exact(limbs.of_sum());
        self.sums.iter_mut().zip(places).for_each(|(sum, floats)| *sum = limbs.read_sum(floats));
        self.episodes.clear();
        for (environment, span) in spans.chunks_exact(self.span()).enumerate() {
            let (count, episodes) = span.split_at(number);
            let episodes = episodes.chunks_exact(EPISODE * number).take(limbs.read_f32(count) as usize);
            self.episodes.extend(episodes.map(|floats| {
                let at = |i: usize| limbs.read_f32(&floats[i * number..][..number]);
                Episode { step: at(2) as usize, environment, episode_return: at(0), length: at(1) as u32 }
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch::Loopback;

    fn run(workers: usize, vector_len: usize) -> Vec<(f64, f64, Vec<Episode>)> {
        let threads: Vec<_> = Loopback::group(workers, vector_len)
            .into_iter()
            .enumerate()
            .map(|(rank, mut member)| {
                std::thread::spawn(move || {
                    let share = Share::new(rank, workers, Some(4), 512, 64).unwrap();
                    let mut statistics = RolloutStatistics::new(&share, 2, ElementTypes::F32).unwrap();
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
        let alone = run(1, 2000).remove(0);
        assert!((alone.0 + 0.4).abs() < 1e-15 && (alone.1 - 6e-9).abs() < 1e-18);
        assert_eq!(alone.2.len(), 6);
        // If the statistics are longer than a vector, their exchange takes several rounds.
        for (workers, vector_len) in [(2, 2000), (4, 2000), (4, 170)] {
            assert!(run(workers, vector_len).iter().all(|got| *got == alone));
        }
    }

    #[test]
    fn the_latest_episodes_are_kept_if_there_are_too_many() {
        let share = Share::new(0, 1, Some(1), 300, 50).unwrap();
        let mut statistics = RolloutStatistics::new(&share, 0, ElementTypes::F32).unwrap();
        for step in 0..250 {
            statistics.push_episode(Episode { step, environment: 0, episode_return: 1.0, length: 1 });
        }
        statistics.reduce(&mut Loopback::alone(301)).unwrap();
        assert_eq!(statistics.episodes().len(), 100);
        assert!(statistics.episodes().iter().all(|episode| episode.step >= 150));
    }
}
