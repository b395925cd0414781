//! What can be wrong with a routing task.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use iswitch::AggregateError;
use iswitch_learn::algorithms::TrainError;

/// Why a network, a policy or a training cannot be.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
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
    /// A file could not be read or written, or does not hold what it should.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The workers or a checkpoint failed.
    #[error(transparent)]
    Train(#[from] TrainError),
}

impl RoutingError {
    pub(super) fn field(field: impl Into<String>, value: impl Display, expected: impl Into<String>) -> Self {
        Self::Field { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    pub(super) fn file(path: &Path, reason: impl Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl From<AggregateError> for RoutingError {
    fn from(error: AggregateError) -> Self {
        Self::Train(error.into())
    }
}
