//! The slot of a segment: the members in its sum, and the state of the sum.

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_CONTRIBUTIONS;

use super::rounds::OpenRound;
use crate::ids::{MemberId, MemberSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Empty,
    Open,
    /// The sum of the members' contributions is complete, and the switch waits for the parent's result.
    Partial,
    Done,
}

/// Progress of one segment of one round. In an asynchronous job there is one slot for each segment of each member; its
/// generation identifies the vector whose segment was last staged in the slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Members whose contributions are in the sum.
    pub(super) contributors: MemberSet,
    /// Generation of the slot; if it is not the job's generation, the slot counts as empty (see [`Generations`]).
    pub(super) generation: Generation,
    pub(super) round: Round,
    /// Number of worker gradients in the sum.
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

    /// Returns whether the slot already belongs to a round after `round`.
    pub(super) fn is_past(&self, round: Round) -> bool {
        self.state != SlotState::Empty && round.is_before(self.round)
    }

    pub(super) fn holds(&self, member: MemberId) -> bool {
        self.contributors.contains(member)
    }

    /// Returns the members whose contributions to this segment an open round waits for. The set is empty if no
    /// contribution to the segment has arrived.
    pub(crate) fn missing(&self, open: &OpenRound, generation: Generation) -> MemberSet {
        if self.generation == generation && self.is_open(open.round) {
            open.participants.difference(self.contributors)
        } else {
            MemberSet::EMPTY
        }
    }
}

/// Identifier of the job incarnation or the vector to which a slot belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// Source of generations. Each incarnation and each Reset of a job takes a new generation, and so does each vector of
/// an asynchronous job. No generation is used twice, so slots never need to be cleared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Generations(Generation);

impl Generations {
    pub(crate) fn next(&mut self) -> Generation {
        self.0.0 += 1;
        self.0
    }
}

/// Returns the total of two contribution counts, or `None` if the total does not fit into the field of a packet.
pub(super) fn add_contributions(a: u16, b: u16) -> Option<u16> {
    a.checked_add(b).filter(|sum| *sum <= MAX_CONTRIBUTIONS)
}
