//! Completion (formation) of a job, and the choice of the rounds at which its members start.
//!
//! A restarted switch knows nothing of its jobs. The members rejoin, and their histories show which sums they have. The
//! job continues with round numbers that no packet from before the restart can contain. If some members lack the last
//! sum, the members that hold it resend it: that round is replayed, not summed.

use core::net::SocketAddrV4;
use core::time::Duration;

use iswitch_protocol::history::Chain;
use iswitch_protocol::limits::ROUND_BITS;
use iswitch_protocol::wire::{JoinRepr, Kind, ResumeRepr, Standing};
use iswitch_protocol::{Instant, Round};

use super::Job;
use super::aggregates::Aggregates;
use super::history::{STARTS, starts_from};
use super::members::{Dismissed, Member, Start};
use super::rounds::{OpenRound, Replay, Rounds};
use super::slot::Generation;
use crate::event::Departure;
use crate::ids::{MemberId, MemberSet};

/// Minimum distance, in rounds, from the latest round that a member names to the first round of a resumed job. It
/// allows for a member whose next round is one behind that of the other members, and for one round that is replayed.
const RESUME_GAP_ROUNDS: u32 = 3;
/// Upper bound (exclusive) of the gap that is added to [`RESUME_GAP_ROUNDS`], in rounds. The gap is derived from the
/// epoch, so that successive runs of the switch do not use the same rounds.
const RESUME_GAP_DRAWN: u64 = 256;

/// Maximum distance, in rounds, between two rounds that packets in flight from the same member can name.
const FAR_ROUNDS: u32 = 1 << 16;

/// Bit of the `behind` field in a switch's Join to an asynchronous job. If it is set, the field holds the number of an
/// aggregate.
const NAMED: u64 = 1 << ROUND_BITS;

/// History that the rejoining members of a job have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommonHistory {
    /// History of the members that are up to date.
    pub(super) latest: u64,
    /// History of the members that lack the last sum, if there are such members and another member holds the sum.
    pub(super) behind: Option<u64>,
}

impl CommonHistory {
    fn of(job: &Job) -> Option<Self> {
        match job.rounds {
            Rounds::Synchronous(_) => Self::of_most(job),
            Rounds::Asynchronous(_) => Self::of_the_furthest(job),
        }
    }

    /// Returns the history of the resuming member with the latest round, or `None` if no member resumes. In an
    /// asynchronous job, other members may lack several of the sums of that member (V-9).
    fn of_the_furthest(job: &Job) -> Option<Self> {
        let resuming = job.members.resuming();
        let furthest = resuming.reduce(|a, b| if a.round.is_before(b.round) { b } else { a })?;
        Some(Self { latest: furthest.history, behind: None })
    }

    /// Returns the history that most resuming members share, or `None` if no member resumes. In a tie, the history of
    /// the member with the lowest id is chosen.
    fn of_most(job: &Job) -> Option<Self> {
        let mut best: Option<(usize, Self)> = None;
        for candidate in job.members.resuming() {
            let latest = candidate.history;
            let mut peers = job.members.resuming().filter(|resume| resume.history == latest);
            let behind = peers.find(|resume| resume.previous != 0).map(|resume| resume.previous);
            let common = Self { latest, behind };
            let size = job.members.resuming().filter(|resume| common.includes(resume)).count();
            if best.is_none_or(|(most, _)| size > most) {
                best = Some((size, common));
            }
        }
        best.map(|(_, common)| common)
    }

    fn includes(&self, resume: &ResumeRepr) -> bool {
        resume.history == self.latest || self.is_behind(resume)
    }

    /// Returns whether a member lacks only the last sum.
    pub(super) fn is_behind(&self, resume: &ResumeRepr) -> bool {
        self.behind.is_some_and(|behind| lacks_after(resume, behind))
    }

    /// Returns whether a member holds the last sum.
    pub(super) fn holds_last(&self, resume: &ResumeRepr) -> bool {
        resume.history == self.latest && self.behind.is_some_and(|behind| resume.previous == behind)
    }

