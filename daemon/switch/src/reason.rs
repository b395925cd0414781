//! Reasons why packets are dropped. Each is used as a metric label and a log field.

use iswitch_protocol::wire::{Status, WireError};

/// Reason why the switch dropped a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The bytes are not a valid packet.
    Wire(WireError),
    /// The sender is not a member of any job.
    UnknownMember,
    /// The packet names a job other than the sender's.
    ForeignJob,
    /// A Join whose fields differ from those of the job, or for which there is no room.
    JoinRefused,
    /// A request that cannot be granted.
    RequestRefused,
    /// An Ack. A member never has to send one, because the switch sends no requests to members.
    UnexpectedAck,
    /// A segment index that is outside the vector.
    SegOutOfRange,
    /// A payload whose length differs from the length of its segment.
    LengthMismatch,
    /// A worker's contribution that claims to hold several gradients, or a contribution that would make the total
    /// exceed the range of its field.
    BadWeight,
    /// A contribution with NaN or an infinity.
    NonFinite,
    /// A second contribution to a segment that is still open.
    Duplicate,
    /// A contribution to a segment that is already finished. It is answered with the cached result.
    Late,
    /// A contribution to a round that is over and whose results are no longer kept.
    StaleRound,
    /// A contribution to a round that cannot open yet.
    EarlyRound,
    /// A contribution to a round that began before the member was admitted.
    NotParticipant,
    /// A contribution to a halted job.
    Halted,
    /// A packet that does not prove that its sender has the job's key.
    NotAuthentic,
    /// An authentic packet whose counter is not greater than that of an earlier packet from its sender.
    Replayed,
    /// A packet from a member that arrived on a port other than the member's, because of a second cable or a loop.
    OtherPort,
    /// More requests or datagrams than the switch can queue; the sender will repeat them.
    Busy,
    /// Packets from non-members, or requests for repeated results, beyond the rate limit; the sender will repeat them.
    RateLimited,
}

const OWN: [DropReason; 20] = [
    DropReason::UnknownMember,
    DropReason::ForeignJob,
    DropReason::JoinRefused,
    DropReason::RequestRefused,
    DropReason::UnexpectedAck,
    DropReason::SegOutOfRange,
    DropReason::LengthMismatch,
    DropReason::BadWeight,
    DropReason::NonFinite,
    DropReason::Duplicate,
    DropReason::Late,
    DropReason::StaleRound,
    DropReason::EarlyRound,
    DropReason::NotParticipant,
    DropReason::Halted,
    DropReason::NotAuthentic,
    DropReason::Replayed,
    DropReason::OtherPort,
    DropReason::Busy,
    DropReason::RateLimited,
];

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = WireError::ALL.len() + OWN.len();

    /// Returns all reasons, in the order of their indexes.
    pub fn all() -> impl Iterator<Item = Self> {
        WireError::ALL.into_iter().map(Self::Wire).chain(OWN)
    }

    /// Returns the position of this reason in [`Self::all`].
    pub fn index(self) -> usize {
        match self {
            Self::Wire(error) => error as usize,
            own => {
                WireError::ALL.len()
                    + OWN.iter().position(|reason| *reason == own).expect("OWN should list it")
            }
        }
    }

    /// Returns the label that identifies the reason in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wire(error) => error.name(),
            Self::UnknownMember => "unknown_member",
            Self::ForeignJob => "foreign_job",
            Self::JoinRefused => "join_refused",
            Self::RequestRefused => "request_refused",
            Self::UnexpectedAck => "unexpected_ack",
            Self::SegOutOfRange => "seg_out_of_range",
            Self::LengthMismatch => "length_mismatch",
            Self::BadWeight => "bad_weight",
            Self::NonFinite => "non_finite",
            Self::Duplicate => "duplicate",
            Self::Late => "late",
            Self::StaleRound => "stale_round",
            Self::EarlyRound => "early_round",
            Self::NotParticipant => "not_participant",
            Self::Halted => "halted",
            Self::NotAuthentic => "not_authentic",
            Self::Replayed => "replayed",
            Self::OtherPort => "other_port",
            Self::Busy => "busy",
            Self::RateLimited => "rate_limited",
        }
    }

    /// Returns the status of the answer to a data packet, or `None` if the packet gets no answer or the answer is a
    /// result.
    pub(crate) const fn status(self) -> Option<Status> {
        match self {
            Self::Wire(_) => Some(Status::Malformed),
            Self::UnknownMember => Some(Status::UnknownMember),
            Self::SegOutOfRange => Some(Status::SegOutOfRange),
            Self::LengthMismatch => Some(Status::LengthMismatch),
            Self::BadWeight => Some(Status::BadWeight),
            Self::NonFinite => Some(Status::NonFinite),
            Self::StaleRound | Self::NotParticipant => Some(Status::StaleRound),
            Self::Halted => Some(Status::Halted),
            Self::ForeignJob
            | Self::JoinRefused
            | Self::RequestRefused
            | Self::UnexpectedAck
            | Self::Duplicate
            | Self::Late
            | Self::EarlyRound
            | Self::NotAuthentic
            | Self::Replayed
            | Self::OtherPort
            | Self::Busy
            | Self::RateLimited => None,
        }
    }
}

/// Counters of the switch since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Control packets received.
    pub control_received: u64,
    /// Data packets received.
    pub data_received: u64,
    /// Contributions summed.
    pub contributions: u64,
    /// Segments completed.
    pub results: u64,
    /// Partial sums of segments that were completed for the parent.
    pub partials: u64,
    /// Results resent to one member.
    pub results_repeated: u64,
    /// Control packets handed to the ports.
    pub control_sent: u64,
    /// Data packets handed to the ports, counted once for each recipient.
    pub data_sent: u64,
    /// Data packets handed to the ports to be sent to a group. Each is counted once, regardless of the number of
    /// members that hear the group, and is also counted in `data_sent`.
    pub group_sent: u64,
    /// Members expelled because their lease expired.
    pub expelled: u64,
    drops: [u64; DropReason::COUNT],
}

impl Counters {
    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.drops[reason.index()] += 1;
    }

    /// Counts several datagrams dropped for the same reason.
    pub(crate) fn count_drops(&mut self, reason: DropReason, datagrams: u64) {
        self.drops[reason.index()] += datagrams;
    }

    /// Returns the number of datagrams dropped for one reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason.index()]
    }

    /// Returns the number of datagrams dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Returns all counters except the drops, by name.
    pub fn traffic(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        [
            ("control_received", self.control_received),
            ("data_received", self.data_received),
            ("contributions", self.contributions),
            ("results", self.results),
            ("partials", self.partials),
            ("results_repeated", self.results_repeated),
            ("control_sent", self.control_sent),
            ("data_sent", self.data_sent),
            ("group_sent", self.group_sent),
            ("expelled", self.expelled),
        ]
        .into_iter()
    }

    /// Returns the drop counters, by reason.
    pub fn dropped_by_reason(&self) -> impl Iterator<Item = (DropReason, u64)> + use<> {
        let drops = self.drops;
        DropReason::all().map(move |reason| (reason, drops[reason.index()]))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_reason_has_its_own_counter_and_name() {
        let reasons: Vec<_> = DropReason::all().collect();
        assert_eq!(reasons.len(), DropReason::COUNT);
        for (index, reason) in reasons.iter().enumerate() {
            assert_eq!(reason.index(), index);
            assert_eq!(reasons.iter().filter(|other| other.name() == reason.name()).count(), 1);
        }
    }
}
