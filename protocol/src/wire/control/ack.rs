//! Ack: the answer to every request.

use core::net::{Ipv4Addr, SocketAddrV4};

use super::bytes::{all_set, at_least, padding, put_u16, put_u32, put_u64, round_at, u16_at, u32_at, u64_at};
use super::segments::{SegmentSetRepr, emit_set, parse_set};
use super::{Action, Exceeded, Status};
use crate::limits::MAX_PARTS;
use crate::segment::Round;
use crate::wire::WireError;

/// Length of an Ack, in bytes, without the bitmap that it contains if it answers a Help or Confirm.
pub const ACK_LEN_BYTES: usize = 60;

pub(super) mod field {
    use core::ops::Range;

    pub(crate) const ACTION: usize = 12;
    pub(crate) const STATUS: usize = 13;
    pub(crate) const MEMBER: Range<usize> = 14..16;
    pub(crate) const MEMBERS: Range<usize> = 16..18;
    pub(crate) const THRESHOLD: Range<usize> = 18..20;
    pub(crate) const ROUND: Range<usize> = 20..24;
    pub(crate) const WINDOW: Range<usize> = 24..26;
    pub(crate) const STANDING: usize = 26;
    pub(crate) const FLAGS: usize = 27;
    pub(crate) const BOOT: Range<usize> = 28..36;
    pub(crate) const LEASE_MS: Range<usize> = 36..40;
    pub(crate) const EXPECTED: Range<usize> = 40..44;
    pub(crate) const HISTORY: Range<usize> = 44..52;
    pub(crate) const PEER_ADDRESS: Range<usize> = 52..56;
    pub(crate) const PEER_PORT: Range<usize> = 56..58;
    pub(crate) const WEIGHT: Range<usize> = 58..60;
}

const FORMED: u8 = 1;
const ORPHANED: u8 = 2;
const PINNED: u8 = 4;
/// Position, within the flags, of the lowest bit of a field that holds the number of parts minus one.
const PARTS_SHIFT: u32 = 4;

const _: () = assert!(MAX_PARTS - 1 == (u8::MAX >> PARTS_SHIFT) as usize);

/// Standing of a member when it is admitted (requirement M-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Standing {
    /// The member starts at the round in the Ack and does not have the sums of earlier rounds.
    #[default]
    Fresh = 0,
    /// The member has missed nothing: its next round is the one in the Ack.
    Resumed = 1,
    /// The member has missed nothing, but other members lack the last sum, which this member holds. The member sends
    /// that sum in the round that the Ack names, and then continues with its next round.
    Supplies = 2,
    /// The member lacks one sum that other members hold and send in the round that the Ack names. The member waits for
    /// that sum instead of contributing.
    Awaits = 3,
}

impl Standing {
    /// Returns the standing with this code, or `None` if no standing has the code.
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

/// Value of an Ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRepr<'a> {
    /// Action that is acknowledged.
    pub action: Action,
    /// Outcome: success, or the reason for the failure.
    pub status: Status,
    /// Id of the member in the job.
    pub member: u16,
    /// Number of members in the job.
    pub members: u16,
    /// Threshold H for the next round.
    pub threshold: u16,
    /// Answer to a Join: the round at which the member starts. Answer to a Confirm: the aggregate that includes the
    /// vector, if `expected` is 1. Otherwise: the round that the status refers to, see [`Status`].
    pub round: Round,
    /// Maximum number of segments that the member may have in flight.
    pub window: u16,
    /// Answer to a Join: standing of the member.
    pub standing: Standing,
    /// Whether the job is complete, that is, all workers that it waits for have joined.
    pub formed: bool,
    /// Whether the switch has lost its parent and therefore delivers no new sums.
    pub orphaned: bool,
    /// Whether a member has pinned the threshold H. If not, H follows the number of members.
    pub pinned: bool,
    /// Answer to a Join in which [`part`](super::JoinRepr::part) is set: number of parts into which the switch divides
    /// long vectors, from 1 to [`MAX_PARTS`]. Otherwise 1.
    pub parts: u8,
    /// Epoch of the job's incarnation, or the boot id of the switch if it does not know the job (requirement M-7).
    pub boot: u64,
    /// Lease: the time without packets from a member after which the switch expels the member, in milliseconds.
    pub lease_ms: u32,
    /// Expected value of a refused field, see [`Status`]. Answer to a successful Confirm: 1 if an aggregate includes
    /// the vector, otherwise 0.
    pub expected: u32,
    /// Answer to a Join: the history before `round`, or after it if the member supplies or awaits the sum of that
    /// round; see [`crate::history`]. With [`Status::Challenge`]: the nonce. With [`Status::NoCapacity`] and
    /// [`Status::JobFull`]: the limit, see [`Self::exceeded`].
    pub history: u64,
    /// Answer to a Join: another member of the job, from which the state of the learner can be fetched.
    pub peer: Option<SocketAddrV4>,
    /// Total number of workers that the members of the job represent.
    pub weight: u16,
    /// Answer to a Help or Confirm: those of the requested segments that the switch has not received from the member.
    pub missing: Option<SegmentSetRepr<'a>>,
    /// Number of zero bytes to append: the Ack of a Join is as long as the Join.
    pub padding_len: u16,
}

