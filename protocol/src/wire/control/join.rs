//! Join: the parameters that a member declares, and the aggregation history with which it resumes.

use super::bytes::{all_set, at_least, padding, put_u16, put_u32, put_u64, round_at, u16_at, u32_at, u64_at};
use crate::element::ElementTypes;
use crate::limits::{DATA_TAG_LEN_BYTES, TRAILER_LEN_BYTES};
use crate::segment::Round;
use crate::wire::WireError;

/// Length of a Join before padding, in bytes.
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
    pub(crate) const RESUME: Range<usize> = 32..66;
    pub(crate) const ROUND: Range<usize> = 32..36;
    pub(crate) const MEMBERS: Range<usize> = 36..38;
    pub(crate) const THRESHOLD: Range<usize> = 38..40;
    pub(crate) const HISTORY: Range<usize> = 40..48;
    pub(crate) const PREVIOUS: Range<usize> = 48..56;
    pub(crate) const BEHIND: Range<usize> = 56..64;
    pub(crate) const RESUME_WEIGHT: Range<usize> = 64..66;
    pub(crate) const CONTRIBUTIONS: usize = 66;
    pub(crate) const RESULTS: usize = 67;
    pub(crate) const NONCE: Range<usize> = 68..76;
}

pub(super) const QUERY: u8 = 1;
pub(super) const RESUME: u8 = 2;
const TAGGED: u8 = 4;
const ROAMS: u8 = 8;
const UPDATES: u8 = 16;
pub(super) const FRESH: u8 = 32;
const GROUPS: u8 = 64;
const PART: u8 = 128;
const ALL_FLAGS: u8 = QUERY | RESUME | TAGGED | ROAMS | UPDATES | FRESH | GROUPS | PART;
// If a flag were unassigned, the parser would have to refuse it (C-3).
const _: () = assert!(ALL_FLAGS == u8::MAX);

/// Mode of a job: how contributions are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Each member contributes once per round.
    Synchronous = 0,
    /// Each member contributes at its own pace, so fast members may contribute more often than slow ones.
    Asynchronous = 1,
}

impl Mode {
    /// Returns the mode with this code.
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Synchronous),
            1 => Some(Self::Asynchronous),
            _ => None,
        }
    }
}

/// Kind of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Training process; each of its packets holds one gradient.
    Worker = 0,
    /// Child switch that represents its own members.
    Switch = 1,
}

impl Kind {
    /// Returns the kind with this code.
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Worker),
            1 => Some(Self::Switch),
            _ => None,
        }
    }
}

/// Value of a Join: the parameters that the member declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRepr {
    /// Number of floats in the gradient vector.
    pub gradient_len: u32,
    /// Number of floats in each segment; the last segment may have fewer.
    pub segment_floats: u16,
    /// Number of workers that must join before a round can complete. Zero means that the job does not wait for workers.
    pub workers: u16,
    /// Element types of contributions and results.
    pub elements: ElementTypes,
    /// Mode of the job.
    pub mode: Mode,
    /// Kind of the member.
    pub kind: Kind,
    /// Number of workers that the member represents: 1 for a worker.
    pub weight: u16,
    /// Random number that identifies the sending process. It distinguishes the first Join of a restarted worker from a
    /// retransmitted Join.
    pub instance: u32,
    /// Position at which the member's contribution is added if sums have a fixed order (requirement D-7).
    pub rank: u16,
    /// Number of levels of switches from the workers up to and including the member: zero for a worker.
    pub height: u8,
    /// Whether the Join only queries the job and admits no member.
    pub query: bool,
    /// Whether the vector is one part of a longer vector whose other parts are summed at other ports (requirement T-1).
    pub part: bool,
    /// Whether data packets end with a tag (requirement A-9).
    pub tagged: bool,
    /// Whether the member is a worker that can move to another switch (requirement M-14), or a switch that can move to
    /// another parent or has such a switch below it (requirement M-9). Such a worker declares a number of workers.
    pub roams: bool,
    /// Whether the Join only updates the weight of an existing member. Such a Join is refused if its sender is not a
    /// member.
    pub updates: bool,
    /// Whether the member is a worker that can receive results through a group (requirement B-1).
    pub groups: bool,
    /// Nonce of the Challenge that the Join answers; zero if there was none (requirement A-6).
    pub nonce: u64,
    /// State that the member resumes from, if it was a member before.
    pub resume: Option<ResumeRepr>,
    /// Number of zero bytes to append, so that the Join is as long as a data packet and proves the path MTU.
    pub padding_len: u16,
}

impl JoinRepr {
    /// Returns the Join of a worker of a synchronous job, without padding. `workers` is the number of workers that it
    /// declares.
    pub const fn worker(gradient_len: u32, segment_floats: u16, workers: u16) -> Self {
        Self {
            gradient_len,
            segment_floats,
            workers,
            elements: ElementTypes::F32,
            mode: Mode::Synchronous,
            kind: Kind::Worker,
            weight: 1,
            instance: 0,
            rank: 0,
            height: 0,
            query: false,
            part: false,
            tagged: false,
            roams: false,
            updates: false,
            groups: false,
            nonce: 0,
            resume: None,
            padding_len: 0,
        }
    }

