//! Ancillary data (`cmsg`) of one message: the metadata of a datagram.
#![allow(unsafe_code)]

use std::mem::size_of;
use std::net::Ipv4Addr;
use std::ptr;

use libc::{c_int, cmsghdr, in_addr, in_pktinfo};

/// Capacity for the ancillary data of one sent or received message, in bytes; more than this crate needs.
const CAPACITY_BYTES: usize = 128;

/// Types that may be copied to and from ancillary data.
///
/// # Safety
/// The type consists of integers without padding, so any sequence of bytes is a valid value.
unsafe trait Plain: Copy {}
// SAFETY: the type is an integer.
unsafe impl Plain for u16 {}
// SAFETY: the type is an integer.
unsafe impl Plain for c_int {}
// SAFETY: the type consists of three 32-bit integers (one `c_int` and two `in_addr`), so it has no padding.
unsafe impl Plain for in_pktinfo {}

/// Buffer of ancillary data, aligned as its headers require.
#[repr(C, align(8))]
pub(crate) struct Ancillary {
    bytes: [u8; CAPACITY_BYTES],
    len: usize,
}

/// Metadata that the kernel reported about a received message.
#[derive(Clone, Copy, Default)]
pub(crate) struct PacketInfo {
    /// ToS byte of the IPv4 header.
    pub(crate) tos: Option<u8>,
    /// Length of each datagram of a super-frame except the last, in bytes.
    pub(crate) stride: Option<usize>,
    /// Local address that the datagram was sent to.
    pub(crate) destination: Option<Ipv4Addr>,
}

impl Ancillary {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; CAPACITY_BYTES], len: 0 }
    }

    /// Adds the ToS of the message to send.
    pub(crate) fn push_tos(&mut self, tos: u8) {
        self.push(libc::IPPROTO_IP, libc::IP_TOS, c_int::from(tos));
    }

    /// Adds the length of the datagrams into which the kernel divides the message.
    pub(crate) fn push_stride(&mut self, stride: u16) {
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, stride);
    }

    /// Adds the local address to send from.
    pub(crate) fn push_source(&mut self, source: Ipv4Addr) {
        let address = in_addr { s_addr: u32::from_ne_bytes(source.octets()) };
        let info = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: in_addr { s_addr: 0 } };
        self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
    }

    fn push<T: Plain>(&mut self, level: c_int, kind: c_int, value: T) {
        let data_at = self.len + header_space();
        let end = self.len + space(size_of::<T>());
        assert!(end <= CAPACITY_BYTES, "the ancillary data of a message should fit in its buffer");
        // SAFETY: a cmsghdr consists only of integers, for which zero bytes are valid.
        let mut header: cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (header_space() + size_of::<T>()) as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        // SAFETY: header and data lie within `bytes` (asserted: end >= data_at + size of T), and `write_unaligned`
        // requires no alignment.
        unsafe {
            ptr::write_unaligned(self.bytes.as_mut_ptr().add(self.len).cast(), header);
            ptr::write_unaligned(self.bytes.as_mut_ptr().add(data_at).cast(), value);
        }
        self.len = end;
    }

    /// Returns the pointer from which the kernel reads the data to send.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Returns the pointer to which the kernel writes up to [`Self::capacity`] bytes of received data.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// Returns the length of the data to send, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the maximum number of bytes that can be received.
    pub(crate) const fn capacity() -> usize {
        CAPACITY_BYTES
    }

    /// Parses the data that the kernel wrote into the first `len` bytes.
    pub(crate) fn parse(&self, len: usize) -> PacketInfo {
        let mut info = PacketInfo::default();
        let mut rest = &self.bytes[..len.min(CAPACITY_BYTES)];
        while let Some((header, data)) = first(rest) {
            match (header.cmsg_level, header.cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TOS) => info.tos = data.first().copied(),
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    info.stride = read::<c_int>(data).and_then(|stride| usize::try_from(stride).ok());
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    // `ipi_spec_dst` is a local address even if the packet was a broadcast.
                    info.destination = read::<in_pktinfo>(data)
                        .map(|info| Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()));
                }
                _ => {}
            }
            rest = rest.get(space(data.len())..).unwrap_or(&[]);
        }
        info
    }
}

/// Returns the first header and its data, if both are complete.
fn first(bytes: &[u8]) -> Option<(cmsghdr, &[u8])> {
    if bytes.len() < size_of::<cmsghdr>() {
        return None;
    }
    // SAFETY: the slice is at least as long as a cmsghdr (checked), which consists only of integers; `read_unaligned`
    // requires no alignment.
    let header: cmsghdr = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
    // The type of the length depends on the C library: 64 bits with glibc, 32 bits with musl.
    #[allow(clippy::unnecessary_cast)]
    let data = bytes.get(header_space()..header.cmsg_len as usize)?;
    Some((header, data))
}

fn read<T: Plain>(data: &[u8]) -> Option<T> {
    // SAFETY: the data is at least as long as T (checked), and any bytes are a valid T; `read_unaligned` requires no
    // alignment.
    (data.len() >= size_of::<T>()).then(|| unsafe { ptr::read_unaligned(data.as_ptr().cast()) })
}

/// Returns the distance from the start of a header to its data, in bytes.
fn header_space() -> usize {
    space(0)
}

/// Returns the length of a header and `data_len` bytes of data, including padding, in bytes.
fn space(data_len: usize) -> usize {
    // SAFETY: CMSG_SPACE only does arithmetic on its argument.
    unsafe { libc::CMSG_SPACE(data_len as u32) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_ancillary_data_is_parsed() {
        let mut ancillary = Ancillary::new();
        ancillary.push_tos(0x1c);
        ancillary.push(libc::SOL_UDP, libc::UDP_GRO, 1472 as c_int);
        ancillary.push_source(Ipv4Addr::new(10, 0, 0, 9));
        let info = ancillary.parse(ancillary.len());
        assert_eq!(info.tos, Some(0x1c));
        assert_eq!(info.stride, Some(1472));
        assert_eq!(info.destination, Some(Ipv4Addr::new(10, 0, 0, 9)));
    }

    #[test]
    fn truncated_or_invalid_ancillary_data_is_ignored() {
        let mut ancillary = Ancillary::new();
        ancillary.push_tos(0x1c);
        for len in 0..space(0) {
            assert_eq!(ancillary.parse(len).tos, None);
        }
        ancillary.bytes[0] = 0xff; // cmsg_len beyond the buffer
        assert_eq!(ancillary.parse(ancillary.len()).tos, None);
        ancillary.bytes[0] = 0; // cmsg_len shorter than a header
        assert_eq!(ancillary.parse(ancillary.len()).tos, None);
    }
}
