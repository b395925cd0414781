//! Queued work on ranges of segments: results to resend, segments to close, vectors to add.
//!
//! A range may be as long as a vector, so it is processed in steps of bounded cost. Each job has its own queue, and
//! the jobs with work take turns of one step each. The work of one job therefore neither displaces the work of
//! another nor delays it by more than one step per turn. Closing the segments of a round is not a queue entry but
//! part of the job's state, so that it is never dropped.

use core::ops::Range;

use alloc::vec::Vec;

use iswitch_protocol::limits::{
    MAX_BITMAP_LEN_BYTES, MAX_JOBS, MAX_PENDING_RANGES, MAX_PENDING_REQUESTS, MIN_STEP_COST,
    WORK_COST_PER_DATAGRAM, WORK_COST_PER_SEGMENT, WORK_FLOATS_PER_COST,
};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::{Round, SegmentIndex};

use crate::batch::Batch;
use crate::ids::{JobIndex, MemberAt};
use crate::job::{Addition, Aggregation};
use crate::ring::Ring;

/// A range of segments to process when there is room to send; it may be longer than a super-frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Send a member the results that it requested.
    Repeat { at: MemberAt, wanted: Wanted, next: u32, end: u32 },
    /// Send the parent the partial sums that it is missing.
    Resend { job: JobIndex, wanted: Wanted, next: u32, end: u32 },
    /// Close the segments that have contributions, even if other members have yet to contribute.
    Close { job: JobIndex, round: Round, next: u32, end: u32 },
    /// Add a complete vector of an asynchronous job to its aggregate.
    Add { job: JobIndex, addition: Addition, next: u32, end: u32 },
    /// Send all members the results of an aggregate.
    Publish { job: JobIndex, aggregate: Round, next: u32, end: u32 },
    /// Send segments of a partial sum of an asynchronous job to the parent and then, once these have been sent, a
    /// Confirm.
    Raise { job: JobIndex, wanted: Wanted, next: u32, end: u32 },
}

impl Work {
    pub(crate) fn repeat(at: MemberAt, wanted: SegmentSetRepr<'_>) -> Self {
        let range = wanted.range;
        Self::Repeat { at, wanted: Wanted::of(wanted), next: range.first, end: range.first + range.count }
    }

    pub(crate) fn resend(job: JobIndex, wanted: SegmentSetRepr<'_>) -> Self {
        let range = wanted.range;
        Self::Resend { job, wanted: Wanted::of(wanted), next: range.first, end: range.first + range.count }
    }

    pub(crate) fn raise(job: JobIndex, batch: SegmentSetRepr<'_>) -> Self {
        let range = batch.range;
        // The last step, at the end of the range, sends the Confirm.
        Self::Raise { job, wanted: Wanted::of(batch), next: range.first, end: range.first + range.count + 1 }
    }

    fn job(&self) -> JobIndex {
        match self {
            Self::Repeat { at, .. } => at.job,
            Self::Resend { job, .. }
            | Self::Close { job, .. }
            | Self::Add { job, .. }
            | Self::Publish { job, .. }
            | Self::Raise { job, .. } => *job,
        }
    }

    /// Returns whether the work answers a request from a member or from the parent, which will repeat the request if
    /// the work is dropped.
    pub(crate) fn is_request(&self) -> bool {
        matches!(self, Self::Repeat { .. } | Self::Resend { .. } | Self::Close { .. })
    }

    /// Advances the range to the segment `stopped_at` or, if `stopped_at` is `None`, to its end. Returns true if no
    /// segment is left.
    fn advance(&mut self, stopped_at: Option<u32>) -> bool {
        let (Self::Repeat { next, end, .. }
        | Self::Resend { next, end, .. }
        | Self::Close { next, end, .. }
        | Self::Add { next, end, .. }
        | Self::Publish { next, end, .. }
        | Self::Raise { next, end, .. }) = self;
        *next = stopped_at.unwrap_or(*end);
        *next >= *end
    }
}

/// Segments requested by a Help, kept until they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    range: RangeRepr,
    bitmap: [u8; MAX_BITMAP_LEN_BYTES],
}

impl Wanted {
    fn of(wanted: SegmentSetRepr<'_>) -> Self {
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        bitmap[..wanted.bitmap.len()].copy_from_slice(wanted.bitmap);
        Self { range: wanted.range, bitmap }
    }

    pub(crate) fn range(&self) -> RangeRepr {
        self.range
    }

