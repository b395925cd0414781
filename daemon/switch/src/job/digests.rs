//! Digests of the weights, which show whether the replicas of a learner still agree.

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_DIGESTS;
use iswitch_protocol::wire::DigestRepr;

use crate::ids::{MemberId, MemberSet};

/// Digests of the most recent rounds of a job (requirement G-1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digests {
    kept: [Option<Kept>; MAX_DIGESTS],
    diverged: u64,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    round: Round,
    digest: u64,
    /// Member that was first to report a digest of the round.
    member: MemberId,
    /// Members that reported a digest that differs from the first one. If such a member repeats its report, the report
    /// is refused again but not counted again.
    differing: MemberSet,
}

/// Result of a comparison in which a digest differs from the one reported first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divergence {
    /// Member that was first to report a digest of the round.
    pub(crate) other: MemberId,
    /// Whether this is the first time that the member has reported a differing digest for this round.
    pub(crate) is_new: bool,
}

impl Digests {
    /// Returns the number of digests that have differed from the first digest of their round since the job was created.
    pub(crate) fn diverged(&self) -> u64 {
        self.diverged
    }

    /// Compares a digest with the one reported first for its round. If it is the first digest of the round, keeps it
    /// for comparison.
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

    /// Stores a digest in a free entry. If no entry is free, replaces the digest of the oldest round, provided that the
    /// new round is later.
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
