//! One training job: its members, its threshold H and its rounds.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{MAX_MEMBERS, ROUND_BITS, async_generations};
use iswitch_protocol::wire::{JoinRepr, Kind, Mode, Standing, Status};
use iswitch_protocol::{Instant, Round, Seg, VectorLayout};

use super::asynchronous::Asynchronous;
use super::authentication::Seal;
use super::budget::Income;
use super::digest::Digests;
use super::flight::Incident;
use super::formation::{Chronicle, Dismissed};
use super::membership::{Member, Progress};
use super::order::{MemberOrder, SUM_VECTORS};
use super::origin::Position;
use super::output::Endpoint;

/// Rounds after which the first round of a job, and of its members, is counted from a later one.
const OLDEST_BASE_ROUNDS: u32 = 1 << (ROUND_BITS - 2);

/// A job. Its slots and sums lie in the switch's arenas.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: u32,
    pub(crate) layout: VectorLayout,
    pub(crate) mode: Mode,
    /// Workers that must have joined before the first round completes; zero if it waits for none.
    pub(crate) workers: u16,
    /// Whether they have, or those have come back who were members of an earlier run of the switch.
    pub(crate) formed: bool,
    /// When the first of them came.
    pub(crate) created: Instant,
    /// Whether it was completed by newcomers alone and waited for nobody, so that members with its sums may still come.
    pub(crate) began_with_newcomers: bool,
    /// Until it is complete: members of the last incarnation, if that gave way to the history of this one (M-9).
    pub(crate) dismissed: Dismissed,
    /// Whether it has a key: who does not prove to have it is not listened to.
    pub(crate) has_key: bool,
    /// Of its results, if data is tagged.
    pub(crate) tag_key: Option<TagKey>,
    /// Where it came from.
    pub(crate) founder: Ipv4Addr,
    /// What its slots are filled for.
    pub(crate) generation: u64,
    /// What its members have summed.
    pub(crate) chronicle: Chronicle,
    pub(crate) halted: bool,
    /// Whether the sums of its members are contributions to those of a parent switch.
    pub(crate) has_parent: bool,
    /// Whether a sum that members supply is for the parent's other members too.
    pub(crate) sends_replay_up: bool,
    /// The last round of which the parent perhaps had results already when the job was resumed below it.
    pub(crate) taken_up: Option<Round>,
    /// Whether a switch is among its members, or was: packets of those below it may still be in flight.
    had_switches: bool,
    members: [Option<Member>; MAX_MEMBERS],
    /// Bit i: member i exists.
    active: u64,
    /// Threshold H set by SetH; otherwise H follows the members.
    pub(crate) pinned_threshold: Option<u16>,
    /// The first round since the job was created or resumed.
    pub(crate) base: Round,
    /// The latest round that any contribution has opened.
    newest: Option<Round>,
    /// The latest round that was opened, or else begun with.
    position: Position,
    /// The two rounds that can be alive at once, by parity.
    rounds: [OpenRound; 2],
    /// When the first contribution to each of them came.
    opened: [Instant; 2],
    /// The latest rounds of which the flight recorder was told.
    told_opened: Option<Round>,
    told_finished: Option<Round>,
    /// In an ordered job, the order in which contributions are added.
    pub(crate) order: Option<MemberOrder>,
    /// What takes the place of the rounds in an asynchronous job.
    pub(crate) asynchronous: Asynchronous,
    /// Segments whose result is or was there.
    results: u64,
    /// Digests of the weights that members have told.
    pub(crate) digests: Digests,
    pub(crate) slots: Range<usize>,
    pub(crate) sums: Range<usize>,
}

/// What was fixed when a round opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenRound {
    pub(crate) round: Round,
    /// Members whose contributions complete a segment.
    pub(crate) participants: u64,
    /// How many of them it takes.
    pub(crate) threshold: u16,
    /// Segments without a result.
    pub(crate) unfinished: u32,
    /// Whether its packets are finished sums, sent to those who lack them.
    pub(crate) replay: Replay,
}

