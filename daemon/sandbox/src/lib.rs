//! The sandbox of iSwitch's daemons: `iswitchd`, `replayd` and `iswitch-models`.
//!
//! A daemon enters it once everything that needs privileges is open, in three steps:
//!
//! 1. [`give_up_privileges`] drops all capabilities and sets `no_new_privs`;
//! 2. [`FileRules::restrict`] leaves access to the given files and directories only (Landlock);
//! 3. [`SystemCalls::filter`] ends the process if it makes a system call that is not on its list (seccomp).
//!
//! The first two steps apply to the calling thread and to threads that it starts later, so a process must take them
//! while it has one thread. The third applies to all threads. Open descriptors stay usable.
//!
//! [`ServerSandbox`] combines the three steps for servers that run on tokio.

mod files;
mod privileges;
mod server;
mod system_calls;
mod violation;

use std::io;

pub use files::{FileRules, Landlock};
pub use privileges::give_up_privileges;
pub use server::{InForce, ServerSandbox, file_calls, server_calls};
pub use system_calls::SystemCalls;

/// A failed step of entering the sandbox.
#[derive(Debug, thiserror::Error)]
#[error("cannot {call}: {source}")]
pub struct SandboxError {
    /// The operation that failed, as a verb with its object.
    pub call: &'static str,
    /// The error of the operating system.
    pub source: io::Error,
}

impl SandboxError {
    /// Returns a function that adds the name of an operation to its error.
    pub fn of<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self { call, source: source.into() }
    }
}
