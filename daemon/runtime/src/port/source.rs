//! Validation of source addresses: an answer to an invalid source address would go to a group, to no host, or back to
//! this machine.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Reason why the sender of a datagram cannot be answered. Each reason has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSource {
    /// The source MAC address is a group address.
    Mac,
    /// The source IPv4 address does not identify a single remote host: it is unspecified, broadcast or multicast, or a
    /// loopback address on a physical network.
    Address,
    /// The source UDP port is zero.
    UdpPort,
}

/// Checks that a sender can be answered. `mac` is the source MAC address of the frame, if the port sees frames;
/// `is_loopback` indicates whether the sender may be on this machine.
pub fn check(source: SocketAddrV4, mac: Option<[u8; 6]>, is_loopback: bool) -> Result<(), BadSource> {
    let address = *source.ip();
    let is_hosts = address != Ipv4Addr::UNSPECIFIED
        && address != Ipv4Addr::BROADCAST
        && !address.is_multicast()
        && (is_loopback || !address.is_loopback());
    match mac {
        Some([first, ..]) if first & 1 == 1 => Err(BadSource::Mac),
        _ if !is_hosts => Err(BadSource::Address),
        _ if source.port() == 0 => Err(BadSource::UdpPort),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    #[test]
    fn only_host_addresses_are_answered() {
        let of = |source: &str| check(source.parse().unwrap(), Some(HOST_MAC), false);
        for host in ["10.9.0.1:5000", "192.0.2.255:1", "240.0.0.1:65535"] {
            assert_eq!(of(host), Ok(()), "{host}");
        }
        for nobody in ["0.0.0.0:5", "255.255.255.255:5", "224.0.0.1:5", "239.255.255.255:5", "127.0.0.1:5"] {
            assert_eq!(of(nobody), Err(BadSource::Address), "{nobody}");
        }
        assert_eq!(of("10.9.0.1:0"), Err(BadSource::UdpPort));
        let source = "10.9.0.1:5000".parse().unwrap();
        assert_eq!(check(source, Some([0xff; 6]), false), Err(BadSource::Mac));
        assert_eq!(check(source, Some([1, 0, 0x5e, 0, 0, 1]), false), Err(BadSource::Mac));
        // The loopback interface has no MAC addresses.
        assert_eq!(check("127.0.0.1:5".parse().unwrap(), Some([0; 6]), true), Ok(()));
        assert_eq!(check("127.0.0.1:5".parse().unwrap(), None, true), Ok(()));
    }
}
