//! A port on a network interface that receives and sends raw Ethernet frames through a packet socket.
//!
//! With `PACKET_VNET_HDR`, a `virtio_net_hdr` precedes each frame. This header allows super-frames of up to 64 KB and
//! unfinished checksums in both directions. An unfinished checksum is completed by the device or, if the frame stays on
//! this machine, by its receiver.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use iswitch_protocol::limits::{
    IPV4_HEADER_LEN_BYTES, MAX_SUPERFRAME_LEN_BYTES, UDP_HEADER_LEN_BYTES, superframe_datagrams,
};
use iswitch_protocol::wire::frame::{ETHERNET_HEADER_LEN_BYTES, HEADERS_LEN_BYTES, complete_udp_checksum};
use iswitch_protocol::wire::{Class, Classifier, FrameAddresses, WireError};
use iswitch_socket::option;
use libc::{c_int, iovec, socklen_t};

use super::claim::InterfaceClaim;
use super::filter::{FILTER_LEN, program};
use super::ingress_rule::IngressRule;
use super::interface::{Interface, Link, PortError, frame_addresses, system};
use super::packet_sockets::PacketSockets;
use iswitch_runtime::port::{Arrival, Datagrams, Faults, GroupReach, Port, PortCounters, datagrams};
use iswitch_switch::{Endpoint, PortId};

// From linux/if_packet.h.
const PACKET_VNET_HDR: c_int = 15;
const PACKET_IGNORE_OUTGOING: c_int = 23;

// From linux/virtio_net.h.
const VNET_HEADER_LEN_BYTES: usize = 10;
const VNET_NEEDS_CSUM: u8 = 1;
const VNET_DATA_VALID: u8 = 2;
const VNET_GSO_NONE: u8 = 0;
const VNET_GSO_UDP_L4: u8 = 5;
const VNET_GSO_ECN: u8 = 0x80;

/// Length of the IPv4 and UDP headers, in bytes: the part of the MTU that is not available to the payload of a
/// datagram.
const OVERHEAD_LEN_BYTES: usize = IPV4_HEADER_LEN_BYTES + UDP_HEADER_LEN_BYTES;
/// Maximum length of a frame with its vnet header, in bytes. An IPv4 packet is at most 65,535 bytes long.
const BUFFER_LEN_BYTES: usize = VNET_HEADER_LEN_BYTES + ETHERNET_HEADER_LEN_BYTES + 65_535;
const CHECKSUM_START: u16 = (ETHERNET_HEADER_LEN_BYTES + IPV4_HEADER_LEN_BYTES) as u16;
/// Offset of the checksum in the UDP header.
const CHECKSUM_OFFSET: u16 = 6;

/// Options of a raw port.
#[derive(Clone, Copy, Debug)]
pub struct PacketOptions {
    /// Size of the receive buffer to request, in bytes; 0 keeps the default of the system.
    pub recv_buffer_bytes: usize,
    /// Size of the send buffer to request, in bytes; 0 keeps the default of the system.
    pub send_buffer_bytes: usize,
    /// Whether to send super-frames and leave checksums to the device. Received frames may always be super-frames or
    /// have unfinished checksums.
    pub offload: bool,
    /// Whether to install the [`IngressRule`].
    pub ingress_rule: bool,
    /// Number of threads that serve the interface, each with its own port.
    pub threads: u16,
}

/// A port on a network interface. Dropping it removes its ingress rule, unless the rule is entrusted to the monitor.
#[derive(Debug)]
pub struct PacketPort {
    id: PortId,
    interface: Interface,
    classifier: Classifier,
    // Drop order: the rule is removed first and the socket is closed right after it, which minimizes the time during
    // which both the kernel and the switch receive each frame. The claim outlives the rule that it protects.
    rule: Option<IngressRule>,
    socket: OwnedFd,
    claim: Option<InterfaceClaim>,
    /// Whether super-frames and unfinished checksums are sent.
    offload: bool,
    recv_buffer_bytes: usize,
    /// Buffer for the last received frame and the vnet header in front of it.
    buffer: Box<[u8]>,
    /// Buffer for a frame whose checksum is completed in software.
    scratch: Vec<u8>,
    counters: PortCounters,
    faults: Faults,
}

