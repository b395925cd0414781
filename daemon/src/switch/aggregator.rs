//! The data path: one contribution to one segment.
//!
//! A slot is addressed by the round's parity and the segment's index, so two rounds can be alive: the one
//! being summed, and the last one, whose results are kept for members that lost them. A slot is reused only
//! when its successor of the other parity is finished, which every participant has then contributed to, and
//! so none of them can still need the older result.

use iswitch_protocol::limits::{MAX_CONTRIBUTIONS, SEG_LEN_BYTES};
use iswitch_protocol::wire::DataPacket;
use iswitch_protocol::{Instant, Round, Seg, SegmentIndex};

use super::accumulate;
use super::job::{Job, OpenRound, Replay};
use super::output::Batch;
use super::reason::DropReason;

/// What to do with contributions that hold NaN or an infinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NonFinite {
    /// Drop them and tell the sender: one of them would poison the weights of every worker.
    #[default]
    Refuse,
    /// Sum them as IEEE 754 says, as the RTL does.
    Sum,
}

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
    /// Bit i: member i is in the sum; in an asynchronous job, the vector that member i sends has the segment.
    pub(super) contributors: u64,
    round: Round,
    /// Worker gradients in the sum.
    contributions: u16,
    state: SlotState,
}

impl Slot {
    pub(crate) const EMPTY: Self =
        Self { contributors: 0, round: Round::new(0), contributions: 0, state: SlotState::Empty };

    pub(crate) fn is_empty(&self) -> bool {
        self.state == SlotState::Empty && self.contributors == 0
    }

    fn is_done(&self, round: Round) -> bool {
        self.state == SlotState::Done && self.round == round
    }

    fn is_partial(&self, round: Round) -> bool {
        self.state == SlotState::Partial && self.round == round
    }

    /// Members that an open round waits for in this segment; none if nobody has contributed to it yet.
    pub(crate) fn missing(&self, open: &OpenRound) -> u64 {
        let is_open = self.state == SlotState::Open && self.round == open.round;
        if is_open { open.participants & !self.contributors } else { 0 }
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
    First(OpenRound),
    Next(OpenRound),
    Finished,
    Refused(DropReason),
}

/// The slots and sums of a job, together with the job itself.
pub(crate) struct Aggregation<'a> {
    pub(crate) job: &'a mut Job,
    pub(crate) slots: &'a mut [Slot],
    pub(crate) sums: &'a mut [f32],
    pub(crate) now: Instant,
}

