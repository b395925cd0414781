//! When a job is complete, and where its members then stand.
//!
//! A switch that was restarted knows nothing of its jobs. Its members come back and say, by their histories,
//! which sums they have. The job goes on under round numbers that no packet of the earlier run can name. If
//! some members lack the last sum, those who hold it send it once more: that round is replayed, not summed.

use iswitch_protocol::wire::{ResumeRepr, Standing};
use iswitch_protocol::{Round, history};

use super::aggregator::Slot;
use super::job::{Job, OpenRound};

/// Rounds between the latest that a member knows of and the first of a resumed job, at least: the number of
/// its next round may lie one behind that of others.
const RESUME_GAP_ROUNDS: u32 = 2;
/// Further rounds, drawn with the boot id: runs of the switch that follow each other do not meet in one round.
const RESUME_GAP_DRAWN: u64 = 256;

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
    /// Of a job, or what is left of it after a Reset, that begins at a round.
    pub(crate) fn begin(boot: u64, job: u32, base: Round) -> Self {
        Self { boot, at: base, before: history::begin(boot, job, base), earlier: None, replayed: None }
    }

    /// The same switch after a Reset.
    pub(crate) fn reset(&self, job: u32, base: Round) -> Self {
        Self::begin(self.boot, job, base)
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
        [self.at.previous(), self.at, self.at.next()]
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
    /// The one that most members share; of several, that of the lowest member id.
    fn of(job: &Job) -> Option<Self> {
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
        self.behind == Some(resume.history)
    }

    fn holds_last(&self, resume: &ResumeRepr) -> bool {
        resume.history == self.latest && self.behind.is_some_and(|behind| resume.previous == behind)
    }
}

impl Job {
    /// Whether all have joined that the job waits for: the workers it was declared with, or if it comes back,
    /// as many members as it had.
    pub(crate) fn is_gathered(&self) -> bool {
        match self.resumes().map(|resume| u32::from(resume.members)).max() {
            Some(members) => u32::from(self.member_count()) >= members.min(self.max_members()),
            None => self.weight() >= u32::from(self.workers),
        }
    }

    /// Whether any member was one before.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumes().next().is_some()
    }

    /// Completes the job: from now on rounds end.
    pub(crate) fn form(&mut self, slots: &mut [Slot]) {
        self.formed = true;
        if let Some(lineage) = Lineage::of(self) {
            slots.fill(Slot::EMPTY);
            self.restart_at(self.unused_round());
            self.resume(lineage);
        }
        self.refresh_thresholds();
    }

    /// A round that no packet of an earlier run of the switch can name.
    fn unused_round(&self) -> Round {
        let gap = RESUME_GAP_ROUNDS + (self.chronicle.boot % RESUME_GAP_DRAWN) as u32;
        self.resumes()
            .map(|resume| resume.round.plus(gap))
            .fold(self.base, |latest, round| if latest.is_before(round) { round } else { latest })
    }

    fn resume(&mut self, lineage: Lineage) {
        let (latest, base) = (lineage.latest, self.base);
        let awaited = lineage.behind.filter(|_| self.resumes().any(|resume| lineage.is_behind(resume)));
        // Without somebody to supply there is no round to replay.
        let first = if awaited.is_some() { base.next() } else { base };
        let mut suppliers = 0;
        for (id, member) in self.members_mut() {
            (member.standing, member.start) = match &member.resume {
                Some(resume) if awaited.is_some() && lineage.is_behind(resume) => (Standing::Awaits, base),
                Some(resume) if awaited.is_some() && lineage.holds_last(resume) => {
                    suppliers |= 1 << id;
                    (Standing::Supplies, base)
                }
                Some(resume) if resume.history == latest => (Standing::Resumed, first),
                _ => (Standing::Fresh, first),
            };
            member.history = latest;
        }
        let pinned = self.resumes().map(|resume| resume.threshold).find(|threshold| *threshold > 0);
        self.pinned_threshold = pinned;
        let before = awaited.unwrap_or(latest);
        let replayed = awaited.map(|_| latest);
        self.chronicle = Chronicle { at: base, before, earlier: None, replayed, ..self.chronicle };
        if awaited.is_some() {
            self.open(OpenRound { round: base, participants: suppliers, threshold: 1, replayed: true });
        }
    }

    fn resumes(&self) -> impl Iterator<Item = &ResumeRepr> {
        self.members().filter_map(|(_, member)| member.resume.as_ref())
    }

    /// A round in which nobody takes part any more is over, or those who came later would wait for it for ever.
    /// But if it was to be replayed, those who wait for it sum it anew: nobody else has it.
    pub(crate) fn give_up_deserted_rounds(&mut self) {
        let Some(newest) = self.newest() else { return };
        for round in [newest.previous(), newest] {
            let Some(open) = self.open_round(round).copied().filter(|open| open.participants == 0) else {
                continue;
            };
            let waiting = self.members().filter(|(_, member)| open.replayed && member.awaits(round));
            let participants = waiting.fold(0, |bits, (id, _)| bits | 1 << id);
            if participants == 0 {
                self.base = round.next();
            } else {
                self.rounds[round.parity()] = OpenRound { participants, replayed: false, ..open };
            }
        }
    }

    /// The standing of a member that joins a job under way, and its first round.
    pub(crate) fn standing_of_newcomer(&self, resume: Option<&ResumeRepr>) -> (Standing, Round) {
        let start = self.start_round();
        let is_up_to_date =
            self.formed && resume.is_some_and(|resume| resume.history == self.chronicle.before(start));
        (if is_up_to_date { Standing::Resumed } else { Standing::Fresh }, start)
    }

    /// Where a member goes on that believes it was forgotten, but was not.
    pub(crate) fn standing_of_member(
        &self,
        id: usize,
        resume: Option<&ResumeRepr>,
    ) -> (Standing, Round, u64) {
        let Some(member) = self.member(id) else { return (Standing::Fresh, self.base, 0) };
        let admitted = (member.standing, member.start, member.history);
        let is_replaying = self.open_round(member.start).is_some_and(|open| open.replayed);
        if !self.formed || is_replaying {
            return admitted;
        }
        match resume.and_then(|resume| Some((resume.history, self.chronicle.round_after(resume.history)?))) {
            Some((history, round)) if !round.is_before(member.start) => (Standing::Resumed, round, history),
            _ => admitted,
        }
    }
}
