//! The aggregates of an asynchronous job, and the vectors that its members are sending.

use iswitch_protocol::limits::{MAX_ASYNC_GENERATIONS, MAX_MEMBERS, MAX_SKIPPED_VECTORS};
use iswitch_protocol::{Round, Seg};

use super::rounds::Numbers;
use super::slot::{Generation, add_contributions};
use crate::ids::MemberId;
use crate::origin::Position;
use crate::reason::DropReason;

/// The aggregates: one that is being filled, and the last ones that were finished.
#[derive(Debug)]
pub(crate) struct Aggregates {
    numbers: Numbers,
    /// Number of aggregates for which there is memory.
    capacity: usize,
    /// The aggregate to which the next admitted vector is added.
    filling: Round,
    /// Number of vectors in that aggregate.
    vectors: u16,
    /// Number of vectors that complete it; fixed by the first.
    threshold: u16,
    /// Worker gradients in it.
    contributions: u16,
    /// The last aggregates that were finished, by number modulo the capacity.
    finished: [Finished; MAX_ASYNC_GENERATIONS],
    staging: [Staging; MAX_MEMBERS],
}

/// A finished aggregate.
#[derive(Clone, Copy, Debug, Default)]
struct Finished {
    contributions: u16,
    /// History of the members that have all sums before this one.
    before: u64,
}

/// The vector that a member is sending.
#[derive(Clone, Copy, Debug, Default)]
struct Staging {
    /// Its number, or that of the next one.
    number: Round,
    /// Number of its segments that are set aside.
    received: u32,
    /// Marks the slots of these segments.
    mark: Generation,
    /// Worker gradients in it.
    contributions: u16,
    /// The aggregate that took the vector before it, if that was admitted.
    taken_by: Option<Round>,
    /// The first segment of the vector before that has yet to be added: this one and those after it occupy the memory.
    unadded_from: Option<u32>,
}

/// What the switch knows of a member's vector (requirement V-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// It is part of this aggregate.
    Admitted(Round),
    /// It is expected; some of its segments may have arrived.
    Expected,
    /// It is neither the last one admitted nor the one expected, which is this.
    Unknown(Round),
}

/// A vector that is added to an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addition {
    pub(crate) member: MemberId,
    pub(crate) aggregate: Round,
    /// The aggregate's first vector overwrites what its memory held.
    pub(crate) is_first: bool,
    /// The last one finishes it: the results are sent while they are made.
    pub(crate) is_last: bool,
}

/// A segment that a member may set aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptable {
    /// It begins a vector.
    pub(super) is_first: bool,
    /// Number of segments of its vector that are set aside with it.
    pub(super) received: u32,
}

impl Aggregates {
    pub(super) fn new(position: Position, capacity: usize) -> Self {
        Self {
            numbers: Numbers::from_position(position),
            capacity,
            filling: position.round(),
            vectors: 0,
            threshold: 0,
            contributions: 0,
            finished: [Finished::default(); MAX_ASYNC_GENERATIONS],
            staging: [Staging::default(); MAX_MEMBERS],
        }
    }

