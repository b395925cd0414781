//! Properties of an interface that its driver reports.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::super::interface::Interface;

// From linux/ethtool.h.
const GET_DRIVER_INFO: u32 = 0x03;
const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware_version: [u8; 32],
    bus: [u8; 32],
    rom_version: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    /// Maximum numbers of receive, transmit, other and combined queues.
    most: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// Marker for types that `SIOCETHTOOL` reads and writes. Such a type consists of integers, the first of which is the
/// command.
trait Answer {}
impl Answer for DriverInfo {}
impl Answer for Channels {}

/// Sends the request in `answer` to the driver, which overwrites `answer` with the reply.
fn ask<T: Answer>(interface: &Interface, socket: BorrowedFd<'_>, answer: &mut T) -> io::Result<()> {
    let mut request = interface.request();
    request.ifr_ifru.ifru_data = std::ptr::from_mut(answer).cast();
    // SAFETY: the request is a live ifreq, whose data has the layout that the command in its first member expects.
    let outcome =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the number of receive queues in use; 1 if the driver does not report the number.
pub(super) fn receive_queues(interface: &Interface, socket: BorrowedFd<'_>) -> usize {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    match ask(interface, socket, &mut channels) {
        Ok(()) => (channels.receive as usize).saturating_add(channels.combined as usize).max(1),
        Err(_) => 1,
    }
}

/// Returns whether the interface is implemented in software, such as one end of a veth pair, so that its frames come
/// from the memory of this machine and not from a wire.
pub(super) fn is_software(interface: &Interface, socket: BorrowedFd<'_>) -> bool {
    let mut info = DriverInfo {
        command: GET_DRIVER_INFO,
        driver: [0; 32],
        version: [0; 32],
        firmware_version: [0; 32],
        bus: [0; 32],
        rom_version: [0; 32],
        reserved: [0; 12],
        counts: [0; 5],
    };
    // A hardware device is on a bus, and the kernel reports its bus address.
    ask(interface, socket, &mut info).is_ok() && info.bus[0] == 0
}
