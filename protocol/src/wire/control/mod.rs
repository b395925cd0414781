//! Control packets: a common header, which begins with a 1-byte Action, and the Value of that Action.
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
//! A trailer follows the Value and its padding if the flags announce one; see [`crate::auth`].
//!
//! Each group of messages has its own file: Join; Ack and its Status; Help, Confirm and FBcast; Digest; Group, Probe
//! and Heard; Name; Absent. This file defines the header, the messages without a Value, Reset and SetH.

mod absent;
mod ack;
mod bytes;
mod digest;
mod group;
mod join;
mod limit;
mod name;
mod packet;
mod segments;
mod status;
#[cfg(test)]
mod tests;

pub use absent::{ABSENT_LEN_BYTES, AbsentList, AbsentMember, AbsentRepr};
pub use ack::{ACK_LEN_BYTES, AckRepr, Standing};
pub use digest::{DIGEST_LEN_BYTES, DigestRepr};
pub use group::{GROUP_LEN_BYTES, NONCE_LEN_BYTES};
pub use join::{JOIN_LEN_BYTES, JoinRepr, Kind, Mode, ResumeRepr};
pub use limit::{Exceeded, Limit};
pub use name::{NAME_LEN_BYTES, NameRepr};
pub use packet::ControlPacket;
pub use segments::{RANGE_LEN_BYTES, RangeRepr, SegmentSetRepr};
pub use status::Status;

use core::net::SocketAddrV4;

use absent::{emit_absent, parse_absent};
use ack::{emit_ack, parse_ack};
use bytes::{padded, put_u16, put_u32, put_u64, u16_at, u64_at};
use digest::{emit_digest, parse_digest};
use group::{emit_group, emit_nonce, parse_group, parse_nonce};
use join::{emit_join, parse_join};
use name::{emit_name, parse_name};
use segments::{emit_range, emit_set, parse_range, parse_set};

use crate::limits::PROTOCOL_VERSION;
use crate::segment::Round;
use crate::wire::WireError;

/// Length of the header that all control packets share, in bytes.
pub const HEADER_LEN_BYTES: usize = 12;
/// Length of a Reset, in bytes.
const RESET_LEN_BYTES: usize = 24;
/// Length of a SetH, in bytes.
const SET_H_LEN_BYTES: usize = 14;

mod field {
    use core::ops::Range;

    pub(super) const ACTION: usize = 0;
    pub(super) const VERSION: usize = 1;
    pub(super) const FLAGS: Range<usize> = 2..4;
    pub(super) const JOB: Range<usize> = 4..8;
    pub(super) const REQUEST: Range<usize> = 8..12;

    pub(super) const THRESHOLD: Range<usize> = 12..14;
    pub(super) const RESET_RESERVED: Range<usize> = 12..16;
    pub(super) const RESET_BOOT: Range<usize> = 16..24;
}

/// Header flag: a trailer ends the packet.
const AUTHENTICATED: u16 = 1;

/// Action of a control packet (table 2 of the paper, which assigns no codes).
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
    /// Close segments with the contributions that they have, and broadcast the results.
    FBcast = 5,
    /// Request lost results; the answer also names the contributions that the switch is missing.
    Help = 6,
    /// Suspend all members of the job.
    Halt = 7,
    /// Report success, or the reason for a failure.
    Ack = 8,
    /// Ask which segments of an asynchronous contribution the switch is missing, or which aggregate contains the
    /// contribution.
    Confirm = 9,
    /// Report a digest of the weights after a round, which the switch compares with those of the other members.
    Digest = 10,
    /// Offer a member the group to which the switch sends the results of the job.
    Group = 11,
    /// Ask the members that receive this packet through the group to confirm it.
    Probe = 12,
    /// Confirm a Probe, or ask for one.
    Heard = 13,
    /// State the name of the job, its owner, and the host name and rank of the sender.
    Name = 14,
    /// Ask which members the oldest open round is waiting for.
    Waiting = 15,
    /// Name the members that the oldest open round is waiting for.
    Absent = 16,
}

