//! Error type of all studies.

use std::error::Error;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use iswitch::AggregateError;
use iswitch_learn::algorithms::TrainError;

/// Reason why a scenario, a file, a policy or a training run is rejected.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A value is out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Field {
        /// Name of the value.
        field: String,
        /// Invalid value.
        value: String,
        /// Accepted values.
        expected: String,
    },
    /// A line of a file is invalid.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Cause of the error.
        reason: String,
    },
    /// A file cannot be read or written, or its content as a whole is invalid.
    #[error("{}: {reason}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the error.
        reason: String,
    },
    /// A training run, its workers or its checkpoint failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Error that is specific to one study.
    #[error(transparent)]
    Own(Box<dyn Error + Send + Sync>),
}

impl StudyError {
    /// Creates the error for a value that is out of its range.
    pub fn field(field: impl Into<String>, value: impl Display, expected: impl Into<String>) -> Self {
        Self::Field { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    /// Creates the error for an invalid line of a file.
    pub fn line(path: &Path, line: usize, reason: impl Display) -> Self {
        Self::Line { path: path.to_owned(), line, reason: reason.to_string() }
    }

    /// Creates the error for a file that cannot be used.
    pub fn file(path: &Path, reason: impl Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl From<AggregateError> for StudyError {
    fn from(error: AggregateError) -> Self {
        Self::Train(error.into())
    }
}

/// Returns `value` if it is finite and at least 0.
///
/// # Errors
/// Fails if the value is out of range.
pub fn at_least_zero(field: impl Into<String>, value: f64, unit: &str) -> Result<f64, StudyError> {
    at_least(field, value, 0.0, unit)
}

/// Returns `value` if it is finite and at least `least`.
///
/// # Errors
/// Fails if the value is out of range.
pub fn at_least(field: impl Into<String>, value: f64, least: f64, unit: &str) -> Result<f64, StudyError> {
    if value.is_finite() && value >= least {
        return Ok(value);
    }
    Err(StudyError::field(field, value, format!("a number of {unit} >= {least}")))
}

/// Returns `value` if it is finite and above 0.
///
/// # Errors
/// Fails if the value is out of range.
pub fn above_zero(field: impl Into<String>, value: f64, unit: &str) -> Result<f64, StudyError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(StudyError::field(field, value, format!("a number of {unit} above 0")))
}

/// Returns `value` if it lies in `range`.
///
/// # Errors
/// Fails if the value is out of range.
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
    // Without an exponent, 1e300 has 301 digits.
    let value = if value.abs() < 1e16 { format!("{value}") } else { format!("{value:e}") };
    Err(StudyError::field(field, value, expected))
}

/// Checks that each count is between 1 and its maximum. Each entry of `counts` consists of a name, the count and the
/// maximum.
///
/// # Errors
/// Names the first count that is out of range.
pub fn check_counts(counts: &[(&str, usize, usize)]) -> Result<(), StudyError> {
    match counts.iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
        None => Ok(()),
        Some((name, value, most)) => Err(StudyError::field(*name, value, format!("1 to {most}"))),
    }
}
