//! Control packets: a 1-byte Action, then its Value.
//!
//! All integers are little-endian. Every control packet starts with the same 12 bytes:
//!
//! ```text
//!  0        1         2          4            8            12
//! +--------+---------+----------+------------+------------+-----------
//! | Action | version |  flags   |    job     |  request   | Value ...
//! +--------+---------+----------+------------+------------+-----------
//! ```
//!
//! If the flags say so, a trailer follows the Value and its padding, see [`crate::auth`].

use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Range;

use crate::limits::{
    DATA_TAG_LEN_BYTES, MAX_BITMAP_LEN_BYTES, MAX_PAYLOAD_LEN_BYTES, MAX_RANGE_SEGMENTS, MAX_SEGMENTS,
    PROTOCOL_VERSION, TRAILER_LEN_BYTES,
};
use crate::segment::Round;
use crate::wire::WireError;

/// Bytes of the fields that all control packets share.
pub const HEADER_LEN_BYTES: usize = 12;
/// Bytes of a Join before padding.
pub const JOIN_LEN_BYTES: usize = 76;
/// Bytes of a range of segments: round, first, count.
pub const RANGE_LEN_BYTES: usize = 12;
/// Bytes of an Ack without the bitmap of a Help answer.
pub const ACK_LEN_BYTES: usize = 60;
/// Bytes of a Digest.
pub const DIGEST_LEN_BYTES: usize = 28;

mod field {
    use core::ops::Range;

    pub(super) const ACTION: usize = 0;
    pub(super) const VERSION: usize = 1;
    pub(super) const FLAGS: Range<usize> = 2..4;
    pub(super) const JOB: Range<usize> = 4..8;
    pub(super) const REQUEST: Range<usize> = 8..12;

    pub(super) mod join {
        use super::Range;
        pub(in super::super) const GRADIENT_LEN: Range<usize> = 12..16;
        pub(in super::super) const SEGMENT_FLOATS: Range<usize> = 16..18;
        pub(in super::super) const WORKERS: Range<usize> = 18..20;
        pub(in super::super) const MODE: usize = 20;
        pub(in super::super) const KIND: usize = 21;
        pub(in super::super) const WEIGHT: Range<usize> = 22..24;
        pub(in super::super) const INSTANCE: Range<usize> = 24..28;
        pub(in super::super) const RANK: Range<usize> = 28..30;
        pub(in super::super) const FLAGS: usize = 30;
        pub(in super::super) const HEIGHT: usize = 31;
        pub(in super::super) const RESUME: Range<usize> = 32..68;
        pub(in super::super) const ROUND: Range<usize> = 32..36;
        pub(in super::super) const MEMBERS: Range<usize> = 36..38;
        pub(in super::super) const THRESHOLD: Range<usize> = 38..40;
        pub(in super::super) const HISTORY: Range<usize> = 40..48;
        pub(in super::super) const PREVIOUS: Range<usize> = 48..56;
        pub(in super::super) const BEHIND: Range<usize> = 56..64;
        pub(in super::super) const RESUME_WEIGHT: Range<usize> = 64..66;
        pub(in super::super) const RESUME_RESERVED: Range<usize> = 66..68;
        pub(in super::super) const NONCE: Range<usize> = 68..76;
    }

    pub(super) const THRESHOLD: Range<usize> = 12..14;
    pub(super) const RESET_RESERVED: Range<usize> = 12..16;
    pub(super) const RESET_BOOT: Range<usize> = 16..24;

    pub(super) mod digest {
        use super::Range;
        pub(in super::super) const ROUND: Range<usize> = 12..16;
        pub(in super::super) const RESERVED: Range<usize> = 16..20;
        pub(in super::super) const DIGEST: Range<usize> = 20..28;
    }

    pub(super) mod ack {
        use super::Range;
        pub(in super::super) const ACTION: usize = 12;
        pub(in super::super) const STATUS: usize = 13;
        pub(in super::super) const MEMBER: Range<usize> = 14..16;
        pub(in super::super) const MEMBERS: Range<usize> = 16..18;
        pub(in super::super) const THRESHOLD: Range<usize> = 18..20;
        pub(in super::super) const ROUND: Range<usize> = 20..24;
        pub(in super::super) const WINDOW: Range<usize> = 24..26;
        pub(in super::super) const STANDING: usize = 26;
        pub(in super::super) const FLAGS: usize = 27;
        pub(in super::super) const BOOT: Range<usize> = 28..36;
        pub(in super::super) const LEASE_MS: Range<usize> = 36..40;
        pub(in super::super) const EXPECTED: Range<usize> = 40..44;
        pub(in super::super) const HISTORY: Range<usize> = 44..52;
        pub(in super::super) const PEER_ADDRESS: Range<usize> = 52..56;
        pub(in super::super) const PEER_PORT: Range<usize> = 56..58;
        pub(in super::super) const WEIGHT: Range<usize> = 58..60;
    }
}

/// A trailer ends the packet.
const AUTHENTICATED: u16 = 1;
const JOIN_QUERY: u8 = 1;
const JOIN_RESUME: u8 = 2;
const JOIN_TAGGED: u8 = 4;
const JOIN_ROAMS: u8 = 8;
const JOIN_UPDATES: u8 = 16;
const JOIN_FRESH: u8 = 32;
const JOIN_FLAGS: u8 = JOIN_QUERY | JOIN_RESUME | JOIN_TAGGED | JOIN_ROAMS | JOIN_UPDATES | JOIN_FRESH;
const ACK_FORMED: u8 = 1;
const ACK_ORPHANED: u8 = 2;
const ACK_PINNED: u8 = 4;

/// What a control packet asks for (table 2 of the paper; the codes are ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    /// Join the training job.
    Join = 1,
    /// Leave the training job.
    Leave = 2,
    /// Clear the job's slots and start a fresh range of rounds.
    Reset = 3,
    /// Set the aggregation threshold H.
    SetH = 4,
    /// Close segments with what they have and broadcast them.
    FBcast = 5,
    /// Ask for lost results; the answer also names the contributions that the switch misses.
    Help = 6,
    /// Suspend all members of the job.
    Halt = 7,
    /// Success, or the reason of failure.
    Ack = 8,
    /// Ask what the switch still misses of an asynchronous contribution, and which aggregate took it.
    Confirm = 9,
    /// Tell a digest of the weights after a round, to be compared with those of the other members.
    Digest = 10,
}