    /// Returns the history of the members that lack the last sum. This history is stated by a child switch, or inferred
    /// from a member whose next round is one round behind the other members. Returns `None` if no member is known to
    /// lack the last sum.
    fn lacked(&self, job: &Job) -> Option<u64> {
        let up_to_date = || job.members.returning().filter(|resume| resume.history == self.latest);
        let below = up_to_date().map(|resume| resume.behind).find(|behind| *behind != 0);
        let next = up_to_date().next()?.round;
        let own = || {
            let mut returning = job.members.returning();
            returning.find(|resume| resume.round.next() == next).map(|resume| resume.history)
        };
        below.or_else(own)
    }
}

/// Returns whether a member has the sums up to the history `behind`, but not the next one. A child switch with such
/// members lacks that sum too, unless other members of that switch hold it and can therefore supply it.
fn lacks_after(resume: &ResumeRepr, behind: u64) -> bool {
    !resume.fresh && (resume.history == behind || resume.behind == behind && resume.previous == 0)
}

/// Returns the later of two rounds.
fn later(a: Round, b: Round) -> Round {
    if a.is_before(b) { b } else { a }
}

/// Returns the latest aggregate that the Join of a member of an asynchronous job names. A child switch names the latest
/// aggregate of its Fresh members in the `behind` field (M-9).
fn latest_named(resume: &ResumeRepr) -> Round {
    let is_stated = resume.behind & NAMED != 0;
    if is_stated { later(resume.round, Round::new(resume.behind as u32)) } else { resume.round }
}

/// Returns whether one of two histories is reached from the other by adding at most `most` sums. Each history is paired
/// with the round that it precedes.
fn are_on_one_chain(a: (Round, u64), b: (Round, u64), chain: Chain, epoch: u64, most: u32) -> bool {
    let (from, to) = if a.0.is_before(b.0) { (a, b) } else { (b, a) };
    let distance = to.0.distance_from(from.0);
    let step = |history: u64, ahead: u32| chain.after(history, epoch, from.0.plus(ahead));
    distance <= most && (0..distance).fold(from.1, step) == to.1
}

/// Start that the parent granted to this switch's job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    /// Epoch of the topmost switch.
    pub(crate) epoch: u64,
    pub(crate) start: Start,
    /// Whether the parent may still have the sum of the round before the one in which the job starts.
    pub(crate) keeps_last: bool,
    /// Number of this switch's first vector at the parent, in an asynchronous job.
    pub(crate) first_vector: Round,
}

/// Plan that determines the round at which each member of a job continues.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Next round that is summed. `latest` is the history before this round.
    next: Round,
    latest: u64,
    /// First round of the members that share no history with the others, and the history before that round.
    fresh: (Round, u64),
    /// Rounds, from `next` on, that members of the same parent may have reached, each with the history before it.
    starts: [(Round, u64); STARTS],
    /// History of the members that await the last sum in the round before `next`, and the source of that sum.
    awaiting: Option<(u64, Replay)>,
}

impl Plan {
    /// Creates a plan in which all members begin at `next`, except those that await the last sum.
    fn new(next: Round, latest: u64, awaiting: Option<(u64, Replay)>) -> Self {
        let fresh = (next, latest);
        Self { next, latest, fresh, starts: [fresh; STARTS], awaiting }
    }

    /// Creates a plan in which all members begin at `next`, except those that are known to have reached one of the
    /// following rounds.
    fn under_way(next: Round, latest: u64, chain: Chain, epoch: u64) -> Self {
        Self { starts: starts_from(next, latest, chain, epoch), ..Self::new(next, latest, None) }
    }

    /// Returns the start of a member that lacks more than the last sum.
    fn start_of(&self, own: Option<u64>) -> Start {
        let known = self.starts.iter().find(|(_, before)| own == Some(*before));
        let (standing, (round, history)) =
            known.map_or((Standing::Fresh, self.fresh), |start| (Standing::Resumed, *start));
        Start { standing, round, history }
    }
}

