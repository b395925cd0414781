//! When a job is complete, and where its members then stand.
//!
//! A switch that was restarted knows nothing of its jobs. Its members come back and say, by their histories,
//! which sums they have. The job goes on under round numbers that no packet of the earlier run can name. If
//! some members lack the last sum, those who hold it send it once more: that round is replayed, not summed.

use core::net::SocketAddrV4;
use core::time::Duration;

use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::wire::{JoinRepr, Kind, Mode, ResumeRepr, Standing};
use iswitch_protocol::{Instant, Round, history};

use super::job::{Job, OpenRound, Replay};
use super::membership::Member;

/// Rounds between the latest that a member knows of and the first of a resumed job, at least: the number of
/// its next round may lie one behind that of others, and one round may be replayed.
const RESUME_GAP_ROUNDS: u32 = 3;
/// Further rounds, drawn with the boot id: runs of the switch that follow each other do not meet in one round.
const RESUME_GAP_DRAWN: u64 = 256;

/// Rounds that members below one parent may be at: two are alive at once, one may have been finished for some of them
/// only, and who is Fresh begins with the one after these.
const PLACES: usize = 4;

/// The histories of a job about its latest round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chronicle {
    boot: u64,
    /// The latest round that was opened, or the first.
    at: Round,
    /// History of those who take part in `at`.
    before: u64,
    /// History one round earlier, if there was one.
    earlier: Option<u64>,
    /// History after `at` where that is not summed but replayed.
    replayed: Option<u64>,
}

impl Chronicle {
    /// The histories of a job that begins at a round.
    pub(crate) fn begin(boot: u64, job: u32, base: Round) -> Self {
        Self { boot, at: base, before: history::begin(boot, job, base), earlier: None, replayed: None }
    }

    /// A round is opened: the one that this is about, or the next.
    pub(crate) fn advance(&mut self, round: Round) {
        if round == self.at.next() {
            let before = self.after();
            *self = Self { at: round, before, earlier: Some(self.before), replayed: None, ..*self };
        }
    }

    fn after(&self) -> u64 {
        self.replayed.unwrap_or_else(|| history::after(self.before, self.boot, self.at))
    }

    /// History of those whose next round is `round`; zero where that is no longer known.
    pub(crate) fn before(&self, round: Round) -> u64 {
        if round == self.at {
            self.before
        } else if round == self.at.next() {
            self.after()
        } else if round == self.at.previous() {
            self.earlier.unwrap_or(0)
        } else {
            0
        }
    }

    /// The next round of a member with that history.
    pub(crate) fn round_after(&self, history: u64) -> Option<Round> {
        // The latest first: a sum that was given up leaves two rounds with one history.
        [self.at.next(), self.at, self.at.previous()]
            .into_iter()
            .find(|round| history != 0 && self.before(*round) == history)
    }
}

/// What the members of a job that comes back have in common.
#[derive(Clone, Copy, Debug)]
struct Lineage {
    /// History of those who are up to date.
    latest: u64,
    /// History of those who lack the last sum, if somebody holds it.
    behind: Option<u64>,
}

impl Lineage {
    fn of(job: &Job) -> Option<Self> {
        match job.mode {
            Mode::Synchronous => Self::of_most(job),
            Mode::Asynchronous => Self::of_the_furthest(job),
        }
    }

    /// That of the member which is furthest: others of an asynchronous job may lack several of its sums (V-9).
    fn of_the_furthest(job: &Job) -> Option<Self> {
        let furthest = job.resumes().reduce(|a, b| if a.round.is_before(b.round) { b } else { a })?;
        Some(Self { latest: furthest.history, behind: None })
    }

    /// The one that most members share; of several, that of the lowest member id.
    fn of_most(job: &Job) -> Option<Self> {
        let mut best: Option<(usize, Self)> = None;
        for candidate in job.resumes() {
            let latest = candidate.history;
            let mut peers = job.resumes().filter(|resume| resume.history == latest);
            let behind = peers.find(|resume| resume.previous != 0).map(|resume| resume.previous);
            let lineage = Self { latest, behind };
            let size = job.resumes().filter(|resume| lineage.has(resume)).count();
            if best.is_none_or(|(most, _)| size > most) {
                best = Some((size, lineage));
            }
        }
        best.map(|(_, lineage)| lineage)
    }