impl OpenRound {
    /// Whether all have left who took part in it, before it was finished.
    pub(crate) fn is_left(&self) -> bool {
        self.participants == 0 && self.unfinished > 0
    }
}

/// Who sends the sum of a round that some have and others lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replay {
    /// The round is summed like any other.
    #[default]
    Not,
    /// Members of this switch.
    Here,
    /// Others, by way of the parent.
    Above,
}

/// Members of a job that declared so many workers, at most. It has no place for those of another run.
fn max_members(workers: u16) -> u32 {
    if workers > 0 { u32::from(workers) } else { MAX_MEMBERS as u32 }
}

impl Job {
    pub(crate) fn new(
        id: u32,
        join: &JoinRepr,
        layout: VectorLayout,
        (epoch, position): (u64, Position),
        (founder, created): (Ipv4Addr, Instant),
        (slots, sums, generation): (Range<usize>, Range<usize>, u64),
    ) -> Self {
        let base = position.round();
        Self {
            id,
            layout,
            mode: join.mode,
            workers: join.workers,
            formed: false,
            created,
            began_with_newcomers: false,
            dismissed: Dismissed::default(),
            has_key: false,
            tag_key: None,
            founder,
            generation,
            chronicle: Chronicle::begin(epoch, id, base),
            halted: false,
            has_parent: false,
            sends_replay_up: false,
            taken_up: None,
            had_switches: false,
            members: [None; MAX_MEMBERS],
            active: 0,
            pinned_threshold: None,
            base,
            newest: None,
            position,
            rounds: [OpenRound::default(); 2],
            opened: [created; 2],
            told_opened: None,
            told_finished: None,
            order: None,
            asynchronous: Asynchronous::new(base, async_generations(layout.gradient_len())),
            results: 0,
            digests: Digests::default(),
            slots,
            sums,
        }
    }

    /// The first field of a Join that differs from the job's, and the job's value.
    pub(crate) fn mismatch(&self, join: &JoinRepr) -> Option<(Status, u32)> {
        let layout = &self.layout;
        if join.gradient_len != layout.gradient_len() {
            Some((Status::GradientLenMismatch, layout.gradient_len()))
        } else if join.segment_floats != layout.segment_floats() {
            Some((Status::SegmentSizeMismatch, u32::from(layout.segment_floats())))
        } else if join.mode != self.mode {
            Some((Status::ModeMismatch, self.mode as u32))
        } else if join.workers != self.workers {
            Some((Status::WorkersMismatch, u32::from(self.workers)))
        } else if join.tagged != self.tag_key.is_some() {
            Some((Status::TagMismatch, u32::from(!join.tagged)))
        } else {
            None
        }
    }

    /// How a member is answered.
    pub(super) fn seal(&self, id: usize) -> Seal {
        match self.member(id) {
            Some(member) if self.has_key => Seal::Session { job: self.id, session: member.session },
            _ => Seal::Bare,
        }
    }

    pub(crate) fn member(&self, id: usize) -> Option<&Member> {
        self.members[id].as_ref()
    }

    pub(crate) fn member_mut(&mut self, id: usize) -> Option<&mut Member> {
        self.members[id].as_mut()
    }

    /// A member has given a sign of life.
    pub(crate) fn hear_from(&mut self, id: usize, now: Instant) {
        if let Some(member) = self.member_mut(id) {
            member.last_heard = now;
        }
    }

    /// So many contributions of a member were taken at once, the last one to that round.
    pub(crate) fn note_progress(&mut self, id: usize, segments: u64, round: Option<Round>, now: Instant) {
        if let Some(member) = self.member_mut(id).filter(|_| segments > 0) {
            let segments = member.progress.segments + segments;
            member.progress = Progress { segments, round, at: now };
        }
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter().enumerate().filter_map(|(id, member)| Some((id, member.as_ref()?)))
    }

    pub(crate) fn members_mut(&mut self) -> impl Iterator<Item = (usize, &mut Member)> {
        self.members.iter_mut().enumerate().filter_map(|(id, member)| Some((id, member.as_mut()?)))
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.members.iter().flatten().map(|member| &member.endpoint)
    }

