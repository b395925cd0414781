//! What can be wrong with a scheduling task.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use iswitch_learn::algorithms::TrainError;

/// Why a trace, a job or a policy cannot be.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum CoflowError {
    /// A value that cannot be.
    #[error("{field} is {value}, expected {expected}")]
    Field {
        /// What it is of.
        field: String,
        /// What it is.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// A line of a file that does not hold what it should.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A training that cannot be or go on.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Coflows that wait for each other.
    #[error("coflows wait for each other: {}", cycle.iter().map(usize::to_string).collect::<Vec<_>>().join(" -> "))]
    Cycle {
        /// Numbers of the coflows within their job, the first one again at the end.
        cycle: Vec<usize>,
    },
}

impl CoflowError {
    pub(super) fn field(field: impl Into<String>, value: impl Display, expected: impl Into<String>) -> Self {
        Self::Field { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    pub(super) fn line(path: &Path, line: usize, reason: impl Display) -> Self {
        Self::Line { path: path.to_owned(), line, reason: reason.to_string() }
    }
}
