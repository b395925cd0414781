//! UDP socket for the switch and the workers (Linux).
//!
//! It adds what `std::net::UdpSocket` lacks: the ToS byte of each datagram in both directions, the local address that a
//! datagram was sent to, and *super-frames*. A super-frame consists of up to 64 datagrams of one size that cross the
//! kernel in one system call (`UDP_SEGMENT` to send, `UDP_GRO` to receive). If the kernel or the device does not accept
//! super-frames, the socket sends the datagrams one by one, which is slower but has no other effect.
//!
//! Datagrams are never fragmented: DF is set, and a datagram that exceeds the path MTU is refused with `EMSGSIZE`.

mod ancillary;
pub mod capture;
mod host;
pub mod interface;
pub mod option;
mod poll;
mod spin;
mod udp;

pub use host::host_name;
pub use poll::PollSet;
pub use spin::Spin;
pub use udp::{Options, Received, UdpSocket};
