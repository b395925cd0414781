//! Summing one vector over all workers: the trait that a learner sees, and the in-process loop-back.
//!
//! A learner knows nothing of switches, rings or servers. It fills a vector, calls
//! [`GradientAggregator::all_reduce`] and finds the sum over all workers in the same place, bit for bit the
//! same on each of them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What one aggregation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Number of the round, increasing by one from the round the worker was admitted at.
    pub number: u32,
    /// Worker gradients inside the sum. Where a member was lost in mid-round segments can differ; then this
    /// is the smallest count of any segment.
    pub contributors: u16,
    /// Whether every segment of the sum holds the same number of gradients.
    pub uniform: bool,
}

/// Why an aggregation did not deliver a sum. The vector is as it was.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    /// The vector is not as long as the job declared.
    #[error("vector has {actual} floats, the job aggregates {expected}")]
    WrongLength {
        /// Floats that the caller passed.
        actual: usize,
        /// Floats that the job declared.
        expected: usize,
    },
    /// The worker's own vector holds NaN or an infinity; nothing was sent.
    #[error("vector[{index}] is {value}: a sum with it would poison every replica")]
    NonFinite {
        /// Position of the first such element.
        index: usize,
        /// The element.
        value: f32,
    },
    /// Nothing was heard from the switch for as long as the caller was willing to wait.
    #[error("no answer from the switch {switch} for {silent:?}")]
    SwitchLost {
        /// The switch.
        switch: std::net::SocketAddr,
        /// How long it has been silent.
        silent: Duration,
    },
    /// The other workers did not contribute for as long as the caller was willing to wait.
    #[error(
        "round {round} is not complete after {waited:?}: {missing} segments wait for {}",
        if *.parent_lost { "the parent of the switch, which does not answer it" } else { "other workers" }
    )]
    Stalled {
        /// The round.
        round: u32,
        /// How long the call has waited.
        waited: Duration,
        /// Segments without a result.
        missing: usize,
        /// Whether the switch has lost its parent, without which there are no sums.
        parent_lost: bool,
    },
    /// The switch no longer knows this worker, because its lease ran out or the switch was restarted, and does not
    /// take it back.
    #[error("the switch no longer counts this worker as a member ({reason})")]
    Expelled {
        /// What the switch gave as the reason.
        reason: &'static str,
    },
    /// The worker was away and is a member again, but the others have gone on without it. It lacks the sums in
    /// between: a learner fetches its state from another worker before it contributes again.
    #[error("the others went on without this worker, which is a member again from round {next}")]
    MissedRounds {
        /// The round of the next call.
        next: u32,
    },
    /// A member halted the job; it goes on after a Reset.
    #[error("the job is halted")]
    Halted,
    /// The round of this call is over at the switch and its result no longer kept: the job was reset, or the
    /// others went on without this worker.
    #[error("round {round} is over, the job is at round {current}")]
    StaleRound {
        /// The round of this call.
        round: u32,
        /// The round at which the worker may go on.
        current: u32,
    },
    /// The switch refused a contribution.
    #[error("the switch refused segment data: {reason}")]
    Refused {
        /// The reason it gave.
        reason: &'static str,
    },
    /// The weights of this worker and of another differ after the same aggregate, although they have applied the same
    /// sums.
    #[error("the weights after aggregate {aggregate} differ from those of member {member}")]
    Diverged {
        /// The aggregate.
        aggregate: u32,
        /// Id of the other member.
        member: u16,
    },
    /// The worker was closed while the call waited.
    #[error("the worker was closed")]
    Closed,
    /// Another worker of the group is gone.
    #[error("another worker of the group ended")]
    PeerGone,
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] std::io::Error),
}

/// Counters of an aggregator since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregatorStats {
    /// Rounds completed.
    pub rounds: u64,
    /// Segments sent for the first time.
    pub segments: u64,
    /// Segments sent again.
    pub retransmitted: u64,
}

/// Sums vectors over all workers of a job.
pub trait GradientAggregator: Send {
    /// Name for logs and results, such as `switch` or `loopback`.
    fn name(&self) -> &'static str;

    /// Floats in each vector.
    fn gradient_len(&self) -> usize;

    /// Replaces `vector` (`[gradient_len]`) by the sum over all workers; blocks until it is there.
    /// All workers get the same bits.
    ///
    /// After an error the vector is as it was. After [`AggregateError::Stalled`] or [`AggregateError::SwitchLost`] the
    /// next call repeats the round; part of this worker's contribution may already be in the sum, so pass the same
    /// vector again.
    fn all_reduce(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError>;

    /// Like [`Self::all_reduce`], divided by the number of gradients that were really summed, segment by
    /// segment where they differ.
    fn all_reduce_mean(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let round = self.all_reduce(vector)?;
        let scale = 1.0 / f32::from(round.contributors.max(1));
        vector.iter_mut().for_each(|x| *x *= scale);
        Ok(round)
    }

    /// Counters so far.
    fn stats(&self) -> AggregatorStats;
}

/// Workers in one process: threads that share memory instead of a network. A group of one is the identity.
///
/// Sums in rank order, so that a run is reproducible bit for bit.
pub struct Loopback {
    rank: usize,
    group: Arc<Group>,
    stats: AggregatorStats,
}

struct Group {
    size: usize,
    gradient_len: usize,
    state: Mutex<GroupState>,
    changed: Condvar,
}

struct GroupState {
    contributions: Vec<Option<Vec<f32>>>,
    sum: Vec<f32>,
    /// Members that have yet to fetch the sum of the finished round.
    unread: usize,
    round: u32,
    gone: bool,
}

impl Loopback {
    /// A group of `size` workers that aggregate vectors of `gradient_len` floats; one aggregator each.
    pub fn group(size: usize, gradient_len: usize) -> Vec<Self> {
        let state = GroupState {
            contributions: vec![None; size],
            sum: vec![0.0; gradient_len],
            unread: 0,
            round: 0,
            gone: false,
        };
        let group = Arc::new(Group { size, gradient_len, state: Mutex::new(state), changed: Condvar::new() });
        (0..size)
            .map(|rank| Self { rank, group: Arc::clone(&group), stats: AggregatorStats::default() })
            .collect()
    }

