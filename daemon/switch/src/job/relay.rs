//! Aggregation in an asynchronous job of a switch that has a parent (requirement V-11): the results from the parent are
//! kept for the members, and partial sums are sent to the parent.
//!
//! In the job's region of sums, the partial sums follow the staged vectors. The slots of the aggregates follow those of
//! the staged vectors; they show which results have arrived, because the results of several aggregates may arrive in
//! any order.

use iswitch_protocol::{ElementType, Round, Seg, SegmentIndex};

use super::aggregates::Aggregates;
use super::aggregation::Aggregation;
use super::slot::{Slot, SlotState};
use crate::accumulate::{self, NonFinite};
use crate::batch::Batch;

impl Aggregation<'_> {
    /// Keeps a result from the parent. `floats` are the little-endian floats of the result. Returns false if the result
    /// is unusable or already kept.
    pub(super) fn keep_result(&mut self, seg: Seg, floats: &[u8]) -> bool {
        let Seg { index, round, contributions } = seg;
        if !self.job.note_result(round) {
            return false;
        }
        let Some(aggregates) = self.job.rounds.asynchronous() else { return false };
        let (slot_at, position) = (self.result_slot(aggregates, round, index), aggregates.position_of(round));
        let generation = self.job.memory.generation;
        if self.slots[slot_at].generation == generation && self.slots[slot_at].is_done(round) {
            return false;
        }
        self.slots[slot_at] =
            Slot { generation, round, contributions, state: SlotState::Done, ..Slot::EMPTY };
        let (at, range) = (self.aggregate_at(position), self.job.layout.range(index));
        // Store the result unchanged: adding it to +0.0 would change the sign of a result that was rounded to -0.0.
        accumulate::store(&mut self.sums[at + range.start..at + range.end], floats, NonFinite::Sum)
    }

    /// Returns the number of worker gradients in a result, if the switch has the result.
    pub(super) fn contributions_of(&self, aggregate: Round, index: SegmentIndex) -> Option<u16> {
        let aggregates = self.job.rounds.asynchronous()?;
        let contributions = aggregates.contributions_of(aggregate)?;
        if !self.job.has_parent {
            return Some(contributions);
        }
        let slot = &self.slots[self.result_slot(aggregates, aggregate, index)];
        let is_kept = slot.generation == self.job.memory.generation && slot.is_done(aggregate);
        is_kept.then_some(slot.contributions)
    }

    /// Adds segment `index` of partial sum `number` to the batch. Returns false if that partial sum is not being sent
    /// to the parent.
    pub(crate) fn push_rising(&mut self, number: Round, index: SegmentIndex, batch: &mut Batch) -> bool {
        let Some(aggregates) = self.job.rounds.asynchronous() else { return false };
        let rising = aggregates.partials().and_then(|partials| partials.rising(number));
        let Some((buffer, contributions)) = rising else { return false };
        let (at, range) = (self.partial_at(aggregates.capacity(), buffer), self.job.layout.range(index));
        let sum = &self.sums[at + range.start..at + range.end];
        batch.push_floats(Seg { index, round: number, contributions }, sum, ElementType::F32);
        true
    }

    /// Returns the position of the slot that an aggregate uses for a segment.
    fn result_slot(&self, aggregates: &Aggregates, aggregate: Round, index: SegmentIndex) -> usize {
        let vectors = self.job.max_members() as usize + aggregates.position_of(aggregate);
        vectors * self.job.layout.segment_count() as usize + index.get() as usize
    }

    /// Returns the offset, in the sums of the job, of the partial sum in the buffer at index `buffer`.
    pub(super) fn partial_at(&self, aggregates: usize, buffer: usize) -> usize {
        self.aggregate_at(aggregates + self.job.max_members() as usize + buffer)
    }
}
