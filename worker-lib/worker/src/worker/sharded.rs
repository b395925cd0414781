//! Aggregation of one vector over several switches, each of which sums a part of it.
//!
//! A switch is one thread, and one core can process only a few gigabytes per second. Several `iswitchd` processes, each
//! on its own core of one machine or on several machines, share the load without knowledge of each other: every worker
//! sends the first part of its vector to the first switch, the second part to the second, and so on.

use std::net::SocketAddrV4;
use std::ops::Range;
use std::thread;

use iswitch_protocol::ElementTypes;

use super::join::{JoinError, JoinOptions};
use super::udp::Worker;
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, Round, check_vector};

/// A worker of one job at several switches.
///
/// A separate thread serves each switch but the first, which makes this type suitable for vectors of megabytes. After
/// an error other than [`AggregateError::Stalled`] and [`AggregateError::SwitchLost`], some parts may be a round ahead
/// of others: every later call fails with [`AggregateError::Closed`], and the worker must join again.
///
/// ```no_run
/// use iswitch::{GradientAggregator, JoinOptions, ShardedWorker};
///
/// let switches = ["10.9.0.254:7711".parse()?, "10.9.0.254:7712".parse()?];
/// let options = JoinOptions::new(switches[0], 4, 1_687_206);
/// let mut worker = ShardedWorker::join(&options, &switches)?;
/// let round = worker.all_reduce(&mut vec![0.0; 1_687_206])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardedWorker {
    shards: Vec<Shard>,
    /// `[gradient_len]`
    sum: Vec<f32>,
    is_over: bool,
}

#[derive(Debug)]
struct Shard {
    worker: Worker,
    /// Range of the vector that this switch sums.
    range: Range<usize>,
    /// The round in progress, if this part of it has finished.
    done: Option<Round>,
}

/// Divides a vector into `count` parts of whole segments, as evenly as possible. No part is empty unless there are
/// fewer segments than parts.
fn parts(gradient_len: u32, segment_floats: u16, count: usize) -> impl Iterator<Item = Range<usize>> {
    let (len, size) = (gradient_len as usize, usize::from(segment_floats.max(1)));
    let segments = len.div_ceil(size);
    let bound = move |at: usize| (segments * at / count * size).min(len);
    (0..count).map(move |at| bound(at)..bound(at + 1))
}

impl ShardedWorker {
    /// Joins the job at each of the switches, as [`Worker::join`] does at one. All workers must name the switches in
    /// the same order. Switches for which there is no segment are left out. The options `switch` and `shares_state` are
    /// ignored.
    ///
    /// # Errors
    /// Those of [`Worker::join`]; [`JoinError::NoSwitch`] if `switches` is empty.
    pub fn join(options: &JoinOptions, switches: &[SocketAddrV4]) -> Result<Self, JoinError> {
        if switches.is_empty() {
            return Err(JoinError::NoSwitch);
        }
        let ranges = parts(options.gradient_len, options.segment_floats, switches.len());
        let join = |(range, switch): (Range<usize>, &SocketAddrV4)| {
            let part = JoinOptions {
                switch: *switch,
                gradient_len: range.len() as u32,
                shares_state: false,
                ..options.clone()
            };
            Ok(Shard { worker: Worker::join(part)?, range, done: None })
        };
        let shards = ranges.zip(switches).filter(|(range, _)| !range.is_empty() || options.gradient_len == 0);
        let shards = shards.map(join).collect::<Result<_, JoinError>>()?;
        Ok(Self { shards, sum: vec![0.0; options.gradient_len as usize], is_over: false })
    }

    /// Leaves the job at each switch.
    pub fn leave(self) -> Result<(), AggregateError> {
        self.shards.into_iter().try_for_each(|shard| shard.worker.leave())
    }

    /// Sums the parts that have not been summed yet.
    fn run(&mut self, contribution: &[f32], is_mean: bool) -> Result<Round, AggregateError> {
        let mut rest = &mut self.sum[..];
        let mut parts = Vec::with_capacity(self.shards.len());
        for shard in &mut self.shards {
            let (sum, beyond) = rest.split_at_mut(shard.range.len());
            rest = beyond;
            if shard.done.is_none() {
                parts.push((shard, sum));
            }
        }
        thread::scope(|scope| {
            let mut parts = parts.into_iter();
            let first = parts.next();
            let others: Vec<_> = parts
                .map(|(shard, sum)| scope.spawn(move || shard.run(contribution, sum, is_mean)))
                .collect();
            let outcome = first.map_or(Ok(()), |(shard, sum)| shard.run(contribution, sum, is_mean));
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or(Err(AggregateError::Closed))
            };
            // All threads are joined in order, so that the reported error does not depend on timing.
            others.into_iter().map(join).fold(outcome, Result::and)
        })?;
        let rounds = self.shards.iter_mut().filter_map(|shard| shard.done.take());
        let whole = rounds.reduce(|one, other| Round {
            number: one.number,
            contributors: one.contributors.min(other.contributors),
            uniform: one.uniform && other.uniform && one.contributors == other.contributors,
        });
        whole.ok_or(AggregateError::Closed)
    }

    fn checked_run(&mut self, contribution: &[f32], is_mean: bool) -> Result<Round, AggregateError> {
        check_vector(contribution, self.sum.len())?;
        if self.is_over {
            return Err(AggregateError::Closed);
        }
        let outcome = self.run(contribution, is_mean);
        let is_repeated =
            matches!(outcome, Err(AggregateError::Stalled { .. } | AggregateError::SwitchLost { .. }));
        self.is_over = outcome.is_err() && !is_repeated;
        outcome
    }
}

impl Shard {
    fn run(&mut self, contribution: &[f32], sum: &mut [f32], is_mean: bool) -> Result<(), AggregateError> {
        let (round, part) = self.worker.reduce(&contribution[self.range.clone()])?;
        sum.copy_from_slice(part);
        if is_mean {
            self.worker.scale_segments(sum);
        }
        self.done = Some(round);
        Ok(())
    }
}

impl GradientAggregator for ShardedWorker {
    fn name(&self) -> &'static str {
        "switches"
    }

    fn gradient_len(&self) -> usize {
        self.sum.len()
    }

    fn element_types(&self) -> ElementTypes {
        self.shards.first().map_or(ElementTypes::F32, |shard| shard.worker.element_types())
    }

    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError> {
        let round = self.checked_run(contribution, false)?;
        Ok((round, &self.sum))
    }

    fn all_reduce_mean(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let round = self.checked_run(vector, true)?;
        vector.copy_from_slice(&self.sum);
        Ok(round)
    }

    fn stats(&self) -> AggregatorStats {
        let stats = self.shards.iter().map(|shard| shard.worker.stats());
        stats
            .reduce(|one, other| AggregatorStats {
                rounds: one.rounds.min(other.rounds),
                segments: one.segments + other.segments,
                retransmitted: one.retransmitted + other.retransmitted,
            })
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_consist_of_consecutive_whole_segments(
            len in 1u32..100_000, size in 1u16..400, count in 1usize..20,
        ) {
            let parts: Vec<_> = parts(len, size, count).collect();
            prop_assert_eq!((parts[0].start, parts[count - 1].end), (0, len as usize));
            let segments = |part: &Range<usize>| part.len().div_ceil(usize::from(size));
            let counts: Vec<_> = parts.iter().map(segments).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            for pair in parts.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].start);
                prop_assert!(pair[1].is_empty() || pair[1].start % usize::from(size) == 0);
            }
        }
    }
}
