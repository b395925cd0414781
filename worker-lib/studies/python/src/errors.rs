//! Conversion of the errors of studies to Python exceptions.

use std::path::PathBuf;

use iswitch_study::{StudyError, names};
use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};

/// Returns the `ValueError` for an error of a study.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
pub(crate) fn to_python(error: StudyError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the `ValueError` for an invalid argument.
pub(crate) fn bad(argument: &str, value: impl std::fmt::Display, expected: impl Into<String>) -> PyErr {
    to_python(StudyError::field(argument, value, expected))
}

/// Checks that the files given by arguments exist.
///
/// # Errors
/// Returns a `FileNotFoundError` that names the first argument whose file does not exist.
pub(crate) fn check_exist(paths: &[(&str, &Option<PathBuf>)]) -> Result<(), PyErr> {
    for (argument, path) in paths {
        if let Some(path) = path.as_ref().filter(|path| !path.exists()) {
            let text = format!("{argument} is {}, expected the path of an existing file", path.display());
            return Err(PyFileNotFoundError::new_err(text));
        }
    }
    Ok(())
}

/// Returns the enumeration value with this name.
///
/// # Errors
/// Returns a `ValueError` that lists all names if no value has this name.
pub(crate) fn named<T>(argument: &str, text: &str) -> Result<T, PyErr>
where
    T: strum::IntoEnumIterator<Iterator: Clone> + std::fmt::Display,
{
    names::parse(argument, text, T::iter(), "").map_err(to_python)
}