    pub(crate) fn member_count(&self) -> u16 {
        self.active.count_ones() as u16
    }

    /// Workers that all members stand for.
    pub(crate) fn weight(&self) -> u32 {
        self.members().map(|(_, member)| u32::from(member.weight)).sum()
    }

    /// Floats that a job needs memory for: two rounds, and if sums are ordered a vector for each member that it may
    /// have; or if it is asynchronous the aggregates, and a vector for each member.
    pub(crate) fn sums_len(join: &JoinRepr, layout: &VectorLayout, ordered: bool) -> Option<usize> {
        let members = max_members(join.workers) as usize;
        let vectors = match join.mode {
            Mode::Synchronous => SUM_VECTORS + if ordered { members } else { 0 },
            Mode::Asynchronous => async_generations(layout.gradient_len()) + members,
        };
        vectors.checked_mul(layout.gradient_len() as usize)
    }

    /// Slots that a job needs: two rounds, or if it is asynchronous one for what each member may set aside of each
    /// segment.
    pub(crate) fn slots_len(join: &JoinRepr, layout: &VectorLayout) -> usize {
        let segments = layout.segment_count() as usize;
        match join.mode {
            Mode::Synchronous => 2 * segments,
            Mode::Asynchronous => segments.saturating_mul(max_members(join.workers) as usize),
        }
    }

    /// Members that the job may have.
    pub(crate) fn max_members(&self) -> u32 {
        max_members(self.workers)
    }

    /// The id that the next member would get.
    pub(crate) fn free_id(&self) -> Option<usize> {
        let id = (!self.active).trailing_zeros();
        (u32::from(self.member_count()) < self.max_members()).then_some(id as usize)
    }

    /// A worker that may be asked for the state of its learner: the longest-standing one, but not `id` itself.
    pub(crate) fn peer_of(&self, id: Option<usize>) -> Option<SocketAddrV4> {
        let others =
            self.members().filter(|(other, member)| Some(*other) != id && member.kind == Kind::Worker);
        others.min_by_key(|(_, member)| member.admitted).map(|(_, member)| member.endpoint.peer)
    }

    /// The round that a member who joins now starts from: the next one, or while the job still waits for
    /// its first members, the one that is open.
    pub(crate) fn start_round(&self) -> Round {
        match self.newest {
            _ if self.mode == Mode::Asynchronous => self.asynchronous.filling(),
            Some(newest) if self.formed => newest.next(),
            _ => self.base,
        }
    }

    /// The first round that a member takes part in; the job's first for one that is gone.
    pub(crate) fn start_of(&self, id: usize) -> Round {
        self.member(id).map_or(self.base, |member| member.start)
    }

    /// Admits a member.
    pub(crate) fn admit(&mut self, id: usize, member: Member) {
        if let Some(order) = &mut self.order {
            order.insert(id, &member);
        }
        self.had_switches |= member.kind == Kind::Switch;
        self.members[id] = Some(member);
        self.asynchronous.admit_member(id, member.instance);
        self.active |= 1 << id;
        let supplied = (member.standing == Standing::Supplies).then_some(member.start);
        for parity in 0..2 {
            let takes_part = !self.formed || supplied == Some(self.rounds[parity].round);
            if takes_part && self.is_open(parity) {
                self.rounds[parity].participants |= 1 << id;
                self.fix_order(parity);
            }
        }
        self.refresh_thresholds();
    }

    /// A worker goes on at that round: those before it no longer wait for it. False if none did.
    pub(crate) fn begin_later(&mut self, id: usize, round: Round) -> bool {
        let is_worker = self.member(id).is_some_and(|member| member.kind == Kind::Worker);
        let mut is_awaited = false;
        for open in self.rounds.iter_mut().filter(|open| is_worker && open.round.is_before(round)) {
            if open.replay == Replay::Not && open.unfinished > 0 && open.participants >> id & 1 == 1 {
                open.participants &= !(1 << id);
                is_awaited = true;
            }
        }
        self.refresh_thresholds();
        is_awaited
    }