/// A received frame after parsing. The payload lies in the buffer of the port.
struct Parsed {
    class: Class,
    addresses: FrameAddresses,
    payload: Range<usize>,
    stride: usize,
}

impl PacketPort {
    /// Opens one port per thread on each interface. The threads serve consecutive UDP ports, starting with the
    /// classifier's port. The first port of an interface claims it and holds the rule. Needs `CAP_NET_RAW`, and
    /// `CAP_NET_ADMIN` for the ingress rules.
    pub fn open_all(
        interfaces: &[(PortId, &str)],
        classifier: Classifier,
        options: &PacketOptions,
    ) -> Result<Vec<Vec<Self>>, PortError> {
        let names: Vec<_> = interfaces.iter().map(|(_, name)| *name).collect();
        let all = PacketSockets::open_all(&names, classifier, options)?;
        let into_ports = |(sockets, (id, _)): (PacketSockets, &(PortId, &str))| {
            let mut ports = sockets.into_ports(classifier, options)?;
            ports.iter_mut().for_each(|port| port.set_id(*id));
            Ok(ports)
        };
        all.into_iter().zip(interfaces).map(into_ports).collect()
    }

    /// Creates the port of an open socket. Port 0 is a placeholder; see [`Self::set_id`].
    pub(super) fn of_socket(
        socket: OwnedFd,
        (name, bridge): (&str, Option<c_int>),
        classifier: Classifier,
        offload: bool,
    ) -> Result<Self, PortError> {
        let mut interface = Interface::find(name, socket.as_fd())?;
        // A sandboxed daemon cannot look up the bridge itself.
        interface.bridge = bridge;
        let recv_buffer_bytes =
            option::recv_buffer_bytes(socket.as_fd()).map_err(system(name, "read SO_RCVBUF"))?;
        Ok(Self {
            id: PortId(0),
            interface,
            classifier,
            rule: None,
            socket,
            claim: None,
            offload,
            recv_buffer_bytes,
            buffer: vec![0; BUFFER_LEN_BYTES].into(),
            scratch: Vec::with_capacity(HEADERS_LEN_BYTES + MAX_SUPERFRAME_LEN_BYTES),
            counters: PortCounters::default(),
            faults: Faults::default(),
        })
    }

    /// Opens a socket for one thread and binds it to an interface. Only one of the sockets of an interface takes
    /// fragments, which have no UDP port.
    pub(super) fn open_socket(
        name: &str,
        classifier: &Classifier,
        takes_fragments: bool,
        options: &PacketOptions,
    ) -> Result<OwnedFd, PortError> {
        let socket = open_socket(classifier, takes_fragments, options)
            .map_err(system(name, "open a packet socket (this needs CAP_NET_RAW)"))?;
        let interface = Interface::find(name, socket.as_fd())?;
        bind(&socket, interface.index).map_err(system(name, "bind a socket to it"))?;
        Ok(socket)
    }

    /// Sets the id of the port. It must be the index of the port in its loop.
    pub fn set_id(&mut self, id: PortId) {
        self.id = id;
    }

    /// Makes this port hold the claim to the interface and the rule.
    pub(super) fn hold(&mut self, claim: InterfaceClaim, rule: Option<IngressRule>) {
        (self.claim, self.rule) = (Some(claim), rule);
    }

    /// Returns the MTU of the interface when it was last read, in bytes.
    pub fn mtu_bytes(&self) -> usize {
        self.interface.mtu_bytes
    }

    /// Returns the ingress rule, if any.
    pub fn rule_mut(&mut self) -> Option<&mut IngressRule> {
        self.rule.as_mut()
    }

