//! The slot of a segment: which members are in its sum, and how far the sum is.

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_CONTRIBUTIONS;

use super::rounds::OpenRound;
use crate::ids::{MemberId, MemberSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Empty,
    Open,
    /// The sum of the members is on its way to the parent.
    Partial,
    Done,
}

/// Progress of one segment of one round. In an asynchronous job there is a slot for each segment of each member, and
/// its generation marks the vector whose segment was set aside there last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Members in the sum.
    pub(super) contributors: MemberSet,
    /// A slot of another generation than the job's counts as empty, see [`Generations`].
    pub(super) generation: Generation,
    pub(super) round: Round,
    /// Worker gradients in the sum.
    pub(super) contributions: u16,
    pub(super) state: SlotState,
}

impl Slot {
    pub(crate) const EMPTY: Self = Self {
        contributors: MemberSet::EMPTY,
        generation: Generation(0),
        round: Round::new(0),
        contributions: 0,
        state: SlotState::Empty,
    };

    pub(super) fn is_open(&self, round: Round) -> bool {
        self.state == SlotState::Open && self.round == round
    }

    pub(super) fn is_partial(&self, round: Round) -> bool {
        self.state == SlotState::Partial && self.round == round
    }

    pub(super) fn is_done(&self, round: Round) -> bool {
        self.state == SlotState::Done && self.round == round
    }

    /// Whether the slot already belongs to a later round.
    pub(super) fn is_past(&self, round: Round) -> bool {
        self.state != SlotState::Empty && round.is_before(self.round)
    }

    pub(super) fn holds(&self, member: MemberId) -> bool {
        self.contributors.contains(member)
    }

    /// Members that an open round waits for in this segment; none if no contribution to it has arrived.
    pub(crate) fn missing(&self, open: &OpenRound, generation: Generation) -> MemberSet {
        if self.generation == generation && self.is_open(open.round) {
            open.participants.difference(self.contributors)
        } else {
            MemberSet::EMPTY
        }
    }
}

/// Identifies the incarnation of a job, or the vector, that a slot belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// Generations of slots: one for each incarnation and each Reset of a job, and in asynchronous jobs one for each
/// vector. No number is used twice, so slots are never cleared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Generations(Generation);

impl Generations {
    pub(crate) fn next(&mut self) -> Generation {
        self.0.0 += 1;
        self.0
    }
}

/// Worker gradients in the sum of two sums, if a packet can carry the number.
pub(super) fn add_contributions(a: u16, b: u16) -> Option<u16> {
    a.checked_add(b).filter(|sum| *sum <= MAX_CONTRIBUTIONS)
}
