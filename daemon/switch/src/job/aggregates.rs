//! Aggregates of an asynchronous job, and the vectors that its members are sending.
//!
//! If the switch has a parent, vectors are added to partial sums instead, and the aggregates are those whose results
//! the parent sends.

use iswitch_protocol::limits::{MAX_ASYNC_GENERATIONS, MAX_MEMBERS, MAX_SKIPPED_VECTORS};
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::{Round, Seg};

use super::partials::Partials;
use super::rounds::Numbers;
use super::slot::{Generation, add_contributions};
use crate::ids::{MemberId, MemberSet};
use crate::origin::Position;
use crate::reason::DropReason;

/// Aggregates of a job: the one that is being filled, and the latest finished ones. If the switch has a parent,
/// `filling` is the aggregate after the latest one for which a result has arrived, and earlier aggregates may lack
/// results.
#[derive(Debug)]
pub(crate) struct Aggregates {
    numbers: Numbers,
    /// Number of aggregates that fit into the job's memory.
    capacity: usize,
    /// Number of the aggregate that is being filled, to which the next admitted vector is added.
    filling: Round,
    /// Number of vectors in the aggregate that is being filled.
    vectors: u16,
    /// Number of worker gradients that complete the aggregate being filled; fixed when its first vector is admitted.
    threshold: u16,
    /// Number of worker gradients in the aggregate that is being filled.
    contributions: u16,
    /// Latest finished aggregates, indexed by number modulo the capacity.
    finished: [Finished; MAX_ASYNC_GENERATIONS],
    staging: [Staging; MAX_MEMBERS],
    /// Partial sums for the parent, if there is one.
    partials: Option<Partials>,
    /// First aggregate that the parent still kept when it last refused a request for an earlier aggregate.
    given_up_before: Option<Round>,
}

/// A finished aggregate.
#[derive(Clone, Copy, Debug, Default)]
struct Finished {
    contributions: u16,
    /// History of the members that have the sums of all earlier aggregates.
    before: u64,
}

/// The vector that a member is sending.
#[derive(Clone, Copy, Debug, Default)]
struct Staging {
    /// Number of the vector, or of the next vector if none is being sent.
    number: Round,
    /// Number of staged segments of the vector.
    received: u32,
    /// Generation that marks the slots of the staged segments.
    mark: Generation,
    /// Number of worker gradients in the vector.
    contributions: u16,
    /// Sum to which the preceding vector was added, if that vector was admitted.
    taken_by: Option<Sum>,
    /// Last Confirm of the preceding vector, if the switch answered that Confirm before the aggregate that contains the
    /// vector was known.
    asked: Option<Asked>,
    /// First segment of the preceding vector that has yet to be added. This segment and the segments after it still
    /// occupy the staging memory of the member.
    unadded_from: Option<u32>,
}

/// Sum to which vectors are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// The aggregate with this number.
    Aggregate(Round),
    /// The partial sum for the parent that is in the buffer with this index.
    Partial(usize),
}

/// A Confirm that the switch will answer again once it knows which aggregate contains the vector (requirement V-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Id of the request.
    pub(crate) request: u32,
    pub(crate) range: RangeRepr,
}

/// State of a member's vector at the switch (requirement V-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// The vector is part of this aggregate.
    Admitted(Round),
    /// The vector is part of a partial sum that the parent has yet to admit.
    Pending,
    /// The vector is the next one that the switch expects from the member; some of its segments may have arrived.
    Expected,
    /// The vector is neither the one that was admitted last nor the expected one. The field is the number of the
    /// expected vector.
    Unknown(Round),
}

/// An admitted vector that is added to a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addition {
    pub(crate) member: MemberId,
    pub(crate) sum: Sum,
    /// Whether this is the first vector of the sum. If it is, it replaces the previous content of the memory.
    pub(crate) is_first: bool,
    /// Whether this is the last vector of an aggregate. If it is, the result of each segment is sent as soon as the
    /// segment has been added.
    pub(crate) is_last: bool,
}

