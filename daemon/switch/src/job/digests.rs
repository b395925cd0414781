//! Digests of the weights: whether the replicas of a learner still agree.

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_DIGESTS;
use iswitch_protocol::wire::DigestRepr;

use crate::ids::{MemberId, MemberSet};

/// The digests of a job's last rounds (requirement G-1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digests {
    kept: [Option<Kept>; MAX_DIGESTS],
    diverged: u64,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    round: Round,
    digest: u64,
    /// The member that reported the digest first.
    member: MemberId,
    /// The members that reported another one. A repeated request is refused again, but not counted again.
    differing: MemberSet,
}

/// A digest that differs from the one reported first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divergence {
    /// The member that reported the digest first.
    pub(crate) other: MemberId,
    /// Whether this member has not reported a different digest of this round before.
    pub(crate) is_new: bool,
}

impl Digests {
    /// Number of digests that differed since the job was created.
    pub(crate) fn diverged(&self) -> u64 {
        self.diverged
    }

    /// Compares a digest with that of another member, or keeps it for comparison.
    pub(crate) fn compare(&mut self, member: MemberId, reported: DigestRepr) -> Result<(), Divergence> {
        let kept = self.kept.iter_mut().flatten().find(|kept| kept.round == reported.round);
        let Some(kept) = kept else {
            let DigestRepr { round, digest } = reported;
            self.keep(Kept { round, digest, member, differing: MemberSet::EMPTY });
            return Ok(());
        };
        if kept.digest == reported.digest {
            return Ok(());
        }
        let is_new = !kept.differing.contains(member);
        kept.differing = kept.differing.with(member);
        self.diverged += u64::from(is_new);
        Err(Divergence { other: kept.member, is_new })
    }

    /// Takes a free entry, or that of the oldest round if this one is later.
    fn keep(&mut self, new: Kept) {
        let oldest = self.kept.iter_mut().reduce(|a, b| match (&a, &b) {
            (Some(first), Some(second)) if second.round.is_before(first.round) => b,
            (Some(_), None) => b,
            _ => a,
        });
        if let Some(entry) = oldest
            && entry.is_none_or(|old| old.round.is_before(new.round))
        {
            *entry = Some(new);
        }
    }
}
