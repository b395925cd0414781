//! Wrappers around `bpf(2)`: a map of sockets, the program that redirects frames to these sockets, and the link that
//! attaches the program.
//!
//! A file descriptor refers to each of these objects. The kernel removes an object once no process holds its descriptor
//! any more, so a killed daemon leaves nothing behind.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::super::spec::AttachMode;
use super::program::Instruction;

// From linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
#[cfg(test)]
const PROGRAM_TEST_RUN: libc::c_int = 10;
const LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;

// From linux/if_link.h.
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// License of the program. The kernel functions that it calls do not require a GPL-compatible license.
const LICENSE: &[u8; 4] = b"MIT\0";
/// Name shown by tools that list programs.
const NAME: [u8; 16] = *b"iswitchd\0\0\0\0\0\0\0\0";

/// Marker for types that contain the members of `union bpf_attr` that a command reads. The kernel treats omitted
/// members as zero.
trait Attributes {}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size_bytes: u32,
    value_size_bytes: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface_index: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface_index: u32,
    attach_type: u32,
    flags: u32,
}

#[cfg(test)]
#[repr(C)]
struct ProgramTestRun {
    program: u32,
    outcome: u32,
    data_in_len_bytes: u32,
    data_out_len_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration_ns: u32,
}

impl Attributes for MapCreate {}
impl Attributes for MapUpdate {}
impl Attributes for ProgramLoad {}
impl Attributes for LinkCreate {}
#[cfg(test)]
impl Attributes for ProgramTestRun {}

/// Calls `bpf(2)`.
///
/// # Safety
/// The attributes must be those of the command, and every pointer in them must refer to the data that the command
/// expects there.
unsafe fn call<T: Attributes>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    // SAFETY: the attributes are live, their length is given, and the caller guarantees that their content is valid.
    let outcome = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>() as libc::c_uint)
    };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome as libc::c_int) }
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>().addr() as u64
}

/// Takes ownership of a descriptor that a command has opened.
fn own(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: the kernel has just returned the descriptor, with close-on-exec set, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Creates a map from receive queues to AF_XDP sockets.
pub(super) fn create_socket_map(queues: usize) -> io::Result<OwnedFd> {
    let mut attributes = MapCreate {
        map_type: MAP_TYPE_XSKMAP,
        key_size_bytes: 4,
        value_size_bytes: 4,
        max_entries: queues as u32,
    };
    // SAFETY: the attributes are those of MAP_CREATE and hold no pointer.
    unsafe { call(MAP_CREATE, &mut attributes) }.map(own)
}

/// Redirects the frames of a receive queue to a socket.
pub(super) fn set_socket(map: BorrowedFd<'_>, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd() as u32;
    let mut attributes = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: address(&queue),
        value: address(&value),
        flags: 0,
    };
    // SAFETY: the attributes are those of MAP_UPDATE; key and value are live and have the sizes that the map declares.
    unsafe { call(MAP_UPDATE, &mut attributes) }.map(|_| ())
}

/// Loads a program: the kernel verifies and compiles it.
pub(super) fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let mut attributes = ProgramLoad {
        program_type: PROGRAM_TYPE_XDP,
        instruction_count: instructions.len() as u32,
        instructions: address(instructions),
        license: address(LICENSE),
        log_level: 0,
        log_size_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: NAME,
        interface_index: 0,
        expected_attach_type: ATTACH_TYPE_XDP,
    };
    // SAFETY: the attributes are those of PROGRAM_LOAD; the instructions are live, their number is given, and
    // the license ends with a zero byte.
    unsafe { call(PROGRAM_LOAD, &mut attributes) }.map(own)
}

/// Attaches a program to an interface for as long as the returned descriptor is open.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    interface_index: libc::c_int,
    mode: AttachMode,
) -> io::Result<OwnedFd> {
    let mut attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface_index: interface_index as u32,
        attach_type: ATTACH_TYPE_XDP,
        flags: match mode {
            AttachMode::Driver => XDP_FLAGS_DRV_MODE,
            AttachMode::Generic => XDP_FLAGS_SKB_MODE,
        },
    };
    // SAFETY: the attributes are those of LINK_CREATE and hold no pointer.
    unsafe { call(LINK_CREATE, &mut attributes) }.map(own)
}

/// Runs a program on a frame and returns its verdict.
#[cfg(test)]
pub(super) fn test_run(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<u32> {
    let mut attributes = ProgramTestRun {
        program: program.as_raw_fd() as u32,
        outcome: 0,
        data_in_len_bytes: frame.len() as u32,
        data_out_len_bytes: 0,
        data_in: address(frame),
        data_out: 0,
        repeat: 1,
        duration_ns: 0,
    };
    // SAFETY: the attributes are those of PROGRAM_TEST_RUN; the frame is live, its length is given, and the kernel
    // writes only to the attributes.
    unsafe { call(PROGRAM_TEST_RUN, &mut attributes) }.map(|_| attributes.outcome)
}