    /// Returns the number of zero bytes that pad a Join to the length of a data packet (requirement C-4). `packet_len`
    /// is the length of that packet without a tag, in bytes. The result accounts for the tag if data is `tagged`, and
    /// for the trailer of the Join if it is `authenticated`.
    #[inline]
    pub const fn padding_to(packet_len: usize, tagged: bool, authenticated: bool) -> u16 {
        let tag_len = if tagged { DATA_TAG_LEN_BYTES } else { 0 };
        let trailer_len = if authenticated { TRAILER_LEN_BYTES } else { 0 };
        (packet_len + tag_len).saturating_sub(JOIN_LEN_BYTES + trailer_len) as u16
    }
}

/// State that a member reports when it rejoins after the switch has restarted or has expelled the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeRepr {
    /// The member's next round, as far as the member knows.
    pub round: Round,
    /// Number of members that the switch had before the interruption; zero if the member does not know it.
    pub members: u16,
    /// Number of workers that the whole job had before the interruption.
    pub weight: u16,
    /// Threshold H if it was pinned, otherwise zero.
    pub threshold: u16,
    /// History of the member, see [`crate::history`]. Never zero.
    pub history: u64,
    /// History before the last sum if the member still holds that sum, otherwise zero.
    pub previous: u64,
    /// If the member is a switch: history of those of its members that seem to lack the last sum; zero if there are
    /// none.
    pub behind: u64,
    /// Whether the member received its history when it was admitted as Fresh, and has finished no round since.
    pub fresh: bool,
}

pub(super) fn parse_join(buffer: &[u8]) -> Result<JoinRepr, WireError> {
    use field as at;
    at_least(buffer, JOIN_LEN_BYTES)?;
    let mode = Mode::from_code(buffer[at::MODE]).ok_or(WireError::BadValue)?;
    let kind = Kind::from_code(buffer[at::KIND]).ok_or(WireError::BadValue)?;
    let flags = buffer[at::FLAGS];
    let elements = ElementTypes::from_codes(buffer[at::CONTRIBUTIONS], buffer[at::RESULTS]);
    let (height, resume) = (buffer[at::HEIGHT], parse_resume(buffer, flags)?);
    let workers = u16_at(buffer, at::WORKERS);
    let has_members = flags & UPDATES != 0 || height != 0 || resume.is_some_and(|resume| resume.behind != 0);
    // Only a job with a fixed number of workers can wait for all of them (M-14).
    let is_elastic = flags & ROAMS != 0 && workers == 0;
    let is_invalid = match kind {
        Kind::Worker => has_members || is_elastic,
        Kind::Switch => flags & GROUPS != 0,
    };
    if is_invalid {
        return Err(WireError::BadValue);
    }
    Ok(JoinRepr {
        gradient_len: u32_at(buffer, at::GRADIENT_LEN),
        segment_floats: u16_at(buffer, at::SEGMENT_FLOATS),
        workers,
        elements: elements.ok_or(WireError::BadValue)?,
        mode,
        kind,
        weight: u16_at(buffer, at::WEIGHT),
        instance: u32_at(buffer, at::INSTANCE),
        rank: u16_at(buffer, at::RANK),
        height,
        query: flags & QUERY != 0,
        part: flags & PART != 0,
        tagged: flags & TAGGED != 0,
        roams: flags & ROAMS != 0,
        updates: flags & UPDATES != 0,
        groups: flags & GROUPS != 0,
        nonce: u64_at(buffer, at::NONCE),
        resume,
        padding_len: padding(buffer, JOIN_LEN_BYTES)?,
    })
}

/// Parses the fields of a member that resumes. Returns `None` for any other member, whose Join must have only zeros in
/// these fields (requirement C-3).
fn parse_resume(buffer: &[u8], flags: u8) -> Result<Option<ResumeRepr>, WireError> {
    use field as at;
    let fresh = flags & FRESH != 0;
    if flags & RESUME == 0 {
        let is_clear = !fresh && buffer[at::RESUME].iter().all(|byte| *byte == 0);
        return if is_clear { Ok(None) } else { Err(WireError::BadValue) };
    }
    let history = u64_at(buffer, at::HISTORY);
    if history == 0 {
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
    buffer[at::CONTRIBUTIONS] = join.elements.contributions() as u8;
    buffer[at::RESULTS] = join.elements.results() as u8;
    buffer[at::MODE] = join.mode as u8;
    buffer[at::KIND] = join.kind as u8;
    put_u16(buffer, at::WEIGHT, join.weight);
    put_u32(buffer, at::INSTANCE, join.instance);
    put_u16(buffer, at::RANK, join.rank);
    buffer[at::HEIGHT] = join.height;
    let flags = [
        (join.query, QUERY),
        (join.part, PART),
        (join.tagged, TAGGED),
        (join.roams, ROAMS),
        (join.updates, UPDATES),
        (join.groups, GROUPS),
    ];
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