    /// Removes a member. Its contributions stay in the sums; open segments no longer wait for it.
    pub(crate) fn remove(&mut self, id: usize) -> Option<Member> {
        let member = self.members[id].take()?;
        self.active &= !(1 << id);
        for round in &mut self.rounds {
            round.participants &= !(1 << id);
        }
        self.give_up_deserted_rounds();
        self.start_over_if_incomplete();
        self.refresh_thresholds();
        Some(member)
    }

    /// Until the job is complete a departure begins it anew: whoever takes over the id of the departed member
    /// would be taken for a repetition of it.
    fn start_over_if_incomplete(&mut self) {
        if let Some(newest) = self.newest.filter(|_| !self.formed) {
            self.restart_at(newest.next());
            self.begin_anew();
        }
    }

    /// All members start at the first round, without sums before it.
    fn begin_anew(&mut self) {
        self.chronicle = Chronicle::begin(self.boot(), self.id, self.base);
        let (base, history) = (self.base, self.chronicle.before(self.base));
        for (_, member) in self.members_mut() {
            (member.start, member.history) = (base, history);
        }
    }

    /// The threshold H of a round that opens now.
    pub(crate) fn threshold(&self) -> u16 {
        self.threshold_among(self.active)
    }

    fn threshold_among(&self, participants: u64) -> u16 {
        let count = participants.count_ones() as u16;
        let waiting_for = if self.formed { 0 } else { self.workers };
        self.pinned_threshold.unwrap_or_else(|| count.max(waiting_for).max(1))
    }

    /// H follows the members of a round that is under way, unless it is pinned: what SetH changes takes
    /// effect only when a round opens.
    pub(crate) fn refresh_thresholds(&mut self) {
        if self.pinned_threshold.is_none() {
            for parity in 0..2 {
                if self.rounds[parity].replay == Replay::Not {
                    self.rounds[parity].threshold = self.threshold_among(self.rounds[parity].participants);
                }
            }
        }
    }

    fn is_open(&self, parity: usize) -> bool {
        // What is open in an asynchronous job is an aggregate.
        let newest = self.newest.filter(|_| self.mode == Mode::Synchronous);
        newest.is_some_and(|newest| {
            let round = self.rounds[parity].round;
            (round == newest || round.next() == newest) && !round.is_before(self.base)
        })
    }

    /// The state of a round that has been opened and is still kept.
    pub(crate) fn open_round(&self, round: Round) -> Option<&OpenRound> {
        let open = &self.rounds[round.parity()];
        (open.round == round && self.is_open(round.parity())).then_some(open)
    }

    /// Whether a member would take part in a round that opened now.
    pub(crate) fn would_take_part(&self, id: usize, round: Round) -> bool {
        self.member(id).is_some_and(|member| !round.is_before(member.start))
    }

    /// What would be fixed if the round opened now.
    pub(crate) fn prospective_round(&self, round: Round) -> OpenRound {
        let participants =
            (0..MAX_MEMBERS).filter(|id| self.would_take_part(*id, round)).fold(0, |bits, id| bits | 1 << id);
        let threshold = self.threshold_among(participants);
        let unfinished = self.layout.segment_count();
        OpenRound { round, participants, threshold, unfinished, replay: Replay::Not }
    }

    /// Whether a round is open or may be: it takes the place of the one two before, which must be finished.
    pub(crate) fn has_place_for(&self, round: Round) -> bool {
        let parity = round.parity();
        let there = &self.rounds[parity];
        there.round == round || !self.is_open(parity) || there.unfinished == 0
    }

    /// A segment of a round has its result.
    pub(crate) fn finish_segment(&mut self, round: Round) {
        self.note_results(1);
        let open = &mut self.rounds[round.parity()];
        if open.round == round {
            open.unfinished = open.unfinished.saturating_sub(1);
        }
    }

    /// So many segments have their results.
    pub(crate) fn note_results(&mut self, segments: u32) {
        self.results += u64::from(segments);
    }

    /// What its members' budgets are renewed by.
    pub(crate) fn income(&self, now: Instant, lease: Duration) -> Income {
        Income { segments: self.layout.segment_count(), results: self.results, now, lease }
    }

