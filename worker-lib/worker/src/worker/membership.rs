//! A membership, which is granted and updated by Acks from the switch.

use core::time::Duration;

use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, datagram_truesize, recv_room};
use iswitch_protocol::wire::{AckRepr, ResumeRepr, Standing, Status};
use iswitch_protocol::{Round, VectorLayout};

/// Membership that the Ack of a Join grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Id of this member.
    pub member: u16,
    /// Number of the first round in which the member takes part.
    pub start: Round,
    /// Maximum number of segments in flight that the switch permits.
    pub window: u16,
    /// Epoch of the job, which identifies the run of the switch process.
    pub boot: u64,
    /// Duration of silence after which the switch expels a member.
    pub lease: Duration,
    /// Number of members of the job at this switch.
    pub members: u16,
    /// Number of workers in the whole job.
    pub weight: u16,
    /// Standing of the member. It determines how the member continues at `start`.
    pub standing: Standing,
    /// History before `start`; if the member supplies or awaits the sum of that round, the history after it.
    pub history: u64,
}

impl Membership {
    /// Reads the Ack of a Join that was granted.
    pub fn from_ack(ack: &AckRepr<'_>) -> Self {
        Self {
            member: ack.member,
            start: ack.round,
            window: ack.window,
            boot: ack.boot,
            lease: Duration::from_millis(u64::from(ack.lease_ms)),
            members: ack.members,
            weight: ack.weight,
            standing: ack.standing,
            history: ack.history,
        }
    }
}

/// Returns the maximum number of segments in flight: the smaller of the window that the switch grants and the capacity
/// of this member's receive buffer.
pub(super) fn max_window(layout: &VectorLayout, membership: &Membership, recv_buffer_bytes: usize) -> u32 {
    let result_len = layout.full_packet_len(layout.elements().results());
    let datagram = datagram_truesize(result_len + DATA_TAG_LEN_BYTES);
    let own = (recv_room(recv_buffer_bytes) / datagram).clamp(1, usize::from(u16::MAX)) as u32;
    u32::from(membership.window).min(own).max(1)
}

/// Run of the switch process from which an Ack originates, relative to the run that admitted the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// The run that has admitted the member.
    Present,
    /// An earlier run. The Ack must be ignored.
    Past,
    /// A later run, which does not know the member yet.
    New,
}

/// Position of a member in its job, which the member reports in a Join to a switch that no longer knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Next round or aggregate.
    pub(super) next: Round,
    /// History of the sums before `next` (see [`iswitch_protocol::history`]); zero if it is not known.
    pub(super) history: u64,
    /// History before the member's most recent sum (see [`iswitch_protocol::history`]) if the member can supply that
    /// sum; otherwise zero.
    pub(super) previous: u64,
    /// Whether the member has received the sums before `next`, rather than merely knowing their history.
    pub(super) has_sums: bool,
}

/// A membership, updated with the state of the job from later Acks.
#[derive(Clone, Copy, Debug)]
pub(super) struct MembershipState {
    membership: Membership,
    /// The last two epochs before the current one.
    past_boots: [u64; 2],
    /// Whether the switch has lost its parent.
    is_orphaned: bool,
    /// The threshold H if a member has pinned it, otherwise zero.
    pinned_threshold: u16,
}

impl MembershipState {
    /// Creates the state from the membership of a member that has just been admitted.
    pub(super) fn new(membership: Membership) -> Self {
        Self { membership, past_boots: [membership.boot; 2], is_orphaned: false, pinned_threshold: 0 }
    }

    /// Adopts a new membership after the member was admitted again, perhaps by another run of the switch.
    pub(super) fn readmit(&mut self, membership: Membership) {
        if membership.boot != self.membership.boot {
            self.past_boots = [self.past_boots[1], self.membership.boot];
        }
        self.membership = membership;
        self.pinned_threshold = 0;
    }

    pub(super) fn get(&self) -> &Membership {
        &self.membership
    }

    pub(super) fn is_orphaned(&self) -> bool {
        self.is_orphaned
    }

    /// Updates the state from the fields that every Ack carries about the job, unless the Ack originates from another
    /// run of the switch.
    pub(super) fn hear(&mut self, ack: &AckRepr<'_>) -> Run {
        if ack.boot != self.membership.boot {
            return if self.past_boots.contains(&ack.boot) { Run::Past } else { Run::New };
        }
        // An Ack from before the job was complete may arrive late; it counts fewer workers than the job has.
        if ack.status == Status::Success && ack.formed {
            self.membership.members = ack.members;
            self.membership.weight = ack.weight;
            self.is_orphaned = ack.orphaned;
            self.pinned_threshold = if ack.pinned { ack.threshold } else { 0 };
        }
        Run::Present
    }

    /// Returns the position to report in a Join to a switch that no longer knows the member; `None` if the member does
    /// not know its position.
    pub(super) fn resume(&self, position: Position) -> Option<ResumeRepr> {
        (position.history != 0).then_some(ResumeRepr {
            round: position.next,
            members: self.membership.members,
            weight: self.membership.weight,
            threshold: self.pinned_threshold,
            history: position.history,
            previous: position.previous,
            behind: 0,
            fresh: !position.has_sums,
        })
    }
}
