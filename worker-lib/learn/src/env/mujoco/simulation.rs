//! A MuJoCo model and its state, with a safe interface.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use super::library::{Functions, Handle, MujocoLibrary};
use crate::env::{EnvError, check_state};

/// Components of the state (`mjtState`): time, positions, velocities.
const STATE_TIME: c_int = 1;
const STATE_QPOS: c_int = 1 << 1;
const STATE_QVEL: c_int = 1 << 2;

/// A robot with `coordinates` joint coordinates and `motors` motors.
pub(super) struct Simulation {
    functions: Functions,
    model: Handle,
    data: Handle,
    /// Bit of the state component for the motor inputs: 1 << 5 before MuJoCo 3.5.0, and 1 << 6 since then.
    state_control: c_int,
    /// Bits of all state components on which the next step depends: time, positions, velocities and the solver's warm
    /// start.
    state_all: c_int,
    /// All positions, followed by all velocities.
    positions_velocities: Vec<f64>,
    library: Arc<MujocoLibrary>,
}

// SAFETY: model and data are plain heap objects that this value alone owns; MuJoCo keeps no thread-local data between
// calls, and its documentation allows any thread to work on its own mjData.
unsafe impl Send for Simulation {}

impl Simulation {
    /// Creates a robot described in MJCF, at its reference position.
    ///
    /// # Errors
    /// Fails if libmujoco cannot be opened, rejects the model, or has an unknown state layout.
    pub(super) fn new(mjcf: &str, coordinates: usize, motors: usize) -> Result<Self, EnvError> {
        let library = MujocoLibrary::open()?;
        let functions = library.functions;
        let model = compile_model(&functions, mjcf).map_err(EnvError::Mujoco)?;
        // SAFETY: `model` is a compiled model that has not been freed.
        let data = unsafe { (functions.make_data)(model) };
        // Constructed before the checks below, so that Drop frees model and data if a check fails.
        let mut simulation = Self {
            functions,
            model,
            data,
            state_control: 0,
            state_all: 0,
            positions_velocities: vec![0.0; 2 * coordinates],
            library,
        };
        if data.is_null() {
            return Err(EnvError::Mujoco("mj_makeData failed".to_owned()));
        }
        simulation.find_components(coordinates, motors)?;
        Ok(simulation)
    }

    /// Determines the bits of the motor inputs and of the warm start from the sizes that these components must have.
    fn find_components(&mut self, coordinates: usize, motors: usize) -> Result<(), EnvError> {
        let control = if self.state_size(1 << 5) == motors { 1 << 5 } else { 1 << 6 };
        let warm_start = control >> 1;
        let sizes = [STATE_QPOS, STATE_QVEL, control, warm_start].map(|component| self.state_size(component));
        if sizes != [coordinates, coordinates, motors, coordinates] {
            let version = self.library.version();
            return Err(EnvError::Mujoco(format!(
                "MuJoCo {version} has an unknown layout of mjtState, with sizes {sizes:?}; use a version from 3.2.7 to \
                 4.0.0"
            )));
        }
        self.state_control = control;
        self.state_all = STATE_TIME | STATE_QPOS | STATE_QVEL | warm_start;
        Ok(())
    }

    fn state_size(&self, components: c_int) -> usize {
        // SAFETY: `model` is valid; the function only reads it.
        let size = unsafe { (self.functions.state_size)(self.model, components) };
        usize::try_from(size).unwrap_or(0)
    }

    fn get(&self, components: c_int, values: &mut [f64]) {
        assert_eq!(values.len(), self.state_size(components), "size of state components {components:#x}");
        // SAFETY: model and data are valid and belong together; MuJoCo writes exactly mj_stateSize numbers,
        // which is the slice's length.
        unsafe { (self.functions.get_state)(self.model, self.data, values.as_mut_ptr(), components) }
    }

    fn set(&mut self, components: c_int, values: &[f64]) {
        assert_eq!(values.len(), self.state_size(components), "size of state components {components:#x}");
        // SAFETY: as in `get`; MuJoCo reads exactly the slice's length.
        unsafe { (self.functions.set_state)(self.model, self.data, values.as_ptr(), components) }
    }