impl Action {
    /// The action of a code.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Join,
            2 => Self::Leave,
            3 => Self::Reset,
            4 => Self::SetH,
            5 => Self::FBcast,
            6 => Self::Help,
            7 => Self::Halt,
            8 => Self::Ack,
            9 => Self::Confirm,
            10 => Self::Digest,
            _ => return None,
        })
    }
}

/// How the job's contributions are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// One contribution of each member a round.
    Synchronous = 0,
    /// Fast members may contribute more often than slow ones.
    Asynchronous = 1,
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A training process: each of its packets is one gradient.
    Worker = 0,
    /// A switch that stands for its own members.
    Switch = 1,
}

/// Where a member stands when it is admitted (requirement M-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Standing {
    /// It starts at the round given; what was summed before is not known to it.
    #[default]
    Fresh = 0,
    /// It has missed nothing: its next round is the round given.
    Resumed = 1,
    /// It has missed nothing, and others lack the last sum that it holds: it sends that sum in the round given,
    /// and goes on with its next round after it.
    Supplies = 2,
    /// It lacks one sum that others hold and send in the round given: it waits for that instead of contributing.
    Awaits = 3,
}

impl Standing {
    /// The standing of a code.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Fresh,
            1 => Self::Resumed,
            2 => Self::Supplies,
            3 => Self::Awaits,
            _ => return None,
        })
    }
}

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

/// View of a control packet: the UDP payload.
#[derive(Clone, Copy, Debug)]
pub struct ControlPacket<'a> {
    buffer: &'a [u8],
}

impl<'a> ControlPacket<'a> {
    /// Wraps a buffer that holds at least the common header, and the trailer if the header announces one.
    #[inline]
    pub fn new_checked(buffer: &'a [u8]) -> Result<Self, WireError> {
        let packet = Self { buffer };
        packet.check_len()?;
        Ok(packet)
    }

    /// Ensures that no accessor panics.
    pub fn check_len(&self) -> Result<(), WireError> {
        match self.buffer.len() {
            0..HEADER_LEN_BYTES => Err(WireError::Truncated),
            HEADER_LEN_BYTES..=MAX_PAYLOAD_LEN_BYTES => {
                let trailer_len = if self.is_authenticated() { TRAILER_LEN_BYTES } else { 0 };
                at_least(self.buffer, HEADER_LEN_BYTES + trailer_len)
            }
            _ => Err(WireError::Overlong),
        }
    }

    /// Bytes of the packet, trailer included.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether a trailer ends the packet (requirement A-1). What it proves is for a key to say.
    #[inline]
    pub fn is_authenticated(&self) -> bool {
        // The flags of another version are not ours to read.
        self.version() == PROTOCOL_VERSION && self.flags() & AUTHENTICATED != 0
    }

    /// The counter in the trailer, if there is one. Only [`crate::Key::verify`] tells whether it is genuine.
    #[inline]
    pub fn counter(&self) -> Option<u64> {
        let (_, trailer) = self.split_trailer()?;
        trailer.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The packet without its trailer, and the trailer.
    pub(crate) fn split_trailer(&self) -> Option<(&'a [u8], &'a [u8; TRAILER_LEN_BYTES])> {
        if self.is_authenticated() { self.buffer.split_last_chunk() } else { None }
    }

    /// What the length rules apply to (requirement A-1).
    fn content(&self) -> &'a [u8] {
        self.split_trailer().map_or(self.buffer, |(content, _)| content)
    }

    /// The nonce of a Join, which need not be well-formed otherwise. There is none in a query, which needs no nonce,
    /// and in other packets.
    #[inline]
    pub fn join_nonce(&self) -> Option<u64> {
        let is_join = self.action_code() == Action::Join as u8 && self.content_len() >= JOIN_LEN_BYTES;
        let is_admission = is_join && self.buffer[field::join::FLAGS] & JOIN_QUERY == 0;
        is_admission.then(|| u64_at(self.buffer, field::join::NONCE))
    }

    /// Bytes without the trailer.
    #[inline]
    pub fn content_len(&self) -> usize {
        self.content().len()
    }

    /// The Action code.
    #[inline]
    pub fn action_code(&self) -> u8 {
        self.buffer[field::ACTION]
    }

    /// The protocol version.
    #[inline]
    pub fn version(&self) -> u8 {
        self.buffer[field::VERSION]
    }

    /// The job.
    #[inline]
    pub fn job(&self) -> u32 {
        u32_at(self.buffer, field::JOB)
    }

    /// The request's id, which its Ack repeats.
    #[inline]
    pub fn request(&self) -> u32 {
        u32_at(self.buffer, field::REQUEST)
    }

    fn flags(&self) -> u16 {
        u16_at(self.buffer, field::FLAGS)
    }
}

/// A control packet as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlRepr<'a> {
    /// The job.
    pub job: u32,
    /// Id of the request; an Ack repeats it. Zero asks for no Ack.
    pub request: u32,
    /// Action and Value.
    pub body: ControlBody<'a>,
}

