//! The sandbox of iSwitch's daemons: `iswitchd`, `replayd` and `iswitch-models`.
//!
//! Once a daemon has opened everything that needs privileges, it enters the sandbox in three steps:
//!
//! 1. [`drop_privileges`] drops all capabilities and sets `no_new_privs`;
//! 2. [`FileRules::restrict`] limits access to the given files and directories (Landlock);
//! 3. [`SystemCalls::filter`] ends the process if it makes a system call that is not on the list (seccomp).
//!
//! The first two steps apply to the calling thread and to threads that it starts later, so a process must take them
//! while it has only one thread. The third step applies to all threads. Open descriptors remain usable.
//!
//! [`ServerSandbox`] combines the three steps for servers that run on tokio.

mod files;
mod privileges;
mod server;
mod system_calls;
mod violation;

use std::io;

pub use files::{FileRules, Landlock};
pub use privileges::drop_privileges;
pub use server::{InForce, ServerSandbox, file_calls, server_calls};
pub use system_calls::SystemCalls;

/// Failure of a step in setting up the sandbox.
#[derive(Debug, thiserror::Error)]
#[error("cannot {call}: {source}")]
pub struct SandboxError {
    /// Operation that failed, as a verb and its object, for use in an error message.
    pub call: &'static str,
    /// Error of the operating system.
    pub source: io::Error,
}

impl SandboxError {
    /// Returns a function that wraps an error with the name of the operation that failed.
    pub fn of<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self { call, source: source.into() }
    }
}
