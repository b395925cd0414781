//! Ports: where datagrams come from and go to.
//!
//! A [`Port`] lends what it received from its own buffer and sends from the caller's: nothing is copied on
//! the way between the kernel and the switch core. Both directions move super-frames, up to 64 datagrams of
//! one size in one system call.

mod counters;
pub mod source;
mod udp;

use std::os::fd::BorrowedFd;

use iswitch_protocol::wire::{Class, WireError};
use iswitch_switch::Endpoint;

pub use counters::{Faults, PortCounters, datagrams};
pub use udp::UdpPort;

/// Datagrams of one sender and class: one, or a super-frame.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams<'a> {
    /// Who sent them, and to whom.
    pub from: Endpoint,
    /// What their ToS says they are.
    pub class: Class,
    /// UDP payloads, one after the other.
    pub payload: &'a [u8],
    /// Bytes of each payload but the last, which may be shorter. At least 1.
    pub stride: usize,
}

/// What arrived: datagrams, or a frame whose ToS says that it is ours but that cannot be used.
pub type Arrival<'a> = Result<Datagrams<'a>, WireError>;

/// One way in and out of the switch. All calls return at once.
pub trait Port: Send {
    /// Name for logs: an address or an interface.
    fn name(&self) -> &str;

    /// How datagrams pass it, such as `udp`, for people.
    fn mode(&self) -> &str;

    /// The descriptor to wait on until [`Self::recv`] has something.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Receive buffer that the kernel gave, in the kernel's own bytes.
    fn recv_buffer_bytes(&self) -> usize;

    /// The next arrival; `None` once there is none. Errors are counted, and reported by [`Self::maintain`].
    fn recv(&mut self) -> Option<Arrival<'_>>;

    /// Sends datagrams of `stride` bytes (the last may be shorter) to one receiver.
    ///
    /// What cannot be sent is lost, as on any wire, and counted: the receiver asks for it again.
    fn send(&mut self, to: &Endpoint, class: Class, payload: &[u8], stride: usize);

    /// To be called about once a second: looks after the interface, and logs what went wrong since.
    fn maintain(&mut self);

    /// What the port did so far.
    fn counters(&self) -> &PortCounters;
}