/// Action and Value of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlBody<'a> {
    /// Join the job.
    Join(JoinRepr),
    /// Leave the job.
    Leave,
    /// Clear the job: all its members join again.
    Reset {
        /// Epoch of the incarnation of the job that is meant; zero for the present one.
        boot: u64,
    },
    /// Pin the threshold H, from the next round on.
    SetH {
        /// The threshold; zero lets H follow the number of members again.
        threshold: u16,
    },
    /// Close the segments of the range with what they have.
    FBcast(RangeRepr),
    /// Ask for the results of the segments in the set. An empty range only renews the lease.
    Help(SegmentSetRepr<'a>),
    /// To the switch: suspend the job. From the switch: the job is suspended.
    Halt,
    /// Success or failure of a request.
    Ack(AckRepr<'a>),
    /// Ask which segments of the set the switch misses; the round is the number of the sender's vector.
    Confirm(SegmentSetRepr<'a>),
    /// A digest of the sender's weights.
    Digest(DigestRepr),
}

impl ControlBody<'_> {
    /// A Reset of the present incarnation of the job, whichever that is. Repeated, it may clear the next one too.
    pub const RESET: ControlBody<'static> = ControlBody::Reset { boot: 0 };
    /// The empty Help, which only renews the lease of a member.
    pub const HEARTBEAT: ControlBody<'static> = ControlBody::Help(SegmentSetRepr {
        range: RangeRepr { round: Round::new(0), first: 0, count: 0 },
        bitmap: &[],
    });
}

/// Value of a Join: what the member declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRepr {
    /// Floats in the gradient vector.
    pub gradient_len: u32,
    /// Floats in each segment but the last.
    pub segment_floats: u16,
    /// Workers that the job starts with; no round completes before as many have joined. Zero: start at once.
    pub workers: u16,
    /// Synchronous or asynchronous.
    pub mode: Mode,
    /// Worker or child switch.
    pub kind: Kind,
    /// Workers that the member stands for: 1 for a worker.
    pub weight: u16,
    /// Drawn at random by each process: tells a restarted worker from a repeated Join.
    pub instance: u32,
    /// Place of the member in sums whose order is fixed.
    pub rank: u16,
    /// Levels of switches below and including the member: zero for a worker.
    pub height: u8,
    /// Only asks about the job: nobody is admitted.
    pub query: bool,
    /// Data packets end with a tag (requirement A-9).
    pub tagged: bool,
    /// A switch that has other parents to go to, or has such a switch below it (requirement M-9).
    pub roams: bool,
    /// Only tells what a member now stands for: who is no member is refused.
    pub updates: bool,
    /// The number that a Challenge asked to repeat; zero if none did (requirement A-6).
    pub nonce: u64,
    /// What the member has summed before, if it has.
    pub resume: Option<ResumeRepr>,
    /// Zero bytes to append, so that the Join is as long as a data packet and proves the path's MTU.
    pub padding_len: u16,
}

/// Where a member comes from that was a member before: under a switch that has since been restarted, or until it
/// was expelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeRepr {
    /// Number of its next round, as far as it knows.
    pub round: Round,
    /// Members that the switch had; zero if the member does not know.
    pub members: u16,
    /// Workers that the whole job had.
    pub weight: u16,
    /// The threshold H, if it was pinned; otherwise zero.
    pub threshold: u16,
    /// The sums that it has, see [`crate::history`]. Never zero.
    pub history: u64,
    /// The same before the last one, if it still holds that sum; otherwise zero.
    pub previous: u64,
    /// The history of those members of a switch that seem to lack the last sum; zero if there are none.
    pub behind: u64,
    /// Whether it was told that history when it was Fresh, and has finished no round since.
    pub fresh: bool,
}

/// Value of a Digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestRepr {
    /// The last round whose sum is in the weights.
    pub round: Round,
    /// Digest of the weights after that round. The members choose how it is made.
    pub digest: u64,
}

impl JoinRepr {
    /// The Join of a worker of a synchronous job, without padding; `workers` is what it declares.
    pub const fn worker(gradient_len: u32, segment_floats: u16, workers: u16) -> Self {
        Self {
            gradient_len,
            segment_floats,
            workers,
            mode: Mode::Synchronous,
            kind: Kind::Worker,
            weight: 1,
            instance: 0,
            rank: 0,
            height: 0,
            query: false,
            tagged: false,
            roams: false,
            updates: false,
            nonce: 0,
            resume: None,
            padding_len: 0,
        }
    }

    /// Zero bytes that make a Join as long as a data packet of `packet_len` bytes without its tag (requirement C-4),
    /// each with the trailer or tag that the job asks for.
    #[inline]
    pub const fn padding_to(packet_len: usize, tagged: bool, authenticated: bool) -> u16 {
        let tag_len = if tagged { DATA_TAG_LEN_BYTES } else { 0 };
        let trailer_len = if authenticated { TRAILER_LEN_BYTES } else { 0 };
        (packet_len + tag_len).saturating_sub(JOIN_LEN_BYTES + trailer_len) as u16
    }
}

/// A range of segments of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeRepr {
    /// The round.
    pub round: Round,
    /// Index of the first segment.
    pub first: u32,
    /// Number of segments, at most [`MAX_RANGE_SEGMENTS`]; the last has an index below [`MAX_SEGMENTS`].
    pub count: u32,
}

/// Value of an Ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRepr<'a> {
    /// The action that is acknowledged.
    pub action: Action,
    /// Success, or the reason of failure.
    pub status: Status,
    /// The member's id in the job.
    pub member: u16,
    /// Members of the job.
    pub members: u16,
    /// The threshold H that applies to the next round.
    pub threshold: u16,
    /// Join: the round to start from. Confirm: the aggregate that took the vector, if `expected` is 1.
    /// Otherwise the round concerned, see [`Status`].
    pub round: Round,
    /// Segments that the member may have in flight.
    pub window: u16,
    /// Join: where the member stands.
    pub standing: Standing,
    /// Whether the job is complete: all workers that it waits for have joined.
    pub formed: bool,
    /// Whether the switch has lost its parent, without which there are no sums.
    pub orphaned: bool,
    /// Whether the threshold H was set by a member and does not follow their number.
    pub pinned: bool,
    /// Identifies this run of the switch.
    pub boot: u64,
    /// Silence after which a member is expelled, in milliseconds.
    pub lease_ms: u32,
    /// What a refused field should have been, see [`Status`]. Confirm that is granted: whether an aggregate has
    /// taken the vector, 0 or 1.
    pub expected: u32,
    /// Join: the sums before `round`, or with it where the member supplies or awaits it, see [`crate::history`].
    /// With [`Status::Challenge`] the nonce.
    pub history: u64,
    /// Join: another member of the job, which may be asked for the learner's state.
    pub peer: Option<SocketAddrV4>,
    /// Workers that all members of the job stand for.
    pub weight: u16,
    /// Answer to a Help or Confirm: those of its segments that the switch still misses from the member.
    pub missing: Option<SegmentSetRepr<'a>>,
    /// Zero bytes to append: the Ack of a padded Join has the same length.
    pub padding_len: u16,
}