    fn has(&self, resume: &ResumeRepr) -> bool {
        resume.history == self.latest || self.is_behind(resume)
    }

    fn is_behind(&self, resume: &ResumeRepr) -> bool {
        self.behind.is_some_and(|behind| lacks_after(resume, behind))
    }

    fn holds_last(&self, resume: &ResumeRepr) -> bool {
        resume.history == self.latest && self.behind.is_some_and(|behind| resume.previous == behind)
    }

    /// What those have who seem to lack the last sum, or are told to, by the number of their next round.
    fn lacked(&self, job: &Job) -> Option<u64> {
        let up_to_date = || job.returning().filter(|resume| resume.history == self.latest);
        let below = up_to_date().map(|resume| resume.behind).find(|behind| *behind != 0);
        let next = up_to_date().next()?.round;
        let own = || job.returning().find(|resume| resume.round.next() == next).map(|resume| resume.history);
        below.or_else(own)
    }
}

/// Whether a member has what was summed until then and not what came next. So does a switch with such members, unless
/// others of them hold that sum: then it needs nobody else.
fn lacks_after(resume: &ResumeRepr, behind: u64) -> bool {
    !resume.fresh && (resume.history == behind || resume.behind == behind && resume.previous == 0)
}

/// Where the parent says that a job below it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    /// The run of the topmost switch.
    pub(crate) boot: u64,
    pub(crate) standing: Standing,
    pub(crate) round: Round,
    pub(crate) history: u64,
    /// Whether it may still have the sum of the round before that.
    pub(crate) keeps_last: bool,
}

/// A round and those after it, and the history before each.
fn places_from(round: Round, before: u64, boot: u64) -> [(Round, u64); PLACES] {
    let mut places = [(round, before); PLACES];
    for at in 1..PLACES {
        let (round, before) = places[at - 1];
        places[at] = (round.next(), history::after(before, boot, round));
    }
    places
}

/// Where the members of a job go on.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// The next round that is summed, and the history before it.
    next: Round,
    latest: u64,
    /// Where those begin who have nothing in common with the others, and the history before that.
    fresh: (Round, u64),
    /// The rounds from `next` on that some may be at under the same parent, and the histories before them.
    places: [(Round, u64); PLACES],
    /// History of those who await the last sum in the round before that, and from where it comes.
    awaiting: Option<(u64, Replay)>,
}

impl Plan {
    /// All that is not told otherwise begins at `next`.
    fn new(next: Round, latest: u64, awaiting: Option<(u64, Replay)>) -> Self {
        let fresh = (next, latest);
        Self { next, latest, fresh, places: [fresh; PLACES], awaiting }
    }

    /// All that is not told otherwise begins at `next`, and whoever is known to be at one of the rounds after it
    /// stays there.
    fn under_way(next: Round, latest: u64, boot: u64) -> Self {
        Self { places: places_from(next, latest, boot), ..Self::new(next, latest, None) }
    }

    /// Where a member goes on who does not have what the others have, and the history before that.
    fn place_of(&self, own: Option<u64>) -> (Standing, (Round, u64)) {
        let place = self.places.iter().find(|(_, before)| own == Some(*before));
        place.map_or((Standing::Fresh, self.fresh), |place| (Standing::Resumed, *place))
    }
}

/// Addresses of members that began a job while those who have its sums had yet to come back. What these members have
/// summed counts nothing when the incarnation that follows is completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dismissed([Option<SocketAddrV4>; MAX_MEMBERS]);

impl Default for Dismissed {
    fn default() -> Self {
        Self([None; MAX_MEMBERS])
    }
}

impl Dismissed {
    /// The members of the incarnation that ends.
    pub(crate) fn members_of(job: &Job) -> Self {
        let mut dismissed = Self::default();
        job.members().for_each(|(id, member)| dismissed.0[id] = Some(member.endpoint.peer));
        dismissed
    }
}