impl Action {
    /// Returns the action with this code, or `None` if no action has the code.
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
            11 => Self::Group,
            12 => Self::Probe,
            13 => Self::Heard,
            14 => Self::Name,
            15 => Self::Waiting,
            16 => Self::Absent,
            _ => return None,
        })
    }
}

/// A control packet as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlRepr<'a> {
    /// Number of the job.
    pub job: u32,
    /// Id of the request, which its Ack repeats. Zero requests no Ack.
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
    /// Clear the job; all of its members rejoin.
    Reset {
        /// Epoch of the incarnation of the job to clear; zero for the current one.
        boot: u64,
    },
    /// Pin the threshold H from the next round on.
    SetH {
        /// Threshold H; zero lets H follow the number of members again.
        threshold: u16,
    },
    /// Close the segments of the range with the contributions that they have.
    FBcast(RangeRepr),
    /// Request the results of the segments in the set. An empty range only renews the lease.
    Help(SegmentSetRepr<'a>),
    /// From a member to the switch: suspend the job. From the switch to a member: the job is suspended.
    Halt,
    /// Outcome of a request.
    Ack(AckRepr<'a>),
    /// Ask which segments of the set the switch is missing; the round is the number of the sender's vector.
    Confirm(SegmentSetRepr<'a>),
    /// Report a digest of the sender's weights.
    Digest(DigestRepr),
    /// Sent by the switch: the multicast address and UDP port of the group of the job.
    Group(SocketAddrV4),
    /// Sent by the switch to the group; each receiver confirms it.
    Probe {
        /// Number that the confirmation repeats.
        nonce: u64,
    },
    /// The sender has received a Probe through the group, or is ready to receive one.
    Heard {
        /// Number of the Probe; zero asks for a Probe.
        nonce: u64,
    },
    /// State the name and the owner of the job, and the host name and the rank of the sender.
    Name(NameRepr),
    /// Ask which members the oldest open round is waiting for.
    Waiting,
    /// Sent by the switch in answer to a Waiting: the members that the oldest open round is waiting for.
    Absent(AbsentRepr<'a>),
}

impl ControlBody<'_> {
    /// Reset of the current incarnation of the job. A retransmission of this packet may also clear the next
    /// incarnation.
    pub const RESET: ControlBody<'static> = ControlBody::Reset { boot: 0 };
    /// Empty Help, which only renews the lease of a member.
    pub const HEARTBEAT: ControlBody<'static> = ControlBody::Help(SegmentSetRepr {
        range: RangeRepr { round: Round::new(0), first: 0, count: 0 },
        bitmap: &[],
    });
}

