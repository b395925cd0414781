//! Who is at which address.

use std::net::{Ipv4Addr, SocketAddrV4};

const SWITCH_PORT: u16 = 7711;
const UPLINK_PORT: u16 = 7721;

/// Who is at the lower end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// A worker, by its position.
    Worker(usize),
    /// A switch below the root, by its position from 1.
    Rack(usize),
}

/// Where a worker is.
pub(super) fn worker_address(worker: usize, udp_port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, worker as u8 + 1), udp_port)
}

/// Where the members of a switch find it: of the root, or by its position from 1 of another.
pub(super) fn switch_address(at: usize) -> SocketAddrV4 {
    let host = if at == 0 { Ipv4Addr::new(10, 0, 0, 254) } else { rack_host(at) };
    SocketAddrV4::new(host, SWITCH_PORT)
}

/// From where a switch below the root speaks to its parent.
pub(super) fn uplink_address(rack: usize) -> SocketAddrV4 {
    SocketAddrV4::new(rack_host(rack), UPLINK_PORT)
}

fn rack_host(rack: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, rack as u8)
}

/// Who sends from an address to its switch.
pub(super) fn member_at(address: SocketAddrV4) -> Member {
    let [.., network, host] = address.ip().octets();
    if network == 0 { Member::Worker(usize::from(host) - 1) } else { Member::Rack(usize::from(host)) }
}