impl AckRepr<'_> {
    /// Returns the switch limit that a refusal names (requirement C-12), or `None` if the Ack names no limit.
    pub fn exceeded(&self) -> Option<Exceeded> {
        match self.status {
            Status::NoCapacity | Status::JobFull => Exceeded::from_wire(self.history),
            _ => None,
        }
    }

    /// Returns an Ack with only an action and a status; all other fields are zero, unset or [`Standing::Fresh`], and
    /// the number of parts is 1.
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
            parts: 1,
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

pub(super) fn parse_ack(buffer: &[u8]) -> Result<AckRepr<'_>, WireError> {
    use field as at;
    at_least(buffer, ACK_LEN_BYTES)?;
    let action = Action::from_code(buffer[at::ACTION]).ok_or(WireError::UnknownAction)?;
    let status = Status::from_code(buffer[at::STATUS]).ok_or(WireError::BadValue)?;
    let standing = Standing::from_code(buffer[at::STANDING]).ok_or(WireError::BadValue)?;
    let flags = buffer[at::FLAGS];
    let parts = (flags >> PARTS_SHIFT) + 1;
    if flags & !(FORMED | ORPHANED | PINNED | u8::MAX << PARTS_SHIFT) != 0 {
        return Err(WireError::BadValue);
    }
    let carries_missing = matches!(action, Action::Help | Action::Confirm) && status == Status::Success;
    let missing = if carries_missing { Some(parse_set(buffer, ACK_LEN_BYTES)?) } else { None };
    let padding_len = if carries_missing { 0 } else { padding(buffer, ACK_LEN_BYTES)? };
    Ok(AckRepr {
        action,
        status,
        member: u16_at(buffer, at::MEMBER),
        members: u16_at(buffer, at::MEMBERS),
        threshold: u16_at(buffer, at::THRESHOLD),
        round: round_at(buffer, at::ROUND)?,
        window: u16_at(buffer, at::WINDOW),
        standing,
        formed: flags & FORMED != 0,
        orphaned: flags & ORPHANED != 0,
        pinned: flags & PINNED != 0,
        parts,
        boot: u64_at(buffer, at::BOOT),
        lease_ms: u32_at(buffer, at::LEASE_MS),
        expected: u32_at(buffer, at::EXPECTED),
        history: u64_at(buffer, at::HISTORY),
        peer: parse_peer(buffer)?,
        weight: u16_at(buffer, at::WEIGHT),
        missing,
        padding_len,
    })
}

/// Parses an IPv4 address and a UDP port; both are zero if there is no peer (requirement C-3).
fn parse_peer(buffer: &[u8]) -> Result<Option<SocketAddrV4>, WireError> {
    let octets: [u8; 4] = buffer[field::PEER_ADDRESS].try_into().expect("the field is four bytes long");
    match (octets, u16_at(buffer, field::PEER_PORT)) {
        ([0, 0, 0, 0], 0) => Ok(None),
        (_, 0) => Err(WireError::BadValue),
        (octets, port) => Ok(Some(SocketAddrV4::new(Ipv4Addr::from(octets), port))),
    }
}

pub(super) fn emit_ack(buffer: &mut [u8], ack: &AckRepr<'_>) {
    use field as at;
    buffer[at::ACTION] = ack.action as u8;
    buffer[at::STATUS] = ack.status as u8;
    put_u16(buffer, at::MEMBER, ack.member);
    put_u16(buffer, at::MEMBERS, ack.members);
    put_u16(buffer, at::THRESHOLD, ack.threshold);
    put_u32(buffer, at::ROUND, ack.round.get());
    put_u16(buffer, at::WINDOW, ack.window);
    buffer[at::STANDING] = ack.standing as u8;
    let flags = [(ack.formed, FORMED), (ack.orphaned, ORPHANED), (ack.pinned, PINNED)];
    buffer[at::FLAGS] = all_set(&flags) | ack.parts.saturating_sub(1) << PARTS_SHIFT;
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
