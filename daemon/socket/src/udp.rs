//! The socket.
#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iswitch_protocol::limits::superframe_datagrams;
use libc::{iovec, msghdr, sockaddr_in, socklen_t};
use socket2::{Domain, Protocol, Socket, Type};

use crate::ancillary::Ancillary;
use crate::{option, poll};

/// What a socket is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Receive buffer to ask for, in bytes; 0 keeps the system's default. See
    /// [`UdpSocket::recv_buffer_bytes`].
    pub recv_buffer_bytes: usize,
    /// Send buffer to ask for, in bytes; 0 keeps the system's default.
    pub send_buffer_bytes: usize,
    /// Whether to move super-frames. Without, each datagram costs a system call.
    pub offload: bool,
}

impl Default for Options {
    /// 4 MiB each way, with super-frames.
    fn default() -> Self {
        Self { recv_buffer_bytes: 4 << 20, send_buffer_bytes: 4 << 20, offload: true }
    }
}

/// What [`UdpSocket::recv`] put into the buffer: one datagram, or several of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes in the buffer.
    pub len: usize,
    /// Bytes of each datagram but the last, which may be shorter. At least 1; at least `len` for one
    /// datagram.
    pub stride: usize,
    /// The ToS byte, ECN bits included, if the kernel told it.
    pub tos: Option<u8>,
    /// Who sent it.
    pub source: SocketAddrV4,
    /// Our address that it was sent to, also where the socket is bound to 0.0.0.0.
    pub destination: Ipv4Addr,
    /// Whether the buffer was too small: the end is cut off.
    pub truncated: bool,
}

/// A UDP socket for tagged datagrams. See the crate's documentation.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    /// Whether the kernel still accepts super-frames. Shared by the threads that send.
    sends_superframes: AtomicBool,
}

impl UdpSocket {
    /// Opens a blocking socket on a local address; port 0 takes a free one.
    ///
    /// # Errors
    /// Those of `bind(2)`. A kernel that lacks an optional feature (`UDP_GRO`) is no error.
    pub fn bind(address: SocketAddrV4, options: &Options) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        let fd = socket.as_fd();
        option::set_recv_buffer(fd, options.recv_buffer_bytes)?;
        option::set_send_buffer(fd, options.send_buffer_bytes)?;
        option::set(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        option::set(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
        option::set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)?;
        if options.offload {
            // Before Linux 5.0 there is none; datagrams then come one by one.
            let _ = option::set(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
        }
        socket.bind(&SocketAddr::V4(address).into())?;
        Ok(Self { socket, sends_superframes: AtomicBool::new(options.offload) })
    }

    /// Fixes the peer: datagrams from elsewhere are not received, and ICMP errors come out of the next call.
    pub fn connect(&self, peer: SocketAddrV4) -> io::Result<()> {
        self.socket.connect(&SocketAddr::V4(peer).into())
    }

    /// The address that the socket is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddrV4> {
        self.socket.local_addr()?.as_socket_ipv4().ok_or_else(|| io::Error::other("not an IPv4 socket"))
    }

    /// Whether calls return `WouldBlock` instead of waiting.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    /// The receive buffer that the kernel really gave, in the kernel's own bytes (`SO_RCVBUF`).
    ///
    /// It is twice what was asked for, and pays for bookkeeping too: a datagram of 1,472 bytes that arrived
    /// alone takes 2,304 of it. Without `CAP_NET_ADMIN` it is limited by `net.core.rmem_max`.
    pub fn recv_buffer_bytes(&self) -> io::Result<usize> {
        option::recv_buffer_bytes(self.as_fd())
    }

    /// The largest packet that the path to the connected peer carries, as far as the kernel knows, in bytes.
    ///
    /// # Errors
    /// `NotConnected` for a socket that is not connected.
    pub fn path_mtu_bytes(&self) -> io::Result<usize> {
        option::path_mtu_bytes(self.as_fd())
    }

    /// Datagrams lost since the socket was opened because the receive buffer was full. Wraps at 2^32.
    pub fn recv_drops(&self) -> io::Result<u32> {
        option::recv_drops(self.as_fd())
    }

