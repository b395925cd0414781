//! Endpoints of members: ports and addresses.

use core::net::SocketAddrV4;

/// Number of a port. The driver assigns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u8);

/// Source of a datagram, and hence the destination of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Port of the switch that the datagram arrived on.
    pub port: PortId,
    /// Address of the member.
    pub peer: SocketAddrV4,
    /// Address that the member sent to, which is the source of the answer.
    pub local: SocketAddrV4,
    /// MAC address of the member, or of the last router on the path to the switch; zero on a UDP port.
    pub peer_mac: [u8; 6],
    /// MAC address that the member sent to; zero on a UDP port.
    pub local_mac: [u8; 6],
}

impl Endpoint {
    /// Returns the key that identifies the sender. It includes the port, so that a member cannot be impersonated from
    /// another port of the switch.
    pub(crate) fn key(&self) -> AddressKey {
        let address = u64::from(self.peer.ip().to_bits()) << 16 | u64::from(self.peer.port());
        AddressKey(address << PORT_BITS | u64::from(self.port.0))
    }
}

/// Number of bits that identify the port of the switch. They are the lowest bits of an [`AddressKey`], so that the keys
/// of one sender are adjacent.
const PORT_BITS: u32 = 8;

/// IPv4 address, UDP port and ingress port of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressKey(u64);

impl AddressKey {
    /// Returns the key without the ingress port.
    pub(crate) fn sender(self) -> u64 {
        self.0 >> PORT_BITS
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }
}
