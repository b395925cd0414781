//! Names of the variants of an enumeration, on the command line and in files.

use std::fmt::Display;

use crate::StudyError;

/// Returns the element of `all` whose name is `text`. `others` describes accepted values that are not in `all`, such as
/// `, or drill:D:M`, for the error message.
///
/// # Errors
/// Fails if no value has this name.
pub fn parse<T: Display>(
    field: &str,
    text: &str,
    all: impl Iterator<Item = T> + Clone,
    others: &str,
) -> Result<T, StudyError> {
    all.clone().find(|value| value.to_string() == text).ok_or_else(|| {
        let names: Vec<_> = all.map(|value| value.to_string()).collect();
        StudyError::field(field, text, format!("one of {}{others}", names.join(", ")))
    })
}