    pub(super) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    pub(super) fn numbers_mut(&mut self) -> &mut Numbers {
        &mut self.numbers
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Continues at an aggregate as if there had been none before. What was set aside is given up.
    pub(super) fn restart_at(&mut self, base: Round) {
        (self.filling, self.vectors) = (base, 0);
        for staging in &mut self.staging {
            (staging.received, staging.unadded_from) = (0, None);
        }
    }

    /// Expects the first vector of a new member.
    pub(super) fn admit_member(&mut self, id: MemberId, first: Round) {
        let staging = &mut self.staging[id.get()];
        let unadded_from = staging.unadded_from;
        *staging = Staging { number: first, unadded_from, ..Staging::default() };
    }

    /// Position of an aggregate in memory.
    pub(super) fn position_of(&self, aggregate: Round) -> usize {
        aggregate.get() as usize % self.capacity
    }

    /// The aggregate that is being filled.
    pub(crate) fn filling(&self) -> Round {
        self.filling
    }

    /// Whether a vector is in it.
    pub(crate) fn is_open(&self) -> bool {
        self.vectors > 0
    }

    /// Number of vectors that complete it.
    pub(crate) fn threshold(&self) -> u16 {
        self.threshold
    }

    /// The oldest finished aggregate whose results are kept; the one being filled if there is none.
    pub(crate) fn oldest_kept(&self) -> Round {
        let kept = self.filling.distance_from(self.numbers.base()).min(self.capacity as u32 - 1);
        self.filling.minus(kept)
    }

    fn finished(&self, aggregate: Round) -> Option<&Finished> {
        let oldest = self.oldest_kept();
        let is_kept = aggregate.distance_from(oldest) < self.filling.distance_from(oldest);
        is_kept.then(|| &self.finished[self.position_of(aggregate)])
    }

    /// Worker gradients in a finished aggregate, if its results are kept.
    pub(super) fn contributions_of(&self, aggregate: Round) -> Option<u16> {
        self.finished(aggregate).map(|finished| finished.contributions)
    }

    /// History before a finished aggregate, if its results are kept.
    pub(super) fn history_before(&self, aggregate: Round) -> Option<u64> {
        self.finished(aggregate).map(|finished| finished.before)
    }

    /// The first kept aggregate with that history before it.
    pub(super) fn kept_after(&self, history: u64) -> Option<Round> {
        let oldest = self.oldest_kept();
        let kept = self.filling.distance_from(oldest);
        (0..kept)
            .map(|distance| oldest.plus(distance))
            .find(|round| self.finished[self.position_of(*round)].before == history)
    }

    /// Lowers the threshold to the number of members, if some have left (requirement V-4). `threshold` is that of the
    /// job. Returns true if the vectors in the aggregate now suffice.
    pub(super) fn lower_threshold(&mut self, threshold: u16, is_pinned: bool) -> bool {
        if !is_pinned {
            self.threshold = self.threshold.min(threshold);
        }
        self.is_open() && self.vectors >= self.threshold
    }

    /// Counts a member's vector into the aggregate that is being filled. `threshold` is that of the job.
    pub(super) fn admit_vector(&mut self, member: MemberId, contributions: u16, threshold: u16) -> Addition {
        let (aggregate, is_first) = (self.filling, !self.is_open());
        if is_first {
            (self.threshold, self.contributions) = (threshold, 0);
        }
        self.vectors += 1;
        self.contributions += contributions;
        let staging = &mut self.staging[member.get()];
        *staging = Staging {
            number: staging.number.next(),
            received: 0,
            mark: Generation::default(),
            contributions: 0,
            taken_by: Some(aggregate),
            unadded_from: Some(0),
        };
        let is_last = self.vectors >= self.threshold;
        Addition { member, aggregate, is_first, is_last }
    }

    /// Finishes the aggregate that is being filled, and begins the next. Returns the number of that.
    pub(super) fn finish(&mut self, before: u64) -> Round {
        let aggregate = self.filling;
        let contributions = self.contributions;
        self.finished[self.position_of(aggregate)] = Finished { contributions, before };
        (self.filling, self.vectors) = (aggregate.next(), 0);
        self.filling
    }

    /// What the switch knows of a vector of a member.
    pub(crate) fn receipt(&self, member: MemberId, number: Round) -> Receipt {
        let staging = &self.staging[member.get()];
        match staging.taken_by {
            Some(aggregate) if number.next() == staging.number => Receipt::Admitted(aggregate),
            _ if number.distance_from(staging.number) <= MAX_SKIPPED_VECTORS => Receipt::Expected,
            _ => Receipt::Unknown(staging.number),
        }
    }

    /// Whether a member may set a segment aside now. `mark` is that of the segment's slot.
    pub(super) fn accepts(
        &self,
        member: MemberId,
        seg: Seg,
        mark: Generation,
    ) -> Result<Acceptable, DropReason> {
        let staging = &self.staging[member.get()];
        let distance = seg.round.distance_from(staging.number);
        if distance > MAX_SKIPPED_VECTORS {
            let is_over = seg.round.is_before(staging.number);
            return Err(if is_over { DropReason::Late } else { DropReason::EarlyRound });
        }
        if staging.unadded_from.is_some_and(|first| seg.index.get() >= first) {
            return Err(DropReason::EarlyRound);
        }
        let is_first = distance > 0 || staging.received == 0;
        if !is_first && seg.contributions != staging.contributions {
            return Err(DropReason::BadWeight);
        }
        if !is_first && mark == staging.mark {
            return Err(DropReason::Duplicate);
        }
        Ok(Acceptable { is_first, received: if is_first { 1 } else { staging.received + 1 } })
    }

    /// Begins a vector. What was set aside of an earlier one is given up.
    pub(super) fn begin_vector(&mut self, member: MemberId, seg: Seg, mark: Generation) {
        let staging = &mut self.staging[member.get()];
        (staging.received, staging.contributions) = (0, seg.contributions);
        if staging.number != seg.round {
            (staging.number, staging.taken_by) = (seg.round, None);
        }
        staging.mark = mark;
    }

    /// Records how many segments of a member's vector are set aside. Returns the mark of their slots.
    pub(super) fn set_aside(&mut self, member: MemberId, received: u32) -> Generation {
        let staging = &mut self.staging[member.get()];
        staging.received = received;
        staging.mark
    }

    /// Whether a segment of a vector is set aside. `mark` is that of the segment's slot.
    pub(super) fn is_set_aside(&self, member: MemberId, number: Round, mark: Generation) -> bool {
        let staging = &self.staging[member.get()];
        staging.received > 0 && staging.number == number && mark == staging.mark
    }

    /// Whether the count of the aggregate has room for `contributions` more worker gradients.
    pub(super) fn has_room_for(&self, contributions: u16) -> bool {
        !self.is_open() || add_contributions(self.contributions, contributions).is_some()
    }

    /// Records the first segment of a member's last vector that has yet to be added; none if all are.
    pub(super) fn note_unadded(&mut self, member: MemberId, from: Option<u32>) {
        self.staging[member.get()].unadded_from = from;
    }
}