    /// Tells which rounds were opened and finished since it was asked last: of those that came and went meanwhile, the
    /// last two.
    pub(crate) fn tell_rounds(&mut self, mut tell: impl FnMut(Incident)) {
        let is_new = |told: Option<Round>, round: Round| told.is_none_or(|told| told.is_before(round));
        let (mut opened, mut finished) = (self.told_opened, self.told_finished);
        for OpenRound { round, participants, threshold, unfinished, .. } in self.open_rounds().copied() {
            if is_new(opened, round) {
                opened = Some(round);
                tell(Incident::RoundOpened { round, participants, threshold });
            }
            if unfinished == 0 && is_new(finished, round) {
                finished = Some(round);
                tell(Incident::RoundFinished { round });
            }
        }
        (self.told_opened, self.told_finished) = (opened, finished);
    }

    /// Opens a round: fixes who takes part, how many it takes and in which order they are added.
    pub(crate) fn open(&mut self, open: OpenRound, now: Instant) {
        let parity = open.round.parity();
        self.rounds[parity] = open;
        self.opened[parity] = now;
        self.fix_order(parity);
        self.note_opened(open.round);
        self.chronicle.advance(open.round);
    }

    fn fix_order(&mut self, parity: usize) {
        if let Some(order) = &mut self.order {
            order.fix(parity);
        }
    }

    /// When the first contribution to an open round came.
    pub(crate) fn opened(&self, round: Round) -> Instant {
        self.opened[round.parity()]
    }

    /// Lets the open rounds begin so much later: the switch slept and could not hear what they wait for.
    pub(crate) fn postpone_rounds(&mut self, slept: Duration) {
        for opened in &mut self.opened {
            *opened = opened.plus(slept);
        }
    }

    /// The rounds that are open, the older one first.
    pub(crate) fn open_rounds(&self) -> impl Iterator<Item = &OpenRound> {
        let rounds = self.newest.map(|newest| [newest.previous(), newest]);
        rounds.into_iter().flatten().filter_map(|round| self.open_round(round))
    }

    /// A round, or an aggregate of an asynchronous job, has its first contribution.
    pub(crate) fn note_opened(&mut self, round: Round) {
        self.newest = Some(round);
        self.position.advance(round);
        // Rounds compare over half of their range only: what lies further back is moved up.
        if round.distance_from(self.base) > OLDEST_BASE_ROUNDS {
            let base = round.minus(OLDEST_BASE_ROUNDS / 2);
            self.base = base;
            for (_, member) in self.members_mut() {
                if member.start.is_before(base) {
                    member.start = base;
                }
            }
        }
    }

    /// The latest round that was opened.
    pub(crate) fn newest(&self) -> Option<Round> {
        self.newest
    }

    /// Whether that round is the one to be opened next.
    pub(crate) fn is_next(&self, round: Round) -> bool {
        round == self.newest.map_or(self.base, Round::next)
    }

    /// The latest round that was opened, or else the first.
    pub(crate) fn current_round(&self) -> Round {
        self.newest.unwrap_or(self.base)
    }

    /// Whether the job was resumed at that round or an earlier one, below a parent that perhaps had results of it.
    pub(crate) fn is_taken_up(&self, round: Round) -> bool {
        !round.is_before(self.base) && self.taken_up.is_some_and(|last| !last.is_before(round))
    }

    /// The earliest round that was opened and is not finished, or else the latest.
    pub(crate) fn earliest_unfinished(&self) -> Round {
        let unfinished = self.open_rounds().find(|open| open.unfinished > 0).map(|open| open.round);
        unfinished.unwrap_or(self.current_round())
    }

    /// Where a member goes on whose round is over: the earliest that is kept and that it takes part in. If it went
    /// on at a later one, that one would never end, or the member would miss its sum.
    pub(crate) fn next_round_of(&self, id: usize) -> Round {
        let current = self.current_round();
        let awaits = |round: Round| self.member(id).is_some_and(|member| member.awaits(round));
        let takes_part = |round: Round| {
            self.open_round(round).is_some_and(|open| open.participants >> id & 1 == 1 || awaits(round))
        };
        let round = if takes_part(current.previous()) { current.previous() } else { current };
        let start = self.start_of(id);
        if round.is_before(start) { start } else { round }
    }