impl AckRepr<'_> {
    /// An Ack that says no more than that; all else is zero, [`Standing::Fresh`], unset.
    pub const fn bare(action: Action, status: Status) -> AckRepr<'static> {
        AckRepr {
            action,
            status,
            member: 0,
            members: 0,
            threshold: 0,
            round: Round::new(0),
            window: 0,
            standing: Standing::Fresh,
            formed: false,
            orphaned: false,
            pinned: false,
            boot: 0,
            lease_ms: 0,
            expected: 0,
            history: 0,
            peer: None,
            weight: 0,
            missing: None,
            padding_len: 0,
        }
    }
}

/// Some of the segments of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSetRepr<'a> {
    /// The range.
    pub range: RangeRepr,
    /// One bit a segment, lowest first: `count / 8` bytes, rounded up.
    pub bitmap: &'a [u8],
}

impl<'a> SegmentSetRepr<'a> {
    /// The segments of a range whose bit is set. Bits beyond the range do not count.
    #[inline]
    pub fn of(range: RangeRepr, bits: &'a [u8; MAX_BITMAP_LEN_BYTES]) -> Self {
        Self { range, bitmap: &bits[..range.count.div_ceil(8) as usize] }
    }

    fn buffer_len(&self) -> usize {
        RANGE_LEN_BYTES + self.bitmap.len()
    }

    /// Indices of the segments in the set.
    #[inline]
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.range.first;
        (0..self.range.count)
            .filter(|i| self.bitmap[*i as usize / 8] >> (i % 8) & 1 == 1)
            .map(move |i| first + i)
    }
}

impl<'a> ControlRepr<'a> {
    /// Reads a control packet (requirements C-1 to C-7). Its trailer, if it has one, is not verified here.
    pub fn parse(packet: &ControlPacket<'a>) -> Result<Self, WireError> {
        if packet.version() != PROTOCOL_VERSION {
            return Err(WireError::WrongVersion);
        }
        let action = Action::from_code(packet.action_code()).ok_or(WireError::UnknownAction)?;
        if packet.flags() & !AUTHENTICATED != 0 {
            return Err(WireError::BadValue);
        }
        let buffer = packet.content();
        let body = match action {
            Action::Join => ControlBody::Join(parse_join(buffer)?),
            Action::Leave => padded(buffer, HEADER_LEN_BYTES).map(|()| ControlBody::Leave)?,
            Action::Halt => padded(buffer, HEADER_LEN_BYTES).map(|()| ControlBody::Halt)?,
            Action::Reset => {
                padded(buffer, HEADER_LEN_BYTES + 12)?;
                if buffer[field::RESET_RESERVED] != [0; 4] {
                    return Err(WireError::BadValue);
                }
                ControlBody::Reset { boot: u64_at(buffer, field::RESET_BOOT) }
            }
            Action::SetH => {
                padded(buffer, HEADER_LEN_BYTES + 2)?;
                ControlBody::SetH { threshold: u16_at(buffer, field::THRESHOLD) }
            }
            Action::FBcast => {
                padded(buffer, HEADER_LEN_BYTES + RANGE_LEN_BYTES)?;
                ControlBody::FBcast(parse_range(buffer, HEADER_LEN_BYTES)?)
            }
            Action::Help => ControlBody::Help(parse_set(buffer, HEADER_LEN_BYTES)?),
            Action::Ack => ControlBody::Ack(parse_ack(buffer)?),
            Action::Confirm => ControlBody::Confirm(parse_set(buffer, HEADER_LEN_BYTES)?),
            Action::Digest => ControlBody::Digest(parse_digest(buffer)?),
        };
        Ok(Self { job: packet.job(), request: packet.request(), body })
    }

    /// The action.
    pub fn action(&self) -> Action {
        match self.body {
            ControlBody::Join(_) => Action::Join,
            ControlBody::Leave => Action::Leave,
            ControlBody::Reset { .. } => Action::Reset,
            ControlBody::SetH { .. } => Action::SetH,
            ControlBody::FBcast(_) => Action::FBcast,
            ControlBody::Help(_) => Action::Help,
            ControlBody::Halt => Action::Halt,
            ControlBody::Ack(_) => Action::Ack,
            ControlBody::Confirm(_) => Action::Confirm,
            ControlBody::Digest(_) => Action::Digest,
        }
    }

    /// Bytes that [`Self::emit`] writes, with the padding of a request (requirement C-4).
    pub fn buffer_len(&self) -> usize {
        let len = self.value_len();
        match self.body {
            ControlBody::Ack(_)
            | ControlBody::Halt
            | ControlBody::Reset { .. }
            | ControlBody::SetH { .. } => len,
            _ => len.max(ACK_LEN_BYTES),
        }
    }

    fn value_len(&self) -> usize {
        match &self.body {
            ControlBody::Join(join) => JOIN_LEN_BYTES + usize::from(join.padding_len),
            ControlBody::Leave | ControlBody::Halt => HEADER_LEN_BYTES,
            ControlBody::Reset { .. } => HEADER_LEN_BYTES + 12,
            ControlBody::SetH { .. } => HEADER_LEN_BYTES + 2,
            ControlBody::FBcast(_) => HEADER_LEN_BYTES + RANGE_LEN_BYTES,
            ControlBody::Help(set) | ControlBody::Confirm(set) => HEADER_LEN_BYTES + set.buffer_len(),
            ControlBody::Digest(_) => DIGEST_LEN_BYTES,
            ControlBody::Ack(ack) => {
                let missing = ack.missing.map_or(0, |missing| missing.buffer_len());
                ACK_LEN_BYTES + missing + usize::from(ack.padding_len)
            }
        }
    }