    /// Bytes of the receive buffer that the kernel charges for the datagrams that wait in it.
    pub fn recv_charged_bytes(&self) -> io::Result<usize> {
        option::recv_charged_bytes(self.as_fd())
    }

    /// Sends `payload` as datagrams of `stride` bytes (the last may be shorter) and returns the bytes sent.
    ///
    /// `to` is the peer unless the socket is connected; `source` the local address to send from, for sockets
    /// bound to 0.0.0.0. An empty payload is one empty datagram.
    ///
    /// On a non-blocking socket whose send buffer is full, fewer bytes than given are sent, perhaps none,
    /// always whole datagrams: the caller decides whether the rest is lost, as on any wire, or kept.
    ///
    /// # Errors
    /// `InvalidInput` for a stride of 0; `EMSGSIZE` where a datagram exceeds the path's MTU; a pending error
    /// of a connected socket, such as `ConnectionRefused`. Datagrams before the one that failed may be sent.
    pub fn send(
        &self,
        tos: u8,
        to: Option<SocketAddrV4>,
        source: Option<Ipv4Addr>,
        payload: &[u8],
        stride: usize,
    ) -> io::Result<usize> {
        if stride == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "stride is 0, expected at least 1 byte"));
        }
        let envelope = Envelope { tos, to, source };
        let mut sent = 0;
        loop {
            let rest = &payload[sent..];
            let outcome = if rest.len() > stride && self.sends_superframes.load(Ordering::Relaxed) {
                self.send_superframe(&envelope, rest, stride)
            } else {
                self.send_message(&envelope, &[IoSlice::new(&rest[..rest.len().min(stride)])], None)
            };
            match outcome {
                Ok(len) => sent += len,
                Err(error) if is_full(&error) => return Ok(sent),
                Err(error) => return Err(error),
            }
            if sent == payload.len() {
                return Ok(sent);
            }
        }
    }

    /// Sends datagrams whose heads and bodies lie in different places, and returns how many were sent. All but the
    /// last have the same length.
    ///
    /// As [`Self::send`] of their bytes one after the other on a connected socket, but without putting them there.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    pub fn send_gathered(&self, tos: u8, datagrams: &[[IoSlice<'_>; 2]]) -> io::Result<usize> {
        let Some([head, body]) = datagrams.first() else { return Ok(0) };
        let stride = head.len() + body.len();
        let envelope = Envelope { tos, to: None, source: None };
        let at_once = superframe_datagrams(stride);
        let mut sent = 0;
        while sent < datagrams.len() {
            let rest = &datagrams[sent..];
            let outcome = if rest.len() > 1 && self.sends_superframes.load(Ordering::Relaxed) {
                let chunk = &rest[..rest.len().min(at_once)];
                self.offload_message(&envelope, chunk.as_flattened(), &rest[0], stride)
            } else {
                self.send_message(&envelope, &rest[0], None)
            };
            match outcome {
                Ok(len) => sent += len.div_ceil(stride.max(1)).max(1),
                Err(error) if is_full(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Sends as many datagrams of `stride` bytes as one call takes.
    fn send_superframe(&self, envelope: &Envelope, payload: &[u8], stride: usize) -> io::Result<usize> {
        let chunk = &payload[..payload.len().min(superframe_datagrams(stride) * stride)];
        let first = [IoSlice::new(&payload[..stride])];
        self.offload_message(envelope, &[IoSlice::new(chunk)], &first, stride)
    }

    /// Sends a message as datagrams of `stride` bytes, or only the `first` of them if the kernel refuses that.
    fn offload_message(
        &self,
        envelope: &Envelope,
        message: &[IoSlice<'_>],
        first: &[IoSlice<'_>],
        stride: usize,
    ) -> io::Result<usize> {
        let segment = u16::try_from(stride).ok().filter(|_| superframe_datagrams(stride) > 1);
        match self.send_message(envelope, message, segment) {
            Err(error) if refuses_offload(&error) => {
                // EINVAL may also mean a datagram beyond the MTU: super-frames are to blame, and given up,
                // only if the same datagram is accepted alone.
                let len = self.send_message(envelope, first, None)?;
                self.sends_superframes.store(false, Ordering::Relaxed);
                Ok(len)
            }
            outcome => outcome,
        }
    }

    fn send_message(
        &self,
        envelope: &Envelope,
        parts: &[IoSlice<'_>],
        segment: Option<u16>,
    ) -> io::Result<usize> {
        let mut ancillary = Ancillary::new();
        ancillary.push_tos(envelope.tos);
        if let Some(source) = envelope.source {
            ancillary.push_source(source);
        }
        if let Some(stride) = segment {
            ancillary.push_stride(stride);
        }
        let mut name = envelope.to.map(to_sockaddr);
        // SAFETY: a msghdr is integers and pointers, for which zero is a valid value.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        if let Some(name) = &mut name {
            message.msg_name = ptr::from_mut(name).cast();
            message.msg_namelen = size_of::<sockaddr_in>() as socklen_t;
        }
        // An IoSlice has the layout of an iovec, says its documentation.
        message.msg_iov = parts.as_ptr().cast_mut().cast::<iovec>();
        message.msg_iovlen = parts.len() as _;
        message.msg_control = ancillary.as_ptr().cast_mut().cast();
        message.msg_controllen = ancillary.len() as _;
        retry(|| {
            // SAFETY: every pointer in `message` is to a live local or to `parts`, with its length beside it;
            // sendmsg only reads through them.
            unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) }
        })
    }

    /// Receives one datagram, or one super-frame: several datagrams of one sender and ToS.
    ///
    /// The buffer should hold `MAX_SUPERFRAME_LEN_BYTES` of the protocol's limits if offload is on.
    ///
    /// # Errors
    /// `WouldBlock` on a non-blocking socket; a pending error of a connected socket, such as
    /// `ConnectionRefused`: the next call may succeed.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Received> {
        self.recv_scattered(&mut [IoSliceMut::new(buffer)])
    }

    /// As [`Self::recv`] into several buffers, each filled before the next one. At most 1,024 of them.
    pub fn recv_scattered(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<Received> {
        let mut ancillary = Ancillary::new();
        let mut name = to_sockaddr(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        // SAFETY: a msghdr is integers and pointers, for which zero is a valid value.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = ptr::from_mut(&mut name).cast();
        message.msg_namelen = size_of::<sockaddr_in>() as socklen_t;
        // An IoSliceMut has the layout of an iovec, says its documentation.
        message.msg_iov = buffers.as_mut_ptr().cast::<iovec>();
        message.msg_iovlen = buffers.len() as _;
        message.msg_control = ancillary.as_mut_ptr().cast();
        message.msg_controllen = Ancillary::capacity() as _;
        let len = retry(|| {
            // SAFETY: every pointer in `message` is to a live local or to `buffers`, all writable, with its
            // length beside it.
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, 0) }
        })?;
        // The type of the length is the platform's: 64 bits with glibc, 32 with musl.
        #[allow(clippy::unnecessary_cast)]
        let told = ancillary.parse(message.msg_controllen as usize);
        Ok(Received {
            len,
            stride: told.stride.unwrap_or(len).max(1),
            tos: told.tos,
            source: from_sockaddr(&name),
            destination: told.destination.unwrap_or(Ipv4Addr::UNSPECIFIED),
            truncated: message.msg_flags & libc::MSG_TRUNC != 0,
        })
    }

    /// Waits until a datagram or an error can be received; `false` after `timeout` or a signal.
    ///
    /// The resolution is that of the kernel's timers (about 50 us), not a millisecond. `None` waits for ever.
    pub fn wait_readable(&self, timeout: Option<Duration>) -> io::Result<bool> {
        poll::wait_one(self.as_fd(), timeout)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What is the same for all datagrams of a payload.
struct Envelope {
    tos: u8,
    to: Option<SocketAddrV4>,
    source: Option<Ipv4Addr>,
}

/// Repeats a call that a signal interrupted.
fn retry(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        if let Ok(len) = usize::try_from(call()) {
            return Ok(len);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Whether there is no room to send now, in the socket or in the device's queue.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Whether the kernel (EINVAL, EOPNOTSUPP) or the device (EIO) may have refused a super-frame as such.
fn refuses_offload(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP))
}

fn to_sockaddr(address: SocketAddrV4) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

fn from_sockaddr(name: &sockaddr_in) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes()), u16::from_be(name.sin_port))
}
