//! Conversion of the worker's errors to the Python exceptions that `python/iswitch/errors.py` defines.

use iswitch::worker::AnyLengthError;
use iswitch::{AggregateError, JoinError};
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};

mod classes {
    pyo3::import_exception!(iswitch.errors, ClosedError);
    pyo3::import_exception!(iswitch.errors, ExpelledError);
    pyo3::import_exception!(iswitch.errors, HaltedError);
    pyo3::import_exception!(iswitch.errors, NonFiniteError);
    pyo3::import_exception!(iswitch.errors, RefusedError);
    pyo3::import_exception!(iswitch.errors, SwitchLostError);
    pyo3::import_exception!(iswitch.errors, UnfinishedError);
    pyo3::import_exception!(iswitch.errors, WorkersMissingError);
}

pub(crate) use classes::ClosedError;
use classes::{
    ExpelledError, HaltedError, NonFiniteError, RefusedError, SwitchLostError, UnfinishedError,
    WorkersMissingError,
};

/// Returns the Python exception for an error of the worker.
pub(crate) fn to_python(error: &AnyLengthError) -> PyErr {
    let text = error.to_string();
    match error {
        AnyLengthError::Join { source, .. } => of_join(source, text),
        AnyLengthError::Aggregate(source) => of_aggregate(source, text),
        AnyLengthError::Unfinished { .. } => UnfinishedError::new_err(text),
        _ => ClosedError::new_err(text),
    }
}

fn of_join(error: &JoinError, text: String) -> PyErr {
    match error {
        JoinError::NoAnswer { .. } => SwitchLostError::new_err(text),
        JoinError::Refused { .. } | JoinError::KeyRefused { .. } => RefusedError::new_err(text),
        JoinError::WorkersMissing { .. } | JoinError::State(_) => WorkersMissingError::new_err(text),
        JoinError::Interrupted => ClosedError::new_err(text),
        JoinError::Io(_) => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

fn of_aggregate(error: &AggregateError, text: String) -> PyErr {
    match error {
        AggregateError::SwitchLost { .. } => SwitchLostError::new_err(text),
        AggregateError::Stalled { .. } => WorkersMissingError::new_err(text),
        AggregateError::NonFinite { .. } => NonFiniteError::new_err(text),
        AggregateError::Halted => HaltedError::new_err(text),
        AggregateError::Refused { .. } => RefusedError::new_err(text),
        AggregateError::Io(_) => PyOSError::new_err(text),
        AggregateError::Expelled { .. }
        | AggregateError::MissedRounds { .. }
        | AggregateError::StaleRound { .. } => ExpelledError::new_err(text),
        _ => ClosedError::new_err(text),
    }
}
