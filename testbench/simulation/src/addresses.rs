//! Addresses of workers and switches.

use std::net::{Ipv4Addr, SocketAddrV4};

const SWITCH_PORT: u16 = 7711;
const UPLINK_PORT: u16 = 7721;

/// The member at the lower end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// A worker, by its index.
    Worker(usize),
    /// A switch below the root, by its index from 1.
    Rack(usize),
}

/// Returns the address of a worker.
pub(super) fn worker_address(worker: usize, udp_port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, worker as u8 + 1), udp_port)
}

/// Returns the address at which members reach a switch: the root for index 0, otherwise a switch below the root.
pub(super) fn switch_address(at: usize) -> SocketAddrV4 {
    let host = if at == 0 { Ipv4Addr::new(10, 0, 0, 254) } else { rack_host(at) };
    SocketAddrV4::new(host, SWITCH_PORT)
}

/// Returns the index of the switch with an address.
pub(super) fn switch_at(address: SocketAddrV4) -> usize {
    match address.ip().octets() {
        [.., 0, _] => 0,
        [.., rack] => usize::from(rack),
    }
}

/// Returns the address from which a switch below the root sends to its parent.
pub(super) fn uplink_address(rack: usize) -> SocketAddrV4 {
    SocketAddrV4::new(rack_host(rack), UPLINK_PORT)
}

fn rack_host(rack: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, rack as u8)
}

/// Returns the member that sends from an address to its switch.
pub(super) fn member_at(address: SocketAddrV4) -> Member {
    let [.., network, host] = address.ip().octets();
    if network == 0 { Member::Worker(usize::from(host) - 1) } else { Member::Rack(usize::from(host)) }
}
