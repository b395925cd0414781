//! The Python class `iswitch._studies.Simulator`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use iswitch_study::environment::{End, Environment, Figures};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};

use crate::errors::to_python;

/// Simulator that stops at each decision.
#[pyclass(module = "iswitch._studies", frozen)]
pub(crate) struct Simulator {
    inner: Mutex<Box<dyn Environment>>,
}

/// Features of all candidates (float32), and whether each is valid (int8).
type Decision<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

#[pymethods]
impl Simulator {
    /// Names of the features of a candidate.
    #[getter]
    fn features(&self) -> Vec<&'static str> {
        self.lock().features().to_vec()
    }

    /// Maximum number of candidates of a decision.
    #[getter]
    fn candidates(&self) -> usize {
        self.lock().candidates()
    }

    /// Minimum and maximum of a feature.
    #[getter]
    fn bounds(&self) -> (f32, f32) {
        self.lock().bounds()
    }

    /// Begins the episode of a draw and returns its first decision.
    fn reset<'py>(&self, py: Python<'py>, draw: u64) -> PyResult<Decision<'py>> {
        py.detach(|| self.lock().reset(draw)).map_err(to_python)?;
        Ok(self.decision(py))
    }

    /// Chooses a candidate, or the next valid one if `replaces`; returns the next decision, the reward, whether all
    /// work is done, whether the time limit has been reached, and whether the choice was replaced.
    fn step<'py>(
        &self,
        py: Python<'py>,
        choice: usize,
        replaces: bool,
    ) -> PyResult<(Decision<'py>, f64, bool, bool, bool)> {
        let (outcome, chosen) = py.detach(|| {
            let mut simulator = self.lock();
            let count = simulator.candidates();
            let valid =
                (0..count).map(|offset| (choice + offset) % count).find(|next| simulator.is_valid(*next));
            let chosen = valid.filter(|_| replaces).unwrap_or(choice);
            (simulator.choose(chosen), chosen)
        });
        let outcome = outcome.map_err(to_python)?;
        let (is_complete, is_over) = (outcome.end == End::Complete, outcome.end == End::Limit);
        Ok((self.decision(py), outcome.reward, is_complete, is_over, chosen != choice))
    }

    /// Returns the exact values of each candidate by name, or None for a candidate that is not valid.
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyDict>>>> {
        let simulator = self.lock();
        let names = simulator.detail_names();
        let of = |values: Vec<f64>| dict(py, names.iter().copied().zip(values));
        simulator.details().into_iter().map(|values| values.map(of).transpose()).collect()
    }

    /// Returns the results of the episode, or None before its end.
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.lock().results().map(|figures| dict(py, figures)).transpose()
    }

    /// Returns the candidate that a rule chooses.
    fn rule_choice(&self, rule: &str) -> PyResult<usize> {
        self.lock().rule_choice(rule).map_err(to_python)
    }

    /// Runs a rule on the draw of the current episode and returns its results.
    fn run_rule<'py>(&self, py: Python<'py>, rule: &str) -> PyResult<Bound<'py, PyDict>> {
        let figures: Figures = py.detach(|| self.lock().run_rule(rule)).map_err(to_python)?;
        dict(py, figures)
    }
}

impl Simulator {
    pub(crate) fn new(environment: impl Environment + 'static) -> Self {
        Self { inner: Mutex::new(Box::new(environment)) }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Environment>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decision<'py>(&self, py: Python<'py>) -> Decision<'py> {
        let simulator = self.lock();
        let count = simulator.candidates();
        let mut rows = vec![0.0; count * simulator.features().len()];
        simulator.observe(&mut rows);
        let bytes: Vec<u8> = rows.iter().flat_map(|value: &f32| value.to_ne_bytes()).collect();
        let mask: Vec<u8> = (0..count).map(|candidate| u8::from(simulator.is_valid(candidate))).collect();
        (PyByteArray::new(py, &bytes), PyByteArray::new(py, &mask))
    }
}

fn dict(py: Python<'_>, items: impl IntoIterator<Item = (&'static str, f64)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in items {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
