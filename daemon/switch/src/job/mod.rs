//! One training job: its declaration, its members, its rounds and its threshold H.
//!
//! The submodules build on each other: a [slot], the [members], the [rounds], the [partials], the [aggregates] and the
//! [group]; [`Job`], which owns them; [formation] and [standing], which decide where members start; [aggregation],
//! [vectors], [relay] and [carded], which combine a job with its slots and sums.

mod aggregates;
mod aggregation;
pub(crate) mod carded;
mod digests;
mod formation;
mod group;
mod history;
mod members;
mod order;
mod partials;
mod relay;
mod rounds;
mod slot;
mod standing;
mod vectors;

use core::net::Ipv4Addr;
use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::history::Chain;
use iswitch_protocol::limits::{MAX_MEMBERS, async_generations};
use iswitch_protocol::wire::{JoinRepr, Kind, Mode, Standing, Status};
use iswitch_protocol::{ElementType, Instant, Round, Seg, VectorLayout};

pub(crate) use aggregates::{Addition, Aggregates, Asked, Receipt, Sum};
pub(crate) use aggregation::{Aggregation, Verdict};
pub(crate) use digests::{Digests, Divergence};
pub(crate) use formation::Granted;
pub(crate) use group::{Due, Group, Outlet, Reception};
pub(crate) use members::{Dismissed, Member, Members, Presence, Progress, Session, Start};
pub(crate) use rounds::{OpenRound, Replay, Rounds};
pub(crate) use slot::{Generation, Generations, Slot};

use crate::budget::Income;
use crate::flight::Incident;
use crate::ids::{MemberId, MemberSet};
use crate::keys::Seal;
use crate::origin::Position;
use crate::round_times::RoundTimes;
use history::History;
use partials::PARTIAL_SUMS;
use rounds::Synchronous;

/// Number of vectors that hold the sums of a synchronous job: one for each of the two rounds that can be stored at
/// once.
const SUM_VECTORS: usize = 2;

/// A job. Its slots and sums are stored in the arenas of the switch.
#[derive(Debug)]
pub(crate) struct Job {
    id: u32,
    layout: VectorLayout,
    /// Number of workers that must join before the first round can complete; zero if the job does not wait.
    workers: u16,
    /// Address of the member that created the job.
    founder: Ipv4Addr,
    created: Instant,
    /// Whether the job has a key. If so, packets without valid authentication cannot change the job.
    has_key: bool,
    /// Key for the tags of the job's results, if data is tagged.
    tag_key: Option<TagKey>,
    /// Whether the sums of the members are sent to a parent switch as contributions.
    has_parent: bool,
    /// Whether the job is assigned to the card of the switch, which sums it except in rounds that only the core can
    /// sum.
    is_for_card: bool,
    members: Members,
    rounds: Rounds,
    history: History,
    /// Whether the job is complete: all workers that it waits for have joined, or the members from an earlier run of
    /// the switch have rejoined.
    formed: bool,
    /// Whether newcomers alone completed the job, without waiting for other members. If so, members with sums of an
    /// earlier incarnation may still arrive.
    began_with_newcomers: bool,
    /// Members of the previous incarnation, if that incarnation gave way to the history of this one (M-9). Empty once
    /// the job is complete.
    dismissed: Dismissed,
    /// Whether a sum that members supply is also sent to the parent, for other members of the parent that lack it.
    sends_replay_up: bool,
    /// Round at which the parent resumed this switch (H-5). At that time, the parent may already have had results of
    /// this round and of earlier rounds. `None` if the parent did not resume the switch.
    taken_up: Option<Round>,
    halted: bool,
    /// Threshold H set by SetH; `None` if H follows the number of members.
    pinned_threshold: Option<u16>,
    /// Threshold H of the topmost switch, if the job is asynchronous and has a parent.
    threshold_above: Option<u16>,
    /// Number of results of the job so far. Each result replenishes the repeat budgets of the members.
    results: u64,
    round_times: RoundTimes,
    digests: Digests,
    /// Group of members that receive results as one multicast copy, if there is one.
    group: Option<Group>,
    memory: Memory,
}

/// Regions of the arenas that belong to a job.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) slots: Range<usize>,
    pub(crate) sums: Range<usize>,
    /// Current generation of the job; slots of other generations count as empty.
    pub(crate) generation: Generation,
}

