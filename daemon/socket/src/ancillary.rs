//! Ancillary data (`cmsg`) of one message: what is said about a datagram beside its bytes.
#![allow(unsafe_code)]

use std::mem::size_of;
use std::net::Ipv4Addr;
use std::ptr;

use libc::{c_int, cmsghdr, in_addr, in_pktinfo};

/// Room for all ancillary data that is sent or received with one message, with some to spare.
const CAPACITY_BYTES: usize = 128;

/// Types that may be copied from and to ancillary data.
///
/// # Safety
/// The type holds plain numbers without padding: any bytes are a value of it.
unsafe trait Plain: Copy {}
// SAFETY: one integer.
unsafe impl Plain for u16 {}
// SAFETY: one integer.
unsafe impl Plain for c_int {}
// SAFETY: three 32-bit integers, `c_int` and twice `in_addr`.
unsafe impl Plain for in_pktinfo {}

/// A buffer of ancillary data, aligned as its headers are.
#[repr(C, align(8))]
pub(crate) struct Ancillary {
    bytes: [u8; CAPACITY_BYTES],
    len: usize,
}

/// What the kernel told about a received message.
#[derive(Clone, Copy, Default)]
pub(crate) struct Told {
    /// ToS byte of the IPv4 header.
    pub(crate) tos: Option<u8>,
    /// Bytes of each datagram of a super-frame but the last.
    pub(crate) stride: Option<usize>,
    /// Our address that the datagram was sent to.
    pub(crate) destination: Option<Ipv4Addr>,
}

impl Ancillary {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; CAPACITY_BYTES], len: 0 }
    }

    /// The ToS to send with.
    pub(crate) fn push_tos(&mut self, tos: u8) {
        self.push(libc::IPPROTO_IP, libc::IP_TOS, c_int::from(tos));
    }

    /// Datagrams of `stride` bytes are to be cut from the message.
    pub(crate) fn push_stride(&mut self, stride: u16) {
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, stride);
    }

    /// The local address to send from.
    pub(crate) fn push_source(&mut self, source: Ipv4Addr) {
        let address = in_addr { s_addr: u32::from_ne_bytes(source.octets()) };
        let info = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: in_addr { s_addr: 0 } };
        self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
    }

    fn push<T: Plain>(&mut self, level: c_int, kind: c_int, value: T) {
        let data_at = self.len + header_space();
        let end = self.len + space(size_of::<T>());
        assert!(end <= CAPACITY_BYTES, "ancillary data of a message fits in its buffer");
        // SAFETY: a cmsghdr is integers only, for which zero bytes are valid.
        let mut header: cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (header_space() + size_of::<T>()) as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        // SAFETY: header and data lie within `bytes` (asserted: end >= data_at + size of T), and
        // `write_unaligned` asks for no alignment.
        unsafe {
            ptr::write_unaligned(self.bytes.as_mut_ptr().add(self.len).cast(), header);
            ptr::write_unaligned(self.bytes.as_mut_ptr().add(data_at).cast(), value);
        }
        self.len = end;
    }

    /// Where the kernel finds the data to send.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Where the kernel puts received data: [`Self::capacity`] bytes.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// Bytes of the data to send.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that can be received.
    pub(crate) const fn capacity() -> usize {
        CAPACITY_BYTES
    }

    /// Reads what the kernel wrote into the first `len` bytes.
    pub(crate) fn parse(&self, len: usize) -> Told {
        let mut told = Told::default();
        let mut rest = &self.bytes[..len.min(CAPACITY_BYTES)];
        while let Some((header, data)) = first(rest) {
            match (header.cmsg_level, header.cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TOS) => told.tos = data.first().copied(),
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    told.stride = read::<c_int>(data).and_then(|stride| usize::try_from(stride).ok());
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    // The specified destination is an address of ours also where the packet was a broadcast.
                    told.destination = read::<in_pktinfo>(data)
                        .map(|info| Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()));
                }
                _ => {}
            }
            rest = rest.get(space(data.len())..).unwrap_or(&[]);
        }
        told
    }
}

/// The first header and its data, if whole.
fn first(bytes: &[u8]) -> Option<(cmsghdr, &[u8])> {
    if bytes.len() < size_of::<cmsghdr>() {
        return None;
    }
    // SAFETY: the slice is as long as a cmsghdr (checked), which is integers only; no alignment is asked for.
    let header: cmsghdr = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
    // The type of the length is the platform's: 64 bits with glibc, 32 with musl.
    #[allow(clippy::unnecessary_cast)]
    let data = bytes.get(header_space()..header.cmsg_len as usize)?;
    Some((header, data))
}

fn read<T: Plain>(data: &[u8]) -> Option<T> {
    // SAFETY: the data are as long as T (checked) and any bytes are a T; no alignment is asked for.
    (data.len() >= size_of::<T>()).then(|| unsafe { ptr::read_unaligned(data.as_ptr().cast()) })
}

/// Bytes from the start of a header to its data.
fn header_space() -> usize {
    space(0)
}

/// Bytes of a header and `data_len` bytes of data, padded.
fn space(data_len: usize) -> usize {
    // SAFETY: pure arithmetic on its argument.
    unsafe { libc::CMSG_SPACE(data_len as u32) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_parsed() {
        let mut ancillary = Ancillary::new();
        ancillary.push_tos(0x1c);
        ancillary.push(libc::SOL_UDP, libc::UDP_GRO, 1472 as c_int);
        ancillary.push_source(Ipv4Addr::new(10, 0, 0, 9));
        let told = ancillary.parse(ancillary.len());
        assert_eq!(told.tos, Some(0x1c));
        assert_eq!(told.stride, Some(1472));
        assert_eq!(told.destination, Some(Ipv4Addr::new(10, 0, 0, 9)));
    }

    #[test]
    fn cut_or_absurd_data_is_ignored() {
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
