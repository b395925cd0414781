//! Asynchronous jobs: vectors are set aside until they are whole, then added to the aggregate being filled.
//!
//! A job's region of sums holds [`iswitch_protocol::limits::async_generations`] aggregates, each at its number
//! modulo that, and after them one vector for each possible member. Nothing is added to an aggregate before a
//! vector is whole, so a member that stops in mid-vector holds up nobody, and each aggregate is the sum of exactly
//! the vectors it counts. The additions are done in order of admission, as there is room to send (see [`Work`]).

use core::ops::Range;

use iswitch_protocol::limits::{MAX_ASYNC_GENERATIONS, MAX_MEMBERS, MAX_SKIPPED_VECTORS, SEG_LEN_BYTES};
use iswitch_protocol::wire::{DataPacket, Mode};
use iswitch_protocol::{Round, Seg, SegmentIndex};

use super::Switch;
use super::accumulate::{self, NonFinite};
use super::aggregator::{Aggregation, add_contributions};
use super::flight::Incident;
use super::job::Job;
use super::membership::MemberAt;
use super::output::Batch;
use super::reason::DropReason;
use super::work::{Meter, Work};

/// What an asynchronous job has besides its members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asynchronous {
    /// Aggregates that there is memory for.
    generations: usize,
    /// The aggregate that the next admitted vector goes to.
    filling: Round,
    /// Vectors in it.
    vectors: u16,
    /// How many it takes; fixed by the first.
    threshold: u16,
    /// Worker gradients in it.
    contributions: u16,
    /// The last aggregates that were finished, by number.
    finished: [Finished; MAX_ASYNC_GENERATIONS],
    staging: [Staging; MAX_MEMBERS],
}

/// A finished aggregate.
#[derive(Clone, Copy, Debug, Default)]
struct Finished {
    contributions: u16,
    /// History of those who have all sums before this one.
    before: u64,
}

/// The vector that a member is sending.
#[derive(Clone, Copy, Debug, Default)]
struct Staging {
    /// Its number, or that of the next one.
    number: Round,
    /// Segments of it that are set aside.
    received: u32,
    /// What marks their slots.
    generation: u64,
    /// Worker gradients in it.
    contributions: u16,
    /// The aggregate that took the vector before it, if that was admitted.
    taken_by: Option<Round>,
    /// The first segment of that one that has yet to be added: it and those after it take up the memory.
    unadded_from: Option<u32>,
}

/// What the switch knows of a member's vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// It is part of this aggregate.
    Admitted(Round),
    /// It is expected; some of its segments may be there.
    Expected,
    /// It is neither the last one admitted nor the one expected, which is this.
    Unknown(Round),
}

/// A vector to be added to an aggregate, as an item of [`Work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addition {
    pub(crate) member: usize,
    aggregate: Round,
    /// The aggregate's first vector overwrites what its memory held.
    is_first: bool,
    /// The last one finishes it: the results go out as they are made.
    is_last: bool,
}

impl Asynchronous {
    pub(crate) fn new(base: Round, generations: usize) -> Self {
        Self {
            generations,
            filling: base,
            vectors: 0,
            threshold: 0,
            contributions: 0,
            finished: [Finished::default(); MAX_ASYNC_GENERATIONS],
            staging: [Staging::default(); MAX_MEMBERS],
        }
    }

    /// Goes on at an aggregate as if none had been before. What was set aside is given up.
    pub(crate) fn restart_at(&mut self, base: Round) {
        (self.filling, self.vectors) = (base, 0);
        for staging in &mut self.staging {
            (staging.received, staging.unadded_from) = (0, None);
        }
    }

    /// A member has joined: its first vector has the number that its instance gives (requirement V-2).
    pub(crate) fn admit_member(&mut self, id: usize, instance: u32) {
        let unadded_from = self.staging[id].unadded_from;
        self.staging[id] = Staging { number: Round::new(instance), unadded_from, ..Staging::default() };
    }

    /// Where an aggregate lies among those that are kept.
    fn generation(&self, aggregate: Round) -> usize {
        aggregate.get() as usize % self.generations
    }

    /// The aggregate that is being filled.
    pub(crate) fn filling(&self) -> Round {
        self.filling
    }

    /// Whether a vector is in it.
    pub(crate) fn is_open(&self) -> bool {
        self.vectors > 0
    }

