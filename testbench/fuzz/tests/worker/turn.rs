//! Scenarios for a worker, which a fuzzer generates from bytes.

use bolero::TypeGenerator;

#[derive(Clone, Debug, TypeGenerator)]
pub(crate) struct Scenario {
    pub(crate) keyed: Keyed,
    /// Index of the vector layout in `LAYOUTS`.
    #[generator(0..4u8)]
    pub(crate) layout: u8,
    pub(crate) recv_buffer_bytes: u16,
    pub(crate) heartbeats: bool,
    /// Instance of the process, from which the numbers of its vectors and requests are derived.
    pub(crate) instance: u32,
    #[generator(bolero::produce::<Vec<Turn>>().with().len(0..=120usize))]
    pub(crate) turns: Vec<Turn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, TypeGenerator)]
pub(crate) enum Keyed {
    No,
    Control,
    ControlAndData,
}

/// Offset of a round from the worker's current round.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct RoundOffset(#[generator(-4..=6i8)] pub(crate) i8);

#[derive(Clone, Debug, TypeGenerator)]
pub(crate) enum Turn {
    /// The caller begins a round or, in an asynchronous job, submits a vector.
    Begin,
    /// The caller abandons the round or, in an asynchronous job, takes all available sums.
    Take,
    /// The caller sends a request that is not part of a round or vector: Leave, SetH or Halt.
    Order(#[generator(0..4u8)] u8),
    Sleep {
        #[generator(0..3000u16)]
        ms: u16,
    },
    /// The switch answers the Join.
    Join(Joined),
    Challenge(#[generator(1..4u8)] u8),
    /// The switch answers a request other than the Join.
    Ack(Acknowledged),
    Results {
        round: RoundOffset,
        first: u8,
        #[generator(1..40u8)]
        count: u8,
        variant: u8,
    },
    /// A result has the wrong length for its segment.
    WrongLength {
        round: RoundOffset,
        index: u8,
        #[generator(1..9u8)]
        floats: u8,
    },
    Halt,
    Bytes(bool, #[generator(bolero::produce::<Vec<u8>>().with().len(0..=96usize))] Vec<u8>, u8),
    /// An earlier packet arrives again, possibly damaged.
    Again {
        #[generator(0..16u8)]
        age: u8,
        at: u8,
        flip: u8,
    },
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Joined {
    pub(crate) formed: bool,
    /// Reason for refusing the Join; None for success.
    pub(crate) refusal: Option<Status>,
    #[generator(0..4u8)]
    pub(crate) standing: u8,
    pub(crate) round: Round,
    #[generator(0..3u8)]
    pub(crate) history: u8,
    #[generator(1..4u8)]
    pub(crate) boot: u8,
    pub(crate) window: u16,
    pub(crate) lease_ms: u16,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Round {
    Near(RoundOffset),
    Far(u32),
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Status(#[generator(1..26u8)] pub(crate) u8);

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) struct Acknowledged {
    #[generator(1..11u8)]
    pub(crate) action: u8,
    #[generator(0..26u8)]
    pub(crate) status: u8,
    pub(crate) round: Round,
    pub(crate) formed: bool,
    /// Whether the Ack names a run of the switch other than the current one.
    pub(crate) other_boot: bool,
    /// Age of the acknowledged request; 0 is the last one.
    #[generator(0..4u8)]
    pub(crate) request_age: u8,
    #[generator(0..3u8)]
    pub(crate) history: u8,
    #[generator(0..3u8)]
    pub(crate) expected: u8,
    pub(crate) pinned: bool,
    pub(crate) orphaned: bool,
    pub(crate) missing: Missing,
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
pub(crate) enum Missing {
    Nothing,
    Some {
        first: u8,
        count: u8,
        bits: u8,
    },
    /// The range of the worker's last Help or Confirm.
    AsAsked {
        bits: u8,
    },
    /// A range beyond the end of every vector.
    Beyond {
        first: u32,
        count: u8,
    },
}