    /// Writes the packet at the start of the buffer and returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Self::buffer_len`].
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let len = self.buffer_len();
        let buffer = &mut buffer[..len];
        buffer.fill(0);
        buffer[field::ACTION] = self.action() as u8;
        buffer[field::VERSION] = PROTOCOL_VERSION;
        put_u32(buffer, field::JOB, self.job);
        put_u32(buffer, field::REQUEST, self.request);
        match &self.body {
            ControlBody::Join(join) => emit_join(buffer, join),
            ControlBody::Leave | ControlBody::Halt => {}
            ControlBody::Reset { boot } => put_u64(buffer, field::RESET_BOOT, *boot),
            ControlBody::SetH { threshold } => put_u16(buffer, field::THRESHOLD, *threshold),
            ControlBody::FBcast(range) => emit_range(buffer, HEADER_LEN_BYTES, range),
            ControlBody::Help(set) | ControlBody::Confirm(set) => emit_set(buffer, HEADER_LEN_BYTES, set),
            ControlBody::Ack(ack) => emit_ack(buffer, ack),
            ControlBody::Digest(digest) => emit_digest(buffer, digest),
        }
        len
    }
}

/// Writes the nonce of a Challenge into the Join that it answers, which has no trailer, so that it can be sent again
/// (requirement A-6). False if `answer` is no Challenge or `join` no Join; then nothing has changed.
pub fn answer_challenge(join: &mut [u8], answer: &[u8]) -> bool {
    let parsed = |bytes| ControlPacket::new_checked(bytes).and_then(|packet| ControlRepr::parse(&packet));
    let Ok(ControlRepr { body: ControlBody::Ack(ack), .. }) = parsed(answer) else { return false };
    let is_answer = (ack.action, ack.status) == (Action::Join, Status::Challenge);
    let is_join = is_answer && parsed(join).is_ok_and(|repr| repr.action() == Action::Join);
    if is_join {
        put_u64(join, field::join::NONCE, ack.history);
    }
    is_join
}

/// Sets the flag that announces a trailer.
pub(crate) fn announce_trailer(packet: &mut [u8]) {
    put_u16(packet, field::FLAGS, AUTHENTICATED);
}

/// Whether what follows `len` bytes is padding.
fn padded(buffer: &[u8], len: usize) -> Result<(), WireError> {
    at_least(buffer, len)?;
    padding(buffer, len).map(|_| ())
}

fn at_least(buffer: &[u8], len: usize) -> Result<(), WireError> {
    if buffer.len() < len { Err(WireError::Truncated) } else { Ok(()) }
}

/// Length of what follows `len` bytes, which must all be zero (requirement C-4).
fn padding(buffer: &[u8], len: usize) -> Result<u16, WireError> {
    let padding = &buffer[len..];
    if padding.iter().any(|byte| *byte != 0) { Err(WireError::Overlong) } else { Ok(padding.len() as u16) }
}

fn parse_join(buffer: &[u8]) -> Result<JoinRepr, WireError> {
    use field::join;
    at_least(buffer, JOIN_LEN_BYTES)?;
    let mode = match buffer[join::MODE] {
        0 => Mode::Synchronous,
        1 => Mode::Asynchronous,
        _ => return Err(WireError::BadValue),
    };
    let kind = match buffer[join::KIND] {
        0 => Kind::Worker,
        1 => Kind::Switch,
        _ => return Err(WireError::BadValue),
    };
    let flags = buffer[join::FLAGS];
    if flags & !JOIN_FLAGS != 0 {
        return Err(WireError::BadValue);
    }
    let (height, resume) = (buffer[join::HEIGHT], parse_resume(buffer, flags)?);
    let has_members = flags & (JOIN_ROAMS | JOIN_UPDATES) != 0
        || height != 0
        || resume.is_some_and(|resume| resume.behind != 0);
    if kind == Kind::Worker && has_members {
        return Err(WireError::BadValue);
    }
    Ok(JoinRepr {
        gradient_len: u32_at(buffer, join::GRADIENT_LEN),
        segment_floats: u16_at(buffer, join::SEGMENT_FLOATS),
        workers: u16_at(buffer, join::WORKERS),
        mode,
        kind,
        weight: u16_at(buffer, join::WEIGHT),
        instance: u32_at(buffer, join::INSTANCE),
        rank: u16_at(buffer, join::RANK),
        height,
        query: flags & JOIN_QUERY != 0,
        tagged: flags & JOIN_TAGGED != 0,
        roams: flags & JOIN_ROAMS != 0,
        updates: flags & JOIN_UPDATES != 0,
        nonce: u64_at(buffer, join::NONCE),
        resume,
        padding_len: padding(buffer, JOIN_LEN_BYTES)?,
    })
}

/// The fields of a member that resumes; all zero in the Join of one that does not (requirement C-3).
fn parse_resume(buffer: &[u8], flags: u8) -> Result<Option<ResumeRepr>, WireError> {
    use field::join;
    let fresh = flags & JOIN_FRESH != 0;
    if flags & JOIN_RESUME == 0 {
        let is_clear = !fresh && buffer[join::RESUME].iter().all(|byte| *byte == 0);
        return if is_clear { Ok(None) } else { Err(WireError::BadValue) };
    }
    let history = u64_at(buffer, join::HISTORY);
    if history == 0 || u16_at(buffer, join::RESUME_RESERVED) != 0 {
        return Err(WireError::BadValue);
    }
    Ok(Some(ResumeRepr {
        round: round_at(buffer, join::ROUND)?,
        members: u16_at(buffer, join::MEMBERS),
        weight: u16_at(buffer, join::RESUME_WEIGHT),
        threshold: u16_at(buffer, join::THRESHOLD),
        history,
        previous: u64_at(buffer, join::PREVIOUS),
        behind: u64_at(buffer, join::BEHIND),
        fresh,
    }))
}

