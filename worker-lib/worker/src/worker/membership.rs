//! A membership as the Acks of the switch grant it and keep it up to date.

use core::time::Duration;

use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, datagram_truesize, recv_room};
use iswitch_protocol::wire::{AckRepr, ResumeRepr, Standing, Status};
use iswitch_protocol::{Round, VectorLayout};

/// What the Ack of a Join grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Id of this member.
    pub member: u16,
    /// The first round to take part in.
    pub start: Round,
    /// Segments that may be in flight.
    pub window: u16,
    /// Identifies the run of the switch.
    pub boot: u64,
    /// Silence after which the switch expels a member.
    pub lease: Duration,
    /// Members of the switch in the job.
    pub members: u16,
    /// Workers in the whole job.
    pub weight: u16,
    /// Where the member stands.
    pub standing: Standing,
    /// What has been summed before `start`, or with it where the member supplies or awaits that sum.
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

/// Segments that may be in flight: what the switch grants and this member's own receive buffer holds.
pub(super) fn max_window(layout: &VectorLayout, membership: &Membership, recv_buffer_bytes: usize) -> u32 {
    let datagram = datagram_truesize(layout.full_packet_len() + DATA_TAG_LEN_BYTES);
    let own = (recv_room(recv_buffer_bytes) / datagram).clamp(1, usize::from(u16::MAX)) as u32;
    u32::from(membership.window).min(own).max(1)
}

/// The run of the switch that an Ack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// The one that has admitted the member.
    Present,
    /// An earlier one: the Ack is of no interest.
    Past,
    /// A later one, which does not know the member.
    New,
}

/// Where a member stands, for the Join to a switch that has forgotten it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The round or aggregate that comes next.
    pub(super) next: Round,
    /// Stands for the sums before it, see [`iswitch_protocol::history`]; zero if that is not known.
    pub(super) history: u64,
    /// The same before the last sum, if the member can supply that; otherwise zero.
    pub(super) previous: u64,
    /// Whether it does have the sums.
    pub(super) has_sums: bool,
}

/// A membership, and what the switch has said of the job since.
#[derive(Clone, Copy, Debug)]
pub(super) struct MembershipState {
    membership: Membership,
    /// Boot ids that were valid before.
    past_boots: [u64; 2],
    /// Whether the switch has lost its parent.
    is_orphaned: bool,
    /// The threshold H if a member has pinned it, otherwise zero.
    pinned_threshold: u16,
}

impl MembershipState {
    /// A member that was just admitted.
    pub(super) fn new(membership: Membership) -> Self {
        Self { membership, past_boots: [membership.boot; 2], is_orphaned: false, pinned_threshold: 0 }
    }

    /// The member was admitted again, perhaps by another run of the switch.
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

    /// Takes in what every Ack says of the job, unless it comes from another run of the switch.
    pub(super) fn hear(&mut self, ack: &AckRepr<'_>) -> Run {
        if ack.boot != self.membership.boot {
            return if self.past_boots.contains(&ack.boot) { Run::Past } else { Run::New };
        }
        // An Ack from before the job was complete comes late, and counts fewer workers than the job has.
        if ack.status == Status::Success && ack.formed {
            self.membership.members = ack.members;
            self.membership.weight = ack.weight;
            self.is_orphaned = ack.orphaned;
            self.pinned_threshold = if ack.pinned { ack.threshold } else { 0 };
        }
        Run::Present
    }

    /// What to tell a switch that has forgotten the member; `None` if the member does not know where it stands.
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
