//! Aggregation in an asynchronous job: vectors are staged until they are complete, then added to the aggregate that
//! is being filled.
//!
//! A job's region of sums holds [`iswitch_protocol::limits::async_generations`] aggregates, followed by one vector for
//! each possible member. The position of an aggregate is its number modulo the number of aggregates. A vector is added
//! to an aggregate only when it is complete. A member that stops in the middle of a vector therefore delays no other
//! member, and each aggregate is the sum of exactly the vectors that it counts. The additions are queued work, executed
//! in order of admission while there is room to send.

use iswitch_protocol::{Round, Seg, SegmentIndex};

use super::aggregates::{Acceptable, Addition, Sum};
use super::aggregation::Aggregation;
use crate::accumulate::{self, NonFinite};
use crate::batch::Batch;
use crate::ids::MemberId;
use crate::reason::DropReason;

impl Aggregation<'_> {
    /// Stages one segment of a member's vector. Returns the addition of the vector to its sum if the vector is now
    /// complete, and `None` otherwise. In a synchronous job, all segments are refused.
    pub(crate) fn stage(
        &mut self,
        member: MemberId,
        seg: Seg,
        floats: &[u8],
        non_finite: NonFinite,
    ) -> Result<Option<Addition>, DropReason> {
        self.check(seg, floats)?;
        if !self.job.accepts_weight(member, seg.round, seg.contributions) {
            return Err(DropReason::BadWeight);
        }
        let aggregates = self.job.rounds.asynchronous().filter(|_| self.job.formed);
        let aggregates = aggregates.ok_or(DropReason::EarlyRound)?;
        let slot = self.staged_slot(member, seg.index);
        let Acceptable { is_first, received } =
            aggregates.accepts(member, seg, self.slots[slot].generation)?;
        let is_last = received == self.job.layout.segment_count();
        if is_last && !aggregates.has_room_for(seg.contributions) {
            return Err(DropReason::BadWeight);
        }
        let start = self.staged_at(aggregates.capacity(), member);
        let range = self.job.layout.range(seg.index);
        let staged = &mut self.sums[start + range.start..start + range.end];
        if !accumulate::store(staged, floats, non_finite) {
            return Err(DropReason::NonFinite);
        }
        if let Some(aggregates) = self.job.rounds.asynchronous_mut() {
            if is_first {
                aggregates.begin_vector(member, seg, self.generations.next());
            }
            self.slots[slot].generation = aggregates.set_aside(member, received);
        }
        Ok(if is_last { self.job.admit_vector(member, seg.contributions) } else { None })
    }

    /// Returns the position of the slot that the vector of a member uses for a segment.
    fn staged_slot(&self, member: MemberId, index: SegmentIndex) -> usize {
        member.get() * self.job.layout.segment_count() as usize + index.get() as usize
    }

    /// Returns whether a segment of the vector that a member is sending has yet to arrive.
    pub(crate) fn is_unstaged(&self, member: MemberId, number: Round, index: SegmentIndex) -> bool {
        let mark = self.slots[self.staged_slot(member, index)].generation;
        let aggregates = self.job.rounds.asynchronous();
        !aggregates.is_some_and(|aggregates| aggregates.is_set_aside(member, number, mark))
    }

    /// Adds one segment of an admitted vector to its sum.
    pub(crate) fn add_staged(&mut self, addition: &Addition, index: SegmentIndex) {
        let Some(state) = self.job.rounds.asynchronous() else { return };
        let range = self.job.layout.range(index);
        let staged_at = self.staged_at(state.capacity(), addition.member);
        let (sum, staged) = match addition.sum {
            // The aggregates precede the staged vectors, and the partial sums follow them.
            Sum::Aggregate(aggregate) => {
                let sum_at = self.aggregate_at(state.position_of(aggregate));
                let (sums, staged) = self.sums.split_at_mut(staged_at);
                (&mut sums[sum_at..], &staged[..])
            }
            Sum::Partial(buffer) => {
                let sum_at = self.partial_at(state.capacity(), buffer);
                let (staged, sums) = self.sums.split_at_mut(sum_at);
                (sums, &staged[staged_at..])
            }
        };
        let (sum, staged) = (&mut sum[range.clone()], &staged[range]);
        if addition.is_first {
            sum.fill(0.0);
        }
        accumulate::add(sum, staged);
    }

    /// Records the first segment of a member's vector that has yet to be added. The member may already send those
    /// segments of its next vector that precede this segment.
    pub(crate) fn note_unadded(&mut self, member: MemberId, from: Option<u32>) {
        if let Some(aggregates) = self.job.rounds.asynchronous_mut() {
            aggregates.note_unadded(member, from);
        }
    }

    /// Puts a segment of a finished aggregate into the batch. Returns false if the aggregate is no longer kept.
    pub(super) fn push_finished(&mut self, aggregate: Round, index: SegmentIndex, batch: &mut Batch) -> bool {
        let Some(aggregates) = self.job.rounds.asynchronous() else { return false };
        let Some(contributions) = self.contributions_of(aggregate, index) else { return false };
        let (at, range) =
            (self.aggregate_at(aggregates.position_of(aggregate)), self.job.layout.range(index));
        let sum = &self.sums[at + range.start..at + range.end];
        let seg = Seg { index, round: aggregate, contributions };
        batch.push_floats(seg, sum, self.job.layout.elements().results());
        true
    }

    /// Returns the offset, in the sums of the job, of the aggregate at a position.
    pub(super) fn aggregate_at(&self, position: usize) -> usize {
        position * self.job.layout.gradient_len() as usize
    }

    /// Returns the offset, in the sums of the job, of a member's staged vector. The staged vectors follow the
    /// aggregates.
    fn staged_at(&self, aggregates: usize, member: MemberId) -> usize {
        (aggregates + member.get()) * self.job.layout.gradient_len() as usize
    }
}