/// Properties of a new job that the switch determines.
pub(crate) struct Beginning {
    pub(crate) layout: VectorLayout,
    pub(crate) founder: Ipv4Addr,
    pub(crate) created: Instant,
    /// Epoch of this incarnation.
    pub(crate) epoch: u64,
    /// Position of the first round.
    pub(crate) position: Position,
    pub(crate) has_key: bool,
    pub(crate) tag_key: Option<TagKey>,
    pub(crate) has_parent: bool,
    /// Whether a synchronous job adds contributions in the order of ranks.
    pub(crate) is_ordered: bool,
    /// Whether the job is assigned to the card of the switch, which sums it except in rounds that only the core can
    /// sum.
    pub(crate) is_for_card: bool,
    pub(crate) memory: Memory,
}

/// Returns the maximum number of members of a job with `workers` declared workers. Members from an earlier run of the
/// switch also count towards this limit.
fn max_members(workers: u16) -> u32 {
    if workers > 0 { u32::from(workers) } else { MAX_MEMBERS as u32 }
}

/// Returns the threshold H that follows from the participants of a round.
fn threshold_of(participants: MemberSet, awaited_workers: u16) -> u16 {
    participants.len().max(awaited_workers).max(1)
}

impl Job {
    /// Creates a job without members from its first Join.
    pub(crate) fn new(id: u32, join: &JoinRepr, beginning: Beginning) -> Self {
        let Beginning { layout, position, epoch, .. } = beginning;
        let rounds = match join.mode {
            Mode::Synchronous => Rounds::Synchronous(Synchronous::new(position, beginning.is_ordered)),
            Mode::Asynchronous => {
                let capacity = async_generations(layout.gradient_len());
                Rounds::Asynchronous(Aggregates::new(position, capacity, beginning.has_parent))
            }
        };
        Self {
            id,
            layout,
            workers: join.workers,
            founder: beginning.founder,
            created: beginning.created,
            has_key: beginning.has_key,
            tag_key: beginning.tag_key,
            has_parent: beginning.has_parent,
            is_for_card: beginning.is_for_card,
            members: Members::new(),
            rounds,
            history: History::begin(Chain::of(join.part), epoch, id, position.round()),
            formed: false,
            began_with_newcomers: false,
            dismissed: Dismissed::default(),
            sends_replay_up: false,
            taken_up: None,
            halted: false,
            pinned_threshold: None,
            threshold_above: None,
            results: 0,
            round_times: RoundTimes::default(),
            digests: Digests::default(),
            group: None,
            memory: beginning.memory,
        }
    }

    /// Returns the number of floats that a job needs memory for, or `None` on overflow. A synchronous job needs the
    /// vectors of two rounds and, with ordered sums, one vector for each member that it may have. An asynchronous job
    /// needs its aggregates, one vector for each member that it may have and, if there is a parent, its partial sums.
    pub(crate) fn sums_len(
        join: &JoinRepr,
        layout: &VectorLayout,
        is_ordered: bool,
        has_parent: bool,
    ) -> Option<usize> {
        let members = max_members(join.workers) as usize;
        let partials = if has_parent { PARTIAL_SUMS } else { 0 };
        let vectors = match join.mode {
            Mode::Synchronous => SUM_VECTORS + if is_ordered { members } else { 0 },
            Mode::Asynchronous => async_generations(layout.gradient_len()) + members + partials,
        };
        vectors.checked_mul(layout.gradient_len() as usize)
    }