impl Job {
    /// Returns whether the job is assigned to the card of the switch. At most one job is.
    pub(crate) fn is_for_card(&self) -> bool {
        self.is_for_card
    }

    /// Revokes the assignment of the job to the card.
    pub(crate) fn keep_from_card(&mut self) {
        self.is_for_card = false;
    }

    /// Returns whether a Join shows that the job began without the members that hold its sums (M-9). This can happen
    /// because a switch that has just started does not know these members, and a job without declared workers does not
    /// wait for any.
    pub(crate) fn gives_way_to(&self, join: &JoinRepr, now: Instant, lease: Duration) -> bool {
        let is_young = self.began_with_newcomers && now.since(self.created) <= lease;
        let has_other_sums = |resume: ResumeRepr| !resume.fresh && self.round_after(resume.history).is_none();
        is_young && join.resume.is_some_and(has_other_sums) && self.mismatch(join).is_none()
    }

    /// Records the members of the incarnation that gave way to this one. The sums of these members are ignored.
    pub(crate) fn dismiss(&mut self, dismissed: &Dismissed) {
        self.dismissed = *dismissed;
    }

    /// Returns the sums that the sender of a Join claims to have, or `None` if the sender does not resume. The claim of
    /// a dismissed member is marked as Fresh and therefore ignored.
    pub(crate) fn resume_of(&self, join: &JoinRepr, from: SocketAddrV4) -> Option<ResumeRepr> {
        let is_dismissed = self.dismissed.contains(from);
        join.resume.map(|resume| ResumeRepr { fresh: resume.fresh || is_dismissed, ..resume })
    }

    /// Returns whether all members that the job waits for have joined: the declared workers or, for a resumed job, the
    /// members that it had before.
    pub(crate) fn is_gathered(&self) -> bool {
        let (members, weight) = (u32::from(self.members.count()), self.members.weight());
        // A Fresh member has no sums, but knows how many members there were. The members that hold the sums may still
        // arrive.
        let had =
            |count: fn(&ResumeRepr) -> u16| self.members.returning().map(count).max().map_or(0, u32::from);
        // The workers of a job that roams cannot know which of them are at another switch.
        if !self.is_returning() || self.roams() {
            self.has_parent || weight >= u32::from(self.workers)
        } else if self.has_parent {
            members >= had(|resume| resume.members).min(self.max_members())
        } else {
            weight >= had(|resume| resume.weight)
        }
    }

    /// Returns whether all members have shown that they still use this switch, if the switch must know this before it
    /// completes the job (M-14). Without this check, the job could be completed with a worker that has moved to another
    /// switch, perhaps without having been able to leave this one. The sums that its Join states would then no longer
    /// be its latest ones.
    pub(crate) fn is_attended(&self) -> bool {
        !self.roams() || self.members.are_shown()
    }

    /// Returns whether the members that have rejoined may continue without the members that are still missing. If any
    /// of the rejoined members is a switch that can change its parent, the rejoined members must represent a majority
    /// of the workers, so that two parts of the job never continue independently. A job that roams waits for all of its
    /// workers.
    pub(crate) fn may_continue_without_the_rest(&self) -> bool {
        let had = self.members.returning().map(|resume| u32::from(resume.weight)).max().unwrap_or(0);
        let is_majority = 2 * self.members.weight() > had;
        self.is_returning() && !self.roams() && (!self.members.roam() || is_majority)
    }

    /// Returns whether the workers of the job can move to another switch. Two switches must never sum vectors of such a
    /// job at the same time. Each of them therefore waits for all declared workers, and sums nothing before every
    /// worker has shown that it still uses this switch. If a worker is lost, the switch does not continue without it,
    /// because the worker may be at another switch (M-14).
    pub(crate) fn roams(&self) -> bool {
        !self.has_parent && self.members.had_roaming_workers()
    }