    /// Resets to the model's reference position, at rest.
    pub(super) fn reset(&mut self) {
        // SAFETY: model and data are valid and belong together.
        unsafe { (self.functions.reset_data)(self.model, self.data) }
        self.read_back();
    }

    /// Returns all positions, followed by all velocities.
    pub(super) fn coordinates(&self) -> &[f64] {
        &self.positions_velocities
    }

    fn read_back(&mut self) {
        let mut values = std::mem::take(&mut self.positions_velocities);
        self.get(STATE_QPOS | STATE_QVEL, &mut values);
        self.positions_velocities = values;
    }

    /// Sets all positions, followed by all velocities, and updates the quantities derived from them.
    ///
    /// # Panics
    /// Panics if the length of `values` is not twice the number of coordinates.
    pub(super) fn set_coordinates(&mut self, values: &[f64]) {
        self.set(STATE_QPOS | STATE_QVEL, values);
        // SAFETY: model and data are valid and belong together.
        unsafe { (self.functions.forward)(self.model, self.data) }
        self.read_back();
    }

    /// Begins an episode from the model's reference position, at rest, after `disturb` has modified the vector of all
    /// positions and velocities.
    pub(super) fn begin(&mut self, disturb: impl FnOnce(&mut [f64])) {
        self.reset();
        let mut coordinates = self.coordinates().to_vec();
        disturb(&mut coordinates);
        self.set_coordinates(&coordinates);
    }

    /// Advances by `steps` MuJoCo steps with the motor inputs `control`.
    ///
    /// # Panics
    /// Panics if the length of `control` is not the number of motors.
    pub(super) fn advance(&mut self, control: &[f64], steps: usize) {
        self.set(self.state_control, control);
        for _ in 0..steps {
            // SAFETY: model and data are valid and belong together.
            unsafe { (self.functions.step)(self.model, self.data) }
        }
        self.read_back();
    }

    /// Returns everything on which the next step depends.
    pub(super) fn save(&self) -> Vec<f64> {
        let mut state = vec![0.0; self.state_size(self.state_all)];
        self.get(self.state_all, &mut state);
        state
    }

    /// Restores the state that [`Self::save`] returned.
    pub(super) fn restore(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, self.state_size(self.state_all))?;
        self.set(self.state_all, state);
        self.read_back();
        Ok(())
    }

    /// Returns whether the library is older than version 3.5.0, which changed the contact solver.
    #[cfg(test)]
    pub(super) fn is_older(&self) -> bool {
        ["3.2.", "3.3.", "3.4."].iter().any(|version| self.library.version().starts_with(version))
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: this library made both objects, this value alone owns them, and they are not used afterwards.
        // MuJoCo's delete functions accept null.
        unsafe {
            (self.functions.delete_data)(self.data);
            (self.functions.delete_model)(self.model);
        }
    }
}

fn compile_model(functions: &Functions, mjcf: &str) -> Result<Handle, String> {
    let text = CString::new(mjcf).map_err(|error| error.to_string())?;
    let mut error = [0_u8; 1000];
    // SAFETY: `text` is NUL-terminated, the virtual file system may be null, and MuJoCo writes at most the given number
    // of bytes, including the NUL, to `error`. `compile` and `delete_spec` receive the specification that `parse`
    // returned, which is not null at that point.
    let model = unsafe {
        let spec = (functions.parse)(
            text.as_ptr(),
            std::ptr::null(),
            error.as_mut_ptr().cast(),
            error.len() as c_int,
        );
        if spec.is_null() {
            std::ptr::null_mut()
        } else {
            let model = (functions.compile)(spec, std::ptr::null());
            (functions.delete_spec)(spec);
            model
        }
    };
    if model.is_null() {
        let text = CStr::from_bytes_until_nul(&error).map(CStr::to_string_lossy).unwrap_or_default();
        return Err(format!("MuJoCo rejected the model: {text}"));
    }
    Ok(model)
}
