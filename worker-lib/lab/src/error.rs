//! What prevents a network.

use std::io;

/// Why there is no network, or a command in it has failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A program is missing.
    #[error("the program {program} is missing; `apt install {package}` installs it")]
    Program {
        /// Its name.
        program: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// This process may not have namespaces of its own.
    #[error("this user may not make namespaces ({reason}): {remedy}")]
    Namespaces {
        /// What the kernel, or the program that asked it, reported.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// A command failed.
    #[error("{command}: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// Its status, and what it wrote to its standard error.
        reason: String,
    },
    /// A system call failed.
    #[error("{action}: {error}")]
    System {
        /// What was attempted.
        action: String,
        /// The error.
        error: io::Error,
    },
}

impl LabError {
    /// An error of the system while `action` was attempted.
    pub(crate) fn system<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        |error| Self::System { action: action.into(), error: error.into() }
    }
}
