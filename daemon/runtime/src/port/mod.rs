//! Ports, which receive and send datagrams.
//!
//! A [`Port`] lends received data from its own buffer and sends from the caller's buffer, so no data is copied between
//! the system calls and the switch core. Both directions move super-frames: up to 64 datagrams of one size in one
//! system call.

mod counters;
pub mod source;
mod udp;

use std::os::fd::BorrowedFd;

use iswitch_protocol::wire::{Class, WireError};
use iswitch_switch::Endpoint;

pub use counters::{Faults, PortCounters, datagrams};
pub use udp::UdpPort;

/// Datagrams from one sender, all of one class: a single datagram, or a super-frame.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams<'a> {
    /// Sender and receiver of the datagrams.
    pub from: Endpoint,
    /// Class that the ToS of the datagrams indicates.
    pub class: Class,
    /// Concatenated UDP payloads.
    pub payload: &'a [u8],
    /// Length of each payload in bytes, at least 1; the last payload may be shorter.
    pub stride: usize,
}

/// Item that a port received: datagrams, or the error of an invalid frame whose ToS marks it as an iSwitch packet.
pub type Arrival<'a> = Result<Datagrams<'a>, WireError>;

/// Hosts that a port reaches when it sends to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupReach {
    /// The port cannot send to groups.
    Nowhere,
    /// The hosts that are reachable through this port.
    Port,
    /// The hosts that are reachable through any port of the bridge with this interface index, whichever of these ports
    /// sends.
    Bridge(i32),
}

/// Port of the switch. No method blocks.
pub trait Port: Send {
    /// Returns the name of the port for logs: an address or an interface.
    fn name(&self) -> &str;

    /// Returns the mode of the port for display, such as `udp`.
    fn mode(&self) -> &str;

    /// Returns the descriptor that becomes readable when [`Self::recv`] has something to return.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Returns the size of the receive buffer that the kernel granted, in bytes, as the kernel reports it.
    fn recv_buffer_bytes(&self) -> usize;

    /// Returns the next arrival, or `None` if there is none. Errors are counted, and [`Self::maintain`] reports them.
    fn recv(&mut self) -> Option<Arrival<'_>>;

    /// Sends datagrams of `stride` bytes (the last may be shorter) to one receiver.
    ///
    /// Datagrams that cannot be sent are counted and lost, as on any network; the receiver requests their
    /// retransmission.
    fn send(&mut self, to: &Endpoint, class: Class, payload: &[u8], stride: usize);

    /// Sends an Ethernet frame as it is, through this port alone. A port that has no frames ignores the call.
    ///
    /// A frame that cannot be sent is counted and lost, as in [`Self::send`].
    fn send_frame(&mut self, frame: &[u8]) {
        let _ = frame;
    }

    /// Returns which hosts [`Self::send`] reaches if the receiver is a multicast address.
    fn group_reach(&self) -> GroupReach {
        GroupReach::Nowhere
    }

    /// Maintains the interface and logs the faults since the last call. Call this about once a second.
    fn maintain(&mut self);

    /// Returns the counters of the port.
    fn counters(&self) -> &PortCounters;
}
