//! Offload features of a network interface, as shown by `ethtool -k`.
#![allow(unsafe_code)]

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Legacy ethtool requests from `linux/ethtool.h`, each of which queries one feature. All kernels still support them.
const ETHTOOL_GRXCSUM: u32 = 0x14;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_GGRO: u32 = 0x2b;
/// `ioctl(2)` request for ethtool commands, from `linux/sockios.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Offload features that reduce the cost of super-frames and checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Whether received datagrams are merged into super-frames (`generic-receive-offload`).
    pub gro: bool,
    /// Whether super-frames are divided as late as possible (`generic-segmentation-offload`).
    pub gso: bool,
    /// Whether the device verifies checksums (`rx-checksumming`).
    pub rx_checksum: bool,
    /// Whether the device computes checksums (`tx-checksumming`).
    pub tx_checksum: bool,
}

/// Layout of `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Returns the offload features of an interface.
///
/// # Errors
/// Returns the errors of `ioctl(2)`, for example if the interface does not exist.
pub fn offloads(interface: &str) -> io::Result<Offloads> {
    // Any socket works for the ioctl.
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let is_on = |command| feature(&socket, interface, command);
    Ok(Offloads {
        gro: is_on(ETHTOOL_GGRO)?,
        gso: is_on(ETHTOOL_GGSO)?,
        rx_checksum: is_on(ETHTOOL_GRXCSUM)?,
        tx_checksum: is_on(ETHTOOL_GTXCSUM)?,
    })
}

fn feature(socket: &UdpSocket, interface: &str, command: u32) -> io::Result<bool> {
    let mut value = Value { command, data: 0 };
    // SAFETY: an ifreq consists of integers, arrays and a pointer, for which zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: as SIOCETHTOOL requires, the name in the request ends with a zero, and the request points to a live
    // ethtool_value.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if outcome == 0 { Ok(value.data != 0) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_are_reported_only_for_existing_interfaces() {
        assert!(offloads("lo").unwrap().gso);
        for name in ["no-such-if", "a-name-that-is-far-too-long"] {
            assert_eq!(offloads(name).unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }
}
