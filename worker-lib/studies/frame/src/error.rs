//! The error of all studies.

use std::error::Error;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use iswitch::AggregateError;
use iswitch_learn::algorithms::TrainError;

/// The reason why a scenario, a file, a policy or a training is refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A value out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Field {
        /// Name of the value.
        field: String,
        /// The value.
        value: String,
        /// Values that are accepted.
        expected: String,
    },
    /// An invalid line of a file.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The problem.
        reason: String,
    },
    /// A file that cannot be read or written, or whose content is invalid as a whole.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A failure of a training, its workers or its checkpoint.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// An error that only one study knows.
    #[error(transparent)]
    Own(Box<dyn Error + Send + Sync>),
}

impl StudyError {
    /// A value out of its range.
    pub fn field(field: impl Into<String>, value: impl Display, expected: impl Into<String>) -> Self {
        Self::Field { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    /// An invalid line of a file.
    pub fn line(path: &Path, line: usize, reason: impl Display) -> Self {
        Self::Line { path: path.to_owned(), line, reason: reason.to_string() }
    }

    /// A file that cannot be used.
    pub fn file(path: &Path, reason: impl Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl From<AggregateError> for StudyError {
    fn from(error: AggregateError) -> Self {
        Self::Train(error.into())
    }
}

/// Returns `value` if it is a finite number of at least 0.
///
/// # Errors
/// Otherwise.
pub fn at_least_zero(field: impl Into<String>, value: f64, unit: &str) -> Result<f64, StudyError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(StudyError::field(field, value, format!("a number of {unit} of at least 0")))
}

/// Returns `value` if it is a finite number above 0.
///
/// # Errors
/// Otherwise.
pub fn above_zero(field: impl Into<String>, value: f64, unit: &str) -> Result<f64, StudyError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(StudyError::field(field, value, format!("a number of {unit} above 0")))
}

/// Returns `value` if it lies in `range`.
///
/// # Errors
/// Otherwise.
pub fn check_range(
    field: impl Into<String>,
    value: f64,
    range: RangeInclusive<f64>,
    unit: &str,
) -> Result<f64, StudyError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let expected = format!("{} to {} {unit}", range.start(), range.end());
    // 1e300 in full has 301 digits.
    let value = if value.abs() < 1e16 { format!("{value}") } else { format!("{value:e}") };
    Err(StudyError::field(field, value, expected))
}

/// Checks counts, each with its name and its greatest value: each is at least 1.
///
/// # Errors
/// The first count that is out of range.
pub fn check_counts(counts: &[(&str, usize, usize)]) -> Result<(), StudyError> {
    match counts.iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
        None => Ok(()),
        Some((name, value, most)) => Err(StudyError::field(*name, value, format!("1 to {most}"))),
    }
}
