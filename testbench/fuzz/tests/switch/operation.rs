//! What may happen to a switch, as values that a fuzzer makes of bytes.

use bolero::TypeGenerator;

/// A run of the switch and all that happens to it.
#[derive(Clone, Debug, TypeGenerator)]
pub(crate) struct Scenario {
    pub(crate) setup: Setup,
    #[generator(bolero::produce::<Vec<Operation>>().with().len(0..=150usize))]
    pub(crate) operations: Vec<Operation>,
}

/// How the switch is started.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Setup {
    pub(crate) ordered: bool,
    pub(crate) sums_non_finite: bool,
    /// Whether one job, or each, needs a key.
    pub(crate) keys: Keyed,
    /// Switches above this one.
    #[generator(0..3u8)]
    pub(crate) parents: u8,
    /// Where the rounds begin: near zero, or just before they wrap.
    pub(crate) begins_before_wrap: bool,
    pub(crate) boot: u8,
    /// Memory for sums, in units of 4 KiB.
    #[generator(1..=8u8)]
    pub(crate) memory_pages: u8,
    /// Most of that for one job, likewise.
    #[generator(1..=8u8)]
    pub(crate) job_memory_pages: u8,
    /// Whether strangers may send little.
    pub(crate) is_strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, TypeGenerator)]
pub(crate) enum Keyed {
    Nobody,
    OneJob,
    AllJobs,
}

/// One of the hosts that members run on.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Host(#[generator(0..HOSTS)] pub(crate) u8);

pub(crate) const HOSTS: u8 = 8;

/// A job's round, as an offset from the newest one; of an asynchronous vector, from the member's next number.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct RoundOffset(#[generator(-3..=3i8)] pub(crate) i8);

/// Some segments, of which a bit each says whether they are meant.
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
    /// A host joins, in a job with a key by way of a challenge.
    Join(Host, Joining),
    /// A host says something that holds for its whole job, or leaves it.
    Ask(Host, Request),
    /// A host sends one segment.
    Contribute(Host, Contribution),
    /// A host sends all segments of a vector in one super-frame, in order or the other way round.
    SendVector(Host, RoundOffset, bool),
    /// A packet of a host comes once more, perhaps changed on the way.
    Again(#[generator(0..32u8)] u8, Change),
    /// A host sends bytes that mean what they mean.
    Bytes(Host, bool, #[generator(bolero::produce::<Vec<u8>>().with().len(0..=96usize))] Vec<u8>, u8),
    /// The driver finds a frame that cannot be used.
    Unusable(#[generator(0..9u8)] u8),
    /// Time passes, and the driver wakes up whenever it should.
    Sleep {
        #[generator(0..1500u16)]
        ms: u16,
    },
    /// Time passes while the driver sleeps.
    Oversleep {
        #[generator(0..1500u16)]
        ms: u16,
    },
    /// The clock steps back.
    TurnBack {
        #[generator(0..1500u16)]
        ms: u16,
    },
    /// The switch above says something, if there is one.
    FromParent(ParentTurn),
}

/// What a host declares.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Joining {
    #[generator(1..=3u8)]
    pub(crate) job: u8,
    #[generator(0..4u8)]
    pub(crate) workers: u8,
    /// Nothing odd, or one field that differs from what others of the job say.
    pub(crate) oddity: Oddity,
    /// Whether it is another process than before.
    pub(crate) is_restarted: bool,
    /// Whether it says what it has summed.
    pub(crate) resumes: Option<Resuming>,
    #[generator(0..4u8)]
    pub(crate) rank: u8,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Oddity {
    No,
    Asks,
    Switch { weight: u8, height: u8 },
    Weight { weight: u8 },
    Length { floats: u16, segment_floats: u16 },
    Padded { len: u16 },
    OtherMode,
    OtherTag,
    ManyWorkers { workers: u16 },
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Resuming {
    pub(crate) round: RoundOffset,
    /// Which of the few histories that there are: hosts with the same one agree.
    #[generator(1..4u8)]
    pub(crate) history: u8,
    #[generator(0..4u8)]
    pub(crate) previous: u8,
    #[generator(0..5u8)]
    pub(crate) weight: u8,
    #[generator(0..5u8)]
    pub(crate) members: u8,
    /// Rather the history that the switch last told the host.
    pub(crate) as_told: bool,
    /// A history that the host was told and never had.
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
    Reset { repeated: bool },
    Halt,
    Digest(RoundOffset, #[generator(0..3u8)] u8),
    Acknowledge,
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
    /// Such that the sum tells of which contributions it is made.
    Marked,
    /// All the same bits.
    Bits(u32),
    /// Marked, but one too many or too few.
    WrongCount { more: bool },
}

/// What becomes of a packet on its way.
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
    /// Another host sends it.
    Forge(Host),
    /// It comes in by another port of the switch, unless it is a Join.
    Misdirect {
        port: u8,
    },
}

/// What the parent, or somebody at its address, says.
#[derive(Clone, Debug, TypeGenerator)]
pub(crate) struct ParentTurn {
    /// Which of the uplinks it comes in by.
    #[generator(0..2u8)]
    pub(crate) uplink: u8,
    /// Whether it comes from the second parent.
    pub(crate) is_other: bool,
    pub(crate) says: Saying,
}

#[derive(Clone, Debug, TypeGenerator)]
pub(crate) enum Saying {
    /// The answer to the last Join.
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
    /// The answer to a Help: what it misses.
    Missing(RoundOffset, Segments),
    Result(RoundOffset, #[generator(0..8u8)] u8, u8),
    /// All segments of a round in one super-frame.
    Results(RoundOffset, u8),
    Halt,
    Bytes(bool, #[generator(bolero::produce::<Vec<u8>>().with().len(0..=96usize))] Vec<u8>, u8),
}