/// A segment that may be staged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptable {
    /// Whether the segment is the first of its vector to be staged.
    pub(super) is_first: bool,
    /// Number of staged segments of the same vector, including this one.
    pub(super) received: u32,
}

impl Aggregates {
    pub(super) fn new(position: Position, capacity: usize, has_parent: bool) -> Self {
        Self {
            numbers: Numbers::from_position(position),
            capacity,
            filling: position.round(),
            vectors: 0,
            threshold: 0,
            contributions: 0,
            finished: [Finished::default(); MAX_ASYNC_GENERATIONS],
            staging: [Staging::default(); MAX_MEMBERS],
            partials: has_parent.then(Partials::default),
            given_up_before: None,
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

    /// Restarts at aggregate `base`, as if there had been no aggregates before it. Discards all staged segments.
    pub(super) fn restart_at(&mut self, base: Round) {
        (self.filling, self.vectors, self.given_up_before) = (base, 0, None);
        for staging in &mut self.staging {
            (staging.received, staging.unadded_from) = (0, None);
        }
    }

    /// Prepares to receive the vectors of a new member; its first vector has the number `first`.
    pub(super) fn admit_member(&mut self, id: MemberId, first: Round) {
        let staging = &mut self.staging[id.get()];
        let unadded_from = staging.unadded_from;
        *staging = Staging { number: first, unadded_from, ..Staging::default() };
    }

    /// Returns the position of an aggregate in the job's memory, in units of one vector.
    pub(super) fn position_of(&self, aggregate: Round) -> usize {
        aggregate.get() as usize % self.capacity
    }

    /// Returns the number of the aggregate that is being filled.
    pub(crate) fn filling(&self) -> Round {
        self.filling
    }

    /// Returns whether the aggregate that is being filled contains any vectors.
    pub(crate) fn is_open(&self) -> bool {
        self.vectors > 0
    }

    /// Returns the number of worker gradients that complete the aggregate that is being filled.
    pub(crate) fn threshold(&self) -> u16 {
        self.threshold
    }

    /// Returns the oldest finished aggregate whose results are kept, or the one being filled if there is none.
    pub(crate) fn oldest_kept(&self) -> Round {
        let kept = self.filling.distance_from(self.numbers.base()).min(self.capacity as u32 - 1);
        self.filling.minus(kept)
    }

    fn finished(&self, aggregate: Round) -> Option<&Finished> {
        let oldest = self.oldest_kept();
        let is_kept = aggregate.distance_from(oldest) < self.filling.distance_from(oldest);
        is_kept.then(|| &self.finished[self.position_of(aggregate)])
    }

    /// Returns whether an aggregate is finished and its results are kept. Its last vectors may still be queued to be
    /// added.
    pub(crate) fn is_finished(&self, aggregate: Round) -> bool {
        self.finished(aggregate).is_some()
    }

    /// Returns the number of worker gradients in a finished aggregate, if its results are kept.
    pub(super) fn contributions_of(&self, aggregate: Round) -> Option<u16> {
        self.finished(aggregate).map(|finished| finished.contributions)
    }

    /// Returns the history before a finished aggregate, if its results are kept.
    pub(super) fn history_before(&self, aggregate: Round) -> Option<u64> {
        self.finished(aggregate).map(|finished| finished.before)
    }

    /// Returns the first kept aggregate whose preceding history is `history`, if any.
    pub(super) fn kept_after(&self, history: u64) -> Option<Round> {
        let oldest = self.oldest_kept();
        let kept = self.filling.distance_from(oldest);
        (0..kept)
            .map(|distance| oldest.plus(distance))
            .find(|round| self.finished[self.position_of(*round)].before == history)
    }

    /// Lowers the threshold of the aggregate that is being filled to `threshold`, because members have left. If H is
    /// pinned, changes nothing (requirement V-4). Returns true if the aggregate now contains enough gradients.
    pub(super) fn lower_threshold(&mut self, threshold: u16, is_pinned: bool) -> bool {
        if !is_pinned {
            self.threshold = self.threshold.min(threshold);
        }
        self.is_open() && self.contributions >= self.threshold
    }

    /// Admits a member's vector to the aggregate that is being filled or, if there is a parent, to the next partial
    /// sum. `threshold` is the current threshold of the job.
    pub(super) fn admit_vector(&mut self, member: MemberId, contributions: u16, threshold: u16) -> Addition {
        if let Some(partials) = &mut self.partials {
            let (buffer, is_first) = partials.admit(contributions);
            let sum = Sum::Partial(buffer);
            self.take_vector(member, sum);
            return Addition { member, sum, is_first, is_last: false };
        }
        let (sum, is_first) = (Sum::Aggregate(self.filling), !self.is_open());
        if is_first {
            (self.threshold, self.contributions) = (threshold, 0);
        }
        self.vectors += 1;
        self.contributions += contributions;
        self.take_vector(member, sum);
        let is_last = self.contributions >= self.threshold;
        Addition { member, sum, is_first, is_last }
    }

    /// Records that the vector of a member was admitted to a sum. The switch then expects the member's next vector.
    fn take_vector(&mut self, member: MemberId, sum: Sum) {
        let staging = &mut self.staging[member.get()];
        *staging = Staging {
            number: staging.number.next(),
            received: 0,
            mark: Generation::default(),
            contributions: 0,
            taken_by: Some(sum),
            asked: None,
            unadded_from: Some(0),
        };
    }

    pub(super) fn partials(&self) -> Option<&Partials> {
        self.partials.as_ref()
    }

    pub(super) fn partials_mut(&mut self) -> Option<&mut Partials> {
        self.partials.as_mut()
    }

    /// Records that a vector was completely added to the next partial sum.
    pub(crate) fn note_added_to_partial(&mut self) {
        if let Some(partials) = &mut self.partials {
            partials.note_added();
        }
    }

    /// Begins to send the next partial sum to the parent, if it contains vectors and the parent has admitted the
    /// previous one. Returns the number of the partial sum.
    pub(crate) fn raise_partial(&mut self) -> Option<Round> {
        self.partials.as_mut()?.raise()
    }

    /// Records a Confirm whose final answer has to wait until the aggregate is known.
    pub(crate) fn note_asked(&mut self, member: MemberId, asked: Asked) {
        self.staging[member.get()].asked = Some(asked);
    }

    /// Records that the parent has admitted the partial sum in flight, as part of `aggregate`. Returns the members
    /// whose vectors are in the partial sum.
    pub(crate) fn land(&mut self, aggregate: Round) -> MemberSet {
        let Some(buffer) = self.partials.as_mut().and_then(Partials::land) else { return MemberSet::EMPTY };
        let is_in_it = |id: &MemberId| self.staging[id.get()].taken_by == Some(Sum::Partial(buffer));
        let members: MemberSet = (0..MAX_MEMBERS).map(MemberId::new).filter(is_in_it).collect();
        for id in members.iter() {
            self.staging[id.get()].taken_by = Some(Sum::Aggregate(aggregate));
        }
        members
    }

    /// Removes and returns the Confirm of a member that must be answered again, if any.
    pub(crate) fn take_asked(&mut self, member: MemberId) -> Option<Asked> {
        self.staging[member.get()].asked.take()
    }

    /// Returns whether this switch has room for the results of an earlier aggregate that the parent resends.
    pub(super) fn may_keep(&self, aggregate: Round) -> bool {
        let is_given_up = self.given_up_before.is_some_and(|first| aggregate.is_before(first));
        let distance = self.filling.distance_from(aggregate) as usize;
        !is_given_up && aggregate.is_before(self.filling) && distance < self.capacity
    }

    /// Extends the kept aggregates back to `first` (see [`Self::may_keep`]). The histories of the added aggregates are
    /// not known.
    pub(super) fn reach_back(&mut self, first: Round) {
        let (oldest, mut aggregate) = (self.oldest_kept(), first);
        while aggregate.is_before(oldest) {
            self.finished[self.position_of(aggregate)] = Finished::default();
            aggregate = aggregate.next();
        }
        if first.is_before(oldest) {
            self.numbers.begin_at(first);
        }
    }

    /// Sets the history before a finished aggregate.
    pub(super) fn set_history(&mut self, aggregate: Round, before: u64) {
        self.finished[self.position_of(aggregate)].before = before;
    }

    /// Discards the aggregates before `oldest`, which must not be later than the aggregate that [`Self::filling`]
    /// returns.
    pub(super) fn give_up_before(&mut self, oldest: Round) {
        if self.given_up_before.is_none_or(|first| first.is_before(oldest)) {
            self.given_up_before = Some(oldest);
        }
        if self.oldest_kept().is_before(oldest) {
            self.numbers.begin_at(oldest);
        }
    }

    /// Continues at a later aggregate after the parent has discarded the aggregates before it.
    pub(super) fn skip_to(&mut self, aggregate: Round) {
        self.filling = aggregate;
        self.numbers.restart_at(aggregate);
        self.given_up_before = Some(aggregate);
    }

    /// Finishes the aggregate that is being filled and begins the next one, whose number it returns. `before` is the
    /// history before the finished aggregate.
    pub(super) fn finish(&mut self, before: u64) -> Round {
        let aggregate = self.filling;
        let contributions = self.contributions;
        self.finished[self.position_of(aggregate)] = Finished { contributions, before };
        (self.filling, self.vectors) = (aggregate.next(), 0);
        self.filling
    }

    /// Returns the state of a member's vector at the switch.
    pub(crate) fn receipt(&self, member: MemberId, number: Round) -> Receipt {
        let staging = &self.staging[member.get()];
        match staging.taken_by {
            Some(Sum::Aggregate(aggregate)) if number.next() == staging.number => {
                Receipt::Admitted(aggregate)
            }
            Some(Sum::Partial(_)) if number.next() == staging.number => Receipt::Pending,
            _ if number.distance_from(staging.number) <= MAX_SKIPPED_VECTORS => Receipt::Expected,
            _ => Receipt::Unknown(staging.number),
        }
    }

    /// Checks whether a segment of a member may be staged now. `mark` is the generation of the segment's slot.
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

    /// Begins a new vector of a member, and discards the staged segments of the member's earlier vector.
    pub(super) fn begin_vector(&mut self, member: MemberId, seg: Seg, mark: Generation) {
        let staging = &mut self.staging[member.get()];
        (staging.received, staging.contributions) = (0, seg.contributions);
        if staging.number != seg.round {
            (staging.number, staging.taken_by) = (seg.round, None);
        }
        staging.mark = mark;
    }

    /// Records how many segments of a member's vector are staged. Returns the generation that marks the slots of these
    /// segments.
    pub(super) fn set_aside(&mut self, member: MemberId, received: u32) -> Generation {
        let staging = &mut self.staging[member.get()];
        staging.received = received;
        staging.mark
    }

    /// Returns whether a segment of a vector is staged. `mark` is the generation of the segment's slot.
    pub(super) fn is_set_aside(&self, member: MemberId, number: Round, mark: Generation) -> bool {
        let staging = &self.staging[member.get()];
        staging.received > 0 && staging.number == number && mark == staging.mark
    }

    /// Returns whether `contributions` more gradients fit into the contribution count of the sum to which the next
    /// vector is added.
    pub(super) fn has_room_for(&self, contributions: u16) -> bool {
        match &self.partials {
            Some(partials) => partials.has_room_for(contributions),
            None => !self.is_open() || add_contributions(self.contributions, contributions).is_some(),
        }
    }

    /// Records the first segment of a member's admitted vector that has yet to be added. `from` is `None` if all
    /// segments have been added.
    pub(super) fn note_unadded(&mut self, member: MemberId, from: Option<u32>) {
        self.staging[member.get()].unadded_from = from;
    }
}
