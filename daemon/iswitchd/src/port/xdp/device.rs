//! What an interface's driver tells about it.
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
    /// Most receive, transmit, other and combined queues.
    most: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// Marks what `SIOCETHTOOL` reads and writes: numbers, of which the first is the command.
trait Answer {}
impl Answer for DriverInfo {}
impl Answer for Channels {}

/// Puts a question that lies in `answer`, to be answered there.
fn ask<T: Answer>(interface: &Interface, socket: BorrowedFd<'_>, answer: &mut T) -> io::Result<()> {
    let mut request = interface.request();
    request.ifr_ifru.ifru_data = std::ptr::from_mut(answer).cast();
    // SAFETY: the request is a live ifreq whose data is what the command, its first member, expects.
    let outcome =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receive queues that are in use; 1 where the driver does not know.
pub(super) fn receive_queues(interface: &Interface, socket: BorrowedFd<'_>) -> usize {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    match ask(interface, socket, &mut channels) {
        Ok(()) => (channels.receive as usize).saturating_add(channels.combined as usize).max(1),
        Err(_) => 1,
    }
}

/// Whether the interface is software, such as one end of a veth cable, whose frames come from this machine's memory
/// and not from a wire.
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
    // Devices sit on a bus, and the kernel names their place there.
    ask(interface, socket, &mut info).is_ok() && info.bus[0] == 0
}
