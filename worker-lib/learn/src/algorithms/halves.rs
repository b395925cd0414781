//! The two halves of a learner, and what rides behind each gradient.
//!
//! A worker's own half acts in its environments and computes gradients for a *model*: the parameters and whatever
//! else gradients depend on, such as target networks. The shared half applies a mean gradient to the model; it
//! depends on sums only, so that it is the same on all workers. Synchronous training runs one after the other around
//! an aggregation, asynchronous training both at once ([`pipeline`](iswitch::pipeline)).
//!
//! Behind the gradient, in the same vector, rides a [`Tail`]: what the worker has to tell besides.

use std::collections::VecDeque;

use super::TrainError;
use super::checkpoint::{Reader, Writer};
use super::environments::EnvironmentSlot;
use super::episodes::RecentReturns;
use super::replica::Replica;
use crate::env::EnvSpec;

/// Losses that a tail has room for.
pub const LOSSES: usize = 4;

/// What a worker tells with each gradient. The aggregator sums it with the gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tail {
    /// Environment steps since the last gradient.
    pub steps: f32,
    /// Episodes that ended since.
    pub episodes: f32,
    /// Sum of their returns.
    pub returns: f32,
    /// Sum of their lengths, steps.
    pub lengths: f32,
    /// 1 to ask all workers to stop.
    pub stop: f32,
    /// Of the batch, means over samples.
    pub losses: [f32; LOSSES],
}

impl Tail {
    /// Floats of it.
    pub const LEN: usize = 5 + LOSSES;

    /// Puts it into the last floats of a vector.
    ///
    /// # Panics
    /// If the vector has fewer.
    pub fn write(&self, vector: &mut [f32]) {
        let start = vector.len() - Self::LEN;
        let (head, losses) = vector[start..].split_at_mut(5);
        head.copy_from_slice(&[self.steps, self.episodes, self.returns, self.lengths, self.stop]);
        losses.copy_from_slice(&self.losses);
    }

    /// The one at the end of a vector.
    ///
    /// # Panics
    /// If the vector is shorter.
    pub fn read(vector: &[f32]) -> Self {
        let tail = &vector[vector.len() - Self::LEN..];
        let [steps, episodes, returns, lengths, stop] = [0, 1, 2, 3, 4].map(|i| tail[i]);
        Self { steps, episodes, returns, lengths, stop, losses: std::array::from_fn(|i| tail[5 + i]) }
    }

    /// Tells of the episode of an environment, which has just ended.
    pub fn count_episode(&mut self, slot: &EnvironmentSlot) {
        self.episodes += 1.0;
        self.returns += slot.episode_return as f32;
        self.lengths += slot.episode_length as f32;
    }

    /// Tells what another one would have told too; losses are this one's.
    pub fn add_experience(&mut self, other: &Self) {
        self.steps += other.steps;
        self.episodes += other.episodes;
        self.returns += other.returns;
        self.lengths += other.lengths;
    }
}

/// The half that differs from worker to worker.
pub trait LocalHalf: Send {
    /// The environment's shapes and limits.
    fn spec(&self) -> &EnvSpec;

    /// Acts as far as the algorithm wants, then overwrites `gradient` with that of this worker's share of a batch.
    /// Gives what is to be told besides; `stop` is the caller's.
    ///
    /// # Errors
    /// If an environment fails.
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<Tail, TrainError>;

    /// What all workers have come to; after each update of a synchronous run.
    fn observe(&mut self, _counters: &Counters) {}

    /// Nobody has seen the last gradient, nor what rode with it inside the gradient.
    fn skipped(&mut self) {}

    /// Writes its state.
    fn write(&self, writer: &mut Writer);

    /// Takes in what [`Self::write`] wrote, of all workers; gives the environments of this worker that are in no file.
    ///
    /// # Errors
    /// If it does not fit.
    fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError>;
}

/// The half that is the same on all workers.
pub trait SharedHalf: Send {
    /// Applies a mean `gradient`, which it may change, to the model. May depend on nothing but its arguments and on
    /// what earlier calls have left.
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters);

    /// What the losses of the tail are, as names of curves; at most [`LOSSES`].
    fn loss_names(&self) -> &'static [&'static str];

    /// Writes its state and the model.
    fn write(&self, model: &[f32], writer: &mut Writer);

    /// Takes in what [`Self::write`] wrote.
    ///
    /// # Errors
    /// If it does not fit.
    fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError>;
}

/// Both halves, and what is known of the run.
pub struct Halves {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Hyper-parameters, as JSON.
    pub config: String,
    /// The model at the start; the same on all workers.
    pub model: Vec<f32>,
    /// Floats of a gradient, without the tail.
    pub gradient_len: usize,
    /// This worker's half.
    pub local: Box<dyn LocalHalf>,
    /// The half that all have alike, with its counts.
    pub replica: Replica,
}

/// Returns of the last 100 episodes, in groups: those of one sum ended together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReturnWindow {
    /// Episodes of each group and the sum of their returns, oldest first.
    groups: VecDeque<(f32, f32)>,
}

impl ReturnWindow {
    /// Takes in a group; the oldest goes where 100 episodes are left without it.
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

    /// Mean return; nothing before the first episode.
    pub fn mean(&self) -> Option<f64> {
        let returns: f64 = self.groups.iter().map(|(_, returns)| f64::from(*returns)).sum();
        (!self.groups.is_empty()).then(|| returns / self.count())
    }
}

/// Counts of a run, from the tails of all sums; the same on all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Environment steps, over all workers.
    pub steps: u64,
    /// Gradients aggregated and applied.
    pub iterations: u64,
    /// Returns of the last 100 episodes.
    pub returns: ReturnWindow,
    /// A worker asked to stop.
    pub stop: bool,
    recent: Tail,
    recent_iterations: u64,
}

/// What came since the last look.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    /// Mean return of the episodes that ended, if any did.
    pub episodic_return: Option<f64>,
    /// Their mean length, steps.
    pub episodic_length: Option<f64>,
    /// Means over iterations.
    pub losses: [f64; LOSSES],
}

impl Counters {
    /// Takes in the tail of a sum of so many contributions; before the update.
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

    /// What came since the last call.
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

    /// For a checkpoint.
    pub fn write(&self, writer: &mut Writer) {
        writer.text("steps", self.steps.to_string());
        writer.text("iterations", self.iterations.to_string());
        let groups: Vec<_> = self.returns.groups.iter().flat_map(|(count, sum)| [*count, *sum]).collect();
        writer.floats("episodes.recent_returns", vec![groups.len()], &groups);
    }

    /// What [`Self::write`] wrote.
    ///
    /// # Errors
    /// If it is not there.
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
    fn a_tail_comes_back_from_the_end_of_a_vector() {
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
    fn the_window_keeps_a_hundred_episodes() {
        let mut window = ReturnWindow::default();
        assert_eq!(window.mean(), None);
        window.push(0.0, 0.0);
        assert_eq!(window.mean(), None);
        for i in 0..150_u16 {
            window.push(1.0, f32::from(i));
        }
        assert_eq!(window.mean(), Some(99.5));
        // Groups go only whole.
        window.push(60.0, 60.0 * 5.0);
        assert_eq!(window.count(), 100.0);
        window.push(50.0, 50.0 * 7.0);
        assert_eq!(window.count(), 110.0);
        assert_eq!(window.mean(), Some((60.0 * 5.0 + 50.0 * 7.0) / 110.0));
    }

    #[test]
    fn counters_sum_what_tails_tell() {
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
