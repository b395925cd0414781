//! The extension module `iswitch._iswitch`: the worker of the crate `iswitch` for Python.
//!
//! `python/iswitch` has what Python does better: the exceptions, and all that concerns PyTorch.

#![warn(missing_docs)]

mod array;
mod errors;
mod settings;
mod worker;

use pyo3::prelude::*;

#[pymodule]
fn _iswitch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<worker::Worker>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
