//! Extension module `iswitch._iswitch`: Python bindings for the worker in the crate `iswitch`.
//!
//! The exceptions and the integration with PyTorch are written in Python, in `python/iswitch`.

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
