//! The outcome of a request.

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done, or done before by the same request.
    Success = 0,
    /// The packet could not be parsed.
    Malformed = 1,
    /// Another version of the control protocol; `expected` is the switch's.
    WrongVersion = 2,
    /// The sender is not a member of any job.
    UnknownMember = 3,
    /// The sender is a member of another job; `expected` is that job.
    ForeignJob = 4,
    /// Gradient length differs from the job's first Join; `expected` is the job's, in floats.
    GradientLenMismatch = 5,
    /// Segment size differs from the job's first Join; `expected` is the job's, in floats.
    SegmentSizeMismatch = 6,
    /// Mode differs from the job's first Join, or the request is for the other mode; `expected` is the job's.
    ModeMismatch = 7,
    /// Number of workers differs from the job's first Join; `expected` is the job's.
    WorkersMismatch = 8,
    /// The vector cannot be cut up like that.
    BadLayout = 9,
    /// The job has all the members that it may have; `expected` is that number.
    JobFull = 10,
    /// The switch has no room for the job; `expected` is the memory left, in KiB.
    NoCapacity = 11,
    /// The round named is over and no longer kept; `round` is where the member may go on.
    StaleRound = 12,
    /// The range of segments is empty, too long or beyond the vector; `expected` is the segment count.
    OutOfRange = 13,
    /// A contribution held NaN or an infinity; `round` and `expected` (the index) say which.
    NonFinite = 14,
    /// The job is halted.
    Halted = 15,
    /// A threshold H above what a switch can count; `expected` is the limit.
    BadThreshold = 16,
    /// A data packet's length is not that of its segment; `expected` is the right one, in bytes.
    LengthMismatch = 17,
    /// A worker claims to hold more than one gradient; `expected` is 1.
    BadWeight = 18,
    /// A segment index beyond the vector in a data packet; `expected` is the segment count.
    SegOutOfRange = 19,
    /// There is no such job to ask about.
    UnknownJob = 20,
    /// Switches above each other in a circle, or in more levels than are allowed; `expected` is their number.
    TooManyLevels = 21,
    /// The packet does not prove that its sender has the job's key; `expected` is 1 if the job has one, else 0.
    NotAuthentic = 22,
    /// The Join is authentic and could be an old one: it is to be repeated with the nonce in `history`.
    Challenge = 23,
    /// Whether data is tagged differs from the job's first Join; `expected` is the job's, 1 or 0.
    TagMismatch = 24,
    /// The digest differs from that of another member; `expected` is the id of that member.
    Diverged = 25,
}

impl Status {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 26] = [
        Self::Success,
        Self::Malformed,
        Self::WrongVersion,
        Self::UnknownMember,
        Self::ForeignJob,
        Self::GradientLenMismatch,
        Self::SegmentSizeMismatch,
        Self::ModeMismatch,
        Self::WorkersMismatch,
        Self::BadLayout,
        Self::JobFull,
        Self::NoCapacity,
        Self::StaleRound,
        Self::OutOfRange,
        Self::NonFinite,
        Self::Halted,
        Self::BadThreshold,
        Self::LengthMismatch,
        Self::BadWeight,
        Self::SegOutOfRange,
        Self::UnknownJob,
        Self::TooManyLevels,
        Self::NotAuthentic,
        Self::Challenge,
        Self::TagMismatch,
        Self::Diverged,
    ];

    /// The status of a code.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Name for logs and errors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Malformed => "malformed",
            Self::WrongVersion => "protocol version",
            Self::UnknownMember => "unknown member",
            Self::ForeignJob => "foreign job",
            Self::GradientLenMismatch => "gradient length",
            Self::SegmentSizeMismatch => "segment size",
            Self::ModeMismatch => "mode",
            Self::WorkersMismatch => "number of workers",
            Self::BadLayout => "vector layout",
            Self::JobFull => "job full",
            Self::NoCapacity => "no capacity",
            Self::StaleRound => "stale round",
            Self::OutOfRange => "segment range out of range",
            Self::NonFinite => "NaN or infinity in a contribution",
            Self::Halted => "job halted",
            Self::BadThreshold => "threshold H",
            Self::LengthMismatch => "length of a data packet",
            Self::BadWeight => "contribution count of a worker",
            Self::SegOutOfRange => "segment index out of range",
            Self::UnknownJob => "unknown job",
            Self::TooManyLevels => "levels of switches",
            Self::NotAuthentic => "not authentic",
            Self::Challenge => "challenge",
            Self::TagMismatch => "tags of data packets",
            Self::Diverged => "digest of the weights",
        }
    }
}
