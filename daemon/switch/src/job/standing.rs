//! Where a member stands in a job under way, and rounds whose participants have all left.

use iswitch_protocol::Round;
use iswitch_protocol::wire::{ResumeRepr, Standing};

use super::Job;
use super::formation::CommonHistory;
use super::history::starts_from;
use super::members::{Member, Start};
use super::rounds::{OpenRound, Replay, Rounds};
use crate::ids::MemberId;

impl Job {
    /// Where a member starts that joins a job under way.
    pub(crate) fn standing_of_newcomer(&self, resume: Option<&ResumeRepr>) -> Start {
        let start = self.start_round();
        let own = resume.filter(|_| self.formed).map(|resume| resume.history);
        if let Rounds::Asynchronous(_) = self.rounds
            && let Some((history, round)) =
                own.and_then(|history| Some((history, self.aggregate_after(history)?)))
        {
            return Start { standing: Standing::Resumed, round, history };
        }
        if let Some(start) = resume.and_then(|resume| self.start_in_replay(resume)) {
            return start;
        }
        let starts = starts_from(start, self.history.before(start), self.epoch());
        // Members of an earlier run of a switch that has a parent may be further than those of this one.
        let reached = if self.has_parent { &starts[..] } else { &starts[..1] };
        let resumed = reached.iter().find(|(_, before)| own == Some(*before));
        let (round, history) = *resumed.unwrap_or(&starts[0]);
        let standing = if resumed.is_some() { Standing::Resumed } else { Standing::Fresh };
        Start { standing, round, history }
    }

    /// The part of a newcomer in a round that is being replayed, until others have begun the one after it.
    fn start_in_replay(&self, resume: &ResumeRepr) -> Option<Start> {
        let is_replayed = |open: &&OpenRound| open.replay != Replay::Not && open.unfinished > 0;
        let newest = self.rounds.numbers().newest().and_then(|newest| self.rounds.open_round(newest));
        let open = newest.filter(is_replayed).filter(|_| self.formed)?;
        let (before, after) = (self.history.before(open.round), self.history.before(open.round.next()));
        let common = CommonHistory { latest: after, behind: Some(before) };
        let start = |standing| Start { standing, round: open.round, history: after };
        if before != 0 && common.is_behind(resume) {
            return Some(start(Standing::Awaits));
        }
        let supplies = open.replay == Replay::Here && common.holds_last(resume);
        supplies.then(|| start(Standing::Supplies))
    }

    /// The next round of a member of this job with that history.
    pub(super) fn round_after(&self, history: u64) -> Option<Round> {
        match self.rounds {
            Rounds::Synchronous(_) => self.history.round_after(history),
            Rounds::Asynchronous(_) => self.aggregate_after(history),
        }
    }

    /// The next aggregate of a member with that history, if all that it lacks is kept.
    fn aggregate_after(&self, history: u64) -> Option<Round> {
        let aggregates = self.rounds.asynchronous().filter(|_| history != 0)?;
        let filling = aggregates.filling();
        let is_up_to_date = history == self.history.before(filling);
        if is_up_to_date { Some(filling) } else { aggregates.kept_after(history) }
    }

    /// Where a member continues that believes it was forgotten, but was not.
    pub(crate) fn standing_of_member(&self, id: MemberId, resume: Option<&ResumeRepr>) -> Start {
        let Some(member) = self.members.get(id) else {
            let round = self.rounds.numbers().base();
            return Start { standing: Standing::Fresh, round, history: 0 };
        };
        let admitted = member.start;
        let replayed = self.rounds.open_round(admitted.round).filter(|open| open.replay != Replay::Not);
        let is_replaying = replayed.is_some();
        // A member that was to supply a sum that all have by now may hold another one instead.
        let is_to_supply =
            replayed.is_some_and(|open| open.unfinished > 0) && admitted.standing != Standing::Awaits;
        if !self.formed || is_to_supply {
            return admitted;
        }
        match resume.and_then(|resume| Some((resume.history, self.round_after(resume.history)?))) {
            // It still awaits the sum; otherwise it has got that, and must not get it again.
            Some((_, round)) if is_replaying && round == admitted.round => admitted,
            Some((history, round)) if !round.is_before(admitted.round) => {
                Start { standing: Standing::Resumed, round, history }
            }
            _ if is_replaying => admitted,
            _ => self.fresh_start_of(id, admitted),
        }
    }

    /// Where a member starts whose first round is over, or whose sum was supplied or received, and whose peers have
    /// continued since.
    fn fresh_start_of(&self, id: MemberId, admitted: Start) -> Start {
        let round = self.next_round_of(id);
        let is_over = self.rounds.synchronous().is_some() && round != admitted.round;
        if is_over {
            Start { standing: Standing::Fresh, round, history: self.history.before(round) }
        } else {
            admitted
        }
    }

    /// Whether all participants have left a round for which the parent waits (H-8).
    pub(crate) fn is_deserted(&self, round: Round) -> bool {
        let is_left = |open: &OpenRound| open.replay == Replay::Not && open.is_left();
        self.formed && self.has_parent && self.rounds.open_round(round).is_some_and(is_left)
    }

    /// The next round, if all members begin later: the parent waits for it even so, and no member will open it.
    pub(crate) fn vacant_round(&self) -> Option<Round> {
        let rounds = self.rounds.synchronous()?;
        let next = self.rounds.numbers().next();
        let begins_later = |member: &Member| next.is_before(member.start.round);
        let is_vacant = self.formed && self.has_parent && self.members.count() > 0;
        let begin_later = || self.members.iter().all(|(_, member)| begins_later(member));
        (is_vacant && rounds.has_slot_for(next) && begin_later()).then_some(next)
    }

    /// The earliest round that is deserted.
    pub(crate) fn deserted_round(&self) -> Option<Round> {
        self.rounds.open_rounds().map(|open| open.round).find(|round| self.is_deserted(*round))
    }

    /// Whether the parent waits for a round for which no member will ask: this switch has to end it.
    pub(crate) fn waits_for_no_member(&self) -> bool {
        self.deserted_round().or(self.vacant_round()).is_some()
    }

    /// Ends rounds that have no participants any more, or members that came later would wait for them for ever. With a
    /// parent, such a round ends when the parent ends it.
    pub(super) fn give_up_deserted_rounds(&mut self) {
        let Some(newest) = self.rounds.numbers().newest() else { return };
        for round in [newest.previous(), newest] {
            let open = self.rounds.open_round(round).copied();
            let Some(open) = open.filter(|open| open.participants.is_empty()) else { continue };
            let is_awaited = self.members.iter().any(|(_, member)| member.awaits(round));
            match open.replay {
                // The parent decides, or still has the sum for them.
                Replay::Above if is_awaited => {}
                Replay::Not if self.is_deserted(round) => {}
                Replay::Here if is_awaited && open.unfinished == 0 => {}
                // The parent waits for it, whichever others do.
                Replay::Here if self.sends_replay_up && open.unfinished > 0 => {}
                Replay::Here if is_awaited => self.give_up_replay(round),
                _ => self.rounds.numbers_mut().begin_at(round.next()),
            }
        }
    }
}
