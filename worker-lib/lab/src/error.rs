//! Errors of the emulated network.

use std::io;

/// Reason why a network could not be created, or why a command in it failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A required program is missing.
    #[error("the program {program} is missing; install it with `apt install {package}`")]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Debian package that contains the program.
        package: &'static str,
    },
    /// This process is not permitted to create namespaces.
    #[error("this user is not permitted to create namespaces ({reason}); {remedy}")]
    Namespaces {
        /// Reason reported by the kernel, or by the program that called the kernel.
        reason: String,
        /// Suggested fix.
        remedy: String,
    },
    /// A command failed.
    #[error("{command}: {reason}")]
    Command {
        /// Command line.
        command: String,
        /// Exit status and standard error of the command.
        reason: String,
    },
    /// A system call failed.
    #[error("{action}: {error}")]
    System {
        /// Operation that failed.
        action: String,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl LabError {
    /// Returns a function that converts an error of the operating system. `action` describes the operation that failed.
    pub(crate) fn system<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        |error| Self::System { action: action.into(), error: error.into() }
    }
}
