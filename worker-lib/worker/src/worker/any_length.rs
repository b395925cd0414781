//! Aggregation of vectors of any length.
//!
//! All vectors of a job have the same length, so that the switch knows when a round is complete. An application that
//! sums gradient buckets and statistics uses several lengths: each length gets its own job, which the workers join when
//! they first use that length. A vector longer than [`MAX_PIECE_FLOATS`] is split into pieces of that length and a
//! remainder. As with every collective operation, all workers must sum the same lengths in the same order; all of them
//! therefore number the jobs alike without communication.

use std::error::Error;
use std::fmt;

use super::join::{JoinError, JoinOptions};
use super::udp::Worker;
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, check_finite};

/// Maximum number of floats that one round sums. This bounds the memory that a job takes on the switch to two such
/// pieces.
pub const MAX_PIECE_FLOATS: usize = 1 << 20;
/// Maximum number of lengths whose jobs are kept at the same time; beyond it, the worker leaves the least recently used
/// job. Together, these jobs take at most half of a switch's default memory.
pub const MAX_LENGTHS: usize = 16;

/// Reason why a vector was not summed.
#[non_exhaustive]
#[derive(Debug)]
pub enum AnyLengthError {
    /// The job for vectors of a length could not be joined.
    Join {
        /// Number of the job.
        job: u32,
        /// Length of the vectors, in floats.
        floats: usize,
        /// Reason why the job could not be joined.
        source: JoinError,
    },
    /// A round was not completed.
    Aggregate(AggregateError),
    /// The previous call failed half way: some workers may have its sum, and the others need this worker's contribution
    /// to get it.
    Unfinished {
        /// Number of floats that the caller passed.
        actual: usize,
        /// Number of floats of the previous vector.
        expected: usize,
    },
    /// An earlier call failed permanently: this worker and the others may be at different vectors.
    Failed {
        /// Error of that call.
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
                "vector has {actual} floats, expected {expected}: the previous vector was not summed completely and \
                 must be passed again"
            ),
            Self::Failed { reason } => {
                write!(f, "the worker has failed and must rejoin: {reason}")
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

/// Number of gradients in one sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summed {
    /// Number of gradients in the sum; if segments differ, the smallest number.
    pub contributors: u16,
    /// Whether all segments hold the same number of gradients.
    pub uniform: bool,
}

/// A worker that sums vectors of any length with a fixed group of workers.
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
    /// Options of the next job.
    options: JoinOptions,
    /// Memberships, one for each job, in order of last use; the most recently used one is last.
    members: Vec<Worker>,
    /// Counters of the memberships that have been dropped.
    past: AggregatorStats,
    unfinished: Option<Unfinished>,
    failure: Option<String>,
    /// Buffer for a piece that is shorter than its job's vectors, padded with zeros.
    padded: Vec<f32>,
}

/// A vector of which only some pieces have been summed.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    floats: usize,
    /// Number of leading floats that have been replaced by the sum.
    done: usize,
    summed: Option<Summed>,
}

impl AnyLengthWorker {
    /// Joins `options.job` and waits for the other workers as long as `keep_waiting` returns true. The jobs for further
    /// vector lengths get the following job numbers. The options `gradient_len` and `shares_state` are ignored.
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

    /// Replaces `vector` by its sum over all workers. Blocks until the sum is available, as long as `keep_waiting`
    /// returns true (see [`Worker::reduce_while`]).
    ///
    /// After a failure, the beginning of the vector may already hold the sum. The next call must pass the same vector
    /// again, unmodified; it continues where the failed call stopped.
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

    /// Works like [`Self::all_reduce_while`], but divides the sum by the number of gradients that were actually summed.
    /// If segments hold different numbers of gradients, each segment is divided by its own number.
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

    /// Returns the current counters; each piece of a vector counts as one round.
    pub fn stats(&self) -> AggregatorStats {
        self.members.iter().map(Worker::stats).fold(self.past, |one, other| AggregatorStats {
            rounds: one.rounds + other.rounds,
            segments: one.segments + other.segments,
            retransmitted: one.retransmitted + other.retransmitted,
        })
    }

    /// Returns how many times the switch has forgotten this worker and readmitted it.
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
            // Checks the whole rest of the vector before any of it is sent.
            check_finite(&vector[state.done..], self.options.elements.contributions())?;
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
        // An empty vector needs no round.
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
        let round = member.reduce_checked(contribution, keep_waiting)?;
        member.copy_sum(piece);
        if is_mean {
            member.scale_segments(piece);
        }
        self.padded = padded;
        Ok(Summed { contributors: round.contributors, uniform: round.uniform })
    }

    /// Returns the vector length of the job for a piece. Pieces that fit in one packet share a job.
    fn job_len(&self, floats: usize) -> usize {
        floats.max(usize::from(self.options.segment_floats))
    }

    /// Returns the membership in the job for vectors of length `floats`; joins the job if it is new.
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
        Ok(self.members.last_mut().expect("the worker was just pushed"))
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

/// Returns whether the worker may have missed sums that the others have.
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