impl<'a> ControlRepr<'a> {
    /// Parses a control packet (requirements C-1 to C-7). Does not verify the trailer.
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
                padded(buffer, RESET_LEN_BYTES)?;
                if buffer[field::RESET_RESERVED] != [0; 4] {
                    return Err(WireError::BadValue);
                }
                ControlBody::Reset { boot: u64_at(buffer, field::RESET_BOOT) }
            }
            Action::SetH => {
                padded(buffer, SET_H_LEN_BYTES)?;
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
            Action::Group => ControlBody::Group(parse_group(buffer)?),
            Action::Probe => ControlBody::Probe { nonce: parse_nonce(buffer)? },
            Action::Heard => ControlBody::Heard { nonce: parse_nonce(buffer)? },
            Action::Name => ControlBody::Name(parse_name(buffer)?),
            Action::Waiting => padded(buffer, HEADER_LEN_BYTES).map(|()| ControlBody::Waiting)?,
            Action::Absent => ControlBody::Absent(parse_absent(buffer)?),
        };
        Ok(Self { job: packet.job(), request: packet.request(), body })
    }

    /// Returns the action.
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
            ControlBody::Group(_) => Action::Group,
            ControlBody::Probe { .. } => Action::Probe,
            ControlBody::Heard { .. } => Action::Heard,
            ControlBody::Name(_) => Action::Name,
            ControlBody::Waiting => Action::Waiting,
            ControlBody::Absent(_) => Action::Absent,
        }
    }

    /// Returns the number of bytes that [`Self::emit`] writes, including the padding of a request (requirement C-4).
    pub fn buffer_len(&self) -> usize {
        let len = self.value_len();
        match self.body {
            ControlBody::Ack(_)
            | ControlBody::Halt
            | ControlBody::Reset { .. }
            | ControlBody::SetH { .. }
            | ControlBody::Group(_)
            | ControlBody::Probe { .. }
            | ControlBody::Absent(_) => len,
            _ => len.max(ACK_LEN_BYTES),
        }
    }

    fn value_len(&self) -> usize {
        match &self.body {
            ControlBody::Join(join) => JOIN_LEN_BYTES + usize::from(join.padding_len),
            ControlBody::Leave | ControlBody::Halt | ControlBody::Waiting => HEADER_LEN_BYTES,
            ControlBody::Reset { .. } => RESET_LEN_BYTES,
            ControlBody::SetH { .. } => SET_H_LEN_BYTES,
            ControlBody::FBcast(_) => HEADER_LEN_BYTES + RANGE_LEN_BYTES,
            ControlBody::Help(set) | ControlBody::Confirm(set) => HEADER_LEN_BYTES + set.buffer_len(),
            ControlBody::Digest(_) => DIGEST_LEN_BYTES,
            ControlBody::Group(_) => GROUP_LEN_BYTES,
            ControlBody::Probe { .. } | ControlBody::Heard { .. } => NONCE_LEN_BYTES,
            ControlBody::Name(name) => name.buffer_len(),
            ControlBody::Absent(absent) => ABSENT_LEN_BYTES + absent.list.len(),
            ControlBody::Ack(ack) => {
                let missing = ack.missing.map_or(0, |missing| missing.buffer_len());
                ACK_LEN_BYTES + missing + usize::from(ack.padding_len)
            }
        }
    }

    /// Writes the packet at the start of the buffer and returns its length.
    ///
    /// # Panics
    /// Panics if the buffer is shorter than [`Self::buffer_len`].
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
            ControlBody::Leave | ControlBody::Halt | ControlBody::Waiting => {}
            ControlBody::Reset { boot } => put_u64(buffer, field::RESET_BOOT, *boot),
            ControlBody::SetH { threshold } => put_u16(buffer, field::THRESHOLD, *threshold),
            ControlBody::FBcast(range) => emit_range(buffer, HEADER_LEN_BYTES, range),
            ControlBody::Help(set) | ControlBody::Confirm(set) => emit_set(buffer, HEADER_LEN_BYTES, set),
            ControlBody::Ack(ack) => emit_ack(buffer, ack),
            ControlBody::Digest(digest) => emit_digest(buffer, digest),
            ControlBody::Group(group) => emit_group(buffer, *group),
            ControlBody::Probe { nonce } | ControlBody::Heard { nonce } => emit_nonce(buffer, *nonce),
            ControlBody::Name(name) => emit_name(buffer, name),
            ControlBody::Absent(absent) => emit_absent(buffer, absent),
        }
        len
    }
}

/// Copies the nonce from the Challenge `answer` into `join`, the Join that the Challenge answers, so that the Join can
/// be repeated (requirement A-6). The Join must have no trailer. Returns false, and changes nothing, if `answer` is not
/// a Challenge or `join` is not a Join.
pub fn answer_challenge(join: &mut [u8], answer: &[u8]) -> bool {
    let parsed = |bytes| ControlPacket::new_checked(bytes).and_then(|packet| ControlRepr::parse(&packet));
    let Ok(ControlRepr { body: ControlBody::Ack(ack), .. }) = parsed(answer) else { return false };
    let is_answer = (ack.action, ack.status) == (Action::Join, Status::Challenge);
    let is_join = is_answer && parsed(join).is_ok_and(|repr| repr.action() == Action::Join);
    if is_join {
        put_u64(join, join::field::NONCE, ack.history);
    }
    is_join
}

/// Sets the header flag that announces a trailer.
pub(crate) fn announce_trailer(packet: &mut [u8]) {
    put_u16(packet, field::FLAGS, AUTHENTICATED);
}
