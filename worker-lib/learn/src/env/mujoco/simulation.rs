//! A MuJoCo model and its state, behind safe functions.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use super::library::{Functions, Handle, MujocoLibrary};
use crate::env::{EnvError, check_state};

/// Components of the state (`mjtState`): time, positions, velocities.
const STATE_TIME: c_int = 1;
const STATE_QPOS: c_int = 1 << 1;
const STATE_QVEL: c_int = 1 << 2;

/// A robot that moves by `coordinates` joints, of which `motors` are driven.
pub(super) struct Simulation {
    functions: Functions,
    model: Handle,
    data: Handle,
    /// The component that holds the actuators' input. Its bit moved from 5 to 6 in MuJoCo 3.5.0.
    state_control: c_int,
    /// Time, positions, velocities and the solver's warm start: all that the next step depends on.
    state_all: c_int,
    /// All positions, then all velocities.
    positions_velocities: Vec<f64>,
    library: Arc<MujocoLibrary>,
}

// SAFETY: model and data are plain heap objects of which this value is the only owner; MuJoCo keeps nothing
// thread-local between calls, and its documentation allows any thread to work on its own mjData.
unsafe impl Send for Simulation {}

impl Simulation {
    /// A robot described in MJCF, at its reference position.
    ///
    /// # Errors
    /// If libmujoco cannot be opened, refuses the model, or lays out its state in an unknown way.
    pub(super) fn new(mjcf: &str, coordinates: usize, motors: usize) -> Result<Self, EnvError> {
        let library = MujocoLibrary::open()?;
        let functions = library.functions;
        let model = compile_model(&functions, mjcf).map_err(EnvError::Mujoco)?;
        // SAFETY: `model` is a compiled model that nothing has freed.
        let data = unsafe { (functions.make_data)(model) };
        // Made before the checks below, so that Drop frees model and data when they fail.
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

    /// Finds the bits of the control and the warm start, by the size that each must have.
    fn find_components(&mut self, coordinates: usize, motors: usize) -> Result<(), EnvError> {
        let control = if self.state_size(1 << 5) == motors { 1 << 5 } else { 1 << 6 };
        let warm_start = control >> 1;
        let sizes = [STATE_QPOS, STATE_QVEL, control, warm_start].map(|component| self.state_size(component));
        if sizes != [coordinates, coordinates, motors, coordinates] {
            let version = self.library.version();
            return Err(EnvError::Mujoco(format!(
                "MuJoCo {version}: unknown layout of mjtState, sizes {sizes:?}"
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
        assert_eq!(values.len(), self.state_size(components), "state components {components:#x}");
        // SAFETY: model and data are valid and belong together; MuJoCo writes exactly mj_stateSize numbers,
        // which is the slice's length.
        unsafe { (self.functions.get_state)(self.model, self.data, values.as_mut_ptr(), components) }
    }

    fn set(&mut self, components: c_int, values: &[f64]) {
        assert_eq!(values.len(), self.state_size(components), "state components {components:#x}");
        // SAFETY: as in `get`; MuJoCo reads exactly the slice's length.
        unsafe { (self.functions.set_state)(self.model, self.data, values.as_ptr(), components) }
    }

    /// Goes to the model's reference position, at rest.
    pub(super) fn reset(&mut self) {
        // SAFETY: model and data are valid and belong together.
        unsafe { (self.functions.reset_data)(self.model, self.data) }
        self.read_back();
    }

    /// All positions, then all velocities.
    pub(super) fn coordinates(&self) -> &[f64] {
        &self.positions_velocities
    }

    fn read_back(&mut self) {
        let mut values = std::mem::take(&mut self.positions_velocities);
        self.get(STATE_QPOS | STATE_QVEL, &mut values);
        self.positions_velocities = values;
    }

    /// Sets all positions, then all velocities, and what follows from them.
    ///
    /// # Panics
    /// If `values` is not twice as long as there are coordinates.
    pub(super) fn set_coordinates(&mut self, values: &[f64]) {
        self.set(STATE_QPOS | STATE_QVEL, values);
        // SAFETY: model and data are valid and belong together.
        unsafe { (self.functions.forward)(self.model, self.data) }
        self.read_back();
    }

    /// Begins an episode: at the model's reference position, at rest, but for what `disturb` adds to all positions and
    /// then to all velocities.
    pub(super) fn begin(&mut self, disturb: impl FnOnce(&mut [f64])) {
        self.reset();
        let mut coordinates = self.coordinates().to_vec();
        disturb(&mut coordinates);
        self.set_coordinates(&coordinates);
    }

    /// Goes on for so many of MuJoCo's steps under that input of the motors.
    ///
    /// # Panics
    /// If there are not as many numbers as motors.
    pub(super) fn advance(&mut self, control: &[f64], steps: usize) {
        self.set(self.state_control, control);
        for _ in 0..steps {
            // SAFETY: model and data are valid and belong together.
            unsafe { (self.functions.step)(self.model, self.data) }
        }
        self.read_back();
    }

    /// All that the next step depends on.
    pub(super) fn save(&self) -> Vec<f64> {
        let mut state = vec![0.0; self.state_size(self.state_all)];
        self.get(self.state_all, &mut state);
        state
    }

    /// Goes on from what [`Self::save`] gave.
    pub(super) fn restore(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, self.state_size(self.state_all))?;
        self.set(self.state_all, state);
        self.read_back();
        Ok(())
    }

    /// Whether contacts are solved as before MuJoCo 3.5.0.
    #[cfg(test)]
    pub(super) fn is_older(&self) -> bool {
        ["3.2.", "3.3.", "3.4."].iter().any(|version| self.library.version().starts_with(version))
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // SAFETY: both were made by this library, belong to this value alone, and are not used after this.
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
    // SAFETY: `text` is NUL-terminated, the virtual file system may be null, and MuJoCo writes at most the
    // given number of bytes, NUL included, to `error`. compile and delete get the specification that parse gave,
    // which is not null there.
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
        return Err(format!("MuJoCo refused the model: {text}"));
    }
    Ok(model)
}
