//! Multicast groups: the switch ports that can send to them, and the assignment of their addresses.

use core::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::limits::{FIRST_GROUP_PORT, GROUP_BITS, GROUP_NETWORK, GROUP_PORTS};

use crate::endpoint::PortId;

/// Odd multiplier that spreads the addresses of consecutive groups over the address range: the golden ratio in
/// [`GROUP_BITS`] bits.
const SPREAD: u32 = 0x2_78dd;
const GROUPS: u32 = 1 << GROUP_BITS;

/// Maximum number of ports that a driver can have.
const PORTS: usize = 256;

/// Ports of the driver that can send to groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPorts {
    /// For each port, the port through which packets to the groups of its members are sent: the port itself, or another
    /// port that reaches the members of several ports at once. `None` if the port cannot send to groups.
    through: [Option<PortId>; PORTS],
}

impl GroupPorts {
    /// Assignment in which every port sends to the groups of its own members.
    pub const ALL: Self = Self::all();
    /// Assignment in which no port sends to groups.
    pub const NONE: Self = Self { through: [None; PORTS] };

    const fn all() -> Self {
        let mut through = [None; PORTS];
        let mut port = 0;
        while port < PORTS {
            through[port] = Some(PortId(port as u8));
            port += 1;
        }
        Self { through }
    }

    /// Returns the port through which packets to the groups of a port's members are sent, if any.
    pub const fn of(&self, port: PortId) -> Option<PortId> {
        self.through[port.0 as usize]
    }

    /// Returns a copy in which packets to the groups of the members of `port` are sent through another port, or not at
    /// all.
    #[must_use]
    pub const fn with(mut self, port: PortId, through: Option<PortId>) -> Self {
        self.through[port.0 as usize] = through;
        self
    }
}

/// Generator of group addresses. No two groups of one run of the switch have the same address and port until more than
/// a billion groups have been created, so that a late packet of one group never reaches the members of another
/// (requirement B-2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupAddresses {
    /// Random number from which the address of the first group is derived.
    first: u64,
    drawn: u64,
}

impl GroupAddresses {
    /// Creates the generator for one run of the switch from a random number.
    pub(crate) fn new(random: u64) -> Self {
        Self { first: random >> 1, drawn: 0 }
    }

    /// Returns the address and UDP port of the next group. `taken` is the UDP port of the switch, which no group uses,
    /// because a frame to a group must not look like a packet to the switch.
    pub(crate) fn draw(&mut self, taken: u16) -> SocketAddrV4 {
        loop {
            let number = self.first + self.drawn;
            self.drawn += 1;
            let host = (number as u32 % GROUPS).wrapping_mul(SPREAD) % GROUPS;
            let port = FIRST_GROUP_PORT + ((number >> GROUP_BITS) % u64::from(GROUP_PORTS)) as u16;
            if port != taken {
                return SocketAddrV4::new(Ipv4Addr::from_bits(GROUP_NETWORK | host), port);
            }
            // Continue with the groups of the next port.
            self.drawn += u64::from(GROUPS);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn groups_differ_in_their_mac_addresses_and_avoid_the_port_of_the_switch() {
        let mut addresses = GroupAddresses::new(u64::MAX - 7);
        let taken = addresses.draw(0).port();
        let mut drawn: Vec<_> = (0..100_000).map(|_| addresses.draw(taken)).collect();
        for group in &drawn {
            assert_eq!(group.ip().to_bits() >> GROUP_BITS, GROUP_NETWORK >> GROUP_BITS);
            assert!(group.port() >= FIRST_GROUP_PORT && group.port() != taken);
        }
        // The MAC address of a group contains the lower 23 bits of its IPv4 address.
        drawn.sort_unstable_by_key(|group| group.ip().to_bits() & 0x7f_ffff);
        assert!(drawn.windows(2).all(|pair| pair[0].ip() != pair[1].ip()));
    }

    #[test]
    fn a_change_affects_only_the_named_port() {
        let ports = GroupPorts::ALL.with(PortId(64), None).with(PortId(3), Some(PortId(2)));
        for port in 0..=255 {
            let expected = match port {
                64 => None,
                3 => Some(2),
                port => Some(port),
            };
            assert_eq!(ports.of(PortId(port)), expected.map(PortId));
            assert_eq!(GroupPorts::NONE.of(PortId(port)), None);
        }
    }
}
