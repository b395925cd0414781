//! What can be wrong with a placement task.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use iswitch_learn::algorithms::TrainError;

/// Why a cluster, a job, a failure, a file or a placement cannot be.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
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
    /// A file that could not be read, or does not hold what it should.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A training that cannot be or go on.
    #[error(transparent)]
    Train(#[from] TrainError),
}

impl PlacementError {
    pub(super) fn field(field: impl Into<String>, value: impl Display, expected: impl Into<String>) -> Self {
        Self::Field { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    pub(super) fn line(path: &Path, line: usize, reason: impl Display) -> Self {
        Self::Line { path: path.to_owned(), line, reason: reason.to_string() }
    }

    pub(super) fn file(path: &Path, reason: impl Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Refuses what is no number of at least 0.
pub(super) fn at_least_zero(field: impl Into<String>, value: f64, unit: &str) -> Result<f64, PlacementError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(PlacementError::field(field, value, format!("a number of {unit} of at least 0")))
}

/// Refuses what is no number above 0.
pub(super) fn above_zero(field: impl Into<String>, value: f64, unit: &str) -> Result<f64, PlacementError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(PlacementError::field(field, value, format!("a number of {unit} above 0")))
}

/// Refuses what is no number in a range.
pub(super) fn check_range(
    field: impl Into<String>,
    value: f64,
    range: RangeInclusive<f64>,
    unit: &str,
) -> Result<f64, PlacementError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let expected = format!("{} to {} {unit}", range.start(), range.end());
    // 1e300 in full has 301 digits.
    let value = if value.abs() < 1e16 { format!("{value}") } else { format!("{value:e}") };
    Err(PlacementError::field(field, value, expected))
}
