//! Aggregation in a synchronous job: adds one contribution to one segment.
//!
//! A slot is addressed by the round's parity and the segment's index, so two rounds can be stored at once: the one
//! being summed, and the previous one, whose results are kept for members that did not receive them. A slot is reused
//! only after the slot of the other parity, which is one round later, is finished. All participants have contributed to
//! that later round, so none of them can still need the older result.

use iswitch_protocol::limits::FLOAT_LEN_BYTES;
use iswitch_protocol::{ElementType, ElementTypes, Instant, Round, Seg, SegmentIndex};

use super::rounds::{OpenRound, Replay, Rounds};
use super::slot::{Generations, Slot, SlotState, add_contributions};
use super::{Job, SUM_VECTORS};
use crate::accumulate::{self, NonFinite};
use crate::batch::{Batch, SumBatches};
use crate::ids::{MemberId, MemberSet};
use crate::reason::DropReason;

/// The outcome of a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The contribution was added; the sum is not complete yet.
    Summed,
    /// The contribution was added and completed the sum, which is a result. If the batch for results had room, the sum
    /// was put into it.
    Completed,
    /// The contribution was added and completed the sum, which is a contribution to the parent's sum. If the batch for
    /// partial sums had room, the sum was put into it.
    CompletedPartial,
    /// The segment was already finished. The contribution is answered with the result.
    Finished,
    /// The contribution was dropped and changed nothing.
    Dropped(DropReason),
}

/// Decision on whether a slot accepts a member's contribution to a round.
enum Admission {
    /// This is the first contribution to the slot. The round may have to be opened.
    First,
    Next,
    Finished,
    Refused(DropReason),
}

/// A job with its slots and sums.
pub(crate) struct Aggregation<'a> {
    pub(super) job: &'a mut Job,
    pub(super) slots: &'a mut [Slot],
    pub(super) sums: &'a mut [f32],
    pub(super) generations: &'a mut Generations,
    pub(super) now: Instant,
}

impl<'a> Aggregation<'a> {
    /// Combines a job with its slots and sums.
    pub(crate) fn new(
        job: &'a mut Job,
        slots: &'a mut [Slot],
        sums: &'a mut [f32],
        generations: &'a mut Generations,
        now: Instant,
    ) -> Self {
        Self { job, slots, sums, generations, now }
    }

    pub(crate) fn job(&self) -> &Job {
        self.job
    }

    /// Processes one contribution of a member. If it completes the sum, the sum goes into one of `batches`.
    // The arguments are deliberately not combined in a struct. A struct would be passed in memory and read back
    // immediately in wider words than it was written in. The resulting stall takes a sixth of the processing time of a
    // packet.
    pub(crate) fn contribute(
        &mut self,
        member: MemberId,
        seg: Seg,
        floats: &[u8],
        non_finite: NonFinite,
        batches: &mut SumBatches<'_>,
    ) -> Verdict {
        if let Err(reason) = self.check(seg, floats) {
            return Verdict::Dropped(self.better_reason(member, seg, reason));
        }
        let slot = self.slot(seg.round, seg.index);
        let opened = self.job.rounds.open_round(seg.round);
        let (before, contributors) = match self.admission(member, seg, slot, opened) {
            Admission::Refused(reason) => return Verdict::Dropped(reason),
            Admission::Finished => return Verdict::Finished,
            Admission::First => (0, MemberSet::EMPTY),
            Admission::Next => (slot.contributions, slot.contributors),
        };
        // The weight is checked only after the admission, because a supplied sum that arrives after its round has
        // finished is also valid.
        if !self.job.accepts_weight(member, seg.round, seg.contributions) {
            return Verdict::Dropped(DropReason::BadWeight);
        }
        let Some(contributions) = add_contributions(before, seg.contributions) else {
            return Verdict::Dropped(DropReason::BadWeight);
        };
        let is_first = contributors.is_empty();
        let is_supplied = opened.is_some_and(|open| open.replay == Replay::Here);
        let non_finite = if is_supplied { NonFinite::Sum } else { non_finite };
        let contributors = contributors.with(member);
        let opening = opened.is_none().then(|| self.job.prospective_round(seg.round, self.now));
        let is_last = opened.or(opening.as_ref()).is_some_and(|open| self.is_complete(contributors, open));
        let total = Seg { contributions, ..seg };
        let goes_up = is_last && self.job.goes_up(seg.round);
        let batch = if is_last { self.batch_for_sum(goes_up, seg.index, batches) } else { None };
        if self.is_ordered() {
            if !self.keep(member, seg.index, floats, non_finite) {
                return Verdict::Dropped(DropReason::NonFinite);
            }
            self.admit(total, contributors, opening, is_last);
            if is_last {
                self.sum_kept(seg.round, seg.index, contributors);
            }
            if let Some((batch, _)) = batch {
                self.push_sum(seg.round, seg.index, batch);
            }
        } else {
            if !self.sum_on_arrival(total, floats, is_first, batch, non_finite) {
                return Verdict::Dropped(DropReason::NonFinite);
            }
            self.admit(total, contributors, opening, is_last);
        }
        match (is_last, goes_up) {
            (false, _) => Verdict::Summed,
            (true, false) => Verdict::Completed,
            (true, true) => Verdict::CompletedPartial,
        }
    }