    /// Returns the number of slots that a job needs. A synchronous job needs one for each segment of two rounds; an
    /// asynchronous job needs one for each segment of each member that it may have and, if there is a parent, one for
    /// each segment of each aggregate.
    pub(crate) fn slots_len(join: &JoinRepr, layout: &VectorLayout, has_parent: bool) -> usize {
        let segments = layout.segment_count() as usize;
        let aggregates = if has_parent { async_generations(layout.gradient_len()) } else { 0 };
        match join.mode {
            Mode::Synchronous => 2 * segments,
            Mode::Asynchronous => segments.saturating_mul(max_members(join.workers) as usize + aggregates),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn layout(&self) -> &VectorLayout {
        &self.layout
    }

    /// Returns the declared number of workers; zero if the job does not wait.
    pub(crate) fn workers(&self) -> u16 {
        self.workers
    }

    /// Returns the address of the member that created the job.
    pub(crate) fn founder(&self) -> Ipv4Addr {
        self.founder
    }

    pub(crate) fn created(&self) -> Instant {
        self.created
    }

    pub(crate) fn has_key(&self) -> bool {
        self.has_key
    }

    /// Returns whether the vector is one part of a longer vector, whose other parts are summed by other switches.
    pub(crate) fn is_part(&self) -> bool {
        self.history.chain() == Chain::Part
    }

    /// Returns whether data packets end with a tag.
    pub(crate) fn is_tagged(&self) -> bool {
        self.tag_key.is_some()
    }

    /// Returns the key for the tags of the job's results, if data is tagged.
    pub(crate) fn result_key(&self) -> Option<&TagKey> {
        self.tag_key.as_ref()
    }

    /// Replaces the key for the tags of the job's results.
    pub(crate) fn set_result_key(&mut self, key: TagKey) {
        self.tag_key = Some(key);
    }

    pub(crate) fn has_parent(&self) -> bool {
        self.has_parent
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    pub(crate) fn members_mut(&mut self) -> &mut Members {
        &mut self.members
    }

    pub(crate) fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn digests(&self) -> &Digests {
        &self.digests
    }

    pub(crate) fn digests_mut(&mut self) -> &mut Digests {
        &mut self.digests
    }

    /// Returns the epoch of the topmost switch's incarnation of the job, to which the histories of the members
    /// belong.
    pub(crate) fn epoch(&self) -> u64 {
        self.history.epoch()
    }

    /// Returns whether the job is complete. Rounds can finish only if it is.
    pub(crate) fn is_formed(&self) -> bool {
        self.formed
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.halted
    }

    /// Suspends the job. Returns false if it was already suspended.
    pub(crate) fn halt(&mut self) -> bool {
        !core::mem::replace(&mut self.halted, true)
    }

    /// Lifts a Halt.
    pub(crate) fn end_halt(&mut self) {
        self.halted = false;
    }

    /// Compares a Join with the job. For the first field that differs, returns the status that names the field, and the
    /// job's value of the field. Returns `None` if the Join matches the job.
    pub(crate) fn mismatch(&self, join: &JoinRepr) -> Option<(Status, u32)> {
        let (layout, mode) = (&self.layout, self.rounds.mode());
        // A whole vector is longer than each of its parts, so a different `part` is reported as a different length.
        if join.gradient_len != layout.gradient_len() || join.part != self.is_part() {
            Some((Status::GradientLenMismatch, layout.gradient_len()))
        } else if join.segment_floats != layout.segment_floats() {
            Some((Status::SegmentSizeMismatch, u32::from(layout.segment_floats())))
        } else if join.elements != layout.elements() {
            Some((Status::ElementTypeMismatch, layout.elements().code()))
        } else if join.mode != mode {
            Some((Status::ModeMismatch, mode as u32))
        } else if join.workers != self.workers {
            Some((Status::WorkersMismatch, u32::from(self.workers)))
        } else if join.tagged != self.is_tagged() {
            Some((Status::TagMismatch, u32::from(!join.tagged)))
        } else {
            None
        }
    }

    /// Returns how the switch authenticates its packets to a member.
    pub(crate) fn seal(&self, id: MemberId) -> Seal {
        match self.members.get(id) {
            Some(member) if self.has_key => Seal::Session { job: self.id, session: member.session.nonce() },
            _ => Seal::Bare,
        }
    }

    /// Returns the number of members that the job may have.
    pub(crate) fn max_members(&self) -> u32 {
        max_members(self.workers)
    }

    /// Returns a free id for the next member, or `None` if the job is full.
    pub(crate) fn free_id(&self) -> Option<MemberId> {
        let has_room = u32::from(self.members.count()) < self.max_members();
        self.members.present().first_absent().filter(|_| has_room)
    }

    /// Records that a packet from a member has arrived, which renews its lease.
    pub(crate) fn hear_from(&mut self, id: MemberId, now: Instant) {
        if let Some(member) = self.members.get_mut(id) {
            member.last_heard = now;
        }
    }

    /// Admits a member.
    pub(crate) fn admit(&mut self, id: MemberId, member: Member) {
        match &mut self.rounds {
            Rounds::Synchronous(rounds) => rounds.order_member(id, &member),
            Rounds::Asynchronous(aggregates) => {
                let first = Round::first_vector(member.instance, self.history.epoch());
                aggregates.admit_member(id, first);
            }
        }
        self.members.insert(id, member);
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.add_participant(id, &member, self.formed);
        }
        self.refresh_thresholds();
    }

    /// Removes and returns a member, if any. Its contributions stay in the sums; open segments no longer wait for it.
    pub(crate) fn remove(&mut self, id: MemberId) -> Option<Member> {
        let member = self.members.remove(id)?;
        if self.group.as_ref().is_some_and(|group| group.is_offered(id)) {
            self.leave_group();
        }
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.remove_participant(id);
        }
        self.give_up_deserted_rounds();
        self.start_over_if_incomplete();
        self.refresh_thresholds();
        Some(member)
    }

    /// Ends a worker's participation in the rounds before `round`, at which the worker continues, so that those rounds
    /// no longer wait for it. Returns false if no round waited for it.
    pub(crate) fn begin_later(&mut self, id: MemberId, round: Round) -> bool {
        let kind = self.members.get(id).map(|member| member.kind);
        let rounds = self.rounds.synchronous_mut();
        let is_awaited = kind.zip(rounds).is_some_and(|(kind, rounds)| rounds.excuse(id, kind, round));
        self.refresh_thresholds();
        is_awaited
    }

    /// Restarts an incomplete job at the next round after a departure. Without the restart, the contributions of
    /// a new member that got the id of the departed member would count as duplicates.
    fn start_over_if_incomplete(&mut self) {
        if let Some(newest) = self.rounds.numbers().newest().filter(|_| !self.formed) {
            self.rounds.restart_at(newest.next());
            self.begin_anew();
        }
    }

    /// Moves the start of all members to the first round, and gives them the initial history.
    fn begin_anew(&mut self) {
        let base = self.rounds.numbers().base();
        self.history = History::begin(self.history.chain(), self.epoch(), self.id, base);
        let history = self.history.before(base);
        for (_, member) in self.members.iter_mut() {
            (member.start.round, member.start.history) = (base, history);
        }
    }

    /// Returns the threshold H of a round or aggregate that opens now.
    pub(crate) fn threshold(&self) -> u16 {
        match &self.rounds {
            Rounds::Synchronous(_) => self.threshold_among(self.members.present()),
            // In a tree, a member may represent several workers.
            Rounds::Asynchronous(_) => {
                let workers = self.members.weight().max(u32::from(self.awaited_workers()));
                let own = workers.clamp(1, u32::from(u16::MAX)) as u16;
                self.threshold_above.or(self.pinned_threshold).unwrap_or(own)
            }
        }
    }

    /// Adopts the threshold H of the topmost switch for an asynchronous job. `is_pinned` indicates whether H was set by
    /// SetH.
    pub(crate) fn adopt_threshold(&mut self, threshold: u16, is_pinned: bool) {
        if self.passes_on() {
            self.threshold_above = Some(threshold);
            self.pinned_threshold = is_pinned.then_some(threshold);
        }
    }

    /// Returns whether the topmost switch, rather than this switch, forms the sums of an asynchronous job. If so, this
    /// switch only passes on vectors and aggregates.
    pub(crate) fn passes_on(&self) -> bool {
        self.has_parent && self.rounds.asynchronous().is_some()
    }

    /// Returns the threshold set by SetH, if any.
    pub(crate) fn pinned_threshold(&self) -> Option<u16> {
        self.pinned_threshold
    }

    /// Sets the threshold H from the next round on. Zero makes H follow the number of members again.
    pub(crate) fn pin_threshold(&mut self, threshold: u16) {
        self.pinned_threshold = (threshold > 0).then_some(threshold);
    }

    fn threshold_among(&self, participants: MemberSet) -> u16 {
        self.pinned_threshold.unwrap_or_else(|| threshold_of(participants, self.awaited_workers()))
    }

    /// Returns the number of workers that must join before a round can complete; zero once the job is complete.
    fn awaited_workers(&self) -> u16 {
        if self.formed { 0 } else { self.workers }
    }

    /// Recomputes the threshold H of the open rounds from their participants. Does nothing if SetH has pinned H,
    /// because SetH affects only rounds that open later.
    fn refresh_thresholds(&mut self) {
        if self.pinned_threshold.is_some() {
            return;
        }
        let awaited_workers = self.awaited_workers();
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.refresh_thresholds(|participants| threshold_of(participants, awaited_workers));
        }
    }