    /// Puts the segments from `next` onwards into a batch by calling `push` for each of them; `packet_len` returns the
    /// length of a segment's packet. Returns the segment at which it stopped because the batch had no room or the
    /// budget was used up, or `None` if it processed all segments.
    pub(crate) fn fill<'a>(
        &self,
        aggregation: &mut Aggregation<'a>,
        batch: &mut Batch,
        next: u32,
        meter: &mut Meter,
        packet_len: impl Fn(&Aggregation<'a>, SegmentIndex) -> usize,
        push: impl Fn(&mut Aggregation<'a>, Round, SegmentIndex, &mut Batch) -> bool,
    ) -> Option<u32> {
        let set = SegmentSetRepr { range: self.range, bitmap: &self.bitmap };
        let segments = aggregation.job().layout().segment_count();
        let indices = set.indices().filter(|index| *index >= next && *index < segments);
        meter.examine(self.range.count);
        for (at, index) in indices.filter_map(SegmentIndex::new).enumerate() {
            // Process at least one segment, even if the examination has used up the budget of the step.
            if at > 0 && !meter.has_left() || !batch.has_room(packet_len(aggregation, index)) {
                return Some(index.get());
            }
            if push(aggregation, self.range.round, index, batch) {
                meter.send(aggregation.job().layout().float_count(index), 1);
            }
        }
        None
    }
}

/// Cost meter of one step of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    spent: u32,
    limit: u32,
}

impl Meter {
    /// Returns whether the step may continue, that is, whether its budget has not been used up.
    pub(crate) fn has_left(&self) -> bool {
        self.spent < self.limit
    }

    /// Counts segments that were examined.
    pub(crate) fn examine(&mut self, segments: u32) {
        self.spent = self.spent.saturating_add(segments.saturating_mul(WORK_COST_PER_SEGMENT));
    }

    /// Counts floats that were added.
    pub(crate) fn add(&mut self, floats: usize) {
        self.spent = self.spent.saturating_add((floats / WORK_FLOATS_PER_COST) as u32);
    }

    /// Counts a segment that was copied into a packet of which `copies` copies are sent.
    pub(crate) fn send(&mut self, floats: usize, copies: u16) {
        self.add(floats);
        self.spent = self.spent.saturating_add(WORK_COST_PER_DATAGRAM * u32::from(copies));
    }
}

/// Purpose of a pass over all segments of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Ask the parent for results that only the parent can have.
    Ask,
    /// Close segments that no longer wait for any member.
    Close,
}

/// Maximum number of sweeps of a job: one that requests results from the parent, and one that closes segments for each
/// of the two rounds that can be open.
const SWEEPS: usize = 3;

/// A pass over all segments of a round, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    pub(crate) purpose: Purpose,
    pub(crate) round: Round,
    segments: u32,
    next: u32,
    /// Number of segments that are left. They begin at `next` and, after the last segment of the vector, continue with
    /// the first one.
    left: u32,
}

impl Sweep {
    /// Returns the position of a sweep in the table of its job.
    fn position(purpose: Purpose, round: Round) -> usize {
        match purpose {
            Purpose::Ask => 0,
            Purpose::Close => 1 + round.parity(),
        }
    }

    /// Returns the next range of segments to process, which never extends beyond the end of the vector.
    pub(crate) fn range(&self) -> Range<u32> {
        self.next..self.segments.min(self.next.saturating_add(self.left))
    }

    /// Returns the rest of the sweep after a step that stopped at the segment `stopped_at`, or `None` if no segment is
    /// left.
    fn after(self, stopped_at: Option<u32>) -> Option<Self> {
        let stopped_at = stopped_at?;
        let left = self.left.saturating_sub(stopped_at - self.next);
        let next = if stopped_at < self.segments { stopped_at } else { 0 };
        (left > 0).then_some(Self { next, left, ..self })
    }
}

/// The queued work of one job.
#[derive(Debug)]
struct JobWork {
    sweeps: [Option<Sweep>; SWEEPS],
    /// Work in order of arrival. This is also the order in which vectors are added and sent.
    queue: Ring<Work>,
    /// Number of requests in the queue.
    requests: usize,
    /// Whether the job's most recent step belonged to a sweep. Steps of sweeps and steps of the queue alternate.
    swept: bool,
}

/// The next step of a job.
pub(crate) enum Step {
    Sweep(Sweep),
    Range(Work),
}

impl JobWork {
    fn new() -> Self {
        let queue = Ring::with_capacity(MAX_PENDING_RANGES);
        Self { sweeps: [None; SWEEPS], queue, requests: 0, swept: false }
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.sweeps.iter().all(Option::is_none)
    }

    fn clear(&mut self) {
        self.sweeps = [None; SWEEPS];
        self.queue.clear();
        self.requests = 0;
    }

    fn next_step(&mut self) -> Option<Step> {
        let queued = self.queue.front_mut().map(|work| Step::Range(*work));
        let sweep = if self.swept && queued.is_some() { None } else { self.next_sweep().map(Step::Sweep) };
        self.swept = sweep.is_some();
        sweep.or(queued)
    }

