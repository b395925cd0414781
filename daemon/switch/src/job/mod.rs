//! One training job: what it was declared with, its members, its rounds and its threshold H.
//!
//! The modules below build on each other: a [slot] and the [members], [rounds] and [aggregates]; [`Job`], which owns
//! them; [formation] and [standing], which decide where members start; [aggregation] and [vectors], which join a job
//! with its slots and sums.

mod aggregates;
mod aggregation;
mod digests;
mod formation;
mod history;
mod members;
mod order;
mod rounds;
mod slot;
mod standing;
mod vectors;

use core::net::Ipv4Addr;
use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{MAX_MEMBERS, async_generations};
use iswitch_protocol::wire::{JoinRepr, Kind, Mode, Status};
use iswitch_protocol::{Instant, Round, Seg, VectorLayout};

pub(crate) use aggregates::{Addition, Aggregates, Receipt};
pub(crate) use aggregation::{Aggregation, Verdict};
pub(crate) use digests::{Digests, Divergence};
pub(crate) use formation::Granted;
pub(crate) use members::{Dismissed, Member, Members, Progress, Session, Start};
pub(crate) use rounds::{OpenRound, Replay, Rounds};
pub(crate) use slot::{Generation, Generations, Slot};

use crate::budget::Income;
use crate::flight::Incident;
use crate::ids::{MemberId, MemberSet};
use crate::keys::Seal;
use crate::origin::Position;
use history::History;
use rounds::Synchronous;

/// Vectors that hold the sums of a synchronous job: one for each of the two rounds that can be alive.
const SUM_VECTORS: usize = 2;

/// A job. Its slots and sums lie in the arenas of the switch.
#[derive(Debug)]
pub(crate) struct Job {
    id: u32,
    layout: VectorLayout,
    /// Workers that must have joined before the first round completes; zero if the job waits for none.
    workers: u16,
    /// Address of the first member.
    founder: Ipv4Addr,
    created: Instant,
    /// Whether the job has a key, without which no packet changes it.
    has_key: bool,
    /// Key of the tags of its results, if data is tagged.
    tag_key: Option<TagKey>,
    /// Whether the sums of its members are contributions to those of a parent switch.
    has_parent: bool,
    members: Members,
    rounds: Rounds,
    history: History,
    /// Whether the job is complete: all workers that it waits for have joined, or the members of an earlier run of the
    /// switch have come back.
    formed: bool,
    /// Whether the job was completed by newcomers alone and waited for no other member, so that members with its sums
    /// may still come.
    began_with_newcomers: bool,
    /// Until the job is complete: members of its last incarnation, if that gave way to the history of this one (M-9).
    dismissed: Dismissed,
    /// Whether a sum that members supply is for other members of the parent too.
    sends_replay_up: bool,
    /// The last round of which the parent perhaps already had results when the job was resumed below it.
    taken_up: Option<Round>,
    halted: bool,
    /// Threshold H set by SetH; otherwise H follows the members.
    pinned_threshold: Option<u16>,
    /// Number of results, which renew the budgets of the members.
    results: u64,
    digests: Digests,
    memory: Memory,
}

/// The parts of the arenas that belong to a job.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) slots: Range<usize>,
    pub(crate) sums: Range<usize>,
    /// Slots of another generation count as empty.
    pub(crate) generation: Generation,
}

/// What the switch decides when a job is created.
pub(crate) struct Beginning {
    pub(crate) layout: VectorLayout,
    pub(crate) founder: Ipv4Addr,
    pub(crate) created: Instant,
    /// Epoch of this incarnation.
    pub(crate) epoch: u64,
    /// The first round.
    pub(crate) position: Position,
    pub(crate) has_key: bool,
    pub(crate) tag_key: Option<TagKey>,
    pub(crate) has_parent: bool,
    /// Whether contributions are added in the order of ranks, if the job is synchronous.
    pub(crate) is_ordered: bool,
    pub(crate) memory: Memory,
}

/// Members that a job with that many declared workers may have. It has no room for those of another run.
fn max_members(workers: u16) -> u32 {
    if workers > 0 { u32::from(workers) } else { MAX_MEMBERS as u32 }
}

/// Threshold H that follows the participants of a round.
fn threshold_of(participants: MemberSet, awaited_workers: u16) -> u16 {
    participants.len().max(awaited_workers).max(1)
}

