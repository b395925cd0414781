//! Extension module `iswitch._studies`: the simulators of the studies as environments. It is separate from the module
//! of the worker, so that a training program does not load it. The classes of Gymnasium are written in Python, in
//! `worker-lib/python/python/iswitch/studies`.

#![warn(missing_docs)]

mod coflow;
mod environment;
mod errors;
mod placement;
mod routing;

use pyo3::prelude::*;

#[pymodule]
fn _studies(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<environment::Simulator>()?;
    module.add_function(wrap_pyfunction!(coflow::coflow, module)?)?;
    module.add_function(wrap_pyfunction!(placement::placement, module)?)?;
    module.add_function(wrap_pyfunction!(routing::routing, module)?)
}
