//! The data path: one contribution to one segment.
//!
//! A slot is addressed by the round's parity and the segment's index, so two rounds can be alive: the one
//! being summed, and the last one, whose results are kept for members that lost them. A slot is reused only
//! when its successor of the other parity is finished, which every participant has then contributed to, and
//! so none of them can still need the older result.

use iswitch_protocol::limits::{MAX_CONTRIBUTIONS, SEG_LEN_BYTES};
use iswitch_protocol::wire::DataPacket;
use iswitch_protocol::{Instant, Round, Seg, SegmentIndex};

use super::accumulate::{self, NonFinite};
use super::job::{Job, OpenRound, Replay};
use super::output::Batch;
use super::reason::DropReason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Empty,
    Open,
    /// What the members have summed is on its way to the parent.
    Partial,
    Done,
}

/// Progress of one segment of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Bit i: member i is in the sum.
    pub(super) contributors: u64,
    /// What it belongs to, see [`Generations`]; a slot of another one counts as empty. In an asynchronous job there is
    /// a slot for each segment of each member, and this is the vector that was set aside there last.
    pub(super) generation: u64,
    round: Round,
    /// Worker gradients in the sum.
    contributions: u16,
    state: SlotState,
}

impl Slot {
    pub(crate) const EMPTY: Self = Self {
        contributors: 0,
        generation: 0,
        round: Round::new(0),
        contributions: 0,
        state: SlotState::Empty,
    };

    fn is_done(&self, round: Round) -> bool {
        self.state == SlotState::Done && self.round == round
    }

    fn is_partial(&self, round: Round) -> bool {
        self.state == SlotState::Partial && self.round == round
    }

    /// Members that an open round waits for in this segment; none if nobody has contributed to it yet.
    pub(crate) fn missing(&self, open: &OpenRound, generation: u64) -> u64 {
        let is_open =
            self.generation == generation && self.state == SlotState::Open && self.round == open.round;
        if is_open { open.participants & !self.contributors } else { 0 }
    }
}

/// Generations of slots: one for each incarnation and each Reset of a job, and in asynchronous jobs one for each
/// vector. No number is used twice, so slots are never cleared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Generations(u64);

impl Generations {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// Worker gradients in a sum, if a packet can hold so many.
pub(super) fn add_contributions(a: u16, b: u16) -> Option<u16> {
    a.checked_add(b).filter(|sum| *sum <= MAX_CONTRIBUTIONS)
}

/// What became of a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// In the sum, which is not complete.
    Summed,
    /// In the sum, and the result is in the batch.
    Completed,
    /// The segment was finished before: its result is the answer.
    Finished,
    /// Changed nothing.
    Dropped(DropReason),
}

/// Whether a slot takes a member's contribution to a round.
enum Admission {
    /// The first to this slot; the round may have to be opened.
    First,
    Next,
    Finished,
    Refused(DropReason),
}

/// The slots and sums of a job, together with the job itself.
pub(crate) struct Aggregation<'a> {
    pub(crate) job: &'a mut Job,
    pub(crate) slots: &'a mut [Slot],
    pub(crate) sums: &'a mut [f32],
    pub(crate) now: Instant,
    pub(crate) generations: &'a mut Generations,
}