    /// Returns whether the incarnation of the job ends because a member departs for the reason `why`. A worker that
    /// leaves before it has shown that it knows that the job is complete did not intend to leave a complete job: it is
    /// moving to another switch.
    pub(crate) fn ends_without(&self, id: MemberId, why: Departure) -> bool {
        let is_lost = match why {
            Departure::Silent | Departure::Restarted => true,
            Departure::Leave => !self.members.has_confirmed(id),
            Departure::Forgotten | Departure::Expelled => false,
        };
        is_lost && self.ends_with_newcomer()
    }

    /// Returns whether the incarnation of the job ends because a worker joins.
    pub(crate) fn ends_with_newcomer(&self) -> bool {
        self.formed && self.roams()
    }

    /// Processes a contribution to `round`. In a synchronous job without a key, the round shows that the member knows
    /// that this incarnation is complete: earlier packets from the member name earlier rounds.
    pub(crate) fn confirm_by_contribution(&mut self, id: MemberId, round: Round) {
        let is_known = self.rounds.synchronous().is_some() && !round.is_before(self.rounds.numbers().base());
        if is_known && !self.has_key {
            self.members.confirm(id);
        }
    }

    /// Returns whether a Join from a member's address is from the same process, or from a restarted switch that
    /// returned in time to continue.
    pub(crate) fn is_known(&self, id: MemberId, join: &JoinRepr) -> bool {
        let Some(member) = self.members.get(id) else { return false };
        let resumes_at = join.resume.and_then(|resume| self.history.round_after(resume.history));
        let is_formed = self.formed && self.rounds.synchronous().is_some();
        let comes_back = || resumes_at.is_some_and(|round| is_formed && !round.is_before(member.start.round));
        member.instance == join.instance || member.kind == Kind::Switch && comes_back()
    }

    /// Returns whether any member rejoined with sums.
    pub(crate) fn is_resumed(&self) -> bool {
        self.members.resuming().next().is_some()
    }

    /// Returns whether any member was already a member of an earlier incarnation, with or without sums.
    fn is_returning(&self) -> bool {
        self.members.returning().next().is_some()
    }

    /// Completes the job; rounds can finish from then on. `granted` is the start that the parent granted, if there is a
    /// parent.
    pub(crate) fn form(&mut self, generation: Generation, granted: Option<Granted>, now: Instant) {
        self.formed = true;
        if self.roams() {
            self.members.expect_confirmations();
        }
        if let Some(granted) = granted.filter(|_| self.passes_on()) {
            self.memory.generation = generation;
            return self.form_below(&granted);
        }
        self.began_with_newcomers = self.workers == 0 && granted.is_none() && !self.is_returning();
        self.dismissed = Dismissed::default();
        let common = CommonHistory::of(self);
        if let Some(Granted { epoch, start, .. }) = granted {
            self.history.adopt(epoch);
            self.sends_replay_up = start.standing == Standing::Supplies;
            self.taken_up = (start.standing == Standing::Resumed).then_some(start.round);
        }
        let plan = match (granted, common) {
            (Some(granted), common) => Some(self.plan_as_granted(granted, common)),
            (None, common) => common.map(|common| self.plan(common, self.unused_round())),
        };
        if let Some(plan) = plan {
            self.memory.generation = generation;
            self.carry_out(plan, now);
        }
        self.refresh_thresholds();
    }