    /// Returns the state with which `round` would open now.
    pub(crate) fn prospective_round(&self, round: Round, now: Instant) -> OpenRound {
        let participants = self.members.starting_by(round);
        let threshold = self.threshold_among(participants);
        let unfinished = self.layout.segment_count();
        OpenRound { round, participants, threshold, unfinished, replay: Replay::Not, opened: now }
    }

    /// Opens a round of a synchronous job.
    pub(crate) fn open(&mut self, open: OpenRound) {
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.open(open);
        }
        self.note_opened(open.round);
        self.history.advance(open.round);
    }

    /// Records the first contribution to a round, or to an aggregate of an asynchronous job.
    fn note_opened(&mut self, round: Round) {
        if let Some(base) = self.rounds.numbers_mut().note_opened(round) {
            self.members.start_no_earlier_than(base);
        }
    }

    /// Records that a segment of a round has its result.
    fn finish_segment(&mut self, round: Round) {
        self.results += 1;
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.finish_segment(round);
        }
    }

    /// Admits a member's whole vector to the aggregate that is being filled or, if there is a parent, to the next
    /// partial sum. Returns `None` in a synchronous job.
    fn admit_vector(&mut self, member: MemberId, contributions: u16) -> Option<Addition> {
        let threshold = self.threshold();
        let addition = self.rounds.asynchronous_mut()?.admit_vector(member, contributions, threshold);
        if let Sum::Aggregate(aggregate) = addition.sum {
            self.note_opened(aggregate);
        }
        if addition.is_last {
            self.finish_aggregate();
        }
        Some(addition)
    }

    /// Records that a result of an aggregate has arrived from the parent, which means that all earlier aggregates are
    /// finished. Returns false if the result is unusable, because the aggregate is no longer kept or is so far ahead
    /// that none of the aggregates before it would be kept.
    fn note_result(&mut self, aggregate: Round) -> bool {
        let Some(aggregates) = self.rounds.asynchronous() else { return false };
        let (filling, most) = (aggregates.filling(), aggregates.capacity() as u32);
        if aggregate.is_before(filling) {
            return !aggregate.is_before(aggregates.oldest_kept());
        }
        let ahead = aggregate.distance_from(filling);
        if ahead >= most {
            return false;
        }
        for distance in 0..=ahead {
            self.note_opened(filling.plus(distance));
            self.finish_aggregate();
        }
        true
    }

    /// Discards the aggregates before `oldest`, because the parent no longer keeps them. `history` is the history
    /// before `oldest`.
    pub(crate) fn give_up_aggregates(&mut self, oldest: Round, history: u64) {
        let Some(aggregates) = self.rounds.asynchronous_mut() else { return };
        if aggregates.filling().is_before(oldest) {
            aggregates.skip_to(oldest);
            self.history.restart_at(oldest, history, None);
        } else {
            aggregates.give_up_before(oldest);
        }
    }

    /// Prepares to pass on the results of a requested aggregate that precedes the aggregates of this switch, because
    /// the parent may still have these results (V-13).
    pub(crate) fn reach_back(&mut self, aggregate: Round) {
        let is_passed_on = self.formed && self.passes_on();
        if let Some(aggregates) = self.rounds.asynchronous_mut().filter(|_| is_passed_on)
            && aggregates.may_keep(aggregate)
        {
            aggregates.reach_back(aggregate);
        }
    }

    /// Returns the aggregates and the members' vectors of an asynchronous job, or `None` if the job is synchronous.
    pub(crate) fn aggregates_mut(&mut self) -> Option<&mut Aggregates> {
        self.rounds.asynchronous_mut()
    }

    /// Finishes the aggregate that is being filled with the vectors admitted so far. Returns its number, or `None` in
    /// a synchronous job.
    pub(crate) fn finish_aggregate(&mut self) -> Option<Round> {
        let aggregates = self.rounds.asynchronous_mut()?;
        let aggregate = aggregates.filling();
        let next = aggregates.finish(self.history.before(aggregate));
        self.results += u64::from(self.layout.segment_count());
        self.history.advance(next);
        Some(aggregate)
    }

    /// After departures, lowers the threshold of the aggregate that is being filled. Returns whether the aggregate is
    /// complete under the new threshold.
    pub(crate) fn is_filled_without_the_departed(&mut self) -> bool {
        let (threshold, is_pinned) = (self.threshold(), self.pinned_threshold.is_some());
        let aggregates = self.rounds.asynchronous_mut();
        aggregates.is_some_and(|aggregates| aggregates.lower_threshold(threshold, is_pinned))
    }

    /// Returns the quantities that determine how fast the members' repeat budgets grow.
    pub(crate) fn income(&self, now: Instant, lease: Duration) -> Income {
        Income { segments: self.layout.segment_count(), results: self.results, now, lease }
    }

    /// Calls `record` for each round that was opened or finished since the last call.
    pub(crate) fn record_rounds(&mut self, now: Instant, record: impl FnMut(Incident)) {
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.record(now, &mut self.round_times, record);
        }
    }

    pub(crate) fn round_times(&self) -> &RoundTimes {
        &self.round_times
    }

    pub(crate) fn round_times_mut(&mut self) -> &mut RoundTimes {
        &mut self.round_times
    }

    /// Shifts the opening times of the open rounds by `slept`, the duration of a pause in which the switch could not
    /// hear the members that the rounds wait for.
    pub(crate) fn postpone_rounds(&mut self, slept: Duration) {
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.postpone(slept);
        }
    }

    /// Returns the round at which a member that joins now starts: the next round, or the first round if the job is not
    /// complete yet. In an asynchronous job, returns the aggregate that is being filled.
    pub(crate) fn start_round(&self) -> Round {
        let numbers = self.rounds.numbers();
        match (&self.rounds, numbers.newest()) {
            (Rounds::Asynchronous(aggregates), _) => aggregates.filling(),
            (Rounds::Synchronous(_), Some(newest)) if self.formed => newest.next(),
            _ => numbers.base(),
        }
    }

    /// Returns the round at which a member continues if its round is over: the earliest kept round in which the member
    /// takes part. If the member continued at a later round, the earlier one would never finish, or the member would
    /// miss its sum.
    pub(crate) fn next_round_of(&self, id: MemberId) -> Round {
        let current = self.rounds.numbers().current();
        let awaits = |round: Round| self.members.get(id).is_some_and(|member| member.awaits(round));
        let takes_part = |round: Round| {
            let open = self.rounds.open_round(round);
            open.is_some_and(|open| open.participants.contains(id) || awaits(round))
        };
        let round = if takes_part(current.previous()) { current.previous() } else { current };
        let start = self.members.get(id).map_or(self.rounds.numbers().base(), |member| member.start.round);
        if round.is_before(start) { start } else { round }
    }

    /// Returns the earliest round that was opened and is not finished, or the latest round if all are finished.
    pub(crate) fn earliest_unfinished(&self) -> Round {
        match &self.rounds {
            Rounds::Synchronous(rounds) => rounds.earliest_unfinished(),
            Rounds::Asynchronous(_) => self.rounds.numbers().current(),
        }
    }

    /// Returns the first round that no in-flight packet of the job can name. A member that has the results of the
    /// newest round may have sent contributions to the round after it. If that member is a switch, it may also have
    /// opened the following round, and a worker that has joined that switch since then starts one round after that.
    pub(crate) fn next_unnamed_round(&self) -> Round {
        self.rounds.numbers().next().plus(if self.members.had_switches() { 3 } else { 1 })
    }

    /// Returns whether a contribution names a round that no member can have reached yet. The sender of such a
    /// contribution has lost track of the rounds of the job and would otherwise wait forever.
    pub(crate) fn is_unnamed(&self, contribution: &[u8]) -> bool {
        let seg = contribution.first_chunk().map(|bytes| Seg::from_bytes(*bytes));
        seg.is_some_and(|seg| !seg.round.is_before(self.next_unnamed_round()))
    }

    /// Returns the position at which the next job begins after this one ends: the position of
    /// [`Self::next_unnamed_round`].
    pub(crate) fn position_after(&self) -> Position {
        let mut position = self.rounds.numbers().position();
        position.advance(self.next_unnamed_round());
        position
    }

    /// Returns the history of the members whose next round or aggregate is `round`, or zero if it is not known.
    pub(crate) fn history_before(&self, round: Round) -> u64 {
        let kept = self.rounds.asynchronous().and_then(|aggregates| aggregates.history_before(round));
        kept.unwrap_or_else(|| self.history.before(round))
    }

    /// Returns whether the sum of a round is sent to the parent instead of back to the members.
    pub(crate) fn goes_up(&self, round: Round) -> bool {
        let is_replayed_here =
            || self.rounds.open_round(round).is_some_and(|open| open.replay == Replay::Here);
        self.has_parent && (self.sends_replay_up || !is_replayed_here())
    }

    /// Returns the number of switch levels up to and including this switch.
    pub(crate) fn height(&self) -> u8 {
        self.members.height().saturating_add(1)
    }

    /// Returns the element type of a member's packets in a round (D-8).
    #[inline]
    pub(crate) fn element_type(&self, id: MemberId, round: Round) -> ElementType {
        let elements = self.layout.elements();
        // Fast path: the types differ only in jobs with 16-bit contributions.
        if elements.contributions() == ElementType::F32 {
            return ElementType::F32;
        }
        match self.members.get(id) {
            Some(member) if member.kind == Kind::Switch => ElementType::F32,
            Some(Member { start: Start { standing: Standing::Supplies, round: supplied, .. }, .. })
                if *supplied == round =>
            {
                elements.results()
            }
            _ => elements.contributions(),
        }
    }

    /// Returns whether one packet from a member may carry `contributions` worker gradients. A worker's own contribution
    /// carries one. Only a switch, or a member that supplies a sum, may send a different number. A switch sends zero if
    /// all its members have left.
    pub(crate) fn accepts_weight(&self, id: MemberId, round: Round, contributions: u16) -> bool {
        // Fast path: nearly all packets carry one contribution and need no lookup of the member.
        contributions == 1
            || self.members.get(id).is_some_and(|member| member.kind == Kind::Switch)
            || self.rounds.open_round(round).is_some_and(|open| open.replay == Replay::Here)
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddrV4;

    use iswitch_protocol::limits::ROUND_BITS;
    use iswitch_protocol::wire::Standing;

    use super::*;
    use crate::budget::RepeatBudget;
    use crate::endpoint::{Endpoint, PortId};
    use crate::origin::Origins;

    fn member(round: Round) -> Member {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5000);
        let income = Income { segments: 1, results: 0, now: Instant::default(), lease: Duration::ZERO };
        let endpoint =
            Endpoint { port: PortId(0), peer: address, local: address, peer_mac: [0; 6], local_mac: [0; 6] };
        Member {
            endpoint,
            kind: Kind::Worker,
            weight: 1,
            height: 0,
            roams: false,
            rank: 0,
            join_request: 1,
            resume: None,
            start: Start { standing: Standing::Fresh, round, history: 0 },
            instance: 1,
            admitted: Instant::default(),
            last_heard: Instant::default(),
            held_up: None,
            session: Session::NONE,
            repeats: RepeatBudget::new(&income),
            reception: Reception::new(None),
            presence: Presence::Unasked,
            progress: Progress::default(),
        }
    }

    fn beginning() -> Beginning {
        Beginning {
            layout: VectorLayout::new(1, 1).unwrap(),
            founder: Ipv4Addr::LOCALHOST,
            created: Instant::default(),
            epoch: 1,
            position: Origins::new(9 << (u64::BITS - ROUND_BITS)).next(),
            has_key: false,
            tag_key: None,
            has_parent: false,
            is_ordered: false,
            is_for_card: false,
            memory: Memory { slots: 0..2, sums: 0..2, generation: Generations::default().next() },
        }
    }

    #[test]
    fn members_participate_after_any_number_of_rounds() {
        let join = JoinRepr { instance: 1, ..JoinRepr::worker(1, 1, 2) };
        let mut job = Job::new(1, &join, beginning());
        let ids = [0, 1].map(MemberId::new);
        ids.iter().for_each(|id| job.admit(*id, member(Round::new(9))));
        let mut round = job.rounds().numbers().base();
        for _ in 0..100 {
            let open = job.prospective_round(round, Instant::default());
            assert_eq!(open.participants, ids.into_iter().collect(), "round {round}");
            assert!(!round.is_before(job.rounds().numbers().base()), "round {round}");
            job.open(open);
            round = round.plus(1 << 20);
        }
    }
}
