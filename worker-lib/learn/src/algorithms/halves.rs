//! The two halves of a learner, and the statistics that accompany each gradient.
//!
//! The local half of a worker acts in its environments and computes gradients for a *model*: the parameters and
//! everything else on which gradients depend, such as target networks. The shared half applies a mean gradient to the
//! model; it depends only on the aggregated sums, so it is identical on all workers. Synchronous training alternates
//! between the local half, an aggregation and the shared half; asynchronous training runs the halves concurrently
//! ([`pipeline`](iswitch::pipeline)).
//!
//! Each vector that a worker sends consists of the gradient and a [`Tail`], which holds the worker's statistics and its
//! stop request.

use std::collections::VecDeque;

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::environments::EnvironmentSlot;
use super::episodes::RecentReturns;
use super::replica::Replica;
use super::vector::VectorShape;
use crate::env::EnvSpec;

/// Number of losses in a tail.
pub const LOSSES: usize = 4;

/// Statistics that a worker sends with each gradient. The aggregator sums them along with the gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tail {
    /// Number of environment steps since the preceding gradient.
    pub steps: f32,
    /// Number of episodes that have ended since the preceding gradient.
    pub episodes: f32,
    /// Sum of the returns of the episodes counted in `episodes`.
    pub returns: f32,
    /// Sum of the lengths of the episodes counted in `episodes`, in steps.
    pub lengths: f32,
    /// 1 if the worker requests that all workers stop, otherwise 0.
    pub stop: f32,
    /// Losses of the batch, as means over its samples.
    pub losses: [f32; LOSSES],
}

impl Tail {
    /// Number of floats in a tail.
    pub const LEN: usize = 5 + LOSSES;

    /// Returns the shape of a vector that consists of a gradient of `gradient` floats and a tail.
    pub const fn after(gradient: usize) -> VectorShape {
        VectorShape { gradient, exact: Self::LEN }
    }

    /// Writes the tail into the last [`Self::LEN`] floats of `vector`.
    ///
    /// # Panics
    /// Panics if `vector` is shorter than [`Self::LEN`].
    pub fn write(&self, vector: &mut [f32]) {
        let start = vector.len() - Self::LEN;
        let (head, losses) = vector[start..].split_at_mut(5);
        head.copy_from_slice(&[self.steps, self.episodes, self.returns, self.lengths, self.stop]);
        losses.copy_from_slice(&self.losses);
    }

    /// Reads the tail from the last [`Self::LEN`] floats of `vector`.
    ///
    /// # Panics
    /// Panics if `vector` is shorter than [`Self::LEN`].
    pub fn read(vector: &[f32]) -> Self {
        let tail = &vector[vector.len() - Self::LEN..];
        let [steps, episodes, returns, lengths, stop] = [0, 1, 2, 3, 4].map(|i| tail[i]);
        Self { steps, episodes, returns, lengths, stop, losses: std::array::from_fn(|i| tail[5 + i]) }
    }

    /// Counts the episode that has just ended in `slot`.
    pub fn count_episode(&mut self, slot: &EnvironmentSlot) {
        self.episodes += 1.0;
        self.returns += slot.episode_return as f32;
        self.lengths += slot.episode_length as f32;
    }

    /// Adds the steps and episodes of another tail. Does not change the losses.
    pub fn add_experience(&mut self, other: &Self) {
        self.steps += other.steps;
        self.episodes += other.episodes;
        self.returns += other.returns;
        self.lengths += other.lengths;
    }
}

/// The half of a learner that differs between workers.
pub trait LocalHalf: Send {
    /// Returns the environment's specification, including the shapes of observations and actions.
    fn spec(&self) -> &EnvSpec;

    /// Acts for as long as the algorithm requires, then overwrites `gradient` with the gradient of this worker's share
    /// of a batch. Returns the tail of the gradient; the caller then sets its `stop` field.
    ///
    /// # Errors
    /// Fails if an environment fails.
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<Tail, TrainError>;

