//! All-reduce of a vector over all workers: the trait that a learner uses, and the implementations that need no switch.
//!
//! A learner is independent of switches, rings and servers. It fills a vector and calls
//! [`GradientAggregator::all_reduce`], which replaces the contents of the vector with the sum over all workers. The sum
//! is bit-identical on all workers.

mod absent;
mod connection;
mod loopback;
mod parameter_server;
mod ring;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use iswitch_protocol::{ElementType, ElementTypes};

pub use absent::Absent;
pub use connection::{ConnectError, RefusedMeanwhile, Style};
pub use loopback::Loopback;
pub use parameter_server::{ParameterServer, ParameterServerClient, ParameterServerOptions, ServeError};
pub use ring::{Ring, RingOptions};

/// Outcome of one aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Number of the round. The first round is the one in which the worker was admitted; the number increases by one
    /// with each further round.
    pub number: u32,
    /// Number of worker gradients in the sum. If a member was lost during a round, segments may contain different
    /// numbers of gradients. In this case, the field is the smallest of these numbers.
    pub contributors: u16,
    /// Whether all segments of the sum contain the same number of gradients.
    pub uniform: bool,
}

/// Reason why an aggregation did not deliver a sum. The vector is unchanged.
#[non_exhaustive]
#[derive(Debug)]
pub enum AggregateError {
    /// The vector does not have the length that was declared when the job was joined.
    WrongLength {
        /// Number of floats that the caller passed.
        actual: usize,
        /// Number of floats declared when the job was joined.
        expected: usize,
    },
    /// The worker's own vector contains NaN or an infinity; nothing was sent.
    NonFinite {
        /// Index of the first element that is NaN or infinite.
        index: usize,
        /// Value of that element.
        value: f32,
    },
    /// The switch was silent for longer than the timeout.
    SwitchLost {
        /// Address of the switch.
        switch: std::net::SocketAddr,
        /// Time since the last packet from the switch.
        silent: Duration,
    },
    /// The round was not complete within the timeout: other workers did not contribute, or the switch has lost its
    /// parent.
    Stalled {
        /// Round number.
        round: u32,
        /// Time that the call has waited.
        waited: Duration,
        /// Number of segments without a result.
        missing: usize,
        /// Whether the switch has lost its parent. Without its parent, it delivers no sums.
        parent_lost: bool,
        /// Members that the round is waiting for, as reported by the switch.
        absent: Absent,
    },
    /// The switch no longer knows this worker and does not readmit it: the worker's lease expired, the switch was
    /// restarted, or the operator has expelled the worker or removed the job.
    Expelled {
        /// Reason that the switch gave.
        reason: &'static str,
    },
    /// The worker was absent and has been readmitted, but the other workers continued in the meantime. It lacks the
    /// sums of the rounds that it missed, so the learner must fetch its state from another worker before it contributes
    /// again.
    MissedRounds {
        /// Number of the round in which the next call takes part.
        next: u32,
    },
    /// A member halted the job, which continues only after a Reset. Contributions that were sent before the Reset may
    /// cause this error once more.
    Halted,
    /// The round of this call has ended at the switch, and its result is no longer available, because the job was reset
    /// or the other workers continued without this one.
    StaleRound {
        /// Number of the round in which this call took part.
        round: u32,
        /// Round at which the worker may continue.
        current: u32,
    },
    /// The switch refused a contribution.
    Refused {
        /// Reason that the switch gave.
        reason: &'static str,
    },
    /// The weights of this worker and of another member differ after the same aggregate, although both have applied the
    /// same sums.
    Diverged {
        /// Aggregate number.
        aggregate: u32,
        /// Id of the other member.
        member: u16,
    },
    /// Another worker of a ring, or the parameter server, closed the connection or was silent for longer than the
    /// timeout; the group cannot continue.
    PeerLost {
        /// Address of the other end of the connection.
        peer: std::net::SocketAddr,
        /// Time since the last bytes from the peer; zero if it closed the connection.
        silent: Duration,
    },
    /// The worker was closed while the call waited.
    Closed,
    /// The caller cancelled the wait; the next call repeats the round, as after [`Self::Stalled`].
    Interrupted,
    /// Another worker of the group has left.
    PeerGone,
    /// The socket failed.
    Io(std::io::Error),
}