impl Job {
    /// A job without members, as its first Join declares it.
    pub(crate) fn new(id: u32, join: &JoinRepr, beginning: Beginning) -> Self {
        let Beginning { layout, position, epoch, .. } = beginning;
        let rounds = match join.mode {
            Mode::Synchronous => Rounds::Synchronous(Synchronous::new(position, beginning.is_ordered)),
            Mode::Asynchronous => {
                Rounds::Asynchronous(Aggregates::new(position, async_generations(layout.gradient_len())))
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
            members: Members::new(),
            rounds,
            history: History::begin(epoch, id, position.round()),
            formed: false,
            began_with_newcomers: false,
            dismissed: Dismissed::default(),
            sends_replay_up: false,
            taken_up: None,
            halted: false,
            pinned_threshold: None,
            results: 0,
            digests: Digests::default(),
            memory: beginning.memory,
        }
    }

    /// Floats that a job needs memory for: two rounds, and if sums are ordered a vector for each member that the job
    /// may have; or if it is asynchronous the aggregates, and a vector for each member.
    pub(crate) fn sums_len(join: &JoinRepr, layout: &VectorLayout, is_ordered: bool) -> Option<usize> {
        let members = max_members(join.workers) as usize;
        let vectors = match join.mode {
            Mode::Synchronous => SUM_VECTORS + if is_ordered { members } else { 0 },
            Mode::Asynchronous => async_generations(layout.gradient_len()) + members,
        };
        vectors.checked_mul(layout.gradient_len() as usize)
    }

    /// Slots that a job needs: two rounds, or if it is asynchronous one for each segment that a member may set aside.
    pub(crate) fn slots_len(join: &JoinRepr, layout: &VectorLayout) -> usize {
        let segments = layout.segment_count() as usize;
        match join.mode {
            Mode::Synchronous => 2 * segments,
            Mode::Asynchronous => segments.saturating_mul(max_members(join.workers) as usize),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn layout(&self) -> &VectorLayout {
        &self.layout
    }

    /// Workers that the job was declared with; zero if it waits for none.
    pub(crate) fn workers(&self) -> u16 {
        self.workers
    }

    /// Address of the first member.
    pub(crate) fn founder(&self) -> Ipv4Addr {
        self.founder
    }

    pub(crate) fn created(&self) -> Instant {
        self.created
    }

    pub(crate) fn has_key(&self) -> bool {
        self.has_key
    }

    /// Whether data packets end with a tag.
    pub(crate) fn is_tagged(&self) -> bool {
        self.tag_key.is_some()
    }

    /// Key of the tags of the job's results, if data is tagged.
    pub(crate) fn result_key(&self) -> Option<&TagKey> {
        self.tag_key.as_ref()
    }

    /// Replaces the key of the tags of its results.
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

    /// The epoch of the topmost switch's incarnation, to which the history of the members belongs.
    pub(crate) fn epoch(&self) -> u64 {
        self.history.epoch()
    }

    /// Whether the job is complete: rounds end.
    pub(crate) fn is_formed(&self) -> bool {
        self.formed
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.halted
    }

    /// Suspends the job. Returns false if it was suspended before.
    pub(crate) fn halt(&mut self) -> bool {
        !core::mem::replace(&mut self.halted, true)
    }

    /// Ends a Halt.
    pub(crate) fn end_halt(&mut self) {
        self.halted = false;
    }

    /// The first field of a Join that differs from the job's, and the job's value.
    pub(crate) fn mismatch(&self, join: &JoinRepr) -> Option<(Status, u32)> {
        let (layout, mode) = (&self.layout, self.rounds.mode());
        if join.gradient_len != layout.gradient_len() {
            Some((Status::GradientLenMismatch, layout.gradient_len()))
        } else if join.segment_floats != layout.segment_floats() {
            Some((Status::SegmentSizeMismatch, u32::from(layout.segment_floats())))
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

    /// How the switch authenticates its packets to a member.
    pub(crate) fn seal(&self, id: MemberId) -> Seal {
        match self.members.get(id) {
            Some(member) if self.has_key => Seal::Session { job: self.id, session: member.session.nonce() },
            _ => Seal::Bare,
        }
    }

    /// Number of members that the job may have.
    pub(crate) fn max_members(&self) -> u32 {
        max_members(self.workers)
    }

    /// The id of the next member; none if the job is full.
    pub(crate) fn free_id(&self) -> Option<MemberId> {
        let has_room = u32::from(self.members.count()) < self.max_members();
        self.members.present().first_absent().filter(|_| has_room)
    }

    /// Records that a member is alive.
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

    /// Removes a member. Its contributions stay in the sums; open segments no longer wait for it.
    pub(crate) fn remove(&mut self, id: MemberId) -> Option<Member> {
        let member = self.members.remove(id)?;
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.remove_participant(id);
        }
        self.give_up_deserted_rounds();
        self.start_over_if_incomplete();
        self.refresh_thresholds();
        Some(member)
    }

    /// Lets rounds before `round` no longer wait for a worker that continues there. Returns false if none did.
    pub(crate) fn begin_later(&mut self, id: MemberId, round: Round) -> bool {
        let kind = self.members.get(id).map(|member| member.kind);
        let rounds = self.rounds.synchronous_mut();
        let is_awaited = kind.zip(rounds).is_some_and(|(kind, rounds)| rounds.excuse(id, kind, round));
        self.refresh_thresholds();
        is_awaited
    }

    /// A departure before the job is complete begins it anew: contributions of a successor with the departed
    /// member's id would be taken for repetitions.
    fn start_over_if_incomplete(&mut self) {
        if let Some(newest) = self.rounds.numbers().newest().filter(|_| !self.formed) {
            self.rounds.restart_at(newest.next());
            self.begin_anew();
        }
    }

    /// Starts all members at the first round, without sums before it.
    fn begin_anew(&mut self) {
        let base = self.rounds.numbers().base();
        self.history = History::begin(self.epoch(), self.id, base);
        let history = self.history.before(base);
        for (_, member) in self.members.iter_mut() {
            (member.start.round, member.start.history) = (base, history);
        }
    }

    /// Threshold H of a round that opens now.
    pub(crate) fn threshold(&self) -> u16 {
        self.threshold_among(self.members.present())
    }

    /// The threshold that SetH has set, if any.
    pub(crate) fn pinned_threshold(&self) -> Option<u16> {
        self.pinned_threshold
    }

    /// Sets the threshold H from the next round on; zero lets it follow the number of members again.
    pub(crate) fn pin_threshold(&mut self, threshold: u16) {
        self.pinned_threshold = (threshold > 0).then_some(threshold);
    }

    fn threshold_among(&self, participants: MemberSet) -> u16 {
        self.pinned_threshold.unwrap_or_else(|| threshold_of(participants, self.awaited_workers()))
    }

    /// Number of workers that must join before a round completes.
    fn awaited_workers(&self) -> u16 {
        if self.formed { 0 } else { self.workers }
    }

    /// Lets H follow the members of a round that is under way, unless H is pinned: what SetH changes takes effect only
    /// when a round opens.
    fn refresh_thresholds(&mut self) {
        if self.pinned_threshold.is_some() {
            return;
        }
        let awaited_workers = self.awaited_workers();
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.refresh_thresholds(|participants| threshold_of(participants, awaited_workers));
        }
    }

    /// What would be fixed if the round opened now.
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

    /// Counts a member's whole vector into the aggregate that is being filled; none in a synchronous job.
    fn admit_vector(&mut self, member: MemberId, contributions: u16) -> Option<Addition> {
        let threshold = self.threshold();
        let addition = self.rounds.asynchronous_mut()?.admit_vector(member, contributions, threshold);
        self.note_opened(addition.aggregate);
        if addition.is_last {
            self.finish_aggregate();
        }
        Some(addition)
    }

    /// Finishes the aggregate that is being filled with the vectors that it has. Returns its number; none in a
    /// synchronous job.
    pub(crate) fn finish_aggregate(&mut self) -> Option<Round> {
        let aggregates = self.rounds.asynchronous_mut()?;
        let aggregate = aggregates.filling();
        let next = aggregates.finish(self.history.before(aggregate));
        self.results += u64::from(self.layout.segment_count());
        self.history.advance(next);
        Some(aggregate)
    }

    /// Whether the aggregate that is being filled is complete without the members that have left.
    pub(crate) fn is_filled_without_the_departed(&mut self) -> bool {
        let (threshold, is_pinned) = (self.threshold(), self.pinned_threshold.is_some());
        let aggregates = self.rounds.asynchronous_mut();
        aggregates.is_some_and(|aggregates| aggregates.lower_threshold(threshold, is_pinned))
    }

    /// What renews the budgets of the members.
    pub(crate) fn income(&self, now: Instant, lease: Duration) -> Income {
        Income { segments: self.layout.segment_count(), results: self.results, now, lease }
    }

    /// Records which rounds were opened and finished since the last call.
    pub(crate) fn record_rounds(&mut self, record: impl FnMut(Incident)) {
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.record(record);
        }
    }

    /// Lets the open rounds begin later: the switch slept and could not hear the members that they wait for.
    pub(crate) fn postpone_rounds(&mut self, slept: Duration) {
        if let Rounds::Synchronous(rounds) = &mut self.rounds {
            rounds.postpone(slept);
        }
    }

    /// The round that a member that joins now starts from: the next one, or while the job still waits for its first
    /// members, the one that is open.
    pub(crate) fn start_round(&self) -> Round {
        let numbers = self.rounds.numbers();
        match (&self.rounds, numbers.newest()) {
            (Rounds::Asynchronous(aggregates), _) => aggregates.filling(),
            (Rounds::Synchronous(_), Some(newest)) if self.formed => newest.next(),
            _ => numbers.base(),
        }
    }

    /// The round at which a member continues whose round is over: the earliest that is kept and that it takes part
    /// in. If it continued at a later one, that one would never end, or the member would miss its sum.
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

    /// The earliest round that was opened and is not finished, or else the latest.
    pub(crate) fn earliest_unfinished(&self) -> Round {
        match &self.rounds {
            Rounds::Synchronous(rounds) => rounds.earliest_unfinished(),
            Rounds::Asynchronous(_) => self.rounds.numbers().current(),
        }
    }

    /// The first round that no packet of the job in flight can name. A member that has the results of the newest round
    /// has perhaps sent contributions to the one after it. If that member is a switch, it may have opened the one
    /// after that as well, and a worker that has joined it since begins with the next.
    pub(crate) fn next_unnamed_round(&self) -> Round {
        self.rounds.numbers().next().plus(if self.members.had_switches() { 3 } else { 1 })
    }

    /// Whether a contribution is to a round that no member can know of yet: its sender does not count rounds as the
    /// job does, and will wait for ever.
    pub(crate) fn is_unnamed(&self, contribution: &[u8]) -> bool {
        let seg = contribution.first_chunk().map(|bytes| Seg::from_bytes(*bytes));
        seg.is_some_and(|seg| !seg.round.is_before(self.next_unnamed_round()))
    }

    /// Where the next job begins when this one ends: beyond [`Self::next_unnamed_round`].
    pub(crate) fn position_after(&self) -> Position {
        let mut position = self.rounds.numbers().position();
        position.advance(self.next_unnamed_round());
        position
    }

    /// History of the members whose next round, or aggregate, is `round`; zero if it is not known.
    pub(crate) fn history_before(&self, round: Round) -> u64 {
        let kept = self.rounds.asynchronous().and_then(|aggregates| aggregates.history_before(round));
        kept.unwrap_or_else(|| self.history.before(round))
    }

    /// Whether the sums of the members are sent to the parent instead of back to them.
    pub(crate) fn goes_up(&self, round: Round) -> bool {
        let is_replayed_here =
            || self.rounds.open_round(round).is_some_and(|open| open.replay == Replay::Here);
        self.has_parent && (self.sends_replay_up || !is_replayed_here())
    }

    /// Whether the job was resumed at that round or an earlier one, below a parent that perhaps had results of it.
    pub(crate) fn is_taken_up(&self, round: Round) -> bool {
        let is_before_base = round.is_before(self.rounds.numbers().base());
        !is_before_base && self.taken_up.is_some_and(|last| !last.is_before(round))
    }

    /// The last round of which the parent perhaps already had results when the job was resumed below it.
    pub(crate) fn taken_up(&self) -> Option<Round> {
        self.taken_up
    }

    /// Levels of switches below and including this one.
    pub(crate) fn height(&self) -> u8 {
        self.members.height().saturating_add(1)
    }

    /// Whether one packet of a member may carry that many contributions: only that of a switch, whose members may all
    /// have left, or a sum that a member supplies.
    pub(crate) fn accepts_weight(&self, id: MemberId, round: Round, contributions: u16) -> bool {
        // Nearly all are one: no member is looked up for them.
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
            memory: Memory { slots: 0..2, sums: 0..2, generation: Generations::default().next() },
        }
    }

    #[test]
    fn members_take_part_however_many_rounds_pass() {
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
