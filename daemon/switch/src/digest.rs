//! Digests of the weights: whether the replicas of a learner still agree.

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_DIGESTS;
use iswitch_protocol::wire::{DigestRepr, Status};

use super::Switch;
use super::control::Refusal;
use super::event::Event;
use super::membership::MemberAt;

/// The digests of a job's last rounds (requirement G-1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digests {
    kept: [Option<Kept>; MAX_DIGESTS],
    /// Digests that differed, since the job was created.
    pub(crate) diverged: u64,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    round: Round,
    digest: u64,
    /// Who told it first.
    member: u16,
    /// Bit i: member i has told another one. A repeated request is refused again, but not counted again.
    differs: u64,
}

/// A digest that differs from the one told first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divergence {
    /// Who told it first.
    other: u16,
    is_news: bool,
}

impl Digests {
    /// Compares a digest with that of another member, or keeps it to be compared.
    fn compare(&mut self, member: u16, told: DigestRepr) -> Result<(), Divergence> {
        let kept = self.kept.iter_mut().flatten().find(|kept| kept.round == told.round);
        let Some(kept) = kept else {
            self.keep(Kept { round: told.round, digest: told.digest, member, differs: 0 });
            return Ok(());
        };
        if kept.digest == told.digest {
            return Ok(());
        }
        let is_news = kept.differs >> member & 1 == 0;
        kept.differs |= 1 << member;
        self.diverged += u64::from(is_news);
        Err(Divergence { other: kept.member, is_news })
    }

    /// Takes a free place, or that of the oldest round if this one is later.
    fn keep(&mut self, new: Kept) {
        let oldest = self.kept.iter_mut().reduce(|a, b| match (&a, &b) {
            (Some(first), Some(second)) if second.round.is_before(first.round) => b,
            (Some(_), None) => b,
            _ => a,
        });
        if let Some(place) = oldest
            && place.is_none_or(|old| old.round.is_before(new.round))
        {
            *place = Some(new);
        }
    }
}

impl Switch {
    /// Compares the digest of a member's weights with those of the others.
    pub(super) fn compare_digest(&mut self, at: MemberAt, told: DigestRepr) -> Result<(), Refusal> {
        let job = self.jobs[at.job].as_mut().ok_or(Status::UnknownMember)?;
        let current = job.current_round();
        if job.newest().is_none_or(|newest| newest.is_before(told.round)) {
            return Err(Refusal { round: current, ..Status::StaleRound.into() });
        }
        let (id, member) = (job.id, at.member as u16);
        let Err(Divergence { other, is_news }) = job.digests.compare(member, told) else { return Ok(()) };
        if is_news {
            self.report(Event::Diverged { job: id, round: told.round, member, other });
        }
        Err(Refusal { round: told.round, ..(Status::Diverged, u32::from(other)).into() })
    }
}
