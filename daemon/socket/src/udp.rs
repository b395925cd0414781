//! The UDP socket.
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

/// Options of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Receive buffer to request, in bytes; 0 keeps the system's default. See [`UdpSocket::recv_buffer_bytes`].
    pub recv_buffer_bytes: usize,
    /// Send buffer to request, in bytes; 0 keeps the system's default.
    pub send_buffer_bytes: usize,
    /// Whether to use super-frames. Without them, each datagram costs a system call.
    pub offload: bool,
}

impl Default for Options {
    /// Returns options with buffers of 4 MiB in each direction, and super-frames.
    fn default() -> Self {
        Self { recv_buffer_bytes: 4 << 20, send_buffer_bytes: 4 << 20, offload: true }
    }
}

/// Result of [`UdpSocket::recv`]: one datagram in the buffer, or several from one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of bytes in the buffer.
    pub len: usize,
    /// Length in bytes of each datagram except the last, which may be shorter. The value is at least 1 and, if there is
    /// only one datagram, at least `len`.
    pub stride: usize,
    /// ToS byte, including the ECN bits, if the kernel reported it.
    pub tos: Option<u8>,
    /// Address of the sender.
    pub source: SocketAddrV4,
    /// Local address that the datagram was sent to, even if the socket is bound to 0.0.0.0.
    pub destination: Ipv4Addr,
    /// Whether the datagram was truncated to the length of the buffer.
    pub truncated: bool,
}

/// UDP socket that supports super-frames and gives access to the ToS byte and the local address of each datagram.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    /// Whether the kernel still accepts super-frames. The sending threads share this flag.
    sends_superframes: AtomicBool,
}

impl UdpSocket {
    /// Opens a blocking socket on a local address; port 0 selects a free port.
    ///
    /// # Errors
    /// Returns the errors of `bind(2)`. A kernel without the optional feature `UDP_GRO` causes no error.
    pub fn bind(address: SocketAddrV4, options: &Options) -> io::Result<Self> {
        let socket = open(options)?;
        socket.bind(&SocketAddr::V4(address).into())?;
        Ok(Self { socket, sends_superframes: AtomicBool::new(options.offload) })
    }

    /// Opens a socket that subscribes to a multicast group on the interface with the IPv4 address `interface`, and
    /// that receives the datagrams that `source` sends to the group. Several processes can subscribe to the same
    /// group.
    ///
    /// # Errors
    /// Returns the errors of `bind(2)` and of `IP_ADD_MEMBERSHIP`.
    pub fn subscribe(
        group: SocketAddrV4,
        interface: Ipv4Addr,
        source: SocketAddrV4,
        options: &Options,
    ) -> io::Result<Self> {
        let socket = open(options)?;
        socket.set_reuse_address(true)?;
        // By default, the socket would also receive the group's packets that arrive on other interfaces, if other
        // sockets have subscribed to the group there.
        option::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
        socket.bind(&SocketAddr::V4(group).into())?;
        socket.connect(&SocketAddr::V4(source).into())?;
        socket.join_multicast_v4(group.ip(), &interface)?;
        Ok(Self { socket, sends_superframes: AtomicBool::new(options.offload) })
    }

    /// Connects the socket to a peer. The socket then receives only datagrams from that peer, and reports a pending
    /// ICMP error in the next call.
    pub fn connect(&self, peer: SocketAddrV4) -> io::Result<()> {
        self.socket.connect(&SocketAddr::V4(peer).into())
    }