fn emit_join(buffer: &mut [u8], join: &JoinRepr) {
    use field::join as at;
    put_u32(buffer, at::GRADIENT_LEN, join.gradient_len);
    put_u16(buffer, at::SEGMENT_FLOATS, join.segment_floats);
    put_u16(buffer, at::WORKERS, join.workers);
    buffer[at::MODE] = join.mode as u8;
    buffer[at::KIND] = join.kind as u8;
    put_u16(buffer, at::WEIGHT, join.weight);
    put_u32(buffer, at::INSTANCE, join.instance);
    put_u16(buffer, at::RANK, join.rank);
    buffer[at::HEIGHT] = join.height;
    let flags = [
        (join.query, JOIN_QUERY),
        (join.tagged, JOIN_TAGGED),
        (join.roams, JOIN_ROAMS),
        (join.updates, JOIN_UPDATES),
    ];
    buffer[at::FLAGS] = all_set(&flags);
    put_u64(buffer, at::NONCE, join.nonce);
    if let Some(resume) = &join.resume {
        buffer[at::FLAGS] |= all_set(&[(true, JOIN_RESUME), (resume.fresh, JOIN_FRESH)]);
        put_u32(buffer, at::ROUND, resume.round.get());
        put_u16(buffer, at::MEMBERS, resume.members);
        put_u16(buffer, at::RESUME_WEIGHT, resume.weight);
        put_u16(buffer, at::THRESHOLD, resume.threshold);
        put_u64(buffer, at::HISTORY, resume.history);
        put_u64(buffer, at::PREVIOUS, resume.previous);
        put_u64(buffer, at::BEHIND, resume.behind);
    }
}

fn parse_digest(buffer: &[u8]) -> Result<DigestRepr, WireError> {
    use field::digest as at;
    padded(buffer, DIGEST_LEN_BYTES)?;
    if u32_at(buffer, at::RESERVED) != 0 {
        return Err(WireError::BadValue);
    }
    Ok(DigestRepr { round: round_at(buffer, at::ROUND)?, digest: u64_at(buffer, at::DIGEST) })
}

fn emit_digest(buffer: &mut [u8], digest: &DigestRepr) {
    put_u32(buffer, field::digest::ROUND, digest.round.get());
    put_u64(buffer, field::digest::DIGEST, digest.digest);
}

fn parse_range(buffer: &[u8], at: usize) -> Result<RangeRepr, WireError> {
    let (first, count) = (u32_at(buffer, at + 4..at + 8), u32_at(buffer, at + 8..at + 12));
    if count > MAX_RANGE_SEGMENTS || first > MAX_SEGMENTS - count {
        return Err(WireError::BadValue);
    }
    Ok(RangeRepr { round: round_at(buffer, at..at + 4)?, first, count })
}

fn emit_range(buffer: &mut [u8], at: usize, range: &RangeRepr) {
    put_u32(buffer, at..at + 4, range.round.get());
    put_u32(buffer, at + 4..at + 8, range.first);
    put_u32(buffer, at + 8..at + 12, range.count);
}

fn parse_ack(buffer: &[u8]) -> Result<AckRepr<'_>, WireError> {
    use field::ack;
    at_least(buffer, ACK_LEN_BYTES)?;
    let action = Action::from_code(buffer[ack::ACTION]).ok_or(WireError::UnknownAction)?;
    let status = Status::from_code(buffer[ack::STATUS]).ok_or(WireError::BadValue)?;
    let standing = Standing::from_code(buffer[ack::STANDING]).ok_or(WireError::BadValue)?;
    let flags = buffer[ack::FLAGS];
    if flags & !(ACK_FORMED | ACK_ORPHANED | ACK_PINNED) != 0 {
        return Err(WireError::BadValue);
    }
    let carries_missing = matches!(action, Action::Help | Action::Confirm) && status == Status::Success;
    let missing = if carries_missing { Some(parse_set(buffer, ACK_LEN_BYTES)?) } else { None };
    let padding_len = if carries_missing { 0 } else { padding(buffer, ACK_LEN_BYTES)? };
    Ok(AckRepr {
        action,
        status,
        member: u16_at(buffer, ack::MEMBER),
        members: u16_at(buffer, ack::MEMBERS),
        threshold: u16_at(buffer, ack::THRESHOLD),
        round: round_at(buffer, ack::ROUND)?,
        window: u16_at(buffer, ack::WINDOW),
        standing,
        formed: flags & ACK_FORMED != 0,
        orphaned: flags & ACK_ORPHANED != 0,
        pinned: flags & ACK_PINNED != 0,
        boot: u64_at(buffer, ack::BOOT),
        lease_ms: u32_at(buffer, ack::LEASE_MS),
        expected: u32_at(buffer, ack::EXPECTED),
        history: u64_at(buffer, ack::HISTORY),
        peer: parse_peer(buffer)?,
        weight: u16_at(buffer, ack::WEIGHT),
        missing,
        padding_len,
    })
}

/// An IPv4 address and UDP port; both are zero if there is none (requirement C-3).
fn parse_peer(buffer: &[u8]) -> Result<Option<SocketAddrV4>, WireError> {
    let octets: [u8; 4] = buffer[field::ack::PEER_ADDRESS].try_into().expect("the field is four bytes long");
    match (octets, u16_at(buffer, field::ack::PEER_PORT)) {
        ([0, 0, 0, 0], 0) => Ok(None),
        (_, 0) => Err(WireError::BadValue),
        (octets, port) => Ok(Some(SocketAddrV4::new(Ipv4Addr::from(octets), port))),
    }
}

fn parse_set(buffer: &[u8], at: usize) -> Result<SegmentSetRepr<'_>, WireError> {
    at_least(buffer, at + RANGE_LEN_BYTES)?;
    let range = parse_range(buffer, at)?;
    let (bitmap, len) = (&buffer[at + RANGE_LEN_BYTES..], range.count.div_ceil(8) as usize);
    padded(bitmap, len)?;
    Ok(SegmentSetRepr { range, bitmap: &bitmap[..len] })
}

fn emit_set(buffer: &mut [u8], at: usize, set: &SegmentSetRepr<'_>) {
    emit_range(buffer, at, &set.range);
    buffer[at + RANGE_LEN_BYTES..][..set.bitmap.len()].copy_from_slice(set.bitmap);
}