    /// Receives the global counters after each update of a synchronous run.
    fn observe(&mut self, _counters: &Counters) {}

    /// Notifies this half that its most recent gradient and the tail of that gradient were not aggregated.
    fn skipped(&mut self) {}

    /// Writes the state of this half.
    fn write(&self, writer: &mut Writer);

    /// Restores the saved state from the files of all workers. Returns the indices of the local environments that are
    /// in none of the files.
    ///
    /// # Errors
    /// Fails if the saved state does not match this half.
    fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError>;
}

/// The half of a learner that is identical on all workers.
pub trait SharedHalf: Send {
    /// Applies a mean `gradient` to the model; may modify `gradient` in the process. The result must depend only on the
    /// arguments and on earlier calls.
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters);

    /// Returns the names of the losses in the tail, at most [`LOSSES`], as training curves show them.
    fn loss_names(&self) -> &'static [&'static str];

    /// Writes the state of this half and the model.
    fn write(&self, model: &[f32], writer: &mut Writer);

    /// Restores the state that [`Self::write`] wrote.
    ///
    /// # Errors
    /// Fails if the saved state does not match this half.
    fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError>;
}

/// Both halves of a learner, with the metadata of the run.
pub struct Halves {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Hyper-parameters, as JSON.
    pub config: String,
    /// The initial model; identical on all workers.
    pub model: Vec<f32>,
    /// Lengths of the vectors, each of which holds a gradient and its tail.
    pub shape: VectorShape,
    /// This worker's half.
    pub local: Box<dyn LocalHalf>,
    /// The half that is replicated on all workers, with its counters.
    pub replica: Replica,
}

/// Returns of the last 100 episodes or slightly more, in groups: one for each aggregated sum that reported finished
/// episodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReturnWindow {
    /// For each group, oldest first, the number of its episodes and the sum of their returns.
    groups: VecDeque<(f32, f32)>,
}

impl ReturnWindow {
    /// Adds a group. Then removes the oldest groups for as long as the remaining ones contain at least 100 episodes.
    pub fn push(&mut self, episodes: f32, returns: f32) {
        if episodes <= 0.0 {
            return;
        }
        self.groups.push_back((episodes, returns));
        while let Some((oldest, _)) = self.groups.front()
            && self.count() - f64::from(*oldest) >= RecentReturns::WINDOW as f64
        {
            self.groups.pop_front();
        }
    }

    fn count(&self) -> f64 {
        self.groups.iter().map(|(episodes, _)| f64::from(*episodes)).sum()
    }

    /// Returns the mean return over all episodes in the window, or `None` before the first episode has ended.
    pub fn mean(&self) -> Option<f64> {
        let returns: f64 = self.groups.iter().map(|(_, returns)| f64::from(*returns)).sum();
        (!self.groups.is_empty()).then(|| returns / self.count())
    }
}

/// Counters of a run, accumulated from the tails of all aggregated sums. They are identical on all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Number of environment steps, over all workers.
    pub steps: u64,
    /// Number of gradients aggregated and applied.
    pub iterations: u64,
    /// Returns of the most recent episodes.
    pub returns: ReturnWindow,
    /// Whether a worker requested a stop.
    pub stop: bool,
    recent: Tail,
    recent_iterations: u64,
}

/// Statistics collected between two calls of [`Counters::take_recent`].
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    /// Mean return of the episodes that ended in this period; `None` if none did.
    pub episodic_return: Option<f64>,
    /// Mean length of the episodes that ended in this period, in steps; `None` if none did.
    pub episodic_length: Option<f64>,
    /// Losses, averaged over the iterations of this period.
    pub losses: [f64; LOSSES],
}

impl Counters {
    /// Adds `sum`, a tail summed over `contributions` contributions, to the counters. Must be called before the update,
    /// which uses the counters.
    pub fn absorb(&mut self, sum: &Tail, contributions: u16) {
        self.steps += sum.steps as u64;
        self.iterations += 1;
        self.returns.push(sum.episodes, sum.returns);
        self.stop |= sum.stop > 0.0;
        self.recent.add_experience(sum);
        self.recent_iterations += 1;
        for (total, loss) in self.recent.losses.iter_mut().zip(sum.losses) {
            *total += loss / f32::from(contributions.max(1));
        }
    }