    /// Receives the next frame into the buffer and returns its length in bytes. Returns `None` if there is no frame,
    /// or on an error.
    fn receive_frame(&mut self) -> Option<usize> {
        // SAFETY: the buffer is writable and its length is given.
        let len = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        if let Ok(len) = usize::try_from(len) {
            return Some(len);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => {}
            // The interface went down. This is logged once, and `maintain()` detects it as well.
            Some(libc::ENETDOWN) => self.interface.set_link(Link::Down),
            _ => {
                self.counters.receive_errors += 1;
                self.faults.receive(error);
            }
        }
        None
    }

    /// Parses the frame in the first `len` bytes of the buffer. Returns `None` if it is not an iSwitch frame.
    fn parse(&self, len: usize) -> Option<Result<Parsed, WireError>> {
        let (vnet, frame) = self.buffer[..len].split_first_chunk::<VNET_HEADER_LEN_BYTES>()?;
        let view = match self.classifier.classify(frame)? {
            Ok(view) => view,
            Err(error) => return Some(Err(error)),
        };
        // The checksum of a frame from this machine might not be filled in yet, and the device may already have
        // verified the checksum of a received frame.
        let is_superframe = vnet[1] & !VNET_GSO_ECN != VNET_GSO_NONE;
        if vnet[0] & (VNET_NEEDS_CSUM | VNET_DATA_VALID) == 0 {
            // The kernel coalesces only datagrams whose checksums it has verified, so a super-frame that is not
            // marked as verified is invalid.
            let verified = if is_superframe { Err(WireError::BadChecksum) } else { view.verify_checksum() };
            if let Err(error) = verified {
                return Some(Err(error));
            }
        }
        let stride = match vnet[1] & !VNET_GSO_ECN {
            VNET_GSO_UDP_L4 => usize::from(u16::from_ne_bytes([vnet[4], vnet[5]])),
            VNET_GSO_NONE => view.payload.len(),
            _ => return Some(Err(WireError::Fragment)),
        };
        let start = view.payload.as_ptr().addr() - self.buffer.as_ptr().addr();
        Some(Ok(Parsed {
            class: view.class,
            addresses: view.addresses,
            payload: start..start + view.payload.len(),
            stride: stride.max(1),
        }))
    }

    /// Sends as many datagrams as one call accepts, and returns the number of their payload bytes.
    fn send_some(
        &mut self,
        class: Class,
        addresses: &FrameAddresses,
        payload: &[u8],
        stride: usize,
    ) -> io::Result<usize> {
        if stride.min(payload.len()) + OVERHEAD_LEN_BYTES > self.interface.mtu_bytes {
            // The kernel would transmit a super-frame even if its datagrams exceed the MTU.
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let single = &payload[..payload.len().min(stride)];
        if !self.offload {
            return self.send_completed(class, addresses, single);
        }
        let chunk = &payload[..payload.len().min(superframe_datagrams(stride) * stride)];
        match self.send_offloaded(class, addresses, chunk, stride) {
            // Kernels before Linux 6.2 do not support UDP super-frames in vnet headers.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && chunk.len() > stride => {
                let sent = self.send_completed(class, addresses, single)?;
                tracing::warn!(
                    port = self.interface.name,
                    "the kernel rejects super-frames; sending plain frames instead"
                );
                self.offload = false;
                Ok(sent)
            }
            outcome => outcome,
        }
    }

