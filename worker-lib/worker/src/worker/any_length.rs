//! Aggregation of vectors of any length.
//!
//! All vectors of a job have the same length, so that the switch knows when a round is complete. An application that
//! sums gradient buckets and statistics uses several lengths, so each length gets a separate job, which the workers
//! join when they first use that length. A vector longer than [`MAX_PIECE_FLOATS`] is split into pieces of that length
//! and a remainder. As with every collective operation, all workers must sum the same lengths in the same order, so
//! they assign the same job numbers without communication.
//!
//! Vectors of 16-bit floats are sent as 16-bit elements. Each element type has separate jobs.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use iswitch_protocol::{ElementType, ElementTypes};

use super::join::{JoinError, JoinOptions, Timeouts};
use super::udp::Worker;
use super::values::Values;
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator};

/// Maximum number of floats that one round sums. It limits the memory that a job uses on the switch to the size of two
/// such vectors.
pub const MAX_PIECE_FLOATS: usize = 1 << 20;
/// Maximum number of lengths whose jobs are kept at the same time; if there are more, the worker leaves the least
/// recently used job. Together, these jobs use at most half of a switch's default memory.
pub const MAX_LENGTHS: usize = 16;

/// Minimum time to wait for the answer to a Join, even if the time limit of the call is shorter: with a shorter wait,
/// an unanswered Join would be taken as a sign that the path MTU is too small.
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Reason why a vector was not summed.
#[non_exhaustive]
#[derive(Debug)]
pub enum AnyLengthError {
    /// The worker could not join the job for vectors of this length.
    Join {
        /// Job number.
        job: u32,
        /// Length of the vectors, in floats.
        floats: usize,
        /// Reason why the job could not be joined.
        source: JoinError,
    },
    /// A round was not completed.
    Aggregate(AggregateError),
    /// The previous call failed after part of its vector was sent, and this call passed a vector of a different length.
    /// Some workers may already have the sum of the previous vector, and the others need this worker's contribution to
    /// complete it.
    Unfinished {
        /// Number of floats that the caller passed.
        actual: usize,
        /// Number of floats of the previous vector.
        expected: usize,
    },
    /// An earlier call failed in such a way that no further call is possible, because this worker and the others
    /// might then sum vectors that do not belong together.
    Failed {
        /// Error of that call.
        reason: String,
    },
}

