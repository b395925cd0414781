//! Starts of members in a job that is under way, and rounds that all participants have left.

use iswitch_protocol::Round;
use iswitch_protocol::wire::{ResumeRepr, Standing};

use super::Job;
use super::formation::CommonHistory;
use super::history::starts_from;
use super::members::{Member, Start};
use super::rounds::{OpenRound, Replay, Rounds};
use crate::ids::MemberId;

impl Job {
    /// Returns the start of a member that joins a job that is under way.
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
        let starts = starts_from(start, self.history.before(start), self.history.chain(), self.epoch());
        // If the switch has a parent, members from an earlier run of this switch may have advanced further than the
        // present members.
        let reached = if self.has_parent { &starts[..] } else { &starts[..1] };
        let resumed = reached.iter().find(|(_, before)| own == Some(*before));
        let (round, history) = *resumed.unwrap_or(&starts[0]);
        let standing = if resumed.is_some() { Standing::Resumed } else { Standing::Fresh };
        Start { standing, round, history }
    }

    /// Returns the start of a newcomer that takes part in a round being replayed, either awaiting or supplying its
    /// sum. This is possible only until the following round has begun.
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

    /// Returns the round of a synchronous job, or the aggregate of an asynchronous job, at which a member with the
    /// history `history` continues. Returns `None` if this switch does not know that history.
    pub(super) fn round_after(&self, history: u64) -> Option<Round> {
        match self.rounds {
            Rounds::Synchronous(_) => self.history.round_after(history),
            Rounds::Asynchronous(_) => self.aggregate_after(history),
        }
    }

    /// Returns the aggregate at which a member with the history `history` continues. Returns `None` if the history is
    /// not known, or if the switch no longer keeps all aggregates that the member lacks.
    fn aggregate_after(&self, history: u64) -> Option<Round> {
        let aggregates = self.rounds.asynchronous().filter(|_| history != 0)?;
        let filling = aggregates.filling();
        let is_up_to_date = history == self.history.before(filling);
        if is_up_to_date {
            return Some(filling);
        }
        aggregates.kept_after(history).or_else(|| self.aggregate_ahead(history))
    }

    /// Returns the next aggregate of a member that is ahead of this switch, that is, has sums whose results have not
    /// arrived at this switch. If this switch has a parent, an earlier run of this switch may have sent these sums to
    /// the member. Returns `None` if the history is not that of such a member.
    fn aggregate_ahead(&self, history: u64) -> Option<Round> {
        let aggregates = self.rounds.asynchronous().filter(|_| self.has_parent)?;
        let (chain, epoch) = (self.history.chain(), self.epoch());
        let mut at = (aggregates.filling(), self.history.before(aggregates.filling()));
        for _ in 0..aggregates.capacity() {
            at = (at.0.next(), chain.after(at.1, epoch, at.0));
            if at.1 == history {
                return Some(at.0);
            }
        }
        None
    }

    /// Returns the start of a member that repeats its Join, for example because it wrongly believes that it was
    /// forgotten.
    pub(crate) fn standing_of_member(&self, id: MemberId, resume: Option<&ResumeRepr>) -> Start {
        let Some(member) = self.members.get(id) else {
            let round = self.rounds.numbers().base();
            return Start { standing: Standing::Fresh, round, history: 0 };
        };
        let admitted = member.start;
        let replayed = self.rounds.open_round(admitted.round).filter(|open| open.replay != Replay::Not);
        let is_replaying = replayed.is_some();
        // Once the replayed sum is finished, a member that was to supply it may hold a later sum instead.
        let is_to_supply =
            replayed.is_some_and(|open| open.unfinished > 0) && admitted.standing != Standing::Awaits;
        if !self.formed || is_to_supply {
            return admitted;
        }
        match resume.and_then(|resume| Some((resume.history, self.round_after(resume.history)?))) {
            // The member still awaits the sum. A member with a later history has already received the sum and must not
            // receive it again.
            Some((_, round)) if is_replaying && round == admitted.round => admitted,
            Some((history, round)) if !round.is_before(admitted.round) => {
                Start { standing: Standing::Resumed, round, history }
            }
            _ if is_replaying => admitted,
            _ => self.fresh_start_of(id, admitted),
        }
    }

    /// Returns the start of a member that the other members have overtaken: its first round is over, or the sum that it
    /// was to supply or receive is finished.
    fn fresh_start_of(&self, id: MemberId, admitted: Start) -> Start {
        let round = self.next_round_of(id);
        let is_over = self.rounds.synchronous().is_some() && round != admitted.round;
        if is_over {
            Start { standing: Standing::Fresh, round, history: self.history.before(round) }
        } else {
            admitted
        }
    }

    /// Returns whether the parent may already have had results of `round` when it resumed this switch (H-5).
    pub(crate) fn is_taken_up(&self, round: Round) -> bool {
        let is_before_base = round.is_before(self.rounds.numbers().base());
        !is_before_base && self.taken_up.is_some_and(|last| !last.is_before(round))
    }

    /// Returns the round at which the parent resumed this switch (H-5), or `None` if it did not resume the switch.
    pub(crate) fn taken_up(&self) -> Option<Round> {
        self.taken_up
    }

    /// Returns whether all participants have left a round that the parent waits for (H-8).
    pub(crate) fn is_deserted(&self, round: Round) -> bool {
        let is_left = |open: &OpenRound| open.replay == Replay::Not && open.is_left();
        self.formed && self.has_parent && self.rounds.open_round(round).is_some_and(is_left)
    }

    /// Returns the next round if the parent waits for it although no member will open it, because all members start
    /// later. Returns `None` otherwise.
    pub(crate) fn vacant_round(&self) -> Option<Round> {
        let rounds = self.rounds.synchronous()?;
        let next = self.rounds.numbers().next();
        let begins_later = |member: &Member| next.is_before(member.start.round);
        let is_vacant = self.formed && self.has_parent && self.members.count() > 0;
        let begin_later = || self.members.iter().all(|(_, member)| begins_later(member));
        (is_vacant && rounds.has_slot_for(next) && begin_later()).then_some(next)
    }

    /// Returns the earliest deserted round, if any.
    pub(crate) fn deserted_round(&self) -> Option<Round> {
        self.rounds.open_rounds().map(|open| open.round).find(|round| self.is_deserted(*round))
    }

    /// Returns whether the parent waits for a round whose results no member will request. If so, this switch has to
    /// finish the round.
    pub(crate) fn waits_for_no_member(&self) -> bool {
        self.deserted_round().or(self.vacant_round()).is_some()
    }

    /// Discards rounds without participants, because members that join later would wait for them forever. If the switch
    /// has a parent, it keeps such a round until the parent has finished it.
    pub(super) fn give_up_deserted_rounds(&mut self) {
        let Some(newest) = self.rounds.numbers().newest() else { return };
        for round in [newest.previous(), newest] {
            let open = self.rounds.open_round(round).copied();
            let Some(open) = open.filter(|open| open.participants.is_empty()) else { continue };
            let is_awaited = self.members.iter().any(|(_, member)| member.awaits(round));
            match open.replay {
                // The parent decides what happens to the sum, or still has it for the members that await it.
                Replay::Above if is_awaited => {}
                Replay::Not if self.is_deserted(round) => {}
                Replay::Here if is_awaited && open.unfinished == 0 => {}
                // The parent waits for the sum, whether or not any member does.
                Replay::Here if self.sends_replay_up && open.unfinished > 0 => {}
                Replay::Here if is_awaited => self.give_up_replay(round),
                _ => self.rounds.numbers_mut().begin_at(round.next()),
            }
        }
    }
}
