//! UDP port, which needs no privileges.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use iswitch_protocol::limits::MAX_SUPERFRAME_LEN_BYTES;
use iswitch_protocol::wire::{Class, Classifier};
use iswitch_socket::{Options, UdpSocket};

use super::counters::{Faults, PortCounters, datagrams};
use super::{Arrival, Datagrams, GroupReach, Port, source};
use iswitch_switch::{Endpoint, PortId};

/// Port that uses a UDP socket.
#[derive(Debug)]
pub struct UdpPort {
    id: PortId,
    name: String,
    socket: UdpSocket,
    address: SocketAddrV4,
    classifier: Classifier,
    recv_buffer_bytes: usize,
    buffer: Box<[u8]>,
    counters: PortCounters,
    faults: Faults,
}

impl UdpPort {
    /// Binds the socket. Uses only the ToS values of the classifier, not its UDP port.
    ///
    /// # Errors
    /// Returns the errors of `bind(2)`.
    pub fn bind(
        id: PortId,
        address: SocketAddrV4,
        classifier: Classifier,
        options: &Options,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(address, options)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self {
            id,
            name: address.to_string(),
            recv_buffer_bytes: socket.recv_buffer_bytes()?,
            socket,
            address,
            classifier,
            buffer: vec![0; MAX_SUPERFRAME_LEN_BYTES].into(),
            counters: PortCounters::default(),
            faults: Faults::default(),
        })
    }

    /// Returns the address that the socket is bound to.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    fn endpoint(&self, peer: SocketAddrV4, destination: Ipv4Addr) -> Endpoint {
        Endpoint {
            port: self.id,
            peer,
            local: SocketAddrV4::new(destination, self.address.port()),
            peer_mac: [0; 6],
            local_mac: [0; 6],
        }
    }
}

impl Port for UdpPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn mode(&self) -> &'static str {
        "udp"
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn recv_buffer_bytes(&self) -> usize {
        self.recv_buffer_bytes
    }

    fn recv(&mut self) -> Option<Arrival<'_>> {
        loop {
            let received = match self.socket.recv(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) => {
                    self.counters.receive_errors += 1;
                    self.faults.receive(error);
                    return None;
                }
            };
            let Some(class) = received.tos.and_then(|tos| self.classifier.class_of(tos)) else {
                self.counters.untagged += datagrams(received.len, received.stride);
                continue;
            };
            // Loopback addresses are allowed: the kernel drops packets that arrive from a physical network with a
            // source address of this machine.
            if let Err(bad) = source::check(received.source, None, true) {
                self.counters.refused(bad, datagrams(received.len, received.stride));
                continue;
            }
            self.counters.received(received.len, received.stride);
            return Some(Ok(Datagrams {
                from: self.endpoint(received.source, received.destination),
                class,
                payload: &self.buffer[..received.len],
                stride: received.stride,
            }));
        }
    }

    fn send(&mut self, to: &Endpoint, class: Class, payload: &[u8], stride: usize) {
        // A socket bound to a specific address sends from that address; one bound to 0.0.0.0 needs an explicit source.
        let source = self.address.ip().is_unspecified().then(|| *to.local.ip());
        let tos = self.classifier.tos_of(class);
        match self.socket.send(tos, Some(to.peer), source, payload, stride) {
            Ok(sent) => {
                if sent > 0 {
                    self.counters.sent(sent, stride);
                }
                if sent < payload.len() {
                    self.counters.send_full += datagrams(payload.len() - sent, stride);
                }
            }
            Err(error) => {
                let lost = datagrams(payload.len(), stride);
                self.counters.send_errors += lost;
                self.faults.send(lost, error);
            }
        }
    }

    fn group_reach(&self) -> GroupReach {
        // The kernel sends to a group through the interface that has the source address, with a TTL of 1.
        GroupReach::Port
    }

    fn maintain(&mut self) {
        if let Ok(drops) = self.socket.recv_drops() {
            self.faults.drops(&mut self.counters, drops);
        }
        self.faults.report(&self.name);
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }
}