    /// Sends one frame or super-frame whose checksums the device completes.
    fn send_offloaded(
        &self,
        class: Class,
        addresses: &FrameAddresses,
        payload: &[u8],
        stride: usize,
    ) -> io::Result<usize> {
        let is_superframe = payload.len() > stride;
        let (gso_type, gso_size) =
            if is_superframe { (VNET_GSO_UDP_L4, stride as u16) } else { (VNET_GSO_NONE, 0) };
        let mut vnet = [0; VNET_HEADER_LEN_BYTES];
        vnet[0] = VNET_NEEDS_CSUM;
        vnet[1] = gso_type;
        vnet[2..4].copy_from_slice(&(HEADERS_LEN_BYTES as u16).to_ne_bytes());
        vnet[4..6].copy_from_slice(&gso_size.to_ne_bytes());
        vnet[6..8].copy_from_slice(&CHECKSUM_START.to_ne_bytes());
        vnet[8..10].copy_from_slice(&CHECKSUM_OFFSET.to_ne_bytes());
        let headers = self.classifier.emit_headers(class, addresses, payload.len());
        self.write(addresses, &[&vnet, &headers, payload])?;
        Ok(payload.len())
    }

    /// Sends one plain frame with its checksum completed in software.
    fn send_completed(
        &mut self,
        class: Class,
        addresses: &FrameAddresses,
        payload: &[u8],
    ) -> io::Result<usize> {
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.classifier.emit_headers(class, addresses, payload.len()));
        self.scratch.extend_from_slice(payload);
        complete_udp_checksum(&mut self.scratch);
        self.write(addresses, &[&[0; VNET_HEADER_LEN_BYTES], &self.scratch])?;
        Ok(payload.len())
    }

    /// Sends a frame that consists of the concatenated parts. If the destination is a multicast group and the interface
    /// is a port of a bridge, the frame is sent through the bridge, which copies it to all its ports.
    fn write(&self, addresses: &FrameAddresses, parts: &[&[u8]]) -> io::Result<()> {
        let bridge = self.interface.bridge.filter(|_| addresses.destination.ip().is_multicast());
        self.write_to(bridge, parts)
    }

    /// Sends a frame that consists of the concatenated parts through the interface or, if given, through a bridge.
    fn write_to(&self, bridge: Option<c_int>, parts: &[&[u8]]) -> io::Result<()> {
        let mut list = [iovec { iov_base: ptr::null_mut(), iov_len: 0 }; 3];
        for (entry, part) in list.iter_mut().zip(parts) {
            *entry = iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
        }
        // SAFETY: a msghdr consists of integers and pointers, for which zero is a valid value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = list.as_mut_ptr();
        message.msg_iovlen = parts.len().min(list.len()) as _;
        let mut name = bridge.map(link_address);
        if let Some(name) = &mut name {
            message.msg_name = ptr::from_mut(name).cast();
            message.msg_namelen = size_of::<libc::sockaddr_ll>() as socklen_t;
        }
        // SAFETY: the name is null or a live sockaddr_ll, the message has no ancillary data, and each entry of its list
        // is a live slice; sendmsg only reads from them.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn refresh(&mut self) {
        let index = self.interface.index;
        match self.interface.refresh(self.socket.as_fd()) {
            Ok(_) if self.interface.index != index => self.serve_again(),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => self.interface.set_link(Link::Gone),
            Err(error) => self.faults.receive(error),
        }
    }

    /// Resumes service after the interface was recreated under the same name.
    fn serve_again(&mut self) {
        let name = &self.interface.name;
        if let Err(error) = bind(&self.socket, self.interface.index) {
            tracing::error!(port = name, %error, "cannot bind to the recreated interface");
        }
        if let Some(Err(error)) = self.rule.as_ref().map(IngressRule::reinstall) {
            tracing::error!(port = name, %error, "cannot install the ingress rule on the recreated interface");
        }
        tracing::info!(port = name, "serving the recreated interface");
    }
}