impl Job {
    /// Whether a Join shows that the job has begun without those who have its sums (M-9): a switch that has just
    /// started cannot know of them, and a job that declared no workers does not wait.
    pub(crate) fn gives_way_to(&self, join: &JoinRepr, now: Instant, lease: Duration) -> bool {
        let is_young = self.began_with_newcomers && now.since(self.created) <= lease;
        let has_other_sums = |resume: ResumeRepr| !resume.fresh && self.round_after(resume.history).is_none();
        is_young && join.resume.is_some_and(has_other_sums) && self.mismatch(join).is_none()
    }

    /// What a Join says of the sums that its sender has, as far as it counts.
    pub(crate) fn resume_of(&self, join: &JoinRepr, from: SocketAddrV4) -> Option<ResumeRepr> {
        let is_dismissed = self.dismissed.0.contains(&Some(from));
        join.resume.map(|resume| ResumeRepr { fresh: resume.fresh || is_dismissed, ..resume })
    }

    /// Whether all have joined that the job waits for: the workers it was declared with, or if it comes back,
    /// those that it had.
    pub(crate) fn is_gathered(&self) -> bool {
        let (members, weight) = (u32::from(self.member_count()), self.weight());
        // A Fresh member has no sums, but knows the number of members: the holders of the history may still come.
        let had = |count: fn(&ResumeRepr) -> u16| self.returning().map(count).max().map_or(0, u32::from);
        if !self.is_returning() {
            self.has_parent || weight >= u32::from(self.workers)
        } else if self.has_parent {
            members >= had(|resume| resume.members).min(self.max_members())
        } else {
            weight >= had(|resume| resume.weight)
        }
    }

    /// Whether those who have come may go on without the rest. Switches that lost sight of each other must not
    /// go on in two places.
    pub(crate) fn may_go_on_without_the_rest(&self) -> bool {
        let had = self.returning().map(|resume| u32::from(resume.weight)).max().unwrap_or(0);
        self.is_returning() && (!self.roams() || 2 * self.weight() > had)
    }

    /// Whether a Join from a member's address is of the same process, or of a switch that has started anew and comes
    /// back in time to go on.
    pub(crate) fn is_known(&self, id: usize, join: &JoinRepr) -> bool {
        let Some(member) = self.member(id) else { return false };
        let resumes_at = join.resume.and_then(|resume| self.chronicle.round_after(resume.history));
        let comes_back = || resumes_at.is_some_and(|round| self.formed && !round.is_before(member.start));
        member.instance == join.instance || member.kind == Kind::Switch && comes_back()
    }