    /// What the switch knows of a vector of a member (requirement V-5).
    pub(crate) fn receipt(&self, member: usize, number: Round) -> Receipt {
        let staging = &self.staging[member];
        match staging.taken_by {
            Some(aggregate) if number.next() == staging.number => Receipt::Admitted(aggregate),
            _ if number.distance_from(staging.number) <= MAX_SKIPPED_VECTORS => Receipt::Expected,
            _ => Receipt::Unknown(staging.number),
        }
    }
}

impl Job {
    /// The oldest finished aggregate of an asynchronous job whose results are kept; the one being filled if there
    /// is none.
    pub(crate) fn oldest_kept(&self) -> Round {
        let filling = self.asynchronous.filling();
        let kept = filling.distance_from(self.base).min(self.asynchronous.generations as u32 - 1);
        filling.minus(kept)
    }

    fn is_kept(&self, aggregate: Round) -> bool {
        let oldest = self.oldest_kept();
        aggregate.distance_from(oldest) < self.asynchronous.filling().distance_from(oldest)
    }

    /// History of the members whose next round, or aggregate, is `round`; zero if that is not known.
    pub(crate) fn history_before(&self, round: Round) -> u64 {
        if self.mode == Mode::Asynchronous && self.is_kept(round) {
            self.asynchronous.finished[self.asynchronous.generation(round)].before
        } else {
            self.chronicle.before(round)
        }
    }

    /// The next aggregate of a member with that history, if all that it lacks is kept.
    pub(crate) fn aggregate_after(&self, history: u64) -> Option<Round> {
        let filling = self.asynchronous.filling();
        let kept = filling.distance_from(self.oldest_kept());
        if history == 0 || history == self.chronicle.before(filling) {
            return (history != 0).then_some(filling);
        }
        (0..kept)
            .map(|distance| self.oldest_kept().plus(distance))
            .find(|round| self.asynchronous.finished[self.asynchronous.generation(*round)].before == history)
    }

    /// H falls to the number of members if some have left (requirement V-4). True if that is enough.
    fn is_filled_without_the_departed(&mut self) -> bool {
        let threshold = self.threshold();
        let is_pinned = self.pinned_threshold.is_some();
        let state = &mut self.asynchronous;
        if !is_pinned {
            state.threshold = state.threshold.min(threshold);
        }
        state.is_open() && state.vectors >= state.threshold
    }

    /// Counts a vector into the aggregate that is being filled.
    fn admit_vector(&mut self, member: usize, contributions: u16) -> Addition {
        let threshold = self.threshold();
        let state = &mut self.asynchronous;
        let (aggregate, is_first) = (state.filling, !state.is_open());
        if is_first {
            (state.threshold, state.contributions) = (threshold, 0);
        }
        state.vectors += 1;
        state.contributions += contributions;
        let staging = &mut state.staging[member];
        *staging = Staging {
            number: staging.number.next(),
            received: 0,
            generation: 0,
            contributions: 0,
            taken_by: Some(aggregate),
            unadded_from: Some(0),
        };
        let is_last = state.vectors >= state.threshold;
        self.note_opened(aggregate);
        if is_last {
            self.finish_aggregate();
        }
        Addition { member, aggregate, is_first, is_last }
    }

    fn finish_aggregate(&mut self) {
        let state = &mut self.asynchronous;
        let aggregate = state.filling;
        state.finished[state.generation(aggregate)] =
            Finished { contributions: state.contributions, before: self.chronicle.before(aggregate) };
        (state.filling, state.vectors) = (aggregate.next(), 0);
        self.note_results(self.layout.segment_count());
        self.chronicle.advance(aggregate.next());
    }
}