fn emit_ack(buffer: &mut [u8], ack: &AckRepr<'_>) {
    use field::ack as at;
    buffer[at::ACTION] = ack.action as u8;
    buffer[at::STATUS] = ack.status as u8;
    put_u16(buffer, at::MEMBER, ack.member);
    put_u16(buffer, at::MEMBERS, ack.members);
    put_u16(buffer, at::THRESHOLD, ack.threshold);
    put_u32(buffer, at::ROUND, ack.round.get());
    put_u16(buffer, at::WINDOW, ack.window);
    buffer[at::STANDING] = ack.standing as u8;
    let flags = [(ack.formed, ACK_FORMED), (ack.orphaned, ACK_ORPHANED), (ack.pinned, ACK_PINNED)];
    buffer[at::FLAGS] = all_set(&flags);
    put_u64(buffer, at::BOOT, ack.boot);
    put_u32(buffer, at::LEASE_MS, ack.lease_ms);
    put_u32(buffer, at::EXPECTED, ack.expected);
    put_u64(buffer, at::HISTORY, ack.history);
    if let Some(peer) = &ack.peer {
        buffer[at::PEER_ADDRESS].copy_from_slice(&peer.ip().octets());
        put_u16(buffer, at::PEER_PORT, peer.port());
    }
    put_u16(buffer, at::WEIGHT, ack.weight);
    if let Some(missing) = &ack.missing {
        emit_set(buffer, ACK_LEN_BYTES, missing);
    }
}

/// Those of the flags that are set.
fn all_set(flags: &[(bool, u8)]) -> u8 {
    flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag)
}

fn u16_at(buffer: &[u8], at: Range<usize>) -> u16 {
    u16::from_le_bytes(buffer[at].try_into().expect("the field is two bytes long"))
}

fn u32_at(buffer: &[u8], at: Range<usize>) -> u32 {
    u32::from_le_bytes(buffer[at].try_into().expect("the field is four bytes long"))
}

fn u64_at(buffer: &[u8], at: Range<usize>) -> u64 {
    u64::from_le_bytes(buffer[at].try_into().expect("the field is eight bytes long"))
}

/// A round is 24 bits in a 32-bit field; the upper eight are zero (requirement C-5).
fn round_at(buffer: &[u8], at: Range<usize>) -> Result<Round, WireError> {
    let value = u32_at(buffer, at);
    if Round::new(value).get() == value { Ok(Round::new(value)) } else { Err(WireError::BadValue) }
}

fn put_u16(buffer: &mut [u8], at: Range<usize>, value: u16) {
    buffer[at].copy_from_slice(&value.to_le_bytes());
}