    /// Whether any member comes back with sums.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumes().next().is_some()
    }

    /// Whether any member was one before, with sums or without.
    pub(crate) fn is_returning(&self) -> bool {
        self.returning().next().is_some()
    }

    /// The run of the switch that the history of its members belongs to: the topmost one's.
    pub(crate) fn boot(&self) -> u64 {
        self.chronicle.boot
    }

    /// Completes the job, as the parent has granted it if there is one: from now on rounds end.
    pub(crate) fn form(&mut self, generation: u64, granted: Option<Granted>, now: Instant) {
        self.formed = true;
        self.began_with_newcomers = self.workers == 0 && granted.is_none() && !self.is_returning();
        self.dismissed = Dismissed::default();
        let lineage = Lineage::of(self);
        if let Some(granted) = granted {
            self.chronicle.boot = granted.boot;
            self.sends_replay_up = granted.standing == Standing::Supplies;
            self.taken_up = (granted.standing == Standing::Resumed).then_some(granted.round);
        }
        let plan = match (granted, lineage) {
            (Some(granted), lineage) => Some(self.plan_as_granted(granted, lineage)),
            (None, lineage) => lineage.map(|lineage| self.plan(lineage, self.unused_round())),
        };
        if let Some(plan) = plan {
            self.generation = generation;
            self.carry_out(plan, now);
        }
        self.refresh_thresholds();
    }

    /// What a member switch tells of the members below it, and of those that its parent had.
    pub(crate) fn resume_of_all(&self, members: u16) -> Option<ResumeRepr> {
        let lineage = Lineage::of(self)?;
        let holder = self.resumes().find(|resume| lineage.holds_last(resume));
        let latest = |a: Round, b: Round| if a.is_before(b) { b } else { a };
        Some(ResumeRepr {
            round: self.returning().map(|resume| resume.round).reduce(latest)?,
            members,
            weight: self.resumes().map(|resume| resume.weight).max()?,
            threshold: 0,
            history: lineage.latest,
            previous: holder.map_or(0, |resume| resume.previous),
            behind: lineage.lacked(self).unwrap_or(0),
            fresh: false,
        })
    }

    /// A round that no packet of an earlier run of the switch or of an earlier job can name, nor the one before it, in
    /// which a sum may be replayed.
    fn unused_round(&self) -> Round {
        let gap = RESUME_GAP_ROUNDS + (self.chronicle.boot % RESUME_GAP_DRAWN) as u32;
        let first = self.base.next();
        // Compared with the first round only: claims that are each later than another lead around the circle.
        self.returning()
            .map(|resume| resume.round.plus(gap))
            .filter(|round| first.is_before(*round))
            .max_by_key(|round| round.distance_from(first))
            .unwrap_or(first)
    }

    fn plan(&self, lineage: Lineage, next: Round) -> Plan {
        let Lineage { latest, behind } = lineage;
        let is_unused = |round: Round| self.returning().all(|resume| resume.round.is_before(round));
        let awaiting = behind
            .filter(|_| self.resumes().any(|resume| lineage.is_behind(resume)) && is_unused(next.previous()))
            .map(|behind| (behind, Replay::Here));
        Plan::new(next, latest, awaiting)
    }

    fn plan_as_granted(&self, granted: Granted, lineage: Option<Lineage>) -> Plan {
        let Granted { boot, standing, round, history, keeps_last } = granted;
        let following = round.next();
        match (standing, lineage) {
            (Standing::Resumed, Some(lineage)) => {
                let awaiting = self.plan(lineage, round).awaiting;
                let first = self.last_round_lacked(granted, lineage).filter(|_| keeps_last);
                let (next, latest) = first.unwrap_or((round, lineage.latest));
                // The round may be under way, and hold what such a member has contributed when it was one before.
                let fresh = (following, history::after(lineage.latest, boot, round));
                Plan { fresh, awaiting, ..Plan::under_way(next, latest, boot) }
            }
            (Standing::Supplies, Some(Lineage { latest, behind: Some(behind) })) => {
                Plan::new(following, latest, Some((behind, Replay::Here)))
            }
            (Standing::Awaits, Some(lineage)) => {
                let is_up_to_date = lineage.latest == history;
                let own = if is_up_to_date { lineage.lacked(self) } else { Some(lineage.latest) };
                Plan::new(following, history, own.map(|own| (own, Replay::Above)))
            }
            (Standing::Supplies | Standing::Awaits, _) => Plan::new(following, history, None),
            (Standing::Fresh | Standing::Resumed, _) => Plan::under_way(round, history, boot),
        }
    }

    /// The round before the one granted, and the history before it, if that is where some members are: an earlier run
    /// of this switch gave its sum to the others only. The parent still has it.
    fn last_round_lacked(&self, granted: Granted, lineage: Lineage) -> Option<(Round, u64)> {
        let last = granted.round.previous();
        let lacks_last = |own: &u64| history::after(*own, granted.boot, last) == lineage.latest;
        let mut all = self.returning().flat_map(|resume| [resume.history, resume.behind]);
        all.find(lacks_last).map(|own| (last, own))
    }

    fn carry_out(&mut self, plan: Plan, now: Instant) {
        let Plan { next, latest, awaiting, .. } = plan;
        let replayed = next.previous();
        let mut suppliers = 0;
        for (id, member) in self.members_mut() {
            member.history = latest;
            (member.standing, member.start) = match (member.resume, awaiting) {
                (Some(resume), Some((behind, _))) if lacks_after(&resume, behind) => {
                    (Standing::Awaits, replayed)
                }
                (Some(resume), Some((behind, Replay::Here)))
                    if resume.history == latest && resume.previous == behind =>
                {
                    suppliers |= 1 << id;
                    (Standing::Supplies, replayed)
                }
                (Some(resume), _) if resume.history == latest => (Standing::Resumed, next),
                (resume, _) => {
                    let (standing, (round, history)) = plan.place_of(resume.map(|resume| resume.history));
                    member.history = history;
                    (standing, round)
                }
            };
        }
        let pinned = self.resumes().map(|resume| resume.threshold).find(|threshold| *threshold > 0);
        self.pinned_threshold = pinned;
        if let Some((behind, replay)) = awaiting {
            self.restart_at(replayed);
            self.chronicle = Chronicle {
                at: replayed,
                before: behind,
                earlier: None,
                replayed: Some(latest),
                ..self.chronicle
            };
            let (participants, unfinished) = (suppliers, self.layout.segment_count());
            let open = OpenRound { round: replayed, participants, threshold: 1, unfinished, replay };
            self.open(open, now);
        } else {
            self.restart_at(next);
            self.chronicle =
                Chronicle { at: next, before: latest, earlier: None, replayed: None, ..self.chronicle };
        }
    }

    /// Where those of its members stood who had been members before.
    fn returning(&self) -> impl Iterator<Item = &ResumeRepr> {
        self.members().filter_map(|(_, member)| member.resume.as_ref())
    }

    /// The same of those who have sums, and do not only know of some.
    fn resumes(&self) -> impl Iterator<Item = &ResumeRepr> {
        self.returning().filter(|resume| !resume.fresh)
    }

    /// Whether all have left who took part in a round for which the parent waits (H-8).
    pub(crate) fn is_deserted(&self, round: Round) -> bool {
        let is_left = |open: &OpenRound| open.replay == Replay::Not && open.is_left();
        self.formed && self.has_parent && self.open_round(round).is_some_and(is_left)
    }

    /// The next round, if all members begin later: the parent waits for it even so, and nobody will open it.
    pub(crate) fn vacant_round(&self) -> Option<Round> {
        let next = self.newest().map_or(self.base, Round::next);
        let begins_later = |(_, member): (usize, &Member)| next.is_before(member.start);
        let is_vacant = self.formed && self.has_parent && self.member_count() > 0;
        (is_vacant && self.has_place_for(next) && self.members().all(begins_later)).then_some(next)
    }

    /// The earliest round that is deserted.
    pub(crate) fn deserted_round(&self) -> Option<Round> {
        self.open_rounds().map(|open| open.round).find(|round| self.is_deserted(*round))
    }

    /// A round in which nobody takes part any more is over, or those who came later would wait for it for ever.
    /// With a parent, it is over when that says so.
    pub(crate) fn give_up_deserted_rounds(&mut self) {
        let Some(newest) = self.newest() else { return };
        for round in [newest.previous(), newest] {
            let Some(open) = self.open_round(round).copied().filter(|open| open.participants == 0) else {
                continue;
            };
            let is_awaited = self.members().any(|(_, member)| member.awaits(round));
            match open.replay {
                // What the parent does about it, or what there is for them to fetch.
                Replay::Above if is_awaited => {}
                Replay::Not if self.is_deserted(round) => {}
                Replay::Here if is_awaited && open.unfinished == 0 => {}
                // The parent waits for it, whoever else does.
                Replay::Here if self.sends_replay_up && open.unfinished > 0 => {}
                Replay::Here if is_awaited => self.give_up_replay(round),
                _ => self.base = round.next(),
            }
        }
    }

    /// Nobody holds the whole of a sum any more that some await: they go on without it, unless others have it.
    fn give_up_replay(&mut self, round: Round) {
        let next = round.next();
        let behind = self.chronicle.before(round);
        // A member that was Fresh and has finished no round since knows the history, but may not have its sums.
        let has_sums = |member: &Member| member.resume.is_some_and(|resume| !resume.fresh);
        let is_up_to_date = |member: &Member| {
            member.standing == Standing::Resumed && member.start == next && has_sums(member)
        };
        let others_have_it =
            self.has_parent || behind == 0 || self.members().any(|(_, member)| is_up_to_date(member));
        let (base, history) = if others_have_it {
            (next, self.chronicle.before(next))
        } else {
            (self.next_unnamed_round(), behind)
        };
        if others_have_it {
            self.base = base;
        } else {
            // Newcomers may have begun the next round, perhaps with the state of one that had the sum.
            self.restart_at(base);
            self.chronicle =
                Chronicle { at: base, before: behind, earlier: None, replayed: None, ..self.chronicle };
        }
        for (_, member) in self.members_mut().filter(|(_, member)| member.start.is_before(base)) {
            let goes_on = member.awaits(round) && !others_have_it;
            member.standing = if goes_on { Standing::Resumed } else { Standing::Fresh };
            (member.start, member.history) = (base, history);
        }
    }

    /// Whether those are gone who were to supply a sum to others of the parent's members.
    pub(crate) fn has_lost_suppliers(&self) -> bool {
        let is_lost = |open: &OpenRound| open.replay == Replay::Here && open.is_left();
        self.sends_replay_up && self.open_rounds().any(is_lost)
    }

    /// The standing of a member that joins a job under way, its first round and the history before that.
    pub(crate) fn standing_of_newcomer(&self, resume: Option<&ResumeRepr>) -> (Standing, Round, u64) {
        let start = self.start_round();
        let own = resume.filter(|_| self.formed).map(|resume| resume.history);
        if self.mode == Mode::Asynchronous
            && let Some((history, round)) =
                own.and_then(|history| Some((history, self.aggregate_after(history)?)))
        {
            return (Standing::Resumed, round, history);
        }
        if let Some(place) = resume.and_then(|resume| self.place_in_replay(resume)) {
            return place;
        }
        let places = places_from(start, self.chronicle.before(start), self.chronicle.boot);
        // Members of an earlier run of a switch that has a parent may be further than those of this one.
        let reached = if self.has_parent { &places[..] } else { &places[..1] };
        let resumed = reached.iter().find(|(_, before)| own == Some(*before));
        let (round, history) = *resumed.unwrap_or(&places[0]);
        (if resumed.is_some() { Standing::Resumed } else { Standing::Fresh }, round, history)
    }

    /// What a newcomer can do in a round that is being replayed, until others have begun the one after it.
    fn place_in_replay(&self, resume: &ResumeRepr) -> Option<(Standing, Round, u64)> {
        let is_replayed = |open: &&OpenRound| open.replay != Replay::Not && open.unfinished > 0;
        let newest = self.newest().and_then(|newest| self.open_round(newest));
        let open = newest.filter(is_replayed).filter(|_| self.formed)?;
        let (before, after) = (self.chronicle.before(open.round), self.chronicle.before(open.round.next()));
        let lineage = Lineage { latest: after, behind: Some(before) };
        if before != 0 && lineage.is_behind(resume) {
            return Some((Standing::Awaits, open.round, after));
        }
        let supplies = open.replay == Replay::Here && lineage.holds_last(resume);
        supplies.then_some((Standing::Supplies, open.round, after))
    }

    /// The next round of a member of this job with that history.
    fn round_after(&self, history: u64) -> Option<Round> {
        match self.mode {
            Mode::Synchronous => self.chronicle.round_after(history),
            Mode::Asynchronous => self.aggregate_after(history),
        }
    }

    /// Where a member goes on that believes it was forgotten, but was not.
    pub(crate) fn standing_of_member(
        &self,
        id: usize,
        resume: Option<&ResumeRepr>,
    ) -> (Standing, Round, u64) {
        let Some(member) = self.member(id) else { return (Standing::Fresh, self.base, 0) };
        let admitted = (member.standing, member.start, member.history);
        let replayed = self.open_round(member.start).filter(|open| open.replay != Replay::Not);
        let is_replaying = replayed.is_some();
        // Who was to supply a sum that all have by now may hold another one instead.
        let is_to_supply =
            replayed.is_some_and(|open| open.unfinished > 0) && member.standing != Standing::Awaits;
        if !self.formed || is_to_supply {
            return admitted;
        }
        match resume.and_then(|resume| Some((resume.history, self.round_after(resume.history)?))) {
            // It still awaits the sum; otherwise it has been given that, and must not be given it again.
            Some((_, round)) if is_replaying && round == member.start => admitted,
            Some((history, round)) if !round.is_before(member.start) => (Standing::Resumed, round, history),
            // The round that it was to begin with is over, or its sum given or got, and others have gone on since.
            _ if !is_replaying
                && self.mode == Mode::Synchronous
                && self.next_round_of(id) != member.start =>
            {
                let round = self.next_round_of(id);
                (Standing::Fresh, round, self.chronicle.before(round))
            }
            _ => admitted,
        }
    }
}