    /// Returns the resume fields of this switch's own Join, which summarize the resume fields of its members. `members`
    /// is the number of members that the job had at the parent. Returns `None` if no member resumes.
    pub(crate) fn resume_of_all(&self, members: u16) -> Option<ResumeRepr> {
        let common = CommonHistory::of(self)?;
        let holder = self.members.resuming().find(|resume| common.holds_last(resume));
        let resume = ResumeRepr {
            round: self.members.returning().map(|resume| resume.round).reduce(later)?,
            members,
            weight: self.members.resuming().map(|resume| resume.weight).max()?,
            threshold: 0,
            history: common.latest,
            previous: holder.map_or(0, |resume| resume.previous),
            behind: common.lacked(self).unwrap_or(0),
            fresh: false,
        };
        if let Rounds::Synchronous(_) = self.rounds {
            return Some(resume);
        }
        // The topmost switch applies H and continues from the history that has advanced furthest. A member that lacks
        // sums may nevertheless name a later aggregate.
        let threshold = self.members.returning().map(|resume| resume.threshold).max().unwrap_or(0);
        let furthest = self.members.resuming().map(|resume| resume.round).reduce(later)?;
        let named = self.members.returning().map(latest_named).reduce(later)?;
        let behind = if named == furthest { 0 } else { NAMED | u64::from(named.get()) };
        Some(ResumeRepr { round: furthest, threshold, behind, ..resume })
    }

    /// Completes an asynchronous job of a switch that has a parent. The parent knows one history. Members with this
    /// history, and members that are a few sums behind or ahead of it, are Resumed. The standing that the parent
    /// granted does not matter: a member with sums may have joined after this switch had sent its own Join.
    fn form_below(&mut self, granted: &Granted) {
        let Granted { epoch, start, first_vector, .. } = *granted;
        let Start { round, history, .. } = start;
        self.dismissed = Dismissed::default();
        self.history.adopt(epoch);
        let chain = self.history.chain();
        let Some(capacity) = self.rounds.asynchronous().map(Aggregates::capacity) else { return };
        let mut base = round;
        for (_, member) in self.members.iter_mut() {
            let place = member.resume.and_then(|resume| {
                let own = (resume.round, resume.history);
                let is_same = (resume.history == history).then_some(round);
                let is_near = || are_on_one_chain(own, (round, history), chain, epoch, capacity as u32);
                is_same.or_else(|| is_near().then_some(resume.round)).map(|round| (round, resume.history))
            });
            member.start = match place {
                Some((round, history)) => Start { standing: Standing::Resumed, round, history },
                None => Start { standing: Standing::Fresh, round, history },
            };
            if member.start.round.is_before(base) {
                base = member.start.round;
            }
        }
        let first = self.members.iter().map(|(_, member)| member.start).find(|start| start.round == base);
        let first = first.map_or((round, history), |start| (start.round, start.history));
        self.begin_below(first, (round, history), first_vector);
    }

    /// Recognizes the history of a member that lacks aggregates that precede those of this switch, if both histories
    /// belong to the same sequence of sums. The parent may still have the results of these aggregates (V-13).
    pub(crate) fn recognize(&mut self, resume: &ResumeRepr) {
        let (chain, epoch) = (self.history.chain(), self.epoch());
        let is_passed_on = self.formed && self.passes_on();
        let Some(aggregates) = self.rounds.asynchronous().filter(|_| is_passed_on) else { return };
        let (filling, own) = (aggregates.filling(), (resume.round, resume.history));
        let (known, most) = ((filling, self.history.before(filling)), aggregates.capacity() as u32);
        if !aggregates.may_keep(resume.round) || !are_on_one_chain(own, known, chain, epoch, most) {
            return;
        }
        let Some(aggregates) = self.rounds.asynchronous_mut() else { return };
        aggregates.reach_back(resume.round);
        let mut at = own;
        while at.0 != filling {
            aggregates.set_history(at.0, at.1);
            at = (at.0.next(), chain.after(at.1, epoch, at.0));
        }
    }

    /// Prepares an asynchronous job to pass on the aggregates from the parent. `first` is the first of these
    /// aggregates, with the history before it. The aggregates before `next` are already finished.
    fn begin_below(&mut self, first: (Round, u64), next: (Round, u64), first_vector: Round) {
        let epoch = self.epoch();
        self.rounds.restart_at(first.0);
        self.history.restart_at(first.0, first.1, None);
        while self.rounds.asynchronous().is_some_and(|aggregates| aggregates.filling().is_before(next.0)) {
            self.finish_aggregate();
        }
        let Some(aggregates) = self.rounds.asynchronous_mut() else { return };
        if let Some(partials) = aggregates.partials_mut() {
            partials.restart(first_vector);
        }
        // The numbers of the members' vectors depend on the epoch of the topmost switch.
        for (id, member) in self.members.iter() {
            aggregates.admit_member(id, Round::first_vector(member.instance, epoch));
        }
    }

