//! Status codes of Acks.

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The request has been carried out, by this packet or by an earlier copy of it.
    Success = 0,
    /// The packet could not be parsed.
    Malformed = 1,
    /// The version of the control protocol in the packet differs from the switch's version, which is in `expected`.
    WrongVersion = 2,
    /// The sender is not a member of any job.
    UnknownMember = 3,
    /// The sender is a member of a job other than the one that the packet names; `expected` is the sender's job.
    ForeignJob = 4,
    /// The gradient length differs from that of the job's first Join; `expected` is the job's gradient length, in
    /// floats.
    GradientLenMismatch = 5,
    /// The segment size differs from that of the job's first Join; `expected` is the job's segment size, in floats.
    SegmentSizeMismatch = 6,
    /// The mode differs from that of the job's first Join, or the request is not allowed in the job's mode; `expected`
    /// is the job's mode.
    ModeMismatch = 7,
    /// The number of workers differs from that of the job's first Join; `expected` is the job's number of workers.
    WorkersMismatch = 8,
    /// The declared layout of the vector is invalid.
    BadLayout = 9,
    /// The job already has the maximum number of members; `expected` is that number, and `history` holds the limit (see
    /// [`Exceeded`](super::Exceeded)).
    JobFull = 10,
    /// The switch has no capacity for the job; `expected` is the available memory, in KiB, and `history` the limit (see
    /// [`Exceeded`](super::Exceeded)).
    NoCapacity = 11,
    /// The round that the request names is over and its results are no longer kept; `round` is the round at which the
    /// member can continue.
    StaleRound = 12,
    /// The range of segments is empty, too long or beyond the vector; `expected` is the segment count.
    OutOfRange = 13,
    /// A contribution contained NaN or an infinity; `round` and `expected` (the segment index) identify it.
    NonFinite = 14,
    /// The job is halted, or the operator has ended the membership; `expected` is [`Status::MEMBER_EXPELLED`] or
    /// [`Status::JOB_REMOVED`] in the latter case, otherwise 0.
    Halted = 15,
    /// The threshold H exceeds the maximum; `expected` is the maximum.
    BadThreshold = 16,
    /// A data packet has the wrong length for its segment; `expected` is the correct length, in bytes.
    LengthMismatch = 17,
    /// A worker's packet claims more than one gradient; `expected` is 1.
    BadWeight = 18,
    /// The segment index of a data packet is beyond the vector; `expected` is the segment count.
    SegOutOfRange = 19,
    /// A query named a job that does not exist.
    UnknownJob = 20,
    /// Switches are connected in a loop or form more levels than allowed; `expected` is the maximum number of levels.
    TooManyLevels = 21,
    /// The packet is not authenticated with the job's key, or is authenticated although the job has no key; `expected`
    /// is 1 if the job has a key, otherwise 0.
    NotAuthentic = 22,
    /// The Join may be a replay or have a forged address; the sender must repeat it with the nonce in `history`.
    Challenge = 23,
    /// The Join and the job's first Join disagree on whether data is tagged; `expected` is 1 if the job's data is
    /// tagged, otherwise 0.
    TagMismatch = 24,
    /// The digest differs from that of another member; `expected` is the id of that member.
    Diverged = 25,
    /// The element types differ from those of the job's first Join, or the switch does not support them; `expected`
    /// holds the codes of the job's types, see [`ElementTypes::code`](crate::ElementTypes::code).
    ElementTypeMismatch = 26,
}

impl Status {
    /// Value of `expected` in a refusal as [`Status::Halted`] if the operator has expelled the member.
    pub const MEMBER_EXPELLED: u32 = 1;
    /// Value of `expected` in a refusal as [`Status::Halted`] if the operator has removed the job.
    pub const JOB_REMOVED: u32 = 2;

    /// All variants, in the order of their codes.
    pub const ALL: [Self; 27] = [
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
        Self::ElementTypeMismatch,
    ];

    /// Returns the status with this code, or `None` if no status has the code.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Returns the reason that a refusal with this status and this value of `expected` gives, for logs and errors.
    pub const fn reason(self, expected: u32) -> &'static str {
        match (self, expected) {
            (Self::Halted, Self::MEMBER_EXPELLED) => "expelled by the operator",
            (Self::Halted, Self::JOB_REMOVED) => "the operator has removed the job",
            _ => self.name(),
        }
    }

    /// Returns the name for logs and errors.
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
            Self::ElementTypeMismatch => "element types",
        }
    }
}
