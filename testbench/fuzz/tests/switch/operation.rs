//! Scenarios for a switch, which a fuzzer generates from bytes.

use bolero::TypeGenerator;

/// Setup of a switch and the operations on it.
#[derive(Clone, Debug, TypeGenerator)]
pub(crate) struct Scenario {
    pub(crate) setup: Setup,
    #[generator(bolero::produce::<Vec<Operation>>().with().len(0..=150usize))]
    pub(crate) operations: Vec<Operation>,
}

/// Configuration of the switch.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Setup {
    pub(crate) ordered: bool,
    pub(crate) sums_non_finite: bool,
    /// Jobs that require a key.
    pub(crate) keys: Keyed,
    /// Number of configured parent switches.
    #[generator(0..3u8)]
    pub(crate) parents: u8,
    /// Whether the rounds start just before they wrap, instead of near zero.
    pub(crate) begins_before_wrap: bool,
    pub(crate) boot: u8,
    /// Memory for sums, in units of 4 KiB.
    #[generator(1..=8u8)]
    pub(crate) memory_pages: u8,
    /// Maximum memory of one job, in units of 4 KiB.
    #[generator(1..=8u8)]
    pub(crate) job_memory_pages: u8,
    /// Whether the limits on non-members are low.
    pub(crate) is_strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, TypeGenerator)]
pub(crate) enum Keyed {
    Nobody,
    OneJob,
    AllJobs,
}

/// Number of a host on which members run.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Host(#[generator(0..HOSTS)] pub(crate) u8);

pub(crate) const HOSTS: u8 = 8;

/// Offset of a round from the newest round of the job; for an asynchronous vector, from the member's next number.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct RoundOffset(#[generator(-3..=3i8)] pub(crate) i8);

/// Range of segments, with a bitmap of the selected ones.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Segments {
    #[generator(0..8u8)]
    pub(crate) first: u8,
    #[generator(0..8u8)]
    pub(crate) count: u8,
    pub(crate) bits: u8,
}

