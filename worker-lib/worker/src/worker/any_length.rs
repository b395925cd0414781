//! Vectors of any length, one after the other.
//!
//! A job's vectors all have one length, so that the switch knows when a round is complete. Who sums buckets of
//! gradients and statistics has several lengths: each gets a job of its own, which the workers join when they first
//! meet it. A vector longer than [`MAX_PIECE_FLOATS`] is cut into pieces of that length and a rest. All workers sum
//! the same lengths in the same order, as with every collective; so all number the jobs alike, without asking each
//! other.

use std::error::Error;
use std::fmt;

use super::join::{JoinError, JoinOptions};
use super::udp::Worker;
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, check_finite};

/// Floats that one round sums at most. Bounds the memory that a job takes on the switch, to twice as many.
pub const MAX_PIECE_FLOATS: usize = 1 << 20;
/// Lengths that are kept at the same time; beyond that the one used longest ago is given up. They take at most half
/// of a switch's memory, as that is unless set.
pub const MAX_LENGTHS: usize = 16;

/// Why a vector was not summed.
#[non_exhaustive]
#[derive(Debug)]
pub enum AnyLengthError {
    /// The job for vectors of a length could not be joined.
    Join {
        /// The job.
        job: u32,
        /// The length.
        floats: usize,
        /// Why not.
        source: JoinError,
    },
    /// A round was not completed.
    Aggregate(AggregateError),
    /// The last call failed half way: some workers may have its sum, and the others need this one's part to get it.
    Unfinished {
        /// Floats that the caller passed.
        actual: usize,
        /// Floats of the last vector.
        expected: usize,
    },
    /// An earlier call failed for good: this worker and the others may be at different vectors.
    Failed {
        /// How that call failed.
        reason: String,
    },
}

impl fmt::Display for AnyLengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join { job, floats, source } => {
                write!(f, "joining job {job}, for vectors of {floats} floats: {source}")
            }
            Self::Aggregate(error) => error.fmt(f),
            Self::Unfinished { actual, expected } => write!(
                f,
                "vector has {actual} floats, expected the one of {expected} floats again that was not summed \
                 completely"
            ),
            Self::Failed { reason } => {
                write!(f, "the worker has failed and has to join anew: {reason}")
            }
        }
    }
}

impl Error for AnyLengthError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Join { source, .. } => Some(source),
            Self::Aggregate(error) => error.source(),
            Self::Unfinished { .. } | Self::Failed { .. } => None,
        }
    }
}

impl From<AggregateError> for AnyLengthError {
    fn from(error: AggregateError) -> Self {
        Self::Aggregate(error)
    }
}

/// What one sum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summed {
    /// Gradients inside the sum; where segments differ, the smallest count.
    pub contributors: u16,
    /// Whether all segments hold the same number of gradients.
    pub uniform: bool,
}

/// A worker that sums vectors of any length with the same others.
///
/// ```no_run
/// use iswitch::{AnyLengthWorker, JoinOptions};
///
/// let mut worker = AnyLengthWorker::join(JoinOptions::new("10.9.0.254:7711".parse()?, 4, 0), &mut || true)?;
/// worker.all_reduce_while(&mut vec![0.0; 10_119], &mut || true)?;
/// worker.all_reduce_while(&mut [1.0], &mut || true)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AnyLengthWorker {
    /// Of the next job.
    options: JoinOptions,
    /// By last use, the latest at the end.
    members: Vec<Worker>,
    /// What members that were given up have counted.
    past: AggregatorStats,
    unfinished: Option<Unfinished>,
    failure: Option<String>,
    /// A piece shorter than its job's vectors, with zeros behind it.
    padded: Vec<f32>,
}

/// A vector of which only some pieces have been summed.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    floats: usize,
    /// Floats at its beginning that have been replaced by the sum.
    done: usize,
    summed: Option<Summed>,
}