    /// The only worker of its job.
    pub fn alone(gradient_len: usize) -> Self {
        Self::group(1, gradient_len).swap_remove(0)
    }
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(
        &self,
        guard: MutexGuard<'_, GroupState>,
        condition: impl Fn(&GroupState) -> bool,
    ) -> Result<(), AggregateError> {
        let guard = self
            .changed
            .wait_while(guard, |state| !state.gone && condition(state))
            .unwrap_or_else(PoisonError::into_inner);
        if guard.gone && condition(&guard) { Err(AggregateError::PeerGone) } else { Ok(()) }
    }
}

impl GroupState {
    fn close_round(&mut self) {
        self.sum.fill(0.0);
        for contribution in &mut self.contributions {
            let vector = contribution.take().expect("a round closes when all have contributed");
            self.sum.iter_mut().zip(&vector).for_each(|(sum, x)| *sum += x);
        }
        self.unread = self.contributions.len();
        self.round += 1;
    }
}

impl GradientAggregator for Loopback {
    fn name(&self) -> &'static str {
        "loopback"
    }

    fn gradient_len(&self) -> usize {
        self.group.gradient_len
    }

    fn all_reduce(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        check_vector(vector, self.group.gradient_len)?;
        // The sum of the last round must have been read by all before the next one overwrites it.
        self.group.wait_while(self.group.lock(), |state| state.unread > 0)?;
        let mut state = self.group.lock();
        let number = state.round;
        state.contributions[self.rank] = Some(vector.to_vec());
        if state.contributions.iter().all(Option::is_some) {
            state.close_round();
            self.group.changed.notify_all();
        }
        self.group.wait_while(state, |state| state.round == number)?;
        let mut state = self.group.lock();
        vector.copy_from_slice(&state.sum);
        state.unread -= 1;
        if state.unread == 0 {
            self.group.changed.notify_all();
        }
        self.stats.rounds += 1;
        Ok(Round { number, contributors: self.group.size as u16, uniform: true })
    }

    fn stats(&self) -> AggregatorStats {
        self.stats
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.group.lock().gone = true;
        self.group.changed.notify_all();
    }
}

/// Refuses a vector of another length than the job's, or one that would poison the sum.
pub(crate) fn check_vector(vector: &[f32], gradient_len: usize) -> Result<(), AggregateError> {
    if vector.len() != gradient_len {
        return Err(AggregateError::WrongLength { actual: vector.len(), expected: gradient_len });
    }
    match vector.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(AggregateError::NonFinite { index, value: vector[index] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_is_the_identity() {
        let mut alone = Loopback::alone(3);
        let mut vector = [1.0, -2.5, 3.0];
        let round = alone.all_reduce(&mut vector).unwrap();
        assert_eq!((vector, round.contributors), ([1.0, -2.5, 3.0], 1));
    }

    #[test]
    fn all_members_get_every_sum() {
        let threads: Vec<_> = Loopback::group(4, 5)
            .into_iter()
            .enumerate()
            .map(|(rank, mut member)| {
                std::thread::spawn(move || {
                    (0..100u32).for_each(|round| {
                        let mut vector = vec![rank as f32 + round as f32; 5];
                        let got = member.all_reduce(&mut vector).unwrap();
                        assert_eq!(got.number, round);
                        assert_eq!(vector, vec![6.0 + 4.0 * round as f32; 5]);
                    });
                    member
                })
            })
            .collect();
        let members: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(members.iter().all(|member| member.stats().rounds == 100));
    }

    #[test]
    fn bad_vectors_are_named() {
        let mut alone = Loopback::alone(2);
        let error = alone.all_reduce(&mut [1.0]).unwrap_err();
        assert_eq!(error.to_string(), "vector has 1 floats, the job aggregates 2");
        let error = alone.all_reduce(&mut [1.0, f32::NAN]).unwrap_err();
        assert!(matches!(error, AggregateError::NonFinite { index: 1, .. }));
    }

    #[test]
    fn a_lost_peer_ends_the_wait() {
        let mut group = Loopback::group(2, 1);
        drop(group.pop());
        assert!(matches!(group[0].all_reduce(&mut [1.0]), Err(AggregateError::PeerGone)));
    }
}