impl Aggregation<'_> {
    /// Sets one segment of a member's vector aside. The vector's addition if it is whole now.
    fn stage(
        &mut self,
        member: usize,
        packet: &DataPacket<'_>,
        non_finite: NonFinite,
    ) -> Result<Option<Addition>, DropReason> {
        let seg = packet.seg();
        self.check(packet, seg)?;
        if !self.job.accepts_weight(member, seg.round, seg.contributions) {
            return Err(DropReason::BadWeight);
        }
        if !self.job.formed {
            return Err(DropReason::EarlyRound);
        }
        let staging = self.job.asynchronous.staging[member];
        let distance = seg.round.distance_from(staging.number);
        if distance > MAX_SKIPPED_VECTORS {
            let is_over = seg.round.is_before(staging.number);
            return Err(if is_over { DropReason::Late } else { DropReason::EarlyRound });
        }
        if staging.unadded_from.is_some_and(|first| seg.index.get() >= first) {
            return Err(DropReason::EarlyRound);
        }
        let at = self.staged_slot(member, seg.index);
        let is_first = distance > 0 || staging.received == 0;
        if !is_first && seg.contributions != staging.contributions {
            return Err(DropReason::BadWeight);
        }
        if !is_first && self.slots[at].generation == staging.generation {
            return Err(DropReason::Duplicate);
        }
        let received = if is_first { 1 } else { staging.received + 1 };
        let is_last = received == self.job.layout.segment_count();
        if is_last && !self.has_room_for(seg.contributions) {
            return Err(DropReason::BadWeight);
        }
        let first = self.staged_at(member);
        let range = self.job.layout.range(seg.index);
        let staged = &mut self.sums[first + range.start..first + range.end];
        if !accumulate::store(staged, packet.float_bytes(), non_finite) {
            return Err(DropReason::NonFinite);
        }
        if is_first {
            self.begin_vector(member, seg);
        }
        let staging = &mut self.job.asynchronous.staging[member];
        staging.received = received;
        self.slots[at].generation = staging.generation;
        Ok(is_last.then(|| self.job.admit_vector(member, seg.contributions)))
    }

    /// What was set aside of an earlier vector is given up.
    fn begin_vector(&mut self, member: usize, seg: Seg) {
        let staging = &mut self.job.asynchronous.staging[member];
        (staging.received, staging.contributions) = (0, seg.contributions);
        if staging.number != seg.round {
            (staging.number, staging.taken_by) = (seg.round, None);
        }
        staging.generation = self.generations.next();
    }

    /// The slot of a segment of the vector that a member is sending.
    fn staged_slot(&self, member: usize, index: SegmentIndex) -> usize {
        member * self.job.layout.segment_count() as usize + index.get() as usize
    }

    /// Whether the count of the aggregate takes so many more worker gradients.
    fn has_room_for(&self, contributions: u16) -> bool {
        let state = &self.job.asynchronous;
        !state.is_open() || add_contributions(state.contributions, contributions).is_some()
    }

    /// Whether a segment of the vector that a member is sending has yet to arrive.
    pub(crate) fn is_unstaged(&self, member: usize, number: Round, index: SegmentIndex) -> bool {
        let staging = &self.job.asynchronous.staging[member];
        let is_staged = staging.received > 0
            && staging.number == number
            && self.slots[self.staged_slot(member, index)].generation == staging.generation;
        !is_staged
    }

    /// Adds one segment of a vector that was admitted.
    fn add_staged(&mut self, addition: &Addition, index: SegmentIndex) {
        let range = self.job.layout.range(index);
        let (sum_at, staged_at) = (self.aggregate_at(addition.aggregate), self.staged_at(addition.member));
        let (aggregates, staged) = self.sums.split_at_mut(self.aggregates_len());
        let staged_at = staged_at - aggregates.len();
        let sum = &mut aggregates[sum_at + range.start..sum_at + range.end];
        let staged = &staged[staged_at + range.start..staged_at + range.end];
        if addition.is_first {
            sum.fill(0.0);
        }
        accumulate::add(sum, staged);
    }

    /// Puts the result of a finished aggregate into the batch. False if it is not kept.
    pub(crate) fn push_finished(&mut self, aggregate: Round, index: SegmentIndex, batch: &mut Batch) -> bool {
        if !self.job.is_kept(aggregate) {
            return false;
        }
        let contributions =
            self.job.asynchronous.finished[self.job.asynchronous.generation(aggregate)].contributions;
        let (at, range) = (self.aggregate_at(aggregate), self.job.layout.range(index));
        let sum = &self.sums[at + range.start..at + range.end];
        let seg = Seg { index, round: aggregate, contributions };
        accumulate::copy_into(sum, batch.push(seg, size_of_val(sum)));
        true
    }

    fn aggregates_len(&self) -> usize {
        self.job.asynchronous.generations * self.job.layout.gradient_len() as usize
    }

    fn aggregate_at(&self, aggregate: Round) -> usize {
        self.job.asynchronous.generation(aggregate) * self.job.layout.gradient_len() as usize
    }

    fn staged_at(&self, member: usize) -> usize {
        (self.job.asynchronous.generations + member) * self.job.layout.gradient_len() as usize
    }
}