    /// Returns the next sweep, or `None` if no sweep is queued. If sweeps close two rounds, the earlier round comes
    /// first, because segments of the later round may wait for it.
    fn next_sweep(&self) -> Option<Sweep> {
        let precedes = |next: &Sweep, first: &Sweep| {
            (first.purpose, next.purpose) == (Purpose::Close, Purpose::Close)
                && next.round.is_before(first.round)
        };
        let sweeps = self.sweeps.iter().flatten().copied();
        sweeps.reduce(|first, next| if precedes(&next, &first) { next } else { first })
    }

    /// Queues work, unless the same work is already queued. Returns false if the queue has no room.
    fn push(&mut self, work: Work) -> bool {
        if self.queue.iter().any(|queued| *queued == work) {
            return true;
        }
        if work.is_request() {
            if self.requests == MAX_PENDING_REQUESTS {
                return false;
            }
            self.requests += 1;
        }
        self.queue.push(work).is_ok()
    }

    /// Records that the first range in the queue was processed up to the segment `stopped_at` or, if it is `None`,
    /// completely.
    fn advance(&mut self, stopped_at: Option<u32>) {
        let Some(work) = self.queue.front_mut() else { return };
        if work.advance(stopped_at) {
            self.requests -= usize::from(work.is_request());
            self.queue.pop();
        }
    }
}

/// The queued work of all jobs.
#[derive(Debug)]
pub(crate) struct Backlog {
    jobs: Vec<JobWork>,
    /// Jobs that have work: bit i stands for job i.
    waiting: u64,
    /// The job that had the last turn.
    last: u32,
    /// Cost of the work done so far in the current turn, which ends when the driver receives packets again.
    spent: u32,
    /// Cost after which a turn ends.
    limit: u32,
}

impl Backlog {
    /// Creates an empty backlog. `limit` is the cost after which a turn ends.
    pub(crate) fn new(limit: u32) -> Self {
        let jobs = (0..MAX_JOBS).map(|_| JobWork::new()).collect();
        Self { jobs, waiting: 0, last: 0, spent: 0, limit }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Returns a meter for the next step, which may cost as much as a whole turn.
    pub(crate) fn meter(&self) -> Meter {
        Meter { spent: 0, limit: self.limit }
    }

    /// Drops the work of a job that has ended.
    pub(crate) fn clear(&mut self, job: JobIndex) {
        self.jobs[job.get()].clear();
        self.waiting &= !(1 << job.get());
    }

    /// Schedules a sweep over all segments of a round. If a sweep of that round is already under way, it starts over at
    /// its current segment rather than at the first segment. Frequent requests therefore cannot keep the sweep from
    /// reaching any segment.
    pub(crate) fn sweep(&mut self, job: JobIndex, purpose: Purpose, round: Round, segments: u32) {
        let entry = &mut self.jobs[job.get()].sweeps[Sweep::position(purpose, round)];
        let next = entry.filter(|sweep| sweep.round == round).map_or(0, |sweep| sweep.next);
        *entry = Some(Sweep { purpose, round, segments, next, left: segments });
        self.waiting |= 1 << job.get();
    }

    /// Queues work. Returns false if the job already has too many requests queued.
    pub(crate) fn push(&mut self, work: Work) -> bool {
        let job = work.job().get();
        let is_queued = self.jobs[job].push(work);
        self.waiting |= u64::from(is_queued) << job;
        is_queued
    }

    /// Returns the next step of the job whose turn it is. If there is no work, or if the cost limit of the current turn
    /// is reached, returns `None` and starts the next turn.
    pub(crate) fn next_step(&mut self) -> Option<(JobIndex, Step)> {
        while self.spent < self.limit
            && let Some(job) = self.next_job()
        {
            if let Some(step) = self.jobs[job.get()].next_step() {
                return Some((job, step));
            }
            self.spent += MIN_STEP_COST;
        }
        self.spent = 0;
        None
    }

    /// Returns the job whose turn it is, or `None` if no job has queued work.
    fn next_job(&mut self) -> Option<JobIndex> {
        if self.waiting == 0 {
            return None;
        }
        let first = (self.last + 1) % u64::BITS;
        self.last = (first + self.waiting.rotate_right(first).trailing_zeros()) % u64::BITS;
        Some(JobIndex::new(self.last as usize))
    }

    /// Records that a step of a job stopped at the segment `stopped_at` or, if it is `None`, has completed its work.
    pub(crate) fn advance(&mut self, job: JobIndex, step: &Step, stopped_at: Option<u32>, meter: &Meter) {
        self.spent += meter.spent.max(MIN_STEP_COST);
        let own = &mut self.jobs[job.get()];
        match step {
            Step::Sweep(sweep) => {
                own.sweeps[Sweep::position(sweep.purpose, sweep.round)] = sweep.after(stopped_at);
            }
            Step::Range(_) => own.advance(stopped_at),
        }
        if own.is_empty() {
            self.waiting &= !(1 << job.get());
        }
    }
}
