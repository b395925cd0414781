//! Summing one vector over all workers: the trait that a learner sees, and the ways to do it without a switch.
//!
//! A learner knows nothing of switches, rings or servers. It fills a vector, calls
//! [`GradientAggregator::all_reduce`] and finds the sum over all workers in the same place, bit for bit the
//! same on each of them.

mod connection;
mod loopback;
mod parameter_server;
mod ring;

use std::error::Error;
use std::fmt;
use std::time::Duration;

pub use connection::{ConnectError, RefusedMeanwhile, Style};
pub use loopback::Loopback;
pub use parameter_server::{ParameterServer, ParameterServerClient, ParameterServerOptions, ServeError};
pub use ring::{Ring, RingOptions};

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
#[derive(Debug)]
pub enum AggregateError {
    /// The vector is not as long as the job declared.
    WrongLength {
        /// Floats that the caller passed.
        actual: usize,
        /// Floats that the job declared.
        expected: usize,
    },
    /// The worker's own vector holds NaN or an infinity; nothing was sent.
    NonFinite {
        /// Position of the first such element.
        index: usize,
        /// The element.
        value: f32,
    },
    /// Nothing was heard from the switch for as long as the caller was willing to wait.
    SwitchLost {
        /// The switch.
        switch: std::net::SocketAddr,
        /// How long it has been silent.
        silent: Duration,
    },
    /// The other workers did not contribute for as long as the caller was willing to wait.
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
    Expelled {
        /// What the switch gave as the reason.
        reason: &'static str,
    },
    /// The worker was away and is a member again, but the others have gone on without it. It lacks the sums in
    /// between: a learner fetches its state from another worker before it contributes again.
    MissedRounds {
        /// The round of the next call.
        next: u32,
    },
    /// A member halted the job; it continues after a Reset. What was sent before the Reset may be refused like this
    /// once more.
    Halted,
    /// The round of this call is over at the switch and its result no longer kept: the job was reset, or the
    /// others went on without this worker.
    StaleRound {
        /// The round of this call.
        round: u32,
        /// The round at which the worker may go on.
        current: u32,
    },
    /// The switch refused a contribution.
    Refused {
        /// The reason it gave.
        reason: &'static str,
    },
    /// The weights of this worker and of another differ after the same aggregate, although they have applied the same
    /// sums.
    Diverged {
        /// The aggregate.
        aggregate: u32,
        /// Id of the other member.
        member: u16,
    },
    /// Another worker of a ring, or the parameter server, is gone or was silent for too long; the group has ended.
    PeerLost {
        /// The other end of the connection.
        peer: std::net::SocketAddr,
        /// How long it has been silent; zero if it has closed the connection.
        silent: Duration,
    },
    /// The worker was closed while the call waited.
    Closed,
    /// The caller gave up waiting; the next call repeats the round, as after [`Self::Stalled`].
    Interrupted,
    /// Another worker of the group is gone.
    PeerGone,
    /// The socket failed.
    Io(std::io::Error),
}

impl fmt::Display for AggregateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongLength { actual, expected } => {
                write!(f, "vector has {actual} floats, the job aggregates {expected}")
            }
            Self::NonFinite { index, value } => {
                write!(f, "vector[{index}] is {value}: a sum with it would poison every replica")
            }
            Self::SwitchLost { switch, silent } => {
                write!(f, "no answer from the switch {switch} for {silent:?}")
            }
            Self::Stalled { round, waited, missing, parent_lost } => {
                let awaited = match parent_lost {
                    true => "the parent of the switch, which does not answer it",
                    false => "other workers",
                };
                write!(
                    f,
                    "round {round} is not complete after {waited:?}: {missing} segments wait for {awaited}"
                )
            }
            Self::Expelled { reason } => {
                write!(f, "the switch no longer counts this worker as a member ({reason})")
            }
            Self::MissedRounds { next } => {
                write!(f, "the others went on without this worker, which is a member again from round {next}")
            }
            Self::Halted => f.write_str("the job is halted"),
            Self::StaleRound { round, current } => {
                write!(f, "round {round} is over, the job is at round {current}")
            }
            Self::Refused { reason } => write!(f, "the switch refused segment data: {reason}"),
            Self::Diverged { aggregate, member } => {
                write!(f, "the weights after aggregate {aggregate} differ from those of member {member}")
            }
            Self::PeerLost { peer, silent } => write!(f, "no bytes from {peer} for {silent:?}"),
            Self::Closed => f.write_str("the worker was closed"),
            Self::Interrupted => f.write_str("interrupted while waiting for the sum"),
            Self::PeerGone => f.write_str("another worker of the group ended"),
            Self::Io(error) => write!(f, "socket: {error}"),
        }
    }
}

impl Error for AggregateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for AggregateError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
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

    /// Sums `contribution` (`[gradient_len]`) over all workers and lends the sum; blocks until it is there.
    /// All workers get the same bits.
    ///
    /// After [`AggregateError::Stalled`] or [`AggregateError::SwitchLost`] the next call repeats the round; part of
    /// this worker's contribution may already be in the sum, so pass the same vector again.
    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError>;

    /// Like [`Self::reduce`], and replaces `vector` by the sum. After an error it is as it was.
    fn all_reduce(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let (round, sum) = self.reduce(vector)?;
        vector.copy_from_slice(sum);
        Ok(round)
    }

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

/// Counts a round of a group in which all workers take part in every round.
fn count_round(stats: &mut AggregatorStats, workers: u16) -> Round {
    let number = stats.rounds as u32;
    stats.rounds += 1;
    Round { number, contributors: workers, uniform: true }
}

/// Floats that are looked through before a vector with NaN is given up.
const FINITE_CHUNK_FLOATS: usize = 1024;

/// Refuses a vector of another length than the job's, or one that would poison the sum.
pub(crate) fn check_vector(vector: &[f32], gradient_len: usize) -> Result<(), AggregateError> {
    check_len(vector, gradient_len)?;
    check_finite(vector)
}

pub(crate) fn check_len(vector: &[f32], gradient_len: usize) -> Result<(), AggregateError> {
    if vector.len() != gradient_len {
        return Err(AggregateError::WrongLength { actual: vector.len(), expected: gradient_len });
    }
    Ok(())
}

pub(crate) fn check_finite(vector: &[f32]) -> Result<(), AggregateError> {
    // Without a way out of the loop it is done eight or more floats at a time.
    let is_finite = |chunk: &[f32]| chunk.iter().fold(true, |all, x| all & x.is_finite());
    if vector.chunks(FINITE_CHUNK_FLOATS).all(is_finite) {
        return Ok(());
    }
    let index = vector.iter().position(|x| !x.is_finite()).unwrap_or_default();
    Err(AggregateError::NonFinite { index, value: vector[index] })
}
