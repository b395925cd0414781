//! Socket options, for the socket of this crate and for other sockets that the switch opens.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, socklen_t};

/// Number of 32-bit values that `SO_MEMINFO` returns. The two constants below are indices into these values. All three
/// constants are from `linux/sock_diag.h`.
const SK_MEMINFO_VARS: usize = 9;
const SK_MEMINFO_RMEM_ALLOC: usize = 0;
const SK_MEMINFO_DROPS: usize = 8;

/// Sets an integer option; `level` and `name` have the same meaning as in `setsockopt(2)`.
pub fn set(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let value = ptr::from_ref(&value).cast();
    // SAFETY: `value` points to a live c_int, and the length that is passed is the size of a c_int.
    let outcome =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, size_of::<c_int>() as socklen_t) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option that consists of one or more integers into `values`.
fn get(socket: BorrowedFd<'_>, level: c_int, name: c_int, values: &mut [u32]) -> io::Result<()> {
    let mut len = size_of_val(values) as socklen_t;
    // SAFETY: the pointer to `values` is valid for writes of `len` bytes, and any sequence of bytes is a valid `u32`.
    let outcome = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, values.as_mut_ptr().cast(), &raw mut len)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Requests a receive buffer of `len_bytes`, or keeps the current size if `len_bytes` is 0. With `CAP_NET_ADMIN`, the
/// size may exceed the system's limit.
pub fn set_recv_buffer(socket: BorrowedFd<'_>, len_bytes: usize) -> io::Result<()> {
    set_buffer(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, len_bytes)
}

/// Requests a send buffer of `len_bytes`, or keeps the current size if `len_bytes` is 0. With `CAP_NET_ADMIN`, the size
/// may exceed the system's limit.
pub fn set_send_buffer(socket: BorrowedFd<'_>, len_bytes: usize) -> io::Result<()> {
    set_buffer(socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, len_bytes)
}

fn set_buffer(socket: BorrowedFd<'_>, force: c_int, plain: c_int, len_bytes: usize) -> io::Result<()> {
    if len_bytes == 0 {
        return Ok(());
    }
    let len = c_int::try_from(len_bytes).unwrap_or(c_int::MAX);
    set(socket, libc::SOL_SOCKET, force, len).or_else(|_| set(socket, libc::SOL_SOCKET, plain, len))
}

/// Returns the size of the receive buffer that the kernel granted, in bytes, as the kernel reports it (`SO_RCVBUF`).
pub fn recv_buffer_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut value = [0];
    get(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &mut value)?;
    Ok(value[0] as usize)
}

/// Returns the kernel's current estimate of the path MTU of a connected socket (`IP_MTU`), in bytes.
pub fn path_mtu_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut value = [0];
    get(socket, libc::IPPROTO_IP, libc::IP_MTU, &mut value)?;
    Ok(value[0] as usize)
}

/// Returns the number of datagrams that the kernel has dropped since the socket was opened, because the receive buffer
/// was full. The count wraps at 2^32.
pub fn recv_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    memory_info(socket).map(|values| values[SK_MEMINFO_DROPS])
}

/// Returns the number of bytes that the kernel charges to the receive buffer for data that has not been read yet.
pub fn recv_charged_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    memory_info(socket).map(|values| values[SK_MEMINFO_RMEM_ALLOC] as usize)
}

fn memory_info(socket: BorrowedFd<'_>) -> io::Result<[u32; SK_MEMINFO_VARS]> {
    let mut values = [0; SK_MEMINFO_VARS];
    get(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values)?;
    Ok(values)
}