impl fmt::Display for AggregateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongLength { actual, expected } => {
                write!(f, "vector has {actual} floats, expected {expected}, the vector length of the job")
            }
            Self::NonFinite { index, value } if value.is_finite() => {
                write!(
                    f,
                    "vector[{index}] is {value}, which the element type of the packets cannot represent"
                )
            }
            Self::NonFinite { index, value } => {
                write!(f, "vector[{index}] is {value}, which would make the sum non-finite on every replica")
            }
            Self::SwitchLost { switch, silent } => {
                write!(f, "no answer from the switch {switch} for {silent:?}")
            }
            Self::Stalled { round, waited, missing, parent_lost, absent } => {
                write!(
                    f,
                    "round {round} is not complete after {waited:?}: {missing} segments are waiting for "
                )?;
                match parent_lost {
                    true => f.write_str("the switch's parent, which does not answer the switch"),
                    false => absent.fmt(f),
                }
            }
            Self::Expelled { reason } => {
                write!(f, "the switch no longer counts this worker as a member ({reason})")
            }
            Self::MissedRounds { next } => {
                write!(
                    f,
                    "the other workers continued without this one; it is a member again as of round {next}"
                )
            }
            Self::Halted => f.write_str("the job is halted"),
            Self::StaleRound { round, current } => {
                write!(f, "round {round} is over; the job is at round {current}")
            }
            Self::Refused { reason } => write!(f, "the switch refused segment data: {reason}"),
            Self::Diverged { aggregate, member } => {
                write!(f, "the weights after aggregate {aggregate} differ from those of member {member}")
            }
            Self::PeerLost { peer, silent } if silent.is_zero() => write!(f, "{peer} closed the connection"),
            Self::PeerLost { peer, silent } => write!(f, "no bytes from {peer} for {silent:?}"),
            Self::Closed => f.write_str("the worker was closed"),
            Self::Interrupted => f.write_str("interrupted while waiting for the sum"),
            Self::PeerGone => f.write_str("another worker of the group has left"),
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

/// Counters of an aggregator since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregatorStats {
    /// Number of completed rounds.
    pub rounds: u64,
    /// Number of segments sent for the first time.
    pub segments: u64,
    /// Number of segments retransmitted.
    pub retransmitted: u64,
}

/// Sums vectors over all workers of a job.
pub trait GradientAggregator: Send {
    /// Returns the name for logs and results, such as `switch` or `loopback`.
    fn name(&self) -> &'static str;

    /// Returns the number of floats in each vector.
    fn gradient_len(&self) -> usize;

    /// Returns the element types of the packets. With 16-bit types, contributions and sums are rounded.
    fn element_types(&self) -> ElementTypes {
        ElementTypes::F32
    }

    /// Sums `contribution` (`[gradient_len]`) over all workers and returns a reference to the sum; blocks until the sum
    /// is available. All workers get the same bits.
    ///
    /// After [`AggregateError::Stalled`] or [`AggregateError::SwitchLost`], the next call repeats the round. The caller
    /// must then pass the same vector again, because part of this worker's contribution may already be in the sum.
    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError>;

    /// Works like [`Self::reduce`], but replaces `vector` with the sum. On error, the vector is unchanged.
    fn all_reduce(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let (round, sum) = self.reduce(vector)?;
        vector.copy_from_slice(sum);
        Ok(round)
    }

    /// Works like [`Self::all_reduce`], but divides the sum by the number of gradients that were actually summed. If
    /// segments hold different numbers of gradients, each segment is divided by the number for that segment.
    fn all_reduce_mean(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let round = self.all_reduce(vector)?;
        let scale = 1.0 / f32::from(round.contributors.max(1));
        vector.iter_mut().for_each(|x| *x *= scale);
        Ok(round)
    }

    /// Returns the current counters.
    fn stats(&self) -> AggregatorStats;
}

/// Counts a round and returns its description, for a group in which all workers take part in every round.
fn count_round(stats: &mut AggregatorStats, workers: u16) -> Round {
    let number = stats.rounds as u32;
    stats.rounds += 1;
    Round { number, contributors: workers, uniform: true }
}

/// Number of floats that the search for a non-finite value checks before it may stop.
const FINITE_CHUNK_FLOATS: usize = 1024;

/// Rejects a vector whose length is not `gradient_len`, or that contains a NaN or an infinity.
pub(crate) fn check_vector(vector: &[f32], gradient_len: usize) -> Result<(), AggregateError> {
    check_len(vector, gradient_len)?;
    check_finite(vector, ElementType::F32)
}

pub(crate) fn check_len(vector: &[f32], gradient_len: usize) -> Result<(), AggregateError> {
    if vector.len() != gradient_len {
        return Err(AggregateError::WrongLength { actual: vector.len(), expected: gradient_len });
    }
    Ok(())
}

/// Rejects a vector with a NaN, an infinity, or a value that becomes infinite when it is converted to the element type
/// of the packets.
pub(crate) fn check_finite(vector: &[f32], element: ElementType) -> Result<(), AggregateError> {
    let overflow = element.overflow();
    let first = first_outside(vector, |x| x.abs() < overflow);
    first.map_or(Ok(()), |index| Err(AggregateError::NonFinite { index, value: vector[index] }))
}

/// Returns the index of the first value for which `is_valid` is false, or `None` if there is no such value.
pub(crate) fn first_outside<T: Copy>(values: &[T], is_valid: impl Fn(T) -> bool) -> Option<usize> {
    // Without an early exit, the compiler vectorises the loop to eight or more values at a time.
    let are_valid = |chunk: &[T]| chunk.iter().fold(true, |all, value| all & is_valid(*value));
    if values.chunks(FINITE_CHUNK_FLOATS).all(are_valid) {
        return None;
    }
    values.iter().position(|value| !is_valid(*value))
}
