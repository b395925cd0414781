//! Packet socket that observes the frames of an interface without consuming them.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use libc::{c_int, sockaddr_ll, socklen_t};

use crate::option;

/// `ioctl(2)` request that returns the arrival time of the packet received last, from `linux/sockios.h`.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;

/// Instruction of classic BPF: code, number of instructions to skip if the condition is true, number to skip if it is
/// false, and operand.
pub type Instruction = (u16, u8, u8, u32);

/// Captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    /// Number of bytes of the frame in the buffer.
    pub len: usize,
    /// Full length of the frame, in bytes.
    pub full_len: usize,
    /// Whether this machine sent the frame.
    pub is_outgoing: bool,
    /// Time at which the kernel saw the frame, since the Unix epoch.
    pub since_1970: Duration,
}

/// Socket that receives the frames of an interface that match a filter.
#[derive(Debug)]
pub struct CaptureSocket {
    fd: OwnedFd,
}

impl CaptureSocket {
    /// Opens a non-blocking socket on the interface with this index (`if_nametoindex(3)`).
    ///
    /// # Errors
    /// Returns the errors of `socket(2)` and `bind(2)`. Without `CAP_NET_RAW`, permission is denied.
    pub fn open(interface: u32, filter: &[Instruction], recv_buffer_bytes: usize) -> io::Result<Self> {
        // Protocol 0 receives nothing, so no frame arrives before the filter is attached.
        // SAFETY: no pointers are involved.
        let raw = unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
        };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(raw) } };
        option::set_recv_buffer(socket.as_fd(), recv_buffer_bytes)?;
        socket.attach(filter)?;
        socket.bind(interface)?;
        // The kernel records timestamps only after the first request for one.
        let _ = socket.stamp();
        Ok(socket)
    }

    fn attach(&self, filter: &[Instruction]) -> io::Result<()> {
        let instruction =
            |(code, jt, jf, k): &Instruction| libc::sock_filter { code: *code, jt: *jt, jf: *jf, k: *k };
        let mut program: Vec<_> = filter.iter().map(instruction).collect();
        let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
        let (value, len) = (ptr::from_ref(&program).cast(), size_of::<libc::sock_fprog>() as socklen_t);
        // SAFETY: the value is a live sock_fprog whose instructions live as long as this call.
        let outcome = unsafe {
            libc::setsockopt(self.fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, len)
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn bind(&self, interface: u32) -> io::Result<()> {
        // SAFETY: a sockaddr_ll consists of integers, for which zero is a valid value.
        let mut address: sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface as c_int;
        let len = size_of::<sockaddr_ll>() as socklen_t;
        // SAFETY: the pointer points to a live address of `len` bytes.
        let outcome = unsafe { libc::bind(self.fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Receives the next frame, truncated to the length of the buffer.
    ///
    /// # Errors
    /// Returns `WouldBlock` if there is no frame, or `NetworkDown` if the interface was taken down.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Captured> {
        // SAFETY: a sockaddr_ll consists of integers, for which zero is a valid value.
        let mut from: sockaddr_ll = unsafe { zeroed() };
        let mut from_len = size_of::<sockaddr_ll>() as socklen_t;
        // SAFETY: the pointers point to the caller's buffer and to a live address, each of which has the length that is
        // passed.
        let len = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_TRUNC,
                (&raw mut from).cast(),
                &raw mut from_len,
            )
        };
        let full_len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
        Ok(Captured {
            len: full_len.min(buffer.len()),
            full_len,
            is_outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
            since_1970: self.stamp()?,
        })
    }

    fn stamp(&self) -> io::Result<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: SIOCGSTAMPNS writes a timespec, and the pointer points to a live one.
        let outcome = unsafe { libc::ioctl(self.fd.as_raw_fd(), SIOCGSTAMPNS, &raw mut time) };
        if outcome != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0)))
    }

    /// Returns the number of frames that matched the filter but that the kernel has dropped since the socket was
    /// opened, because the receive buffer was full.
    ///
    /// # Errors
    /// Returns the errors of `getsockopt(2)`.
    pub fn drops(&self) -> io::Result<u32> {
        option::recv_drops(self.as_fd())
    }
}

impl AsFd for CaptureSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