    /// Returns the round at which a resumed job continues. No packet of an earlier run of the switch or of an earlier
    /// job names this round, or the round before it, in which a sum may be replayed.
    fn unused_round(&self) -> Round {
        let gap = RESUME_GAP_ROUNDS + (self.epoch() % RESUME_GAP_DRAWN) as u32;
        let first = self.rounds.numbers().base().next();
        // Compare each claim only with the first round. If claims were compared with each other, a chain of claims,
        // each later than the preceding one, could make the round numbers wrap around.
        let is_asynchronous = self.rounds.asynchronous().is_some();
        let named = |resume: &ResumeRepr| if is_asynchronous { latest_named(resume) } else { resume.round };
        self.members
            .returning()
            .map(|resume| named(resume).plus(gap))
            .filter(|round| first.is_before(*round))
            .max_by_key(|round| round.distance_from(first))
            .unwrap_or(first)
    }

    fn plan(&self, common: CommonHistory, next: Round) -> Plan {
        let CommonHistory { latest, behind } = common;
        // Members may name rounds of different runs or switches, whose numbers are unrelated.
        let is_far_after = |named: Round, round: Round| named.distance_from(round) > FAR_ROUNDS;
        let is_unnamed = |named: Round, round: Round| named.is_before(round) || is_far_after(named, round);
        let is_unused = |round: Round| self.members.returning().all(|resume| is_unnamed(resume.round, round));
        let is_lacked = || self.members.resuming().any(|resume| common.is_behind(resume));
        let awaiting =
            behind.filter(|_| is_lacked() && is_unused(next.previous())).map(|behind| (behind, Replay::Here));
        Plan::new(next, latest, awaiting)
    }

    fn plan_as_granted(&self, granted: Granted, common: Option<CommonHistory>) -> Plan {
        let Granted { epoch, start: Start { standing, round, history }, keeps_last, .. } = granted;
        let (following, chain) = (round.next(), self.history.chain());
        match (standing, common) {
            (Standing::Resumed, Some(common)) => {
                let awaiting = self.plan(common, round).awaiting;
                let first = self.last_round_lacked(epoch, round, common).filter(|_| keeps_last);
                let (next, latest) = first.unwrap_or((round, common.latest));
                // Fresh members start one round later, because `round` may be under way and already contain a
                // contribution that such a member made in an earlier membership.
                let fresh = (following, chain.after(common.latest, epoch, round));
                Plan { fresh, awaiting, ..Plan::under_way(next, latest, chain, epoch) }
            }
            (Standing::Supplies, Some(CommonHistory { latest, behind: Some(behind) })) => {
                Plan::new(following, latest, Some((behind, Replay::Here)))
            }
            (Standing::Awaits, Some(common)) => {
                let is_up_to_date = common.latest == history;
                let own = if is_up_to_date { common.lacked(self) } else { Some(common.latest) };
                Plan::new(following, history, own.map(|own| (own, Replay::Above)))
            }
            (Standing::Supplies | Standing::Awaits, _) => Plan::new(following, history, None),
            (Standing::Fresh | Standing::Resumed, _) => Plan::under_way(round, history, chain, epoch),
        }
    }

    /// If an earlier run of this switch sent the sum of the round before the granted one to only some of the members,
    /// returns that round and the history before it. The other members still lack the sum, and the parent still has it.
    fn last_round_lacked(&self, epoch: u64, granted: Round, common: CommonHistory) -> Option<(Round, u64)> {
        let last = granted.previous();
        let chain = self.history.chain();
        let lacks_last = |own: &u64| chain.after(*own, epoch, last) == common.latest;
        let mut all = self.members.returning().flat_map(|resume| [resume.history, resume.behind]);
        all.find(lacks_last).map(|own| (last, own))
    }

