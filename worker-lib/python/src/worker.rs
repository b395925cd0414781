//! The Python class `iswitch.Worker`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use iswitch::AnyLengthWorker;
use iswitch::worker::AnyLengthError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Elements;
use crate::errors::{ClosedError, to_python};
use crate::settings::{Arguments, Switches, to_duration};

/// Worker that sums arrays of any length with the other workers of its job.
#[pyclass(module = "iswitch", frozen)]
pub(crate) struct Worker {
    /// `None` once the worker is closed.
    inner: Mutex<Option<AnyLengthWorker>>,
    is_closing: AtomicBool,
    switch: String,
    rank: u16,
    world_size: u16,
}

/// Exception that a signal handler has raised during a call, if any.
type Interruption = Option<PyErr>;

/// Returns whether a call should keep waiting. Runs Python's signal handlers, which may raise an exception such as
/// KeyboardInterrupt.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a path to the method is not generic over the lifetime"
)]
fn keep_waiting(is_closing: &AtomicBool, interruption: &mut Interruption) -> bool {
    if is_closing.load(Ordering::Relaxed) {
        return false;
    }
    // No thread can attach to an interpreter that is shutting down.
    match Python::try_attach(|py| py.check_signals()) {
        Some(Ok(())) => true,
        Some(Err(error)) => {
            *interruption = Some(error);
            false
        }
        None => false,
    }
}

fn outcome<T>(result: Result<T, AnyLengthError>, interruption: Interruption) -> PyResult<T> {
    result.map_err(|error| interruption.unwrap_or_else(|| to_python(&error)))
}

#[pymethods]
impl Worker {
    #[new]
    #[pyo3(signature = (
        switch=None, rank=None, world_size=None, *, job=None, timeout=None, switch_timeout=None,
        segment_floats=None, key_file=None, tag_data=None, non_finite=None, wire=None, threads=None,
        name=None, owner=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are Python keyword arguments")]
    fn new(
        py: Python<'_>,
        switch: Option<Switches>,
        rank: Option<u16>,
        world_size: Option<u16>,
        job: Option<u32>,
        timeout: Option<f64>,
        switch_timeout: Option<f64>,
        segment_floats: Option<u16>,
        key_file: Option<PathBuf>,
        tag_data: Option<bool>,
        non_finite: Option<String>,
        wire: Option<String>,
        threads: Option<u8>,
        name: Option<String>,
        owner: Option<String>,
    ) -> PyResult<Self> {
        let arguments = Arguments {
            switch,
            rank,
            world_size,
            job,
            timeout,
            switch_timeout,
            segment_floats,
            key_file,
            tag_data,
            non_finite,
            wire,
            threads,
            name,
            owner,
        };
        let (options, elements) = arguments.resolve(py)?;
        let switches = std::iter::once(&options.switch).chain(&options.standbys);
        let switch = switches.map(ToString::to_string).collect::<Vec<_>>().join(",");
        let (rank, world_size) = (options.rank, options.workers);
        let is_closing = AtomicBool::new(false);
        let mut interruption = None;
        let joined = py
            .detach(|| AnyLengthWorker::join(options, &mut || keep_waiting(&is_closing, &mut interruption)));
        let joined = joined.map(|worker| worker.with_elements(elements));
        let inner = Mutex::new(Some(outcome(joined, interruption)?));
        Ok(Self { inner, is_closing, switch, rank, world_size })
    }

    /// Replaces `array` with its sum over all workers and returns the number of gradients in the sum.
    #[pyo3(signature = (array, *, timeout=None))]
    fn all_reduce_(&self, array: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<u16> {
        self.reduce(array, false, timeout)
    }

    /// Like `all_reduce_`, but divides the sum by the number of gradients that it contains.
    #[pyo3(signature = (array, *, timeout=None))]
    fn all_reduce_mean_(&self, array: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<u16> {
        self.reduce(array, true, timeout)
    }

    /// Returns the current values of the counters.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let guard = self.lock()?;
        let worker = guard.as_ref().ok_or_else(closed)?;
        let (stats, counters) = (PyDict::new(py), worker.stats());
        stats.set_item("rounds", counters.rounds)?;
        stats.set_item("segments", counters.segments)?;
        stats.set_item("retransmitted", counters.retransmitted)?;
        stats.set_item("rejoins", worker.rejoins())?;
        Ok(stats)
    }

    /// Leaves the job. A call that is waiting in another thread raises ClosedError.
    fn close(&self, py: Python<'_>) {
        self.is_closing.store(true, Ordering::Relaxed);
        py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }

    /// Address of the switch, as "HOST:PORT", or the addresses of several switches, separated by commas.
    #[getter]
    fn switch(&self) -> &str {
        &self.switch
    }

    /// Rank of this worker, starting from 0.
    #[getter]
    fn rank(&self) -> u16 {
        self.rank
    }

    /// Number of workers of the job.
    #[getter]
    fn world_size(&self) -> u16 {
        self.world_size
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        let Self { switch, rank, world_size, .. } = self;
        format!("iswitch.Worker(switch='{switch}', rank={rank}, world_size={world_size})")
    }
}

impl Worker {
    fn reduce(&self, array: &Bound<'_, PyAny>, is_mean: bool, timeout: Option<f64>) -> PyResult<u16> {
        let timeout = timeout.map(|seconds| to_duration(seconds, "timeout")).transpose()?;
        let mut elements = Elements::borrow(array)?;
        let mut elements = elements.detached();
        let mut guard = self.lock()?;
        let worker = guard.as_mut().ok_or_else(closed)?;
        worker.set_timeout(timeout);
        let mut interruption = None;
        let summed = {
            let worker = &mut *worker;
            let interruption = &mut interruption;
            array.py().detach(move || {
                let mut keep_waiting = || keep_waiting(&self.is_closing, interruption);
                worker.reduce_values_while(elements.values(), is_mean, &mut keep_waiting)
            })
        };
        outcome(summed, interruption).map(|summed| summed.contributors)
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<AnyLengthWorker>>> {
        match self.inner.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_closing.load(Ordering::Relaxed) => Err(closed()),
            // With two concurrent calls, the order of their arrays could differ between the workers.
            Err(TryLockError::WouldBlock) => Err(pyo3::exceptions::PyRuntimeError::new_err(
                "another thread is using this worker; only one thread may use it at a time",
            )),
        }
    }
}

fn closed() -> PyErr {
    ClosedError::new_err("the worker was closed")
}