    /// Returns the statistics collected since the previous call.
    pub fn take_recent(&mut self) -> Recent {
        let recent = std::mem::take(&mut self.recent);
        let iterations = std::mem::take(&mut self.recent_iterations).max(1);
        let mean = |sum: f32| (recent.episodes > 0.0).then(|| f64::from(sum) / f64::from(recent.episodes));
        Recent {
            episodic_return: mean(recent.returns),
            episodic_length: mean(recent.lengths),
            losses: recent.losses.map(|sum| f64::from(sum) / iterations as f64),
        }
    }

    /// Writes the counters to a checkpoint.
    pub fn write(&self, writer: &mut Writer) {
        writer.text("steps", self.steps.to_string());
        writer.text("iterations", self.iterations.to_string());
        writer.mean_return(self.returns.mean());
        let groups: Vec<_> = self.returns.groups.iter().flat_map(|(count, sum)| [*count, *sum]).collect();
        writer.floats("episodes.recent_returns", vec![groups.len()], &groups);
    }

    /// Restores the counters that [`Self::write`] wrote.
    ///
    /// # Errors
    /// Fails if the checkpoint does not contain the counters.
    pub fn read(reader: &Reader<'_>) -> Result<Self, TrainError> {
        let len = reader.len_f32("episodes.recent_returns")?;
        let groups = reader.floats("episodes.recent_returns", len)?;
        let groups = groups.as_chunks().0.iter().map(|[count, sum]| (*count, *sum)).collect();
        Ok(Self {
            steps: reader.number("steps")?,
            iterations: reader.number("iterations")?,
            returns: ReturnWindow { groups },
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_round_trips_through_the_end_of_a_vector() {
        let tail = Tail {
            steps: 1.0,
            episodes: 2.0,
            returns: -3.0,
            lengths: 4.0,
            stop: 1.0,
            losses: [5.0, 6.0, 7.0, 8.0],
        };
        let mut vector = vec![9.0; 3 + Tail::LEN];
        tail.write(&mut vector);
        assert_eq!((Tail::read(&vector), &vector[..3]), (tail, &[9.0; 3][..]));
    }

    #[test]
    fn the_return_window_keeps_a_hundred_episodes() {
        let mut window = ReturnWindow::default();
        assert_eq!(window.mean(), None);
        window.push(0.0, 0.0);
        assert_eq!(window.mean(), None);
        for i in 0..150_u16 {
            window.push(1.0, f32::from(i));
        }
        assert_eq!(window.mean(), Some(99.5));
        // Groups are removed only as a whole.
        window.push(60.0, 60.0 * 5.0);
        assert_eq!(window.count(), 100.0);
        window.push(50.0, 50.0 * 7.0);
        assert_eq!(window.count(), 110.0);
        assert_eq!(window.mean(), Some((60.0 * 5.0 + 50.0 * 7.0) / 110.0));
    }

    #[test]
    fn counters_accumulate_the_statistics_of_tails() {
        let mut counters = Counters::default();
        let tail = Tail { steps: 8.0, episodes: 2.0, returns: 30.0, lengths: 10.0, ..Tail::default() };
        counters.absorb(&Tail { losses: [4.0; LOSSES], ..tail }, 2);
        counters.absorb(&Tail { losses: [8.0; LOSSES], stop: 1.0, ..tail }, 2);
        assert_eq!((counters.steps, counters.iterations, counters.stop), (16, 2, true));
        let recent = counters.take_recent();
        let expected =
            Recent { episodic_return: Some(15.0), episodic_length: Some(5.0), losses: [3.0; LOSSES] };
        assert_eq!(recent, expected);
        assert_eq!(counters.take_recent().episodic_return, None);
    }
}