    fn carry_out(&mut self, plan: Plan, now: Instant) {
        let Plan { next, latest, awaiting, .. } = plan;
        let suppliers = self.start_members(&plan);
        let pinned = self.members.resuming().map(|resume| resume.threshold).find(|threshold| *threshold > 0);
        self.pinned_threshold = pinned;
        let Some((behind, replay)) = awaiting else {
            self.rounds.restart_at(next);
            return self.history.restart_at(next, latest, None);
        };
        let replayed = next.previous();
        self.rounds.restart_at(replayed);
        self.history.restart_at(replayed, behind, Some(latest));
        let unfinished = self.layout.segment_count();
        let participants = suppliers;
        self.open(OpenRound { round: replayed, participants, threshold: 1, unfinished, replay, opened: now });
    }

    /// Sets the round at which each member starts, and its standing, according to the plan. Returns the members that
    /// supply the last sum to the members that lack it.
    fn start_members(&mut self, plan: &Plan) -> MemberSet {
        let Plan { next, latest, awaiting, .. } = *plan;
        let replayed = next.previous();
        let mut suppliers = MemberSet::EMPTY;
        for (id, member) in self.members.iter_mut() {
            let start = |standing, round| Start { standing, round, history: latest };
            member.start = match (member.resume, awaiting) {
                (Some(resume), Some((behind, _))) if lacks_after(&resume, behind) => {
                    start(Standing::Awaits, replayed)
                }
                (Some(resume), Some((behind, Replay::Here)))
                    if resume.history == latest && resume.previous == behind =>
                {
                    suppliers = suppliers.with(id);
                    start(Standing::Supplies, replayed)
                }
                (Some(resume), _) if resume.history == latest => start(Standing::Resumed, next),
                (resume, _) => plan.start_of(resume.map(|resume| resume.history)),
            };
        }
        suppliers
    }

    /// Returns whether all members that were to supply a sum for the parent's other members left before the sum was
    /// complete.
    pub(crate) fn has_lost_suppliers(&self) -> bool {
        let is_lost = |open: &OpenRound| open.replay == Replay::Here && open.is_left();
        self.sends_replay_up && self.rounds.open_rounds().any(is_lost)
    }

    /// Gives up the replay of a sum that some members await. This is necessary if no member that holds the whole sum is
    /// left. The waiting members continue without the sum, unless other members of the job have it.
    pub(super) fn give_up_replay(&mut self, round: Round) {
        let next = round.next();
        let behind = self.history.before(round);
        // A Fresh member that has finished no round since its admission knows the history, but may lack its sums.
        let has_sums = |member: &Member| member.resume.is_some_and(|resume| !resume.fresh);
        let is_up_to_date = |member: &Member| {
            let start = member.start;
            start.standing == Standing::Resumed && start.round == next && has_sums(member)
        };
        let others_have_it =
            self.has_parent || behind == 0 || self.members.iter().any(|(_, member)| is_up_to_date(member));
        let (base, history) = if others_have_it {
            (next, self.history.before(next))
        } else {
            (self.next_unnamed_round(), behind)
        };
        if others_have_it {
            self.rounds.numbers_mut().begin_at(base);
        } else {
            // Restart at an unused round: newcomers may have begun the next round, perhaps with the state of a member
            // that had the sum.
            self.rounds.restart_at(base);
            self.history.restart_at(base, behind, None);
        }
        let begin_before = |member: &Member| member.start.round.is_before(base);
        for (_, member) in self.members.iter_mut().filter(|(_, member)| begin_before(member)) {
            let is_resumed = member.awaits(round) && !others_have_it;
            let standing = if is_resumed { Standing::Resumed } else { Standing::Fresh };
            member.start = Start { standing, round: base, history };
        }
    }
}
