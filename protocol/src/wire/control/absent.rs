//! Absent: the members that a round is waiting for, in answer to a Waiting.

use super::bytes::{at_least, padded, put_u16, put_u32, round_at, u16_at};
use super::name::UNKNOWN_RANK;
use crate::label::Label;
use crate::limits::{MAX_ABSENT_LEN_BYTES, MAX_HOST_LEN_BYTES};
use crate::segment::Round;
use crate::wire::WireError;

/// Length of an Absent without its list, in bytes.
pub const ABSENT_LEN_BYTES: usize = 20;
/// Length of an entry of the list without the host name, in bytes.
const ENTRY_LEN_BYTES: usize = 3;

mod field {
    use core::ops::Range;

    pub(super) const ROUND: Range<usize> = 12..16;
    pub(super) const COUNT: Range<usize> = 16..18;
    pub(super) const LIST_LEN: Range<usize> = 18..20;
}

/// A member that a round is waiting for, identified by the rank and the host name that it has stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AbsentMember {
    /// Rank of the member in the training job; `None` if it is unknown or if the member is a switch.
    pub rank: Option<u16>,
    /// Host name of the machine on which the member runs; empty if it is unknown.
    pub host: Label<MAX_HOST_LEN_BYTES>,
}

/// List of members in wire format. A member that does not fit is omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsentList {
    bytes: [u8; MAX_ABSENT_LEN_BYTES],
    len: usize,
}

impl AbsentList {
    /// List without members.
    pub const EMPTY: Self = Self { bytes: [0; MAX_ABSENT_LEN_BYTES], len: 0 };

    /// Appends a member; returns whether it fits.
    pub fn push(&mut self, member: &AbsentMember) -> bool {
        let host = member.host.as_str().as_bytes();
        let end = self.len + ENTRY_LEN_BYTES + host.len();
        let Some(entry) = self.bytes.get_mut(self.len..end) else { return false };
        put_u16(entry, 0..2, member.rank.unwrap_or(UNKNOWN_RANK));
        entry[2] = host.len() as u8;
        entry[ENTRY_LEN_BYTES..].copy_from_slice(host);
        self.len = end;
        true
    }

    /// Returns the list in wire format.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Value of an Absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsentRepr<'a> {
    /// The oldest round that is waiting for members; 0 if there is none.
    pub round: Round,
    /// Number of members that the round is waiting for.
    pub count: u16,
    /// The first of these members; see [`AbsentList::as_bytes`].
    pub list: &'a [u8],
}

impl<'a> AbsentRepr<'a> {
    /// Returns the members in the list.
    pub fn members(&self) -> impl Iterator<Item = AbsentMember> + use<'a> {
        let mut rest = self.list;
        core::iter::from_fn(move || {
            let (member, tail) = split_member(rest)?;
            rest = tail;
            Some(member)
        })
    }
}

/// Splits the first member off a list; returns `None` if the list is empty or malformed.
fn split_member(list: &[u8]) -> Option<(AbsentMember, &[u8])> {
    let (entry, rest) = list.split_at_checked(ENTRY_LEN_BYTES)?;
    let (host, rest) = rest.split_at_checked(entry[2].into())?;
    let rank = Some(u16_at(entry, 0..2)).filter(|rank| *rank != UNKNOWN_RANK);
    Some((AbsentMember { rank, host: Label::from_utf8(host).ok()? }, rest))
}

pub(super) fn parse_absent(buffer: &[u8]) -> Result<AbsentRepr<'_>, WireError> {
    at_least(buffer, ABSENT_LEN_BYTES)?;
    let len = usize::from(u16_at(buffer, field::LIST_LEN));
    if len > MAX_ABSENT_LEN_BYTES {
        return Err(WireError::BadValue);
    }
    padded(buffer, ABSENT_LEN_BYTES + len)?;
    let repr = AbsentRepr {
        round: round_at(buffer, field::ROUND)?,
        count: u16_at(buffer, field::COUNT),
        list: &buffer[ABSENT_LEN_BYTES..ABSENT_LEN_BYTES + len],
    };
    let (mut rest, mut listed) = (repr.list, 0);
    while !rest.is_empty() {
        (_, rest) = split_member(rest).ok_or(WireError::BadValue)?;
        listed += 1;
    }
    if listed > repr.count { Err(WireError::BadValue) } else { Ok(repr) }
}

pub(super) fn emit_absent(buffer: &mut [u8], absent: &AbsentRepr<'_>) {
    put_u32(buffer, field::ROUND, absent.round.get());
    put_u16(buffer, field::COUNT, absent.count);
    put_u16(buffer, field::LIST_LEN, absent.list.len() as u16);
    buffer[ABSENT_LEN_BYTES..ABSENT_LEN_BYTES + absent.list.len()].copy_from_slice(absent.list);
}