#[derive(Clone, Debug, TypeGenerator)]
pub(crate) enum Operation {
    /// A host joins a job. If the job has a key, the host first obtains a challenge and answers it.
    Join(Host, Joining),
    /// A host sends a control request other than a Join.
    Ask(Host, Request),
    /// A host sends one segment.
    Contribute(Host, Contribution),
    /// A host sends all segments of a vector in one super-frame, in order or in reverse order.
    SendVector(Host, RoundOffset, bool),
    /// A packet that a host sent earlier arrives again, possibly changed.
    Again(#[generator(0..32u8)] u8, Change),
    /// A host sends arbitrary bytes.
    Bytes(Host, bool, #[generator(bolero::produce::<Vec<u8>>().with().len(0..=96usize))] Vec<u8>, u8),
    /// The driver reports an unusable frame.
    Unusable(#[generator(0..9u8)] u8),
    /// Time passes, and the driver wakes up at every deadline of the switch.
    Sleep {
        #[generator(0..1500u16)]
        ms: u16,
    },
    /// Time passes, and the driver misses the deadlines of the switch.
    Oversleep {
        #[generator(0..1500u16)]
        ms: u16,
    },
    /// The clock steps back.
    TurnBack {
        #[generator(0..1500u16)]
        ms: u16,
    },
    /// If the switch has a parent, the parent sends a packet.
    FromParent(ParentTurn),
}

/// Declaration of a host in its Join.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Joining {
    #[generator(1..=3u8)]
    pub(crate) job: u8,
    #[generator(0..4u8)]
    pub(crate) workers: u8,
    /// Field that differs from the declarations of the job's other members, if any.
    pub(crate) oddity: Oddity,
    /// Whether the host runs a new process.
    pub(crate) is_restarted: bool,
    /// Aggregation history that the host reports, to resume the job.
    pub(crate) resumes: Option<Resuming>,
    #[generator(0..4u8)]
    pub(crate) rank: u8,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Oddity {
    No,
    Asks,
    Switch {
        weight: u8,
        height: u8,
    },
    Weight {
        weight: u8,
    },
    Length {
        floats: u16,
        segment_floats: u16,
    },
    Padded {
        len: u16,
    },
    OtherMode,
    OtherElements {
        #[generator(0..3u8)]
        contributions: u8,
        #[generator(0..3u8)]
        results: u8,
    },
    OtherTag,
    ManyWorkers {
        workers: u16,
    },
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Resuming {
    pub(crate) round: RoundOffset,
    /// Number of the history that the host reports. Hosts that report the same number have the same history.
    #[generator(1..4u8)]
    pub(crate) history: u8,
    #[generator(0..4u8)]
    pub(crate) previous: u8,
    #[generator(0..5u8)]
    pub(crate) weight: u8,
    #[generator(0..5u8)]
    pub(crate) members: u8,
    /// Whether the host reports the history that the switch last sent to it, instead of `history`.
    pub(crate) as_reported: bool,
    /// Whether the host reports that it received its history when it was admitted as Fresh, and has finished no round
    /// since.
    pub(crate) fresh: bool,
    #[generator(0..4u8)]
    pub(crate) behind: u8,
    #[generator(0..3u8)]
    pub(crate) threshold: u8,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Request {
    Leave,
    Heartbeat,
    Help(RoundOffset, Segments),
    Confirm(RoundOffset, Segments),
    ForceBroadcast(RoundOffset, Segments),
    SetThreshold(#[generator(0..5u8)] u8),
    Reset {
        repeated: bool,
    },
    Halt,
    Digest(RoundOffset, #[generator(0..3u8)] u8),
    Acknowledge,
    Name {
        #[generator(0..4u8)]
        job: u8,
        #[generator(0..4u8)]
        host: u8,
        rank: u16,
    },
    Waiting,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Contribution {
    pub(crate) round: RoundOffset,
    #[generator(0..8u8)]
    pub(crate) index: u8,
    pub(crate) weight: Weight,
    pub(crate) floats: Floats,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Weight {
    One,
    Few(#[generator(1..5u8)] u8),
    Most,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Floats {
    /// Marked floats, so that a sum shows which contributions it contains.
    Marked,
    /// Floats that all have the same bits.
    Bits(u32),
    /// Marked floats, but one too many or too few.
    WrongCount { more: bool },
}

/// Change of a packet in transit.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Change {
    Nothing,
    Damage {
        at: u8,
        flip: u8,
    },
    Cut {
        by: u8,
    },
    Lengthen {
        by: u8,
    },
    /// The packet arrives from a host other than the one that sent it.
    Forge(Host),
    /// The packet arrives at a port of the switch other than the one it was sent to, unless it is a Join.
    Misdirect {
        port: u8,
    },
}

/// Packet from the parent, or from another sender that uses the parent's address.
#[derive(Clone, Debug, TypeGenerator)]
pub(crate) struct ParentTurn {
    /// Number of the uplink at which the packet arrives.
    #[generator(0..2u8)]
    pub(crate) uplink: u8,
    /// Whether the packet comes from the second parent.
    pub(crate) is_other: bool,
    pub(crate) says: Saying,
}

#[derive(Clone, Debug, TypeGenerator)]
pub(crate) enum Saying {
    /// Answer to the last Join.
    Joined {
        formed: bool,
        #[generator(0..4u8)]
        standing: u8,
        round: RoundOffset,
        #[generator(0..4u8)]
        history: u8,
        #[generator(1..4u8)]
        boot: u8,
        lease_ms: u16,
    },
    Challenge(u8),
    Refused(#[generator(1..26u8)] u8, RoundOffset, bool),
    /// Answer to a Help, with the segments that the parent is still missing.
    Missing(RoundOffset, Segments),
    Result(RoundOffset, #[generator(0..8u8)] u8, u8),
    /// All segments of a round in one super-frame.
    Results(RoundOffset, u8),
    Halt,
    Bytes(bool, #[generator(bolero::produce::<Vec<u8>>().with().len(0..=96usize))] Vec<u8>, u8),
}
