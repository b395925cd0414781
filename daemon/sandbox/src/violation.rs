//! Error message that a process prints before it ends because of a system call that the sandbox does not allow.
//!
//! If the thread that makes the call has blocked SIGSYS, the kernel kills the process before it can print the message,
//! and only the kernel log names the call.
#![allow(unsafe_code)]

use std::io::{self, Write};
use std::sync::OnceLock;
use std::{mem, ptr};

use libc::{c_int, c_uint, c_void, siginfo_t};

/// Exit status of a program that SIGSYS terminated, by the convention of shells.
const STATUS: c_int = 128 + libc::SIGSYS;
/// Maximum length of the message, in bytes.
const MESSAGE_LEN_BYTES: usize = 240;
/// Name of the program for the message. A signal handler may read it, because that takes only one atomic load.
static PROGRAM: OnceLock<&'static str> = OnceLock::new();

/// Layout of `siginfo_t` for SIGSYS, from `asm-generic/siginfo.h`.
#[repr(C)]
struct SigsysInfo {
    signal: c_int,
    errno: c_int,
    code: c_int,
    address: *const c_void,
    system_call: c_int,
    architecture: c_uint,
}

const _: () = assert!(size_of::<SigsysInfo>() <= size_of::<siginfo_t>());

/// Installs a handler for SIGSYS, which the kernel sends for a trapped system call. The handler prints the name of
/// the program and the number of the call, and ends the process.
pub(crate) fn report_before_death(program: &'static str) -> io::Result<()> {
    // If the name has already been set, it does not change.
    let _ = PROGRAM.set(program);
    // SAFETY: a sigaction consists of integers and pointers, for which zero is a valid value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    let handler: extern "C" fn(c_int, *const siginfo_t, *const c_void) = report;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the action is a live sigaction. Its handler has the signature that SA_SIGINFO requires, and calls only
    // async-signal-safe functions.
    let outcome = unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn report(_signal: c_int, info: *const siginfo_t, _context: *const c_void) {
    // SAFETY: the kernel passes a siginfo_t to a handler with SA_SIGINFO, and the siginfo_t of SIGSYS has the layout of
    // `SigsysInfo`.
    let system_call = unsafe { (*info.cast::<SigsysInfo>()).system_call };
    let program = PROGRAM.get().copied().unwrap_or("iswitch");
    let mut message = [0; MESSAGE_LEN_BYTES];
    let mut room = &mut message[..];
    // Formatting an integer into an array neither allocates nor locks; a message that is too long is truncated.
    let _ = writeln!(
        room,
        "{program}: stopped by its sandbox: system call {system_call} is not allowed (ausyscall {system_call} shows \
         its name); please report this; --no-sandbox disables the sandbox"
    );
    let len = MESSAGE_LEN_BYTES - room.len();
    // SAFETY: the message has at least `len` bytes. Both calls are async-signal-safe and allowed; _exit ends all
    // threads.
    unsafe {
        libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), len);
        libc::_exit(STATUS);
    }
}