impl fmt::Display for AnyLengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join { job, floats, source } => {
                write!(f, "cannot join job {job} with vectors of {floats} floats: {source}")
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
    /// Number of gradients in the sum; if it differs between segments, the smallest number.
    pub contributors: u16,
    /// Whether all segments contain the same number of gradients.
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
    /// Options of the next job, except for its element types.
    options: JoinOptions,
    /// Element types of the packets of all vectors; if `None`, each vector is sent in the type of its floats.
    elements: Option<ElementTypes>,
    /// Memberships, one for each job, in order of last use; the most recently used one is last.
    members: Vec<Worker>,
    /// Counters of the memberships that have been dropped.
    past: AggregatorStats,
    /// Number of readmissions of the worker in the memberships that have been dropped.
    past_rejoins: u64,
    unfinished: Option<Unfinished>,
    failure: Option<String>,
    /// Time limit of each call; if `None`, the timeouts of the options apply to each piece.
    timeout: Option<Duration>,
    /// Buffer for a piece that is widened to floats, or padded with zeros because it is shorter than its job's vectors.
    contribution: Vec<f32>,
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
    /// Joins `options.job` and waits for the other workers as long as `keep_waiting` returns true. The job for each
    /// further vector length gets the next job number. The options `gradient_len` and `shares_state` are ignored. If
    /// `options.elements` is not [`ElementTypes::F32`], all vectors are sent with the element types that it
    /// specifies; see [`Self::with_elements`].
    ///
    /// # Errors
    /// Returns the errors of [`Worker::join_while`].
    pub fn join(
        options: JoinOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, AnyLengthError> {
        let elements = Some(options.elements).filter(|elements| *elements != ElementTypes::F32);
        let mut worker = Self {
            options: JoinOptions { shares_state: false, ..options },
            elements,
            members: Vec::new(),
            past: AggregatorStats::default(),
            past_rejoins: 0,
            unfinished: None,
            failure: None,
            timeout: None,
            contribution: Vec::new(),
        };
        worker.member(worker.options.elements, 1, None, keep_waiting)?;
        Ok(worker)
    }

    /// Sets the element types of the packets of all vectors. With `None`, the default, each vector is sent in the type
    /// of its floats. All workers of the job must set the same types.
    #[must_use]
    pub fn with_elements(self, elements: Option<ElementTypes>) -> Self {
        Self { elements, ..self }
    }

    /// Sets the time limit of each subsequent call, which includes the time to join the job for a new length. A call
    /// that exceeds the limit fails within half a second, with an error that states what the call was waiting for. Such
    /// a call may be repeated. With `None`, the default, the timeouts of the options apply to each piece of a vector.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Replaces `vector` with its sum over all workers. Blocks until the sum is available, as long as `keep_waiting`
    /// returns true (see [`Worker::reduce_while`]).
    ///
    /// After a failure, the beginning of the vector may already hold the sum. The next call must pass the same vector
    /// again, unmodified; that call continues where the failed call stopped.
    ///
    /// # Errors
    /// Returns an [`AnyLengthError`]. If a failure leaves this worker behind the others, all further calls fail.
    pub fn all_reduce_while(
        &mut self,
        vector: &mut [f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        self.reduce_values_while(Values::F32(vector), false, keep_waiting)
    }

    /// Works like [`Self::all_reduce_while`], but divides the sum by the number of gradients that were actually summed.
    /// If segments hold different numbers of gradients, each segment is divided by the number for that segment.
    ///
    /// # Errors
    /// Returns the errors of [`Self::all_reduce_while`].
    pub fn all_reduce_mean_while(
        &mut self,
        vector: &mut [f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        self.reduce_values_while(Values::F32(vector), true, keep_waiting)
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
        self.members.iter().map(Worker::rejoins).fold(self.past_rejoins, u64::saturating_add)
    }

    /// Works like [`Self::all_reduce_while`], or like [`Self::all_reduce_mean_while`] if `is_mean` is set, for floats
    /// of any element type. 16-bit floats are summed in 32 bits, and each sum is rounded once. To compute means of
    /// f16 values, the sums are sent to the workers in 32 bits, so that they do not overflow.
    ///
    /// # Errors
    /// Returns the errors of [`Self::all_reduce_while`].
    pub fn reduce_values_while(
        &mut self,
        mut values: Values<'_>,
        is_mean: bool,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        if let Some(reason) = &self.failure {
            return Err(AnyLengthError::Failed { reason: reason.clone() });
        }
        let fresh = Unfinished { floats: values.len(), done: 0, summed: None };
        let mut state = self.unfinished.unwrap_or(fresh);
        if state.floats != values.len() {
            return Err(AnyLengthError::Unfinished { actual: values.len(), expected: state.floats });
        }
        let elements = self.elements_for(values.element(), is_mean);
        if !self.options.sends_non_finite {
            // Checks the entire remainder of the vector before any of it is sent.
            values.check_finite(state.done, elements.contributions())?;
        }
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        while state.done < state.floats {
            let len = MAX_PIECE_FLOATS.min(state.floats - state.done);
            let piece = values.slice(state.done..state.done + len);
            match self.reduce_piece(piece, elements, is_mean, deadline, keep_waiting) {
                Ok(summed) => {
                    state.done += len;
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

    /// Returns the element types of the packets for a vector.
    fn elements_for(&self, element: ElementType, is_mean: bool) -> ElementTypes {
        self.elements.unwrap_or(match element {
            ElementType::F16 if is_mean => ElementTypes::with_wide_results(element),
            _ => ElementTypes::uniform(element),
        })
    }

    fn reduce_piece(
        &mut self,
        piece: Values<'_>,
        elements: ElementTypes,
        is_mean: bool,
        deadline: Option<Instant>,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Summed, AnyLengthError> {
        let mut buffer = core::mem::take(&mut self.contribution);
        let member = self.member(elements, piece.len(), deadline, keep_waiting);
        let outcome =
            member.and_then(|member| reduce_buffered(member, piece, is_mean, &mut buffer, keep_waiting));
        self.contribution = buffer;
        outcome
    }

    /// Returns the membership in the job for vectors of `floats` elements of the given types, and joins the job if
    /// necessary. Vectors that fit in one packet share a job. If there is a deadline, it limits both the time to join
    /// the job and the duration of the membership's next rounds.
    fn member(
        &mut self,
        elements: ElementTypes,
        floats: usize,
        deadline: Option<Instant>,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<&mut Worker, AnyLengthError> {
        let len = floats.max(usize::from(self.options.segment_floats_in(elements)));
        let is_of_job = |member: &Worker| member.gradient_len() == len && member.element_types() == elements;
        let member = if let Some(at) = self.members.iter().position(is_of_job) {
            self.members.remove(at)
        } else {
            let mut options = JoinOptions { gradient_len: len as u32, ..self.options.in_elements(elements) };
            options.set_timeouts(self.timeouts_until(deadline));
            self.join_job(options, keep_waiting)?
        };
        let timeouts = self.timeouts_until(deadline);
        self.members.push(member);
        let member = self.members.last_mut().expect("the worker was just pushed");
        // These timeouts replace those of the previous call, or of the call that joined the job.
        member.set_timeouts(timeouts);
        Ok(member)
    }

    /// Returns timeouts that expire at the deadline or, without a deadline, the timeouts in the options.
    fn timeouts_until(&self, deadline: Option<Instant>) -> Timeouts {
        let timeouts = self.options.timeouts();
        let Some(deadline) = deadline else { return timeouts };
        let left = deadline.saturating_duration_since(Instant::now());
        let connect = timeouts.connect.min(left.max(MIN_CONNECT_TIMEOUT));
        Timeouts { connect, workers: Some(left), round: Some(left) }
    }

    fn join_job(
        &mut self,
        options: JoinOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Worker, AnyLengthError> {
        let (job, floats) = (options.job, options.gradient_len as usize);
        let joined = Worker::join_while(options, keep_waiting);
        let worker = joined.map_err(|source| AnyLengthError::Join { job, floats, source })?;
        self.options.job = job.wrapping_add(1);
        if self.members.len() == MAX_LENGTHS {
            let given_up = self.members.remove(0);
            let AggregatorStats { rounds, segments, retransmitted } = given_up.stats();
            self.past.rounds += rounds;
            self.past.segments += segments;
            self.past.retransmitted += retransmitted;
            self.past_rejoins += given_up.rejoins();
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

/// Replaces a piece with its sum, using the membership in the job for the piece's length.
fn reduce_buffered(
    member: &mut Worker,
    mut piece: Values<'_>,
    is_mean: bool,
    buffer: &mut Vec<f32>,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Summed, AnyLengthError> {
    let job_len = member.gradient_len();
    let contribution = match &piece {
        Values::F32(floats) if floats.len() == job_len => &**floats,
        piece => {
            buffer.resize(job_len, 0.0);
            piece.widen_into(buffer);
            // A vector that does not fill a packet shares the job of those that do.
            buffer[piece.len()..].fill(0.0);
            &*buffer
        }
    };
    let round = member.reduce_checked(contribution, keep_waiting)?;
    match &mut piece {
        Values::F32(floats) => {
            member.copy_sum(floats);
            if is_mean {
                member.scale_segments(floats);
            }
        }
        piece if is_mean => {
            buffer.resize(piece.len(), 0.0);
            member.copy_sum(buffer);
            member.scale_segments(buffer);
            piece.round_from(buffer);
        }
        piece => {
            let len = piece.len();
            piece.round_from(&member.sum()[..len]);
        }
    }
    Ok(Summed { contributors: round.contributors, uniform: round.uniform })
}

/// Returns whether a failure with this error may leave the worker without sums that the other workers have.
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
