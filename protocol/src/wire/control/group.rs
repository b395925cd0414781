//! Group, Probe and Heard: messages that announce the multicast group of a job and determine whether a member
//! receives the packets sent to the group.

use core::net::{Ipv4Addr, SocketAddrV4};

use super::bytes::{padded, put_u16, put_u64, u16_at, u64_at};
use crate::wire::WireError;

/// Length of a Group, in bytes.
pub const GROUP_LEN_BYTES: usize = 20;
/// Length of a Probe or a Heard without padding, in bytes.
pub const NONCE_LEN_BYTES: usize = 20;

pub(super) mod field {
    use core::ops::Range;

    pub(crate) const ADDRESS: Range<usize> = 12..16;
    pub(crate) const PORT: Range<usize> = 16..18;
    pub(crate) const RESERVED: Range<usize> = 18..20;
    pub(crate) const NONCE: Range<usize> = 12..20;
}

/// Parses the address of a group, which is an IPv4 multicast address with a UDP port (requirement B-2).
pub(super) fn parse_group(buffer: &[u8]) -> Result<SocketAddrV4, WireError> {
    use field as at;
    padded(buffer, GROUP_LEN_BYTES)?;
    let address: [u8; 4] = buffer[at::ADDRESS].try_into().expect("the field is four bytes long");
    let group = SocketAddrV4::new(Ipv4Addr::from(address), u16_at(buffer, at::PORT));
    let is_valid = group.ip().is_multicast() && group.port() != 0 && u16_at(buffer, at::RESERVED) == 0;
    if is_valid { Ok(group) } else { Err(WireError::BadValue) }
}

pub(super) fn emit_group(buffer: &mut [u8], group: SocketAddrV4) {
    buffer[field::ADDRESS].copy_from_slice(&group.ip().octets());
    put_u16(buffer, field::PORT, group.port());
}

pub(super) fn parse_nonce(buffer: &[u8]) -> Result<u64, WireError> {
    padded(buffer, NONCE_LEN_BYTES)?;
    Ok(u64_at(buffer, field::NONCE))
}

pub(super) fn emit_nonce(buffer: &mut [u8], nonce: u64) {
    put_u64(buffer, field::NONCE, nonce);
}