impl Port for PacketPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn mode(&self) -> &'static str {
        "raw"
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn recv_buffer_bytes(&self) -> usize {
        self.recv_buffer_bytes
    }

    fn recv(&mut self) -> Option<Arrival<'_>> {
        let parsed = loop {
            let len = self.receive_frame()?;
            match self.parse(len) {
                Some(Ok(parsed)) => match self.interface.check_sender(&parsed.addresses) {
                    Ok(()) => break parsed,
                    Err(bad) => self.counters.refused(bad, datagrams(parsed.payload.len(), parsed.stride)),
                },
                Some(Err(error)) => return Some(Err(error)),
                None => self.counters.untagged += 1,
            }
        };
        self.counters.received(parsed.payload.len(), parsed.stride);
        Some(Ok(Datagrams {
            from: self.interface.endpoint(self.id, &parsed.addresses),
            class: parsed.class,
            payload: &self.buffer[parsed.payload],
            stride: parsed.stride,
        }))
    }

    fn send(&mut self, to: &Endpoint, class: Class, payload: &[u8], stride: usize) {
        let addresses = frame_addresses(to, &self.classifier);
        let mut rest = payload;
        loop {
            match self.send_some(class, &addresses, rest, stride) {
                Ok(sent) => {
                    self.counters.sent(sent, stride);
                    rest = &rest[sent..];
                }
                Err(error) => {
                    let lost = datagrams(rest.len(), stride);
                    if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS)) {
                        self.counters.send_full += lost;
                    } else {
                        self.counters.send_errors += lost;
                        self.faults.send(lost, error);
                    }
                    return;
                }
            }
            if rest.is_empty() {
                return;
            }
        }
    }

    fn send_frame(&mut self, frame: &[u8]) {
        match self.write_to(None, &[&[0; VNET_HEADER_LEN_BYTES], frame]) {
            Ok(()) => self.counters.sent(frame.len().saturating_sub(HEADERS_LEN_BYTES), frame.len()),
            Err(error) => {
                self.counters.send_errors += 1;
                self.faults.send(1, error);
            }
        }
    }

    fn group_reach(&self) -> GroupReach {
        self.interface.bridge.map_or(GroupReach::Port, GroupReach::Bridge)
    }

    fn maintain(&mut self) {
        self.refresh();
        if let Ok(drops) = option::recv_drops(self.socket.as_fd()) {
            self.faults.drops(&mut self.counters, drops);
        }
        self.faults.report(&self.interface.name);
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }
}

/// Opens a packet socket that receives nothing until it is bound.
fn open_socket(
    classifier: &Classifier,
    takes_fragments: bool,
    options: &PacketOptions,
) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been opened, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    attach_filter(&socket, classifier, takes_fragments)?;
    option::set(socket.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
    option::set(socket.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
    option::set_recv_buffer(socket.as_fd(), options.recv_buffer_bytes)?;
    option::set_send_buffer(socket.as_fd(), options.send_buffer_bytes)?;
    Ok(socket)
}

fn attach_filter(socket: &OwnedFd, classifier: &Classifier, takes_fragments: bool) -> io::Result<()> {
    let mut filter = program(classifier, takes_fragments).map(|instruction| libc::sock_filter {
        code: instruction.code,
        jt: instruction.skip_true,
        jf: instruction.skip_false,
        k: instruction.operand,
    });
    let program = libc::sock_fprog { len: FILTER_LEN as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program points to FILTER_LEN live instructions, which the kernel copies.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            ptr::from_ref(&program).cast(),
            size_of::<libc::sock_fprog>() as socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Binds the socket with `ETH_P_ALL`: only sockets bound with this value see frames before the ingress hook, at which
/// the rule drops them.
fn bind(socket: &OwnedFd, interface_index: c_int) -> io::Result<()> {
    let address = link_address(interface_index);
    let len = size_of::<libc::sockaddr_ll>() as socklen_t;
    // SAFETY: the pointer is to a live sockaddr_ll, and its length is given.
    let outcome = unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), len) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the address of an interface for packet sockets.
fn link_address(interface_index: c_int) -> libc::sockaddr_ll {
    // SAFETY: a sockaddr_ll consists of numbers and an array of numbers, for which zero is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface_index;
    address
}
