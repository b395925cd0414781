//! Name: the texts by which operators recognise a job and its members.

use super::bytes::{at_least, padded, put_u16, u16_at};
use crate::label::Label;
use crate::limits::{MAX_HOST_LEN_BYTES, MAX_JOB_NAME_LEN_BYTES, MAX_OWNER_LEN_BYTES};
use crate::wire::WireError;

/// Length of a Name without its texts, in bytes.
pub const NAME_LEN_BYTES: usize = 18;
/// Rank on the wire that stands for an unknown rank.
pub(super) const UNKNOWN_RANK: u16 = u16::MAX;

mod field {
    use core::ops::Range;

    pub(super) const RANK: Range<usize> = 12..14;
    pub(super) const JOB_LEN: usize = 14;
    pub(super) const OWNER_LEN: usize = 15;
    pub(super) const HOST_LEN: usize = 16;
    pub(super) const RESERVED: usize = 17;
}

/// Value of a Name: the name and the owner of the sender's job, and the host name and the rank of the sender. These
/// fields do not affect any sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameRepr {
    /// Name of the job; empty if it has none.
    pub job: Label<MAX_JOB_NAME_LEN_BYTES>,
    /// Owner of the job; empty if it is unknown.
    pub owner: Label<MAX_OWNER_LEN_BYTES>,
    /// Host name of the machine on which the member runs; empty if it is unknown.
    pub host: Label<MAX_HOST_LEN_BYTES>,
    /// Rank of the member in the training job, from 0 to 65,534; `None` if it is unknown or if the member is a switch.
    pub rank: Option<u16>,
}

impl NameRepr {
    /// Name in which the rank is unknown and all texts are empty.
    pub const UNKNOWN: Self = Self { job: Label::EMPTY, owner: Label::EMPTY, host: Label::EMPTY, rank: None };

    /// Returns the length of the packet before padding, in bytes.
    pub(super) fn buffer_len(&self) -> usize {
        NAME_LEN_BYTES + self.job.as_str().len() + self.owner.as_str().len() + self.host.as_str().len()
    }
}

pub(super) fn parse_name(buffer: &[u8]) -> Result<NameRepr, WireError> {
    use field as at;
    at_least(buffer, NAME_LEN_BYTES)?;
    let owner = NAME_LEN_BYTES + usize::from(buffer[at::JOB_LEN]);
    let host = owner + usize::from(buffer[at::OWNER_LEN]);
    let end = host + usize::from(buffer[at::HOST_LEN]);
    padded(buffer, end)?;
    if buffer[at::RESERVED] != 0 {
        return Err(WireError::BadValue);
    }
    Ok(NameRepr {
        job: Label::from_utf8(&buffer[NAME_LEN_BYTES..owner]).map_err(|_| WireError::BadValue)?,
        owner: Label::from_utf8(&buffer[owner..host]).map_err(|_| WireError::BadValue)?,
        host: Label::from_utf8(&buffer[host..end]).map_err(|_| WireError::BadValue)?,
        rank: Some(u16_at(buffer, at::RANK)).filter(|rank| *rank != UNKNOWN_RANK),
    })
}

pub(super) fn emit_name(buffer: &mut [u8], name: &NameRepr) {
    put_u16(buffer, field::RANK, name.rank.unwrap_or(UNKNOWN_RANK));
    let texts = [
        (field::JOB_LEN, name.job.as_str()),
        (field::OWNER_LEN, name.owner.as_str()),
        (field::HOST_LEN, name.host.as_str()),
    ];
    let mut begin = NAME_LEN_BYTES;
    for (len_at, text) in texts {
        buffer[len_at] = text.len() as u8;
        buffer[begin..begin + text.len()].copy_from_slice(text.as_bytes());
        begin += text.len();
    }
}