impl Aggregation<'_> {
    /// Takes in one contribution of a member. A completed sum goes into `batch`.
    pub(crate) fn contribute(
        &mut self,
        member: usize,
        packet: &DataPacket<'_>,
        non_finite: NonFinite,
        batch: &mut Batch,
    ) -> Verdict {
        let seg = packet.seg();
        if let Err(reason) = self.check(packet, seg) {
            return Verdict::Dropped(reason);
        }
        let admission = self.admission(member, seg.round, seg.index);
        let open = match admission {
            Admission::Refused(reason) => return Verdict::Dropped(reason),
            Admission::Finished => return Verdict::Finished,
            Admission::First(open) | Admission::Next(open) => open,
        };
        // Not sooner: a supplied sum that is late is of a round that is over, and nothing is wrong with it.
        if !self.job.accepts_weight(member, seg.round, seg.contributions) {
            return Verdict::Dropped(DropReason::BadWeight);
        }
        let payload = packet.float_bytes();
        if non_finite == NonFinite::Refuse && accumulate::has_non_finite(payload) {
            return Verdict::Dropped(DropReason::NonFinite);
        }
        if matches!(admission, Admission::First(_)) {
            if self.job.open_round(seg.round).is_none() {
                self.job.open(open, self.now);
            }
            let fresh = Slot { round: seg.round, state: SlotState::Open, ..Slot::EMPTY };
            *self.slot_mut(seg.round, seg.index) = fresh;
        }
        self.add(member, seg, open, payload, batch)
    }

    /// Whether the packet could be a contribution to the job at all.
    pub(super) fn check(&self, packet: &DataPacket<'_>, seg: Seg) -> Result<(), DropReason> {
        if self.job.halted {
            Err(DropReason::Halted)
        } else if !self.job.layout.contains(seg.index) {
            Err(DropReason::SegOutOfRange)
        } else if packet.float_count() != self.job.layout.range(seg.index).len() {
            Err(DropReason::LengthMismatch)
        } else {
            Ok(())
        }
    }

    fn admission(&self, member: usize, round: Round, index: SegmentIndex) -> Admission {
        let slot = self.slot(round, index);
        let bit = 1 << member;
        if slot.is_done(round) {
            return Admission::Finished;
        }
        if slot.is_partial(round) {
            let is_in = slot.contributors & bit != 0;
            return Admission::Refused(if is_in { DropReason::Duplicate } else { DropReason::Late });
        }
        if slot.state == SlotState::Open && slot.round == round {
            return match self.job.open_round(round) {
                None => Admission::Refused(DropReason::StaleRound),
                // First: a restarted worker may have the id, and so the bit, of its predecessor.
                Some(open) if open.participants & bit == 0 => Admission::Refused(DropReason::NotParticipant),
                Some(_) if slot.contributors & bit != 0 => Admission::Refused(DropReason::Duplicate),
                Some(open) => Admission::Next(*open),
            };
        }
        let is_over = slot.state != SlotState::Empty && round.is_before(slot.round);
        if is_over || round.is_before(self.job.base) {
            return Admission::Refused(DropReason::StaleRound);
        }
        if !self.may_begin(round, index) {
            return Admission::Refused(DropReason::EarlyRound);
        }
        let open = match self.job.open_round(round) {
            Some(open) => *open,
            None => self.job.prospective_round(round),
        };
        if open.participants & bit == 0 {
            return Admission::Refused(DropReason::NotParticipant);
        }
        Admission::First(open)
    }

    fn add(
        &mut self,
        member: usize,
        seg: Seg,
        open: OpenRound,
        payload: &[u8],
        batch: &mut Batch,
    ) -> Verdict {
        let mut slot = *self.slot(seg.round, seg.index);
        let Some(contributions) = add_contributions(slot.contributions, seg.contributions) else {
            return Verdict::Dropped(DropReason::BadWeight);
        };
        let is_first = slot.contributors == 0;
        slot.contributions = contributions;
        slot.contributors |= 1 << member;
        let is_last = self.is_complete(&slot, &open);
        if is_last {
            slot.state = self.complete(seg.round);
        }
        *self.slot_mut(seg.round, seg.index) = slot;
        let send_now = is_last && batch.has_room(SEG_LEN_BYTES + payload.len());
        if self.job.order.is_some() {
            self.keep(member, seg.index, payload);
            if is_last {
                self.sum_kept(seg.round, seg.index, slot.contributors);
            }
            if send_now {
                self.push_sum(seg.round, seg.index, batch);
            }
        } else {
            let total = Seg { contributions, ..seg };
            self.sum_on_arrival(total, payload, is_first, send_now.then_some(batch));
        }
        if is_last { Verdict::Completed } else { Verdict::Summed }
    }

    /// Adds a contribution to the sum, and puts that into the batch if there is one.
    fn sum_on_arrival(&mut self, seg: Seg, payload: &[u8], is_first: bool, batch: Option<&mut Batch>) {
        let sum = self.sum_mut(seg.round, seg.index);
        match (is_first, batch) {
            (true, None) => accumulate::overwrite(sum, payload),
            (false, None) => accumulate::accumulate(sum, payload),
            (true, Some(batch)) => {
                accumulate::overwrite(sum, payload);
                accumulate::copy_into(sum, batch.push(seg, payload.len()));
            }
            (false, Some(batch)) => {
                accumulate::accumulate_into(sum, payload, batch.push(seg, payload.len()));
            }
        }
    }

    fn is_complete(&self, slot: &Slot, open: &OpenRound) -> bool {
        // A member that left after it contributed must not stand for one that has yet to.
        let present = (slot.contributors & open.participants).count_ones();
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
    /// the batch. True if it did; needs room in the batch.
    pub(crate) fn close(
        &mut self,
        round: Round,
        index: SegmentIndex,
        force: bool,
        batch: &mut Batch,
    ) -> bool {
        let slot = *self.slot(round, index);
        let Some(open) = self.job.open_round(round).copied() else { return false };
        let is_deserted = self.job.is_deserted(round);
        if slot.state == SlotState::Open && slot.round == round {
            let is_forced = force && slot.contributions > 0;
            if !(is_forced || is_deserted || self.is_complete(&slot, &open)) {
                return false;
            }
            self.slot_mut(round, index).state = self.complete(round);
            self.sum_kept(round, index, slot.contributors);
        } else if !(is_deserted && self.contribute_nothing(round, index)) {
            return false;
        }
        self.push_sum(round, index, batch);
        true
    }

    /// Fills a segment for which nobody is left with what changes no sum. False if it was sent before, or it is too
    /// early.
    fn contribute_nothing(&mut self, round: Round, index: SegmentIndex) -> bool {
        let slot = self.slot(round, index);
        if slot.is_partial(round) || slot.is_done(round) || !self.may_begin(round, index) {
            return false;
        }
        *self.slot_mut(round, index) = Slot { round, state: SlotState::Partial, ..Slot::EMPTY };
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
        *self.slot_mut(round, index) = Slot { contributors, round, contributions, state: SlotState::Done };
        accumulate::overwrite(self.sum_mut(round, index), packet.float_bytes());
        true
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
        matches!(self.admission(member, round, index), Admission::First(_) | Admission::Next(_))
    }

    fn position(&self, round: Round, index: SegmentIndex) -> usize {
        round.parity() * self.job.layout.segment_count() as usize + index.get() as usize
    }

    fn slot(&self, round: Round, index: SegmentIndex) -> &Slot {
        &self.slots[self.position(round, index)]
    }

    fn slot_mut(&mut self, round: Round, index: SegmentIndex) -> &mut Slot {
        let position = self.position(round, index);
        self.job.has_used_slots = true;
        &mut self.slots[position]
    }

    fn sum_mut(&mut self, round: Round, index: SegmentIndex) -> &mut [f32] {
        let start = round.parity() * self.job.layout.gradient_len() as usize;
        let range = self.job.layout.range(index);
        &mut self.sums[start + range.start..start + range.end]
    }
}