impl Aggregation<'_> {
    /// Takes in one contribution of a member. A completed sum goes into `batch`.
    pub(crate) fn contribute(
        &mut self,
        member: usize,
        seg: Seg,
        packet: &DataPacket<'_>,
        non_finite: NonFinite,
        batch: &mut Batch,
    ) -> Verdict {
        if let Err(reason) = self.check(packet, seg) {
            return Verdict::Dropped(reason);
        }
        let there = self.slot(seg.round, seg.index);
        let opened = self.job.open_round(seg.round);
        let (before, contributors) = match self.admission(member, seg, there, opened) {
            Admission::Refused(reason) => return Verdict::Dropped(reason),
            Admission::Finished => return Verdict::Finished,
            Admission::First => (0, 0),
            Admission::Next => (there.contributions, there.contributors),
        };
        // Not sooner: a supplied sum that is late is of a round that is over, and nothing is wrong with it.
        if !self.job.accepts_weight(member, seg.round, seg.contributions) {
            return Verdict::Dropped(DropReason::BadWeight);
        }
        let Some(contributions) = add_contributions(before, seg.contributions) else {
            return Verdict::Dropped(DropReason::BadWeight);
        };
        let is_first = contributors == 0;
        let is_supplied = opened.is_some_and(|open| open.replay == Replay::Here);
        let non_finite = if is_supplied { NonFinite::Sum } else { non_finite };
        let contributors = contributors | 1 << member;
        let opening = opened.is_none().then(|| self.job.prospective_round(seg.round));
        let is_last = opened.or(opening.as_ref()).is_some_and(|open| self.is_complete(contributors, open));
        let payload = packet.float_bytes();
        let total = Seg { contributions, ..seg };
        let batch = Some(batch).filter(|batch| is_last && batch.has_room(SEG_LEN_BYTES + payload.len()));
        if self.job.order.is_some() {
            if !self.keep(member, seg.index, payload, non_finite) {
                return Verdict::Dropped(DropReason::NonFinite);
            }
            self.admit(total, contributors, opening, is_last);
            if is_last {
                self.sum_kept(seg.round, seg.index, contributors);
            }
            if let Some(batch) = batch {
                self.push_sum(seg.round, seg.index, batch);
            }
        } else {
            if !self.sum_on_arrival(total, payload, is_first, batch, non_finite) {
                return Verdict::Dropped(DropReason::NonFinite);
            }
            self.admit(total, contributors, opening, is_last);
        }
        if is_last { Verdict::Completed } else { Verdict::Summed }
    }

    /// Notes a contribution that was taken, with what that makes of its slot, and the round that it opens if it does.
    fn admit(&mut self, total: Seg, contributors: u64, opening: Option<OpenRound>, is_last: bool) {
        if let Some(open) = opening {
            self.job.open(open, self.now);
        }
        let Seg { round, contributions, .. } = total;
        let state = if is_last { self.complete(round) } else { SlotState::Open };
        let generation = self.job.generation;
        *self.slot_mut(round, total.index) = Slot { contributors, generation, round, contributions, state };
    }

    /// Whether the packet could be a contribution to the job at all.
    pub(super) fn check(&self, packet: &DataPacket<'_>, seg: Seg) -> Result<(), DropReason> {
        if self.job.halted {
            Err(DropReason::Halted)
        } else if !self.job.layout.contains(seg.index) {
            Err(DropReason::SegOutOfRange)
        } else if packet.float_count() != self.job.layout.float_count(seg.index) {
            Err(DropReason::LengthMismatch)
        } else {
            Ok(())
        }
    }

    /// Given the slot of a segment, and the round if it is open.
    fn admission(&self, member: usize, seg: Seg, slot: &Slot, opened: Option<&OpenRound>) -> Admission {
        let Seg { round, index, .. } = seg;
        let bit = 1 << member;
        if slot.is_done(round) {
            return Admission::Finished;
        }
        if slot.is_partial(round) {
            let is_in = slot.contributors & bit != 0;
            return Admission::Refused(if is_in { DropReason::Duplicate } else { DropReason::Late });
        }
        if slot.state == SlotState::Open && slot.round == round {
            return match opened {
                None => Admission::Refused(DropReason::StaleRound),
                // First: a restarted worker may have the id, and so the bit, of its predecessor.
                Some(open) if open.participants & bit == 0 => Admission::Refused(DropReason::NotParticipant),
                Some(_) if slot.contributors & bit != 0 => Admission::Refused(DropReason::Duplicate),
                Some(_) => Admission::Next,
            };
        }
        let is_over = slot.state != SlotState::Empty && round.is_before(slot.round);
        if is_over || round.is_before(self.job.base) {
            return Admission::Refused(DropReason::StaleRound);
        }
        if !self.may_begin(round, index) {
            return Admission::Refused(DropReason::EarlyRound);
        }
        let takes_part = match opened {
            Some(open) => open.participants & bit != 0,
            None => self.job.would_take_part(member, round),
        };
        if takes_part { Admission::First } else { Admission::Refused(DropReason::NotParticipant) }
    }

    /// Adds a contribution to the sum, and puts that into the batch if there is one. False if it is refused: then
    /// nothing has changed.
    fn sum_on_arrival(
        &mut self,
        seg: Seg,
        payload: &[u8],
        is_first: bool,
        batch: Option<&mut Batch>,
        non_finite: NonFinite,
    ) -> bool {
        let sum = self.sum_mut(seg.round, seg.index);
        match (is_first, batch) {
            (true, None) => accumulate::overwrite(sum, payload, non_finite),
            (false, None) => accumulate::accumulate(sum, payload, non_finite),
            (true, Some(batch)) => {
                let is_taken = accumulate::overwrite(sum, payload, non_finite);
                if is_taken {
                    accumulate::copy_into(sum, batch.push(seg, payload.len()));
                }
                is_taken
            }
            (false, Some(batch)) => {
                let out = batch.next_floats(payload.len());
                let is_taken = accumulate::accumulate_into(sum, payload, out, non_finite);
                if is_taken {
                    batch.push(seg, payload.len());
                }
                is_taken
            }
        }
    }

    fn is_complete(&self, contributors: u64, open: &OpenRound) -> bool {
        // A member that left after it contributed must not stand for one that has yet to.
        let present = (contributors & open.participants).count_ones();
        self.job.formed && present > 0 && present >= u32::from(open.threshold)
    }

    /// What a sum of all contributions is: the result, or a contribution to that of the parent.
    fn complete(&mut self, round: Round) -> SlotState {
        if self.job.goes_up(round) {
            return SlotState::Partial;
        }
        self.job.finish_segment(round);
        SlotState::Done
    }

    /// Closes an open segment if nobody is left to wait for, or in any case if forced, and puts its sum into
    /// the batch. Returns how many members are in the sum, none if it is not closed; needs room in the batch.
    pub(crate) fn close(
        &mut self,
        round: Round,
        index: SegmentIndex,
        force: bool,
        batch: &mut Batch,
    ) -> Option<u32> {
        let slot = *self.slot(round, index);
        let open = *self.job.open_round(round)?;
        let is_deserted = self.job.is_deserted(round);
        if slot.state == SlotState::Open && slot.round == round {
            let is_forced = force && slot.contributions > 0;
            if !(is_forced || is_deserted || self.is_complete(slot.contributors, &open)) {
                return None;
            }
            // An open slot is of this generation.
            self.slot_mut(round, index).state = self.complete(round);
            self.sum_kept(round, index, slot.contributors);
        } else if !(is_deserted && self.contribute_nothing(round, index)) {
            return None;
        }
        self.push_sum(round, index, batch);
        Some(self.slot(round, index).contributors.count_ones())
    }

    /// Fills a segment for which nobody is left with what changes no sum. False if it was sent before, or it is too
    /// early.
    fn contribute_nothing(&mut self, round: Round, index: SegmentIndex) -> bool {
        let slot = self.slot(round, index);
        if slot.is_partial(round) || slot.is_done(round) || !self.may_begin(round, index) {
            return false;
        }
        let generation = self.job.generation;
        *self.slot_mut(round, index) = Slot { generation, round, state: SlotState::Partial, ..Slot::EMPTY };
        self.sum_mut(round, index).fill(0.0);
        true
    }

    /// Puts the result of a finished segment into the batch. False if it is not finished.
    pub(crate) fn push_result(&mut self, round: Round, index: SegmentIndex, batch: &mut Batch) -> bool {
        let is_done = self.slot(round, index).is_done(round);
        if is_done {
            self.push_sum(round, index, batch);
        }
        is_done
    }

    /// Puts what the members have summed into the batch, if the parent's result is not there yet.
    pub(crate) fn push_partial(&mut self, round: Round, index: SegmentIndex, batch: &mut Batch) -> bool {
        let is_partial = self.slot(round, index).is_partial(round);
        if is_partial {
            self.push_sum(round, index, batch);
        }
        is_partial
    }

    fn push_sum(&mut self, round: Round, index: SegmentIndex, batch: &mut Batch) {
        let seg = Seg { index, round, contributions: self.slot(round, index).contributions };
        let sum = self.sum_mut(round, index);
        accumulate::copy_into(sum, batch.push(seg, size_of_val(sum)));
    }

    /// Takes in a result of the parent: it replaces what the members have summed. False if it is of no use.
    pub(crate) fn finish(&mut self, packet: &DataPacket<'_>) -> bool {
        let Seg { index, round, contributions } = packet.seg();
        let layout = &self.job.layout;
        if !layout.contains(index) || packet.float_count() != layout.range(index).len() {
            return false;
        }
        let slot = *self.slot(round, index);
        let is_current = slot.round == round && slot.state != SlotState::Empty;
        if slot.is_done(round) || !is_current && !self.may_begin(round, index) {
            return false;
        }
        if self.job.open_round(round).is_none() {
            let open = self.job.prospective_round(round);
            self.job.open(open, self.now);
        }
        self.job.finish_segment(round);
        let contributors = if is_current { slot.contributors } else { 0 };
        let (generation, state) = (self.job.generation, SlotState::Done);
        *self.slot_mut(round, index) = Slot { contributors, generation, round, contributions, state };
        accumulate::overwrite(self.sum_mut(round, index), packet.float_bytes(), NonFinite::Sum)
    }

    /// Whether a round is the next one at a segment.
    fn may_begin(&self, round: Round, index: SegmentIndex) -> bool {
        let slot = self.slot(round, index);
        let is_over = slot.state != SlotState::Empty && round.is_before(slot.round);
        let last = round.previous();
        !is_over
            && !round.is_before(self.job.base)
            && self.job.has_place_for(round)
            && (round == self.job.base || self.slot(last, index).is_done(last))
    }

    /// Whether the parent's result of a segment is what its members wait for. Perhaps it is in the rounds in which the
    /// job was taken up again: a member that has it, from an earlier run of this switch, contributes no more.
    pub(crate) fn awaits_parent(&self, round: Round, index: SegmentIndex) -> bool {
        let slot = self.slot(round, index);
        let is_replayed = || self.job.open_round(round).is_some_and(|open| open.replay == Replay::Above);
        slot.is_partial(round) || !slot.is_done(round) && (self.job.is_taken_up(round) || is_replayed())
    }

    /// Whether the switch would take this member's contribution to a segment now.
    pub(crate) fn is_missing(&self, member: usize, round: Round, index: SegmentIndex) -> bool {
        let (slot, opened) = (self.slot(round, index), self.job.open_round(round));
        let seg = Seg { index, round, contributions: 1 };
        matches!(self.admission(member, seg, slot, opened), Admission::First | Admission::Next)
    }

    fn position(&self, round: Round, index: SegmentIndex) -> usize {
        round.parity() * self.job.layout.segment_count() as usize + index.get() as usize
    }

    fn slot(&self, round: Round, index: SegmentIndex) -> &Slot {
        let slot = &self.slots[self.position(round, index)];
        if slot.generation == self.job.generation { slot } else { &Slot::EMPTY }
    }

    fn slot_mut(&mut self, round: Round, index: SegmentIndex) -> &mut Slot {
        let position = self.position(round, index);
        &mut self.slots[position]
    }

    fn sum_mut(&mut self, round: Round, index: SegmentIndex) -> &mut [f32] {
        let start = round.parity() * self.job.layout.gradient_len() as usize;
        let range = self.job.layout.range(index);
        &mut self.sums[start + range.start..start + range.end]
    }
}