    /// The first round that none of the job's packets in flight can name. A member that has the results of the
    /// newest round has perhaps sent contributions to the one after it. If that member is a switch, it may have
    /// opened the one after that as well, and a worker that has joined it since begins with the next.
    pub(crate) fn next_unnamed_round(&self) -> Round {
        let latest = self.newest.map_or(self.base, Round::next);
        latest.plus(if self.had_switches { 3 } else { 1 })
    }

    /// Whether a contribution is to a round that no member can know of yet: its sender does not count rounds as the job
    /// does, and will wait for ever.
    pub(crate) fn is_unnamed(&self, contribution: &[u8]) -> bool {
        let seg = contribution.first_chunk().map(|bytes| Seg::from_bytes(*bytes));
        seg.is_some_and(|seg| !seg.round.is_before(self.next_unnamed_round()))
    }

    /// Where the next job begins when this one ends: beyond [`Self::next_unnamed_round`].
    pub(crate) fn position_after(&self) -> Position {
        let mut position = self.position;
        position.advance(self.next_unnamed_round());
        position
    }

    /// Goes on at a round as if none had been before.
    pub(crate) fn restart_at(&mut self, base: Round) {
        self.base = base;
        self.position.advance(base);
        self.newest = None;
        self.rounds = [OpenRound::default(); 2];
        self.asynchronous.restart_at(base);
    }

    /// Whether what the members have summed goes to the parent instead of back to them.
    pub(crate) fn goes_up(&self, round: Round) -> bool {
        let is_replayed_here = || self.open_round(round).is_some_and(|open| open.replay == Replay::Here);
        self.has_parent && (self.sends_replay_up || !is_replayed_here())
    }

    /// Whether a switch below this one may go to another parent.
    pub(crate) fn roams(&self) -> bool {
        self.members().any(|(_, member)| member.roams)
    }

    /// Levels of switches below and including this one.
    pub(crate) fn height(&self) -> u8 {
        self.members().map(|(_, member)| member.height).max().unwrap_or(0).saturating_add(1)
    }

    /// Whether one packet of a member may stand for so many contributions. Only a switch has members who may all
    /// have left.
    pub(crate) fn accepts_weight(&self, id: usize, round: Round, contributions: u16) -> bool {
        // Nearly all are one: nothing has to be looked up for them.
        contributions == 1
            || self.members[id].is_some_and(|member| member.kind == Kind::Switch)
            || self.open_round(round).is_some_and(|open| open.replay == Replay::Here)
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::budget::RepeatBudget;
    use crate::origin::Origins;
    use crate::output::PortId;

    fn member(start: Round) -> Member {
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
            standing: Standing::Fresh,
            history: 0,
            instance: 1,
            start,
            admitted: Instant::default(),
            last_heard: Instant::default(),
            held_up: None,
            session: 0,
            counter: 0,
            tag_key: None,
            repeats: RepeatBudget::new(&income),
            progress: Progress::default(),
        }
    }

    #[test]
    fn members_take_part_however_many_rounds_pass() {
        let join = JoinRepr { instance: 1, ..JoinRepr::worker(1, 1, 2) };
        let layout = VectorLayout::new(1, 1).unwrap();
        let founded = (Ipv4Addr::LOCALHOST, Instant::default());
        let position = Origins::new(9 << (u64::BITS - ROUND_BITS)).next();
        let mut job = Job::new(1, &join, layout, (1, position), founded, (0..2, 0..2, 1));
        (0..2).for_each(|id| job.admit(id, member(Round::new(9))));
        let mut round = job.base;
        for _ in 0..100 {
            let open = job.prospective_round(round);
            assert_eq!(open.participants, 0b11, "round {round}");
            assert!(!round.is_before(job.base), "round {round}");
            job.open(open, Instant::default());
            round = round.plus(1 << 20);
        }
    }
}