impl AnyLengthWorker {
    /// Joins the others of `options.job`, and waits for them as long as `keep_waiting` says so. The jobs of further
    /// lengths have the numbers that follow. Of the options, `gradient_len` and `shares_state` do not count.
    ///
    /// # Errors
    /// Those of [`Worker::join_while`].
    pub fn join(
        options: JoinOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, AnyLengthError> {
        let mut worker = Self {
            options: JoinOptions { shares_state: false, ..options },
            members: Vec::new(),
            past: AggregatorStats::default(),
            unfinished: None,
            failure: None,
            padded: Vec::new(),
        };
        worker.member(worker.job_len(1), keep_waiting)?;
        Ok(worker)
    }

    /// Replaces `vector` by its sum over all workers; blocks until it is there, as long as `keep_waiting` says so (see
    /// [`Worker::reduce_while`]).
    ///
    /// After a failure the beginning of the vector may hold the sum already, and the next call must pass the same
    /// vector again, untouched: it goes on where this one has stopped.
    ///
    /// # Errors
    /// [`AnyLengthError`]. After a failure that leaves this worker behind the others, all further calls fail.
    pub fn all_reduce_while(
        &mut self,
        vector: &mut [f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        self.run(vector, false, keep_waiting)
    }

    /// Like [`Self::all_reduce_while`], divided by the number of gradients that were really summed, segment by segment
    /// where they differ.
    ///
    /// # Errors
    /// As for [`Self::all_reduce_while`].
    pub fn all_reduce_mean_while(
        &mut self,
        vector: &mut [f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        self.run(vector, true, keep_waiting)
    }

    /// Counters so far; a round is a piece of a vector.
    pub fn stats(&self) -> AggregatorStats {
        self.members.iter().map(Worker::stats).fold(self.past, |one, other| AggregatorStats {
            rounds: one.rounds + other.rounds,
            segments: one.segments + other.segments,
            retransmitted: one.retransmitted + other.retransmitted,
        })
    }

    /// How often the switch has forgotten this worker and taken it back.
    pub fn rejoins(&self) -> u64 {
        self.members.iter().map(Worker::rejoins).sum()
    }

    fn run(
        &mut self,
        vector: &mut [f32],
        is_mean: bool,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        if let Some(reason) = &self.failure {
            return Err(AnyLengthError::Failed { reason: reason.clone() });
        }
        let fresh = Unfinished { floats: vector.len(), done: 0, summed: None };
        let mut state = self.unfinished.unwrap_or(fresh);
        if state.floats != vector.len() {
            return Err(AnyLengthError::Unfinished { actual: vector.len(), expected: state.floats });
        }
        if !self.options.sends_non_finite {
            // All of it, before any of it is sent.
            check_finite(&vector[state.done..])?;
        }
        for piece in vector[state.done..].chunks_mut(MAX_PIECE_FLOATS) {
            let floats = piece.len();
            match self.reduce_piece(piece, is_mean, keep_waiting) {
                Ok(summed) => {
                    state.done += floats;
                    state.summed = Some(state.summed.map_or(summed, |before| before.with(summed)));
                }
                Err(error) => {
                    self.unfinished = Some(state);
                    self.failure = is_final(&error).then(|| error.to_string());
                    return Err(error);
                }
            }
        }
        self.unfinished = None;
        // Nothing is waited for to sum nothing.
        Ok(state.summed.unwrap_or(Summed { contributors: self.options.workers, uniform: true }))
    }

    fn reduce_piece(
        &mut self,
        piece: &mut [f32],
        is_mean: bool,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        let mut padded = core::mem::take(&mut self.padded);
        let job_len = self.job_len(piece.len());
        let member = self.member(job_len, keep_waiting)?;
        let contribution = if piece.len() == job_len {
            &*piece
        } else {
            padded.clear();
            padded.extend_from_slice(piece);
            padded.resize(job_len, 0.0);
            &padded
        };
        let (round, sum) = member.reduce_checked(contribution, keep_waiting)?;
        piece.copy_from_slice(&sum[..piece.len()]);
        if is_mean {
            member.scale_segments(piece);
        }
        self.padded = padded;
        Ok(Summed { contributors: round.contributors, uniform: round.uniform })
    }

    /// Length of the vectors of the job for a piece: those that fit in one packet share a job.
    fn job_len(&self, floats: usize) -> usize {
        floats.max(usize::from(self.options.segment_floats))
    }

    /// The member of the job for vectors of that length, which is joined if it is new.
    fn member(
        &mut self,
        floats: usize,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<&mut Worker, AnyLengthError> {
        let member = match self.members.iter().position(|member| member.gradient_len() == floats) {
            Some(at) => self.members.remove(at),
            None => self.join_job(floats, keep_waiting)?,
        };
        self.members.push(member);
        Ok(self.members.last_mut().expect("it was pushed just now"))
    }

    fn join_job(
        &mut self,
        floats: usize,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Worker, AnyLengthError> {
        let job = self.options.job;
        let options = JoinOptions { gradient_len: floats as u32, ..self.options.clone() };
        let joined = Worker::join_while(options, keep_waiting);
        let worker = joined.map_err(|source| AnyLengthError::Join { job, floats, source })?;
        self.options.job = job.wrapping_add(1);
        if self.members.len() == MAX_LENGTHS {
            let given_up = self.members.remove(0);
            let AggregatorStats { rounds, segments, retransmitted } = given_up.stats();
            self.past.rounds += rounds;
            self.past.segments += segments;
            self.past.retransmitted += retransmitted;
        }
        Ok(worker)
    }
}

impl Summed {
    fn with(self, other: Self) -> Self {
        Self {
            contributors: self.contributors.min(other.contributors),
            uniform: self.uniform && other.uniform && self.contributors == other.contributors,
        }
    }
}

/// Whether the worker may have missed sums that the others have.
fn is_final(error: &AnyLengthError) -> bool {
    use AggregateError::{Halted, Interrupted, NonFinite, Stalled, SwitchLost};
    match error {
        AnyLengthError::Aggregate(error) => {
            !matches!(error, Halted | Interrupted | NonFinite { .. } | Stalled { .. } | SwitchLost { .. })
        }
        _ => false,
    }
}

impl fmt::Debug for AnyLengthWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<_> = self.members.iter().map(GradientAggregator::gradient_len).collect();
        f.debug_struct("AnyLengthWorker").field("lengths", &lengths).finish_non_exhaustive()
    }
}