    /// Returns the batch for the complete sum of a segment and the type of its elements, if the batch has room.
    fn batch_for_sum<'b>(
        &self,
        goes_up: bool,
        index: SegmentIndex,
        batches: &'b mut SumBatches<'_>,
    ) -> Option<(&'b mut Batch, ElementType)> {
        let (batch, element) = if goes_up {
            (&mut *batches.partials, ElementType::F32)
        } else {
            (&mut *batches.results, self.job.layout.elements().results())
        };
        batch.has_room(self.job.layout.packet_len(index, element)).then_some((batch, element))
    }

    /// Records an accepted contribution in its slot, and opens the round if this is the first contribution to it.
    fn admit(&mut self, total: Seg, contributors: MemberSet, opening: Option<OpenRound>, is_last: bool) {
        if let Some(open) = opening {
            self.job.open(open);
        }
        let Seg { round, contributions, .. } = total;
        let state = if is_last { self.complete(round) } else { SlotState::Open };
        let generation = self.job.memory.generation;
        *self.slot_mut(round, total.index) = Slot { contributors, generation, round, contributions, state };
    }

    /// Checks the conditions that do not depend on the round: the job is not halted, the segment exists, and the
    /// contribution has the length of the segment.
    pub(super) fn check(&self, seg: Seg, floats: &[u8]) -> Result<(), DropReason> {
        if self.job.halted {
            Err(DropReason::Halted)
        } else if !self.job.layout.contains(seg.index) {
            Err(DropReason::SegOutOfRange)
        } else if floats.len() != FLOAT_LEN_BYTES * self.job.layout.float_count(seg.index) {
            Err(DropReason::LengthMismatch)
        } else {
            Ok(())
        }
    }

    /// Returns the reason for dropping a packet that cannot be a contribution. A sum that a member supplied to an
    /// earlier incarnation of the job may arrive late, and its elements may be longer than the elements of
    /// contributions. The reason given for dropping such a sum is its round rather than its length, so that the member
    /// does not fail.
    fn better_reason(&self, member: MemberId, seg: Seg, reason: DropReason) -> DropReason {
        if reason != DropReason::LengthMismatch || self.job.layout.elements() == ElementTypes::F32 {
            return reason;
        }
        let (slot, opened) = (self.slot(seg.round, seg.index), self.job.rounds.open_round(seg.round));
        match self.admission(member, seg, slot, opened) {
            Admission::Refused(reason) => reason,
            _ => reason,
        }
    }

    /// Decides whether a contribution is admitted. `slot` is the slot of its segment, and `opened` the state of its
    /// round if the round was opened and is still kept.
    fn admission(&self, member: MemberId, seg: Seg, slot: &Slot, opened: Option<&OpenRound>) -> Admission {
        let Seg { round, index, .. } = seg;
        if slot.is_done(round) {
            return Admission::Finished;
        }
        if slot.is_partial(round) {
            let reason = if slot.holds(member) { DropReason::Duplicate } else { DropReason::Late };
            return Admission::Refused(reason);
        }
        if slot.is_open(round) {
            return match opened {
                None => Admission::Refused(DropReason::StaleRound),
                // Check this first: a restarted worker may have the id of its predecessor, whose contribution the slot
                // may already hold.
                Some(open) if !open.participants.contains(member) => {
                    Admission::Refused(DropReason::NotParticipant)
                }
                Some(_) if slot.holds(member) => Admission::Refused(DropReason::Duplicate),
                Some(_) => Admission::Next,
            };
        }
        if slot.is_past(round) || round.is_before(self.job.rounds.numbers().base()) {
            return Admission::Refused(DropReason::StaleRound);
        }
        if !self.may_begin(round, index) {
            return Admission::Refused(DropReason::EarlyRound);
        }
        let takes_part = match opened {
            Some(open) => open.participants.contains(member),
            None => self.job.members.would_take_part(member, round),
        };
        if takes_part { Admission::First } else { Admission::Refused(DropReason::NotParticipant) }
    }

    /// Adds a contribution to the sum, and writes the sum into the batch if `batch` is given. Returns false, and
    /// changes nothing, if the contribution is refused.
    fn sum_on_arrival(
        &mut self,
        seg: Seg,
        floats: &[u8],
        is_first: bool,
        batch: Option<(&mut Batch, ElementType)>,
        non_finite: NonFinite,
    ) -> bool {
        let sum = self.sum_mut(seg.round, seg.index);
        match batch {
            // One pass adds the contribution and writes the packet.
            Some((batch, ElementType::F32)) if !is_first => {
                let out = batch.next_elements(floats.len());
                let is_taken = accumulate::accumulate_into(sum, floats, out, non_finite);
                if is_taken {
                    batch.push(seg, floats.len());
                }
                is_taken
            }
            batch => {
                let is_taken = if is_first {
                    accumulate::overwrite(sum, floats, non_finite)
                } else {
                    accumulate::accumulate(sum, floats, non_finite)
                };
                if let Some((batch, element)) = batch.filter(|_| is_taken) {
                    batch.push_floats(seg, sum, element);
                }
                is_taken
            }
        }
    }

    /// Returns the length of the packet that carries the sum of a segment, in bytes. The sum is either the result or a
    /// partial sum for the parent.
    pub(crate) fn outgoing_len(&self, round: Round, index: SegmentIndex) -> usize {
        if self.job.goes_up(round) { self.partial_len(index) } else { self.result_len(index) }
    }

    /// Returns the length of the result of a segment, in bytes.
    pub(crate) fn result_len(&self, index: SegmentIndex) -> usize {
        self.job.layout.packet_len(index, self.job.layout.elements().results())
    }

    /// Returns the length of the partial sum of a segment, in bytes.
    pub(crate) fn partial_len(&self, index: SegmentIndex) -> usize {
        self.job.layout.packet_len(index, ElementType::F32)
    }

    /// Returns whether the contributions to a segment are kept until the segment is finished and then added in the
    /// order of ranks.
    pub(crate) fn is_ordered(&self) -> bool {
        self.job.rounds.synchronous().is_some_and(|rounds| rounds.order().is_some())
    }

    /// Keeps a member's contribution until the segment is finished. Returns false if the contribution is refused.
    fn keep(&mut self, member: MemberId, index: SegmentIndex, floats: &[u8], non_finite: NonFinite) -> bool {
        let start = (SUM_VECTORS + member.get()) * self.job.layout.gradient_len() as usize;
        let range = self.job.layout.range(index);
        accumulate::store(&mut self.sums[start + range.start..start + range.end], floats, non_finite)
    }

    /// Sums the kept contributions to a segment in an ordered job. Does nothing in any other job.
    fn sum_kept(&mut self, round: Round, index: SegmentIndex, contributors: MemberSet) {
        let Some(order) = self.job.rounds.synchronous().and_then(|rounds| rounds.order()) else { return };
        let len = self.job.layout.gradient_len() as usize;
        let range = self.job.layout.range(index);
        let (sums, kept) = self.sums.split_at_mut(SUM_VECTORS * len);
        let start = round.parity() * len;
        let sum = &mut sums[start + range.start..start + range.end];
        sum.fill(0.0);
        for member in order.of(round, contributors) {
            let start = member.get() * len;
            accumulate::add(sum, &kept[start + range.start..start + range.end]);
        }
    }

    fn is_complete(&self, contributors: MemberSet, open: &OpenRound) -> bool {
        // Count only present members: a member that left after contributing must not stand in for a member that has yet
        // to contribute.
        let present = contributors.intersection(open.participants).len();
        self.job.formed && present > 0 && present >= open.threshold
    }

    /// Returns the new state of a slot whose contributions are complete: its sum is either the result or a
    /// contribution to the parent's sum.
    pub(super) fn complete(&mut self, round: Round) -> SlotState {
        if self.job.goes_up(round) {
            return SlotState::Partial;
        }
        self.job.finish_segment(round);
        SlotState::Done
    }

    /// Closes an open segment if it waits for no member or, with `force`, if it has contributions. Puts its sum into
    /// the batch, which must have room. Returns the number of members in the sum, or `None` if the segment is not
    /// closed.
    pub(crate) fn close(
        &mut self,
        round: Round,
        index: SegmentIndex,
        force: bool,
        batch: &mut Batch,
    ) -> Option<u16> {
        if self.job.rounds.is_on_card() {
            return None;
        }
        let slot = *self.slot(round, index);
        let open = *self.job.rounds.open_round(round)?;
        let is_deserted = self.job.is_deserted(round);
        if slot.is_open(round) {
            let is_forced = force && slot.contributions > 0;
            if !(is_forced || is_deserted || self.is_complete(slot.contributors, &open)) {
                return None;
            }
            // An open slot belongs to the current generation, so only the state changes.
            self.slot_mut(round, index).state = self.complete(round);
            self.sum_kept(round, index, slot.contributors);
        } else if !(is_deserted && self.contribute_nothing(round, index)) {
            return None;
        }
        self.push_sum(round, index, batch);
        Some(self.slot(round, index).contributors.len())
    }

    /// Completes a segment of a round that has no participants, by contributing zeros, which do not change the parent's
    /// sum. Returns false if the segment was already sent, or if the previous round of the segment is not finished.
    fn contribute_nothing(&mut self, round: Round, index: SegmentIndex) -> bool {
        let slot = self.slot(round, index);
        if slot.is_partial(round) || slot.is_done(round) || !self.may_begin(round, index) {
            return false;
        }
        let generation = self.job.memory.generation;
        *self.slot_mut(round, index) = Slot { generation, round, state: SlotState::Partial, ..Slot::EMPTY };
        self.sum_mut(round, index).fill(0.0);
        true
    }

    /// Puts the result of a segment into the batch. Returns false if the segment, or the aggregate in an asynchronous
    /// job, is not finished, or if the result is no longer kept.
    pub(crate) fn push_result(&mut self, round: Round, index: SegmentIndex, batch: &mut Batch) -> bool {
        if let Rounds::Asynchronous(_) = self.job.rounds {
            return self.push_finished(round, index, batch);
        }
        let is_done = self.slot(round, index).is_done(round);
        if is_done {
            self.push_sum(round, index, batch);
        }
        is_done
    }

    /// Returns whether the switch has the result of a segment.
    pub(crate) fn has_result(&self, round: Round, index: SegmentIndex) -> bool {
        match self.job.rounds.asynchronous() {
            Some(_) => self.contributions_of(round, index).is_some(),
            None => self.slot(round, index).is_done(round),
        }
    }

    /// Returns whether an aggregate of an asynchronous job is no longer kept.
    pub(crate) fn is_overtaken(&self, round: Round) -> bool {
        let aggregates = self.job.rounds.asynchronous();
        aggregates.is_some_and(|aggregates| round.is_before(aggregates.oldest_kept()))
    }

    /// If the parent's result of a segment has not arrived yet, puts the members' partial sum into the batch.
    /// Otherwise, returns false.
    pub(crate) fn push_partial(&mut self, round: Round, index: SegmentIndex, batch: &mut Batch) -> bool {
        let is_partial = self.slot(round, index).is_partial(round);
        if is_partial {
            self.push_sum(round, index, batch);
        }
        is_partial
    }

    fn push_sum(&mut self, round: Round, index: SegmentIndex, batch: &mut Batch) {
        let seg = Seg { index, round, contributions: self.slot(round, index).contributions };
        let is_result = self.slot(round, index).is_done(round);
        let element = if is_result { self.job.layout.elements().results() } else { ElementType::F32 };
        batch.push_floats(seg, self.sum_mut(round, index), element);
    }

    /// Processes a result from the parent, which replaces the partial sum of the members. `floats` are the
    /// little-endian floats of the result. Returns false if the result is unusable.
    pub(crate) fn finish(&mut self, seg: Seg, floats: &[u8]) -> bool {
        let Seg { index, round, contributions } = seg;
        let layout = &self.job.layout;
        if !layout.contains(index) || floats.len() != FLOAT_LEN_BYTES * layout.float_count(index) {
            return false;
        }
        if self.job.passes_on() {
            return self.keep_result(seg, floats);
        }
        let slot = *self.slot(round, index);
        let is_current = slot.round == round && slot.state != SlotState::Empty;
        if slot.is_done(round) || !is_current && !self.may_begin(round, index) {
            return false;
        }
        if !is_current && self.job.rounds.is_on_card() {
            // The parent has finished the segment without the partial sum of the card. The card would wait forever for
            // the missing contributions, because a member that has the result does not contribute any more.
            self.job.rounds.take_from_card();
        }
        if self.job.rounds.open_round(round).is_none() {
            let open = self.job.prospective_round(round, self.now);
            self.job.open(open);
        }
        self.job.finish_segment(round);
        let contributors = if is_current { slot.contributors } else { MemberSet::EMPTY };
        let (generation, state) = (self.job.memory.generation, SlotState::Done);
        *self.slot_mut(round, index) = Slot { contributors, generation, round, contributions, state };
        accumulate::overwrite(self.sum_mut(round, index), floats, NonFinite::Sum)
    }

    /// Returns whether `round` can begin for a segment.
    fn may_begin(&self, round: Round, index: SegmentIndex) -> bool {
        let Some(rounds) = self.job.rounds.synchronous() else { return false };
        let base = self.job.rounds.numbers().base();
        let last = round.previous();
        !self.slot(round, index).is_past(round)
            && !round.is_before(base)
            && rounds.has_slot_for(round)
            && (round == base || self.slot(last, index).is_done(last))
    }

    /// Returns whether the members wait for the parent's result of a segment. In the round at which the parent resumed
    /// the job, the parent may already have a result although some members have not contributed, because a member that
    /// received the result from an earlier run of this switch does not contribute again.
    pub(crate) fn awaits_parent(&self, round: Round, index: SegmentIndex) -> bool {
        if self.job.passes_on() {
            return !self.is_overtaken(round) && !self.has_result(round, index);
        }
        let slot = self.slot(round, index);
        let is_replayed =
            || self.job.rounds.open_round(round).is_some_and(|open| open.replay == Replay::Above);
        slot.is_partial(round) || !slot.is_done(round) && (self.job.is_taken_up(round) || is_replayed())
    }

    /// Returns whether the switch would accept this member's contribution to a segment now. Always false in an
    /// asynchronous job.
    pub(crate) fn is_missing(&self, member: MemberId, round: Round, index: SegmentIndex) -> bool {
        if let Rounds::Asynchronous(_) = self.job.rounds {
            return false;
        }
        let (slot, opened) = (self.slot(round, index), self.job.rounds.open_round(round));
        let seg = Seg { index, round, contributions: 1 };
        matches!(self.admission(member, seg, slot, opened), Admission::First | Admission::Next)
    }

    fn position(&self, round: Round, index: SegmentIndex) -> usize {
        round.parity() * self.job.layout.segment_count() as usize + index.get() as usize
    }

    pub(super) fn slot(&self, round: Round, index: SegmentIndex) -> &Slot {
        let slot = &self.slots[self.position(round, index)];
        if slot.generation == self.job.memory.generation { slot } else { &Slot::EMPTY }
    }

    pub(super) fn slot_mut(&mut self, round: Round, index: SegmentIndex) -> &mut Slot {
        let position = self.position(round, index);
        &mut self.slots[position]
    }

    pub(super) fn sum_mut(&mut self, round: Round, index: SegmentIndex) -> &mut [f32] {
        let start = round.parity() * self.job.layout.gradient_len() as usize;
        let range = self.job.layout.range(index);
        &mut self.sums[start + range.start..start + range.end]
    }
}