    /// Returns the address that the socket is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddrV4> {
        self.socket.local_addr()?.as_socket_ipv4().ok_or_else(|| io::Error::other("not an IPv4 socket"))
    }

    /// Sets whether calls return `WouldBlock` instead of blocking.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    /// Returns the size of the receive buffer that the kernel granted, in bytes, as the kernel reports it
    /// (`SO_RCVBUF`).
    ///
    /// The size is twice the requested size, because it includes the kernel's bookkeeping: a single datagram of 1,472
    /// bytes uses 2,304 bytes of the buffer. Without `CAP_NET_ADMIN`, `net.core.rmem_max` limits the size.
    pub fn recv_buffer_bytes(&self) -> io::Result<usize> {
        option::recv_buffer_bytes(self.as_fd())
    }

    /// Returns the kernel's current estimate of the path MTU to the connected peer, in bytes.
    ///
    /// # Errors
    /// Returns `NotConnected` if the socket is not connected.
    pub fn path_mtu_bytes(&self) -> io::Result<usize> {
        option::path_mtu_bytes(self.as_fd())
    }

    /// Returns the number of datagrams that the kernel has dropped since the socket was opened, because the receive
    /// buffer was full. The count wraps at 2^32.
    pub fn recv_drops(&self) -> io::Result<u32> {
        option::recv_drops(self.as_fd())
    }

    /// Returns the number of bytes that the kernel charges to the receive buffer for datagrams that have not been read
    /// yet.
    pub fn recv_charged_bytes(&self) -> io::Result<usize> {
        option::recv_charged_bytes(self.as_fd())
    }

    /// Sends `payload` as datagrams of `stride` bytes (the last may be shorter) and returns the number of bytes sent.
    ///
    /// `to` is the peer, or `None` if the socket is connected. `source` is the local address to send from, for a
    /// socket bound to 0.0.0.0. An empty payload is sent as one empty datagram.
    ///
    /// If the send buffer of a non-blocking socket is full, fewer bytes are sent, possibly none, but always whole
    /// datagrams. The caller decides whether to drop the remaining datagrams or to send them later.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the stride is 0, `EMSGSIZE` if a datagram exceeds the path MTU, or a pending error of
    /// a connected socket, such as `ConnectionRefused`. The datagrams before the failed one may have been sent.
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

    /// Sends datagrams whose head and body lie in separate buffers, and returns the number of datagrams sent. All
    /// datagrams except the last must have the same length.
    ///
    /// On a connected socket, this is equivalent to [`Self::send`] with the concatenated bytes, but does not copy them
    /// into one buffer.
    ///
    /// # Errors
    /// Returns the errors of [`Self::send`].
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

    /// Sends as many datagrams of `stride` bytes as fit in one call.
    fn send_superframe(&self, envelope: &Envelope, payload: &[u8], stride: usize) -> io::Result<usize> {
        let chunk = &payload[..payload.len().min(superframe_datagrams(stride) * stride)];
        let first = [IoSlice::new(&payload[..stride])];
        self.offload_message(envelope, &[IoSlice::new(chunk)], &first, stride)
    }

    /// Sends `message` as a super-frame, which the kernel divides into datagrams of `stride` bytes. If the kernel
    /// refuses the super-frame, sends only `first`, the first datagram of the message. Returns the number of bytes
    /// sent, so that the caller can send the rest.
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
                // EINVAL may also mean that a datagram exceeds the MTU. The socket therefore stops using super-frames
                // only if the kernel accepts the first datagram on its own.
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
        // SAFETY: a msghdr consists of integers and pointers, for which zero is a valid value.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        if let Some(name) = &mut name {
            message.msg_name = ptr::from_mut(name).cast();
            message.msg_namelen = size_of::<sockaddr_in>() as socklen_t;
        }
        // IoSlice is documented to have the layout of iovec.
        message.msg_iov = parts.as_ptr().cast_mut().cast::<iovec>();
        message.msg_iovlen = parts.len() as _;
        message.msg_control = ancillary.as_ptr().cast_mut().cast();
        message.msg_controllen = ancillary.len() as _;
        retry(|| {
            // SAFETY: every pointer in `message` points to a live local variable or to `parts` and is accompanied by
            // the correct length. sendmsg only reads through these pointers.
            unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) }
        })
    }

    /// Receives one datagram or one super-frame: several datagrams with the same sender and ToS.
    ///
    /// If offload is enabled, the buffer should hold `MAX_SUPERFRAME_LEN_BYTES` (a limit of the protocol crate).
    ///
    /// # Errors
    /// Returns `WouldBlock` on a non-blocking socket without data, or a pending error of a connected socket, such as
    /// `ConnectionRefused`, after which the next call may succeed.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Received> {
        self.recv_scattered(&mut [IoSliceMut::new(buffer)])
    }

    /// Receives like [`Self::recv`], into up to 1,024 buffers that are filled in order.
    pub fn recv_scattered(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<Received> {
        let mut ancillary = Ancillary::new();
        let mut name = to_sockaddr(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        // SAFETY: a msghdr consists of integers and pointers, for which zero is a valid value.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = ptr::from_mut(&mut name).cast();
        message.msg_namelen = size_of::<sockaddr_in>() as socklen_t;
        // IoSliceMut is documented to have the layout of iovec.
        message.msg_iov = buffers.as_mut_ptr().cast::<iovec>();
        message.msg_iovlen = buffers.len() as _;
        message.msg_control = ancillary.as_mut_ptr().cast();
        message.msg_controllen = Ancillary::capacity() as _;
        let len = retry(|| {
            // SAFETY: every pointer in `message` points to a live local variable or to `buffers`, is valid for writes,
            // and is accompanied by the correct length.
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, 0) }
        })?;
        // The type of the length depends on the C library: 64 bits with glibc, 32 bits with musl.
        #[allow(clippy::unnecessary_cast)]
        let info = ancillary.parse(message.msg_controllen as usize);
        Ok(Received {
            len,
            stride: info.stride.unwrap_or(len).max(1),
            tos: info.tos,
            source: from_sockaddr(&name),
            destination: info.destination.unwrap_or(Ipv4Addr::UNSPECIFIED),
            truncated: message.msg_flags & libc::MSG_TRUNC != 0,
        })
    }

    /// Waits until a datagram or an error can be received. Returns `false` if `timeout` expires or a signal arrives
    /// first.
    ///
    /// The resolution of the timeout is that of the kernel's timers (about 50 us) rather than one millisecond. With
    /// `None`, the wait has no timeout.
    pub fn wait_readable(&self, timeout: Option<Duration>) -> io::Result<bool> {
        self.wait_readable_with(None, timeout)
    }

    /// Works like [`Self::wait_readable`], for this socket and optionally another.
    pub fn wait_readable_with(&self, other: Option<&Self>, timeout: Option<Duration>) -> io::Result<bool> {
        poll::wait_readable(self.as_fd(), other.map(AsFd::as_fd), timeout)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Properties that all datagrams of a payload share.
struct Envelope {
    tos: u8,
    to: Option<SocketAddrV4>,
    source: Option<Ipv4Addr>,
}

/// Opens a socket that is not bound yet.
fn open(options: &Options) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    let fd = socket.as_fd();
    option::set_recv_buffer(fd, options.recv_buffer_bytes)?;
    option::set_send_buffer(fd, options.send_buffer_bytes)?;
    option::set(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    option::set(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    option::set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)?;
    if options.offload {
        // Kernels before Linux 5.0 lack UDP_GRO and deliver datagrams one by one.
        let _ = option::set(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
    }
    Ok(socket)
}

/// Makes a system call, and repeats it whenever a signal interrupts it.
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

/// Returns whether the socket's send buffer or the device's queue is full.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Returns whether the error can mean that the kernel (EINVAL, EOPNOTSUPP) or the device (EIO) does not accept
/// super-frames.
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