impl Switch {
    /// Takes in one segment of a vector of an asynchronous job.
    pub(super) fn stage_contribution(
        &mut self,
        at: MemberAt,
        packet: &DataPacket<'_>,
    ) -> Result<(), DropReason> {
        let non_finite = self.config.non_finite;
        let mut aggregation = self.aggregation(at.job).ok_or(DropReason::UnknownMember)?;
        let whole = aggregation.stage(at.member, packet, non_finite)?;
        let end = aggregation.job.layout.segment_count();
        self.counters.contributions += 1;
        if let Some(addition) = whole {
            self.record_aggregate(at.job, &addition);
            self.queue_work(Work::Add { job: at.job, addition, next: 0, end });
        }
        Ok(())
    }

    /// Tells the flight recorder of an aggregate that begins or ends with a vector.
    fn record_aggregate(&mut self, job_at: usize, addition: &Addition) {
        let Some(job) = self.jobs[job_at].as_ref() else { return };
        let (round, threshold) = (addition.aggregate, job.asynchronous.threshold);
        let log = self.flight.log_mut(job_at);
        if addition.is_first {
            let participants = job.members().fold(0, |bits, (id, _)| bits | 1 << id);
            log.record(self.now, Incident::RoundOpened { round, participants, threshold });
        }
        if addition.is_last {
            log.record(self.now, Incident::RoundFinished { round });
        }
    }

    /// Adds segments of a vector, as far as a step goes and there is room for the results. Returns where it stopped.
    pub(super) fn add_vector(
        &mut self,
        job: usize,
        addition: &Addition,
        range: Range<u32>,
        meter: &mut Meter,
    ) -> Option<u32> {
        self.aim_results(job);
        let (mut aggregation, outbox) = self.aggregation_and_outbox(job)?;
        // The job may have been reset, or be another one.
        let is_over = addition.aggregate.is_before(aggregation.job.base);
        if is_over || aggregation.job.mode != Mode::Asynchronous {
            return None;
        }
        let members = aggregation.job.member_count();
        let mut stopped_at = None;
        for index in range.filter_map(SegmentIndex::new) {
            let len = aggregation.job.layout.packet_len(index);
            debug_assert!(len > SEG_LEN_BYTES);
            if !meter.has_left() || addition.is_last && !outbox.results.has_room(len) {
                stopped_at = Some(index.get());
                break;
            }
            let floats = aggregation.job.layout.float_count(index);
            aggregation.add_staged(addition, index);
            meter.examine(1);
            meter.add(floats);
            if addition.is_last {
                aggregation.push_finished(addition.aggregate, index, &mut outbox.results);
                meter.send(floats, members);
            }
        }
        // The member may send the segments before that of its next vector.
        aggregation.job.asynchronous.staging[addition.member].unadded_from = stopped_at;
        self.counters.results += self.outbox.results_len();
        stopped_at
    }

    /// Sends the results of an aggregate that was finished without a last vector.
    pub(super) fn publish(
        &mut self,
        job: usize,
        aggregate: Round,
        range: Range<u32>,
        meter: &mut Meter,
    ) -> Option<u32> {
        self.aim_results(job);
        let (mut aggregation, outbox) = self.aggregation_and_outbox(job)?;
        if aggregation.job.mode != Mode::Asynchronous {
            return None;
        }
        let members = aggregation.job.member_count();
        let mut stopped_at = None;
        for index in range.filter_map(SegmentIndex::new) {
            if !meter.has_left() || !outbox.results.has_room(aggregation.job.layout.packet_len(index)) {
                stopped_at = Some(index.get());
                break;
            }
            if !aggregation.push_finished(aggregate, index, &mut outbox.results) {
                break;
            }
            meter.send(aggregation.job.layout.float_count(index), members);
        }
        self.counters.results += self.outbox.results_len();
        stopped_at
    }

    /// Finishes the aggregate that is being filled with the vectors that it has.
    pub(super) fn close_aggregate(&mut self, job_at: usize) {
        let Some(job) = self.jobs[job_at].as_mut() else { return };
        let aggregate = job.asynchronous.filling();
        job.finish_aggregate();
        let end = job.layout.segment_count();
        self.queue_work(Work::Publish { job: job_at, aggregate, next: 0, end });
    }

    /// Finishes it if a member that left was all that it waited for.
    pub(super) fn close_filled_aggregate(&mut self, job_at: usize) {
        if self.jobs[job_at].as_mut().is_some_and(Job::is_filled_without_the_departed) {
            self.close_aggregate(job_at);
        }
    }
}
