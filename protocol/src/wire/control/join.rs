//! Join: what a member declares, and which sums it has.

use super::bytes::{all_set, at_least, padding, put_u16, put_u32, put_u64, round_at, u16_at, u32_at, u64_at};
use crate::limits::{DATA_TAG_LEN_BYTES, TRAILER_LEN_BYTES};
use crate::segment::Round;
use crate::wire::WireError;

/// Bytes of a Join before padding.
pub const JOIN_LEN_BYTES: usize = 76;

pub(super) mod field {
    use core::ops::Range;

    pub(crate) const GRADIENT_LEN: Range<usize> = 12..16;
    pub(crate) const SEGMENT_FLOATS: Range<usize> = 16..18;
    pub(crate) const WORKERS: Range<usize> = 18..20;
    pub(crate) const MODE: usize = 20;
    pub(crate) const KIND: usize = 21;
    pub(crate) const WEIGHT: Range<usize> = 22..24;
    pub(crate) const INSTANCE: Range<usize> = 24..28;
    pub(crate) const RANK: Range<usize> = 28..30;
    pub(crate) const FLAGS: usize = 30;
    pub(crate) const HEIGHT: usize = 31;
    pub(crate) const RESUME: Range<usize> = 32..68;
    pub(crate) const ROUND: Range<usize> = 32..36;
    pub(crate) const MEMBERS: Range<usize> = 36..38;
    pub(crate) const THRESHOLD: Range<usize> = 38..40;
    pub(crate) const HISTORY: Range<usize> = 40..48;
    pub(crate) const PREVIOUS: Range<usize> = 48..56;
    pub(crate) const BEHIND: Range<usize> = 56..64;
    pub(crate) const RESUME_WEIGHT: Range<usize> = 64..66;
    pub(crate) const RESUME_RESERVED: Range<usize> = 66..68;
    pub(crate) const NONCE: Range<usize> = 68..76;
}

pub(super) const QUERY: u8 = 1;
pub(super) const RESUME: u8 = 2;
const TAGGED: u8 = 4;
const ROAMS: u8 = 8;
const UPDATES: u8 = 16;
pub(super) const FRESH: u8 = 32;
const ALL_FLAGS: u8 = QUERY | RESUME | TAGGED | ROAMS | UPDATES | FRESH;

/// How the job's contributions are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// One contribution of each member a round.
    Synchronous = 0,
    /// Fast members may contribute more often than slow ones.
    Asynchronous = 1,
}

impl Mode {
    /// The mode of a code.
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Synchronous),
            1 => Some(Self::Asynchronous),
            _ => None,
        }
    }
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

impl Kind {
    /// The kind of a code.
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Worker),
            1 => Some(Self::Switch),
            _ => None,
        }
    }
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

pub(super) fn parse_join(buffer: &[u8]) -> Result<JoinRepr, WireError> {
    use field as at;
    at_least(buffer, JOIN_LEN_BYTES)?;
    let mode = Mode::from_code(buffer[at::MODE]).ok_or(WireError::BadValue)?;
    let kind = Kind::from_code(buffer[at::KIND]).ok_or(WireError::BadValue)?;
    let flags = buffer[at::FLAGS];
    if flags & !ALL_FLAGS != 0 {
        return Err(WireError::BadValue);
    }
    let (height, resume) = (buffer[at::HEIGHT], parse_resume(buffer, flags)?);
    let has_members =
        flags & (ROAMS | UPDATES) != 0 || height != 0 || resume.is_some_and(|resume| resume.behind != 0);
    if kind == Kind::Worker && has_members {
        return Err(WireError::BadValue);
    }
    Ok(JoinRepr {
        gradient_len: u32_at(buffer, at::GRADIENT_LEN),
        segment_floats: u16_at(buffer, at::SEGMENT_FLOATS),
        workers: u16_at(buffer, at::WORKERS),
        mode,
        kind,
        weight: u16_at(buffer, at::WEIGHT),
        instance: u32_at(buffer, at::INSTANCE),
        rank: u16_at(buffer, at::RANK),
        height,
        query: flags & QUERY != 0,
        tagged: flags & TAGGED != 0,
        roams: flags & ROAMS != 0,
        updates: flags & UPDATES != 0,
        nonce: u64_at(buffer, at::NONCE),
        resume,
        padding_len: padding(buffer, JOIN_LEN_BYTES)?,
    })
}

/// The fields of a member that resumes; all zero in the Join of one that does not (requirement C-3).
fn parse_resume(buffer: &[u8], flags: u8) -> Result<Option<ResumeRepr>, WireError> {
    use field as at;
    let fresh = flags & FRESH != 0;
    if flags & RESUME == 0 {
        let is_clear = !fresh && buffer[at::RESUME].iter().all(|byte| *byte == 0);
        return if is_clear { Ok(None) } else { Err(WireError::BadValue) };
    }
    let history = u64_at(buffer, at::HISTORY);
    if history == 0 || u16_at(buffer, at::RESUME_RESERVED) != 0 {
        return Err(WireError::BadValue);
    }
    Ok(Some(ResumeRepr {
        round: round_at(buffer, at::ROUND)?,
        members: u16_at(buffer, at::MEMBERS),
        weight: u16_at(buffer, at::RESUME_WEIGHT),
        threshold: u16_at(buffer, at::THRESHOLD),
        history,
        previous: u64_at(buffer, at::PREVIOUS),
        behind: u64_at(buffer, at::BEHIND),
        fresh,
    }))
}

pub(super) fn emit_join(buffer: &mut [u8], join: &JoinRepr) {
    use field as at;
    put_u32(buffer, at::GRADIENT_LEN, join.gradient_len);
    put_u16(buffer, at::SEGMENT_FLOATS, join.segment_floats);
    put_u16(buffer, at::WORKERS, join.workers);
    buffer[at::MODE] = join.mode as u8;
    buffer[at::KIND] = join.kind as u8;
    put_u16(buffer, at::WEIGHT, join.weight);
    put_u32(buffer, at::INSTANCE, join.instance);
    put_u16(buffer, at::RANK, join.rank);
    buffer[at::HEIGHT] = join.height;
    let flags = [(join.query, QUERY), (join.tagged, TAGGED), (join.roams, ROAMS), (join.updates, UPDATES)];
    buffer[at::FLAGS] = all_set(&flags);
    put_u64(buffer, at::NONCE, join.nonce);
    if let Some(resume) = &join.resume {
        buffer[at::FLAGS] |= all_set(&[(true, RESUME), (resume.fresh, FRESH)]);
        put_u32(buffer, at::ROUND, resume.round.get());
        put_u16(buffer, at::MEMBERS, resume.members);
        put_u16(buffer, at::RESUME_WEIGHT, resume.weight);
        put_u16(buffer, at::THRESHOLD, resume.threshold);
        put_u64(buffer, at::HISTORY, resume.history);
        put_u64(buffer, at::PREVIOUS, resume.previous);
        put_u64(buffer, at::BEHIND, resume.behind);
    }
}