fn put_u32(buffer: &mut [u8], at: Range<usize>, value: u32) {
    buffer[at].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(buffer: &mut [u8], at: Range<usize>, value: u64) {
    buffer[at].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::MAX_CONTROL_LEN_BYTES;

    const BITS: [u8; MAX_RANGE_SEGMENTS as usize / 8] = [0b0110_1001; MAX_RANGE_SEGMENTS as usize / 8];

    fn round() -> impl Strategy<Value = Round> {
        any::<u32>().prop_map(Round::new)
    }

    fn range() -> impl Strategy<Value = RangeRepr> {
        let first = 0..=MAX_SEGMENTS - MAX_RANGE_SEGMENTS;
        (round(), first, 0..=MAX_RANGE_SEGMENTS).prop_map(|(round, first, count)| RangeRepr {
            round,
            first,
            count,
        })
    }

    fn resume() -> impl Strategy<Value = ResumeRepr> {
        let counts = (any::<u16>(), any::<u16>(), any::<u16>());
        let histories = (1..=u64::MAX, any::<u64>(), any::<u64>());
        (round(), counts, histories, any::<bool>()).prop_map(
            |(round, (members, weight, threshold), (history, previous, behind), fresh)| ResumeRepr {
                round,
                members,
                weight,
                threshold,
                history,
                previous,
                behind,
                fresh,
            },
        )
    }

    fn join() -> impl Strategy<Value = JoinRepr> {
        let mode = prop_oneof![Just(Mode::Synchronous), Just(Mode::Asynchronous)];
        let kind = prop_oneof![Just(Kind::Worker), Just(Kind::Switch)];
        let declared = (any::<u32>(), any::<u16>(), any::<u16>(), mode, kind);
        let own = (any::<u16>(), any::<u32>(), any::<u16>(), any::<u8>());
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<u64>());
        (declared, own, flags, proptest::option::of(resume()), 0u16..2000).prop_map(
            |(declared, own, flags, resume, padding_len)| {
                let (gradient_len, segment_floats, workers, mode, kind) = declared;
                let (weight, instance, rank, height) = own;
                let (query, tagged, roams, updates, nonce) = flags;
                // A worker has no members.
                let is_switch = kind == Kind::Switch;
                let (height, roams, updates) =
                    (height * u8::from(is_switch), roams && is_switch, updates && is_switch);
                let own_behind = |resume: ResumeRepr| if is_switch { resume.behind } else { 0 };
                let resume = resume.map(|resume| ResumeRepr { behind: own_behind(resume), ..resume });
                JoinRepr {
                    gradient_len,
                    segment_floats,
                    workers,
                    mode,
                    kind,
                    weight,
                    instance,
                    rank,
                    height,
                    query,
                    tagged,
                    roams,
                    updates,
                    nonce,
                    resume,
                    padding_len,
                }
            },
        )
    }

    fn body() -> impl Strategy<Value = ControlBody<'static>> {
        prop_oneof![
            join().prop_map(ControlBody::Join),
            Just(ControlBody::Leave),
            Just(ControlBody::Halt),
            any::<u64>().prop_map(|boot| ControlBody::Reset { boot }),
            any::<u16>().prop_map(|threshold| ControlBody::SetH { threshold }),
            range().prop_map(ControlBody::FBcast),
            (range(), any::<bool>()).prop_map(|(range, confirm)| {
                let set = SegmentSetRepr { range, bitmap: &BITS[..range.count.div_ceil(8) as usize] };
                if confirm { ControlBody::Confirm(set) } else { ControlBody::Help(set) }
            }),
            (round(), any::<u64>())
                .prop_map(|(round, digest)| ControlBody::Digest(DigestRepr { round, digest })),
        ]
    }

    fn parse(buffer: &[u8]) -> Result<ControlRepr<'_>, WireError> {
        ControlRepr::parse(&ControlPacket::new_checked(buffer)?)
    }

    proptest! {
        #[test]
        fn requests_round_trip(job: u32, request: u32, body in body()) {
            let repr = ControlRepr { job, request, body };
            let mut buffer = [0xa5; 4096];
            let len = repr.emit(&mut buffer);
            prop_assert_eq!(parse(&buffer[..len]), Ok(repr));
            // Every truncation is refused, and so is an extra byte that is not padding.
            for short in 0..repr.value_len().min(HEADER_LEN_BYTES + RANGE_LEN_BYTES) {
                prop_assert!(parse(&buffer[..short]).is_err());
            }
            buffer[len] = 1;
            prop_assert_eq!(parse(&buffer[..=len]), Err(WireError::Overlong));
        }

        #[test]
        fn acks_round_trip(
            round in round(), range in range(), bits in any::<[u8; 128]>(),
            status in 0..Status::ALL.len() as u8, boot: u64, expected: u32, help: bool,
        ) {
            let status = if help { Status::Success } else { Status::from_code(status).unwrap() };
            let bitmap = &bits[..range.count.div_ceil(8) as usize];
            let ack = AckRepr {
                action: if help { Action::Help } else { Action::Join },
                status, member: 3, members: 4, threshold: 4, round, window: 64, boot, lease_ms: 10_000,
                expected,
                standing: Standing::Awaits, formed: help, orphaned: !help,
                pinned: help, history: boot,
                peer: help.then_some(SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 5000)), weight: 9,
                missing: help.then_some(SegmentSetRepr { range, bitmap }),
                padding_len: 0,
            };
            let repr = ControlRepr { job: 1, request: 2, body: ControlBody::Ack(ack) };
            let mut buffer = [0xa5; MAX_CONTROL_LEN_BYTES];
            let len = repr.emit(&mut buffer);
            prop_assert_eq!(parse(&buffer[..len]), Ok(repr));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn a_join_that_does_not_resume_says_nothing_of_it() {
        let join = JoinRepr { instance: 1, ..JoinRepr::worker(1, 1, 1) };
        let mut buffer = [0; 128];
        let len = ControlRepr { job: 1, request: 2, body: ControlBody::Join(join) }.emit(&mut buffer);
        assert!(parse(&buffer[..len]).is_ok());
        for at in field::join::RESUME {
            let mut bad = buffer;
            bad[at] = 1;
            assert_eq!(parse(&bad[..len]), Err(WireError::BadValue), "byte {at}");
        }
        // Without a history there is nothing to resume.
        for flags in [JOIN_RESUME, JOIN_FRESH] {
            buffer[field::join::FLAGS] = flags;
            assert_eq!(parse(&buffer[..len]), Err(WireError::BadValue));
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let mut buffer = [0; 128];
        ControlRepr { job: 1, request: 2, body: ControlBody::Leave }.emit(&mut buffer);
        // Without padding, which a sender need not add.
        let len = HEADER_LEN_BYTES;
        let corrupted = |at: usize, value: u8| {
            let mut bad = buffer;
            bad[at] = value;
            parse(&bad[..len]).map(|_| ()).unwrap_err()
        };
        assert_eq!(corrupted(field::VERSION, 9), WireError::WrongVersion);
        assert_eq!(corrupted(field::ACTION, 0), WireError::UnknownAction);
        assert_eq!(corrupted(field::FLAGS.start, 1), WireError::Truncated, "there is no trailer");
        assert_eq!(corrupted(field::FLAGS.start, 2), WireError::BadValue);
        assert_eq!(corrupted(field::FLAGS.end - 1, 1), WireError::BadValue);
    }

    /// A range in an Ack is not checked against a vector before its indices are computed.
    #[test]
    fn a_range_beyond_every_vector_is_refused() {
        let bits = [0xff; MAX_BITMAP_LEN_BYTES];
        let parsed = |first: u32, count: u32| {
            let range = RangeRepr { round: Round::new(0), first, count };
            let body = ControlBody::Help(SegmentSetRepr::of(range, &bits));
            let mut buffer = [0; MAX_CONTROL_LEN_BYTES];
            let len = ControlRepr { job: 1, request: 2, body }.emit(&mut buffer);
            parse(&buffer[..len]).map(|_| ())
        };
        assert_eq!(parsed(MAX_SEGMENTS - 2, 2), Ok(()));
        assert_eq!(parsed(MAX_SEGMENTS - 2, 3), Err(WireError::BadValue));
        assert_eq!(parsed(u32::MAX, 8), Err(WireError::BadValue), "the sum does not fit 32 bits");
        assert_eq!(parsed(MAX_SEGMENTS + 1, 0), Err(WireError::BadValue));
    }

    #[test]
    fn a_peer_without_a_port_has_no_address() {
        let mut buffer = [0; ACK_LEN_BYTES];
        (buffer[field::ACTION], buffer[field::VERSION]) = (Action::Ack as u8, PROTOCOL_VERSION);
        buffer[field::ack::ACTION] = Action::Join as u8;
        assert!(parse(&buffer).is_ok());
        buffer[field::ack::PEER_ADDRESS.start] = 10;
        assert_eq!(parse(&buffer), Err(WireError::BadValue));
    }

    #[test]
    fn missing_segments_are_listed_in_order() {
        let range = RangeRepr { round: Round::new(0), first: 100, count: 10 };
        let missing = SegmentSetRepr { range, bitmap: &[0b1000_0001, 0b10] };
        assert!(missing.indices().eq([100, 107, 109]));
    }
}
