//! Hopper-v5 on MuJoCo, whose library is opened at run time: building needs nothing, and any version from
//! 3.2.7 to 4.0.0 works. Ten C functions are used and no struct layout, so that the version does not matter.
//!
//! The model is this project's own description of the robot, with the geometry and constants that Gymnasium
//! users know; trajectories equal recorded ones of Gymnasium's Hopper-v5.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use libloading::Library;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::hopper_task::{self, MOTORS, N, START_SPREAD};
use super::{Action, EnvError, EnvSpec, Environment, Step, check_state, continuous};

pub(super) const ID: &str = "Hopper-v5";

/// MuJoCo steps (2 ms each) per action.
const FRAME_SKIP: usize = 4;

/// Components of the state (`mjtState`): time, positions, velocities.
const STATE_TIME: c_int = 1;
const STATE_QPOS: c_int = 1 << 1;
const STATE_QVEL: c_int = 1 << 2;

/// A torso on a thigh, a leg and a foot: capsules of water's density on three hinges that turn about -y, each
/// with a motor of 200 N m, rotor inertia 1 kg m^2 and damping 1 N m s/rad.
const MODEL: &str = r#"
<mujoco model="hopper">
  <compiler angle="degree" inertiafromgeom="true"/>
  <option integrator="RK4" timestep="0.002"/>
  <default>
    <geom type="capsule" friction="0.9" condim="1" margin="0.001" solref="0.02 1" solimp="0.8 0.8 0.01"/>
    <joint type="hinge" axis="0 -1 0" armature="1" damping="1" limited="true"/>
    <motor gear="200" ctrllimited="true" ctrlrange="-1 1"/>
  </default>
  <worldbody>
    <geom name="ground" type="plane" size="20 20 0.125" condim="3" friction="1"/>
    <body name="torso" pos="0 0 1.25">
      <joint name="forward" type="slide" axis="1 0 0" pos="0 0 -1.25" armature="0" damping="0" limited="false"/>
      <joint name="up" type="slide" axis="0 0 1" pos="0 0 -1.25" ref="1.25" armature="0" damping="0" limited="false"/>
      <joint name="pitch" axis="0 1 0" armature="0" damping="0" limited="false"/>
      <geom name="torso" size="0.05" fromto="0 0 0.2 0 0 -0.2"/>
      <body name="thigh" pos="0 0 -0.2">
        <joint name="hip" range="-150 0"/>
        <geom name="thigh" size="0.05" fromto="0 0 0 0 0 -0.45"/>
        <body name="leg" pos="0 0 -0.45">
          <joint name="knee" range="-150 0"/>
          <geom name="leg" size="0.04" fromto="0 0 0 0 0 -0.5"/>
          <body name="foot" pos="0 0 -0.5">
            <joint name="ankle" range="-45 45"/>
            <geom name="foot" size="0.06" fromto="-0.13 0 0 0.26 0 0" friction="2"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip"/>
    <motor joint="knee"/>
    <motor joint="ankle"/>
  </actuator>
</mujoco>
"#;

/// An opaque MuJoCo object.
type Handle = *mut c_void;

/// The functions of libmujoco that are used. The signatures are those of `mujoco.h` in every version from
/// 3.2.7 to 4.0.0.
#[derive(Clone, Copy)]
struct Functions {
    parse: unsafe extern "C" fn(*const c_char, *const c_void, *mut c_char, c_int) -> Handle,
    compile: unsafe extern "C" fn(Handle, *const c_void) -> Handle,
    delete_spec: unsafe extern "C" fn(Handle),
    delete_model: unsafe extern "C" fn(Handle),
    make_data: unsafe extern "C" fn(Handle) -> Handle,
    delete_data: unsafe extern "C" fn(Handle),
    reset_data: unsafe extern "C" fn(Handle, Handle),
    forward: unsafe extern "C" fn(Handle, Handle),
    step: unsafe extern "C" fn(Handle, Handle),
    state_size: unsafe extern "C" fn(Handle, c_int) -> c_int,
    get_state: unsafe extern "C" fn(Handle, Handle, *mut f64, c_int),
    set_state: unsafe extern "C" fn(Handle, Handle, *const f64, c_int),
    version: unsafe extern "C" fn() -> *const c_char,
}

/// An opened libmujoco.
pub struct MujocoLibrary {
    functions: Functions,
    path: PathBuf,
    /// Keeps the functions valid.
    _library: Library,
}

impl MujocoLibrary {
    /// Opens libmujoco, once in a process. Looks at `MUJOCO_LIBRARY` (a file), then at what the dynamic loader
    /// finds as `libmujoco.so` or, in `LD_LIBRARY_PATH`, with a version behind it, then into the `mujoco` wheel
    /// of the `python3` on `PATH`.
    ///
    /// # Errors
    /// [`EnvError::Mujoco`] says what was looked for and how to get it.
    pub fn open() -> Result<Arc<Self>, EnvError> {
        static OPENED: OnceLock<Result<Arc<MujocoLibrary>, String>> = OnceLock::new();
        OPENED.get_or_init(|| Self::search().map(Arc::new)).clone().map_err(EnvError::Mujoco)
    }

    /// File, or name given to the loader.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Version that the library says it has, such as `3.3.7`.
    pub fn version(&self) -> String {
        // SAFETY: mj_versionString takes nothing and gives a pointer to a static, NUL-terminated string.
        unsafe { CStr::from_ptr((self.functions.version)()) }.to_string_lossy().into_owned()
    }

    fn search() -> Result<Self, String> {
        if let Some(file) = std::env::var_os("MUJOCO_LIBRARY") {
            let path = PathBuf::from(file);
            return Self::load(&path).map_err(|error| format!("MUJOCO_LIBRARY={}: {error}", path.display()));
        }
        let mut tried = Vec::new();
        let candidates = std::iter::once(PathBuf::from("libmujoco.so"))
            .chain(loader_path_files())
            .chain(python_wheel_files());
        for path in candidates {
            match Self::load(&path) {
                Ok(library) => return Ok(library),
                Err(error) => tried.push(format!("  {}: {error}", path.display())),
            }
        }
        Err(format!(
            "libmujoco was not found. Looked for libmujoco.so through the dynamic loader, libmujoco.so* in \
             LD_LIBRARY_PATH, and the mujoco wheel of the python3 on PATH:\n{}\nInstall it with `pip install \
             mujoco` (3.2.7 to 4.0.0), or set MUJOCO_LIBRARY to the file libmujoco.so.X.Y.Z.",
            tried.join("\n")
        ))
    }

    fn load(path: &Path) -> Result<Self, String> {
        Self::load_symbols(path).map_err(|error| match std::error::Error::source(&error) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        })
    }

    fn load_symbols(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: opening runs the library's initialisers. The user named this file, or it carries MuJoCo's
        // name in the loader's path or the wheel; MuJoCo's initialisers register plug-ins and touch nothing of
        // ours.
        let library = unsafe { Library::new(path) }?;
        // SAFETY: each type is the declaration of the symbol in mujoco.h (see `Functions`). The pointers are
        // copied out of their `Symbol`s and stay valid because `_library` lives as long as they do.
        let functions = unsafe {
            Functions {
                parse: *library.get(b"mj_parseXMLString\0")?,
                compile: *library.get(b"mj_compile\0")?,
                delete_spec: *library.get(b"mj_deleteSpec\0")?,
                delete_model: *library.get(b"mj_deleteModel\0")?,
                make_data: *library.get(b"mj_makeData\0")?,
                delete_data: *library.get(b"mj_deleteData\0")?,
                reset_data: *library.get(b"mj_resetData\0")?,
                forward: *library.get(b"mj_forward\0")?,
                step: *library.get(b"mj_step\0")?,
                state_size: *library.get(b"mj_stateSize\0")?,
                get_state: *library.get(b"mj_getState\0")?,
                set_state: *library.get(b"mj_setState\0")?,
                version: *library.get(b"mj_versionString\0")?,
            }
        };
        Ok(Self { functions, path: path.to_owned(), _library: library })
    }
}

/// Files named `libmujoco.so*` in the directories of `LD_LIBRARY_PATH`.
fn loader_path_files() -> Vec<PathBuf> {
    let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&paths).flat_map(|directory| library_files(&directory)).collect()
}

/// The library inside the `mujoco` wheel of the `python3` on `PATH`. Python is only asked where its packages
/// are; the wheel is not imported.
fn python_wheel_files() -> Vec<PathBuf> {
    const ASK: &str =
        "import importlib.util as u; s = u.find_spec('mujoco'); print(s.submodule_search_locations[0])";
    let output = Command::new("python3").args(["-c", ASK]).output();
    match output {
        Ok(output) if output.status.success() => {
            library_files(Path::new(String::from_utf8_lossy(&output.stdout).trim()))
        }
        _ => Vec::new(),
    }
}

fn library_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_mujoco = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libmujoco.so"))
    };
    entries.map(|entry| entry.path()).filter(is_mujoco).collect()
}

/// Hopper-v5. Observation, action and reward as [`super::PlanarHopper`]'s: z, pitch, three joint angles, six
/// velocities clipped to 10; three motors in [-1, 1]; forward velocity + 1 while healthy - 0.001 |action|^2.
pub struct MujocoHopper {
    spec: EnvSpec,
    functions: Functions,
    model: Handle,
    data: Handle,
    /// The component that holds the actuators' input. Its bit moved from 5 to 6 in MuJoCo 3.5.0.
    state_control: c_int,
    /// Time, positions, velocities and the solver's warm start: all that the next step depends on.
    state_all: c_int,
    positions_velocities: [f64; 2 * N],
    library: Arc<MujocoLibrary>,
}

// SAFETY: model and data are plain heap objects of which this value is the only owner; MuJoCo keeps nothing
// thread-local between calls, and its documentation allows any thread to work on its own mjData.
unsafe impl Send for MujocoHopper {}

impl MujocoHopper {
    /// Standing.
    ///
    /// # Errors
    /// If libmujoco cannot be opened, or refuses the model.
    pub fn new() -> Result<Self, EnvError> {
        let library = MujocoLibrary::open()?;
        let functions = library.functions;
        let model = compile_model(&functions).map_err(EnvError::Mujoco)?;
        // SAFETY: `model` is a compiled model that nothing has freed.
        let data = unsafe { (functions.make_data)(model) };
        let spec = hopper_task::spec(ID);
        // Made before the checks below, so that Drop frees model and data when they fail.
        let mut hopper = Self {
            spec,
            functions,
            model,
            data,
            state_control: 0,
            state_all: 0,
            positions_velocities: [0.0; 2 * N],
            library,
        };
        if data.is_null() {
            return Err(EnvError::Mujoco("mj_makeData failed".to_owned()));
        }
        hopper.find_components()?;
        Ok(hopper)
    }

    /// Finds the bits of the control and the warm start, by the size that each must have.
    fn find_components(&mut self) -> Result<(), EnvError> {
        let control = if self.state_size(1 << 5) == MOTORS { 1 << 5 } else { 1 << 6 };
        let warm_start = control >> 1;
        let sizes = [STATE_QPOS, STATE_QVEL, control, warm_start].map(|component| self.state_size(component));
        if sizes != [N, N, MOTORS, N] {
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

    /// Reads back where the robot is and writes the observation.
    fn observe(&mut self, observation: &mut [f32]) {
        let mut state = self.positions_velocities;
        self.get(STATE_QPOS | STATE_QVEL, &mut state);
        self.positions_velocities = state;
        let (q, v) = state.split_at(N);
        hopper_task::observe(q, v, observation);
    }
}

fn compile_model(functions: &Functions) -> Result<Handle, String> {
    let text = CString::new(MODEL).expect("the model has no NUL");
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
        return Err(format!("MuJoCo refused the hopper's model: {text}"));
    }
    Ok(model)
}

impl Drop for MujocoHopper {
    fn drop(&mut self) {
        // SAFETY: both were made by this library, belong to this value alone, and are not used after this.
        // MuJoCo's delete functions accept null.
        unsafe {
            (self.functions.delete_data)(self.data);
            (self.functions.delete_model)(self.model);
        }
    }
}

impl Environment for MujocoHopper {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        // SAFETY: model and data are valid and belong together.
        unsafe { (self.functions.reset_data)(self.model, self.data) };
        let mut state = [0.0; 2 * N];
        self.get(STATE_QPOS | STATE_QVEL, &mut state);
        state.iter_mut().for_each(|x| *x += rng.random_range(-START_SPREAD..START_SPREAD));
        self.set(STATE_QPOS | STATE_QVEL, &state);
        // SAFETY: as above.
        unsafe { (self.functions.forward)(self.model, self.data) };
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let control = hopper_task::control(continuous(action, MOTORS)?);
        self.set(self.state_control, &control);
        let x_before = self.positions_velocities[0];
        for _ in 0..FRAME_SKIP {
            // SAFETY: model and data are valid and belong together.
            unsafe { (self.functions.step)(self.model, self.data) };
        }
        self.observe(observation);
        let (q, v) = self.positions_velocities.split_at(N);
        Ok(hopper_task::outcome(x_before, q, v, &control))
    }

    fn save_state(&self) -> Vec<f64> {
        let mut state = vec![0.0; self.state_size(self.state_all)];
        self.get(self.state_all, &mut state);
        state
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        check_state(state, self.state_size(self.state_all))?;
        self.set(self.state_all, state);
        let mut observation = [0.0; 2 * N - 1];
        self.observe(&mut observation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::io::Write as _;

    /// The hopper, or nothing where the machine has no libmujoco; says so.
    fn hopper() -> Option<MujocoHopper> {
        match MujocoHopper::new() {
            Ok(hopper) => Some(hopper),
            Err(error) => {
                let thread = std::thread::current();
                let line = format!("SKIPPED {}: {error}", thread.name().unwrap_or("test"));
                assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
                // Past the capture of the test harness, so that it shows.
                let _ = writeln!(std::io::stderr(), "{line}");
                None
            }
        }
    }

    /// `fixtures/env/hopper_v5.csv`: `episode,actions[3],reward,terminated,qpos[6],qvel[6]`, recorded once from
    /// Gymnasium 1.4.0's Hopper-v5 on MuJoCo 4.0.0. Contacts were solved a little differently before 3.5.0, which
    /// shows in the same way with Gymnasium's own model file; there the tolerance is wider.
    #[test]
    fn follows_the_recorded_trajectories_of_gymnasium() {
        let Some(mut hopper) = hopper() else { return };
        let older = ["3.2.", "3.3.", "3.4."].iter().any(|v| hopper.library.version().starts_with(v));
        let tolerance = if older { 0.2 } else { 1e-6 };
        let fixture = include_str!("../../../fixtures/env/hopper_v5.csv");
        let mut observation = [0.0; 11];
        let mut ends = 0;
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let (reward, terminated, state) = (fields[4], fields[5] > 0.0, &fields[6..]);
            if reward < -999.0 {
                hopper.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut observation).unwrap();
                hopper.set(STATE_QPOS | STATE_QVEL, state);
                // SAFETY: model and data are valid and belong together.
                unsafe { (hopper.functions.forward)(hopper.model, hopper.data) };
                hopper.observe(&mut observation);
                continue;
            }
            let action: Vec<f32> = fields[1..4].iter().map(|a| *a as f32).collect();
            let step = hopper.step(Action::Continuous(&action), &mut observation).unwrap();
            assert!((step.reward - reward).abs() < tolerance, "{line}: {step:?}");
            assert_eq!(step.terminated, terminated, "{line}");
            for (got, want) in hopper.positions_velocities.iter().zip(state) {
                assert!(
                    (got - want).abs() < tolerance * want.abs().max(1.0),
                    "{line}: {:?}",
                    hopper.positions_velocities
                );
            }
            ends += usize::from(terminated);
            if older {
                // A difference must not grow over the episode.
                hopper.set(STATE_QPOS | STATE_QVEL, state);
                hopper.observe(&mut observation);
            }
        }
        assert!(ends >= 2, "{ends} ends");
    }

    #[test]
    fn a_saved_state_goes_on_bit_for_bit() {
        let (Some(mut a), Some(mut b)) = (hopper(), hopper()) else { return };
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let (mut observed_a, mut observed_b) = ([0.0; 11], [0.0; 11]);
        a.reset(&mut rng, &mut observed_a).unwrap();
        b.reset(&mut rng, &mut observed_b).unwrap();
        // Into contact with the ground, where the solver's warm start matters.
        for _ in 0..8 {
            a.step(Action::Continuous(&[0.3, -0.2, 0.5]), &mut observed_a).unwrap();
        }
        b.restore_state(&a.save_state()).unwrap();
        for _ in 0..10 {
            let action = Action::Continuous(&[-0.1, 0.4, 0.9]);
            assert_eq!(a.step(action, &mut observed_a).unwrap(), b.step(action, &mut observed_b).unwrap());
            assert_eq!(observed_a.map(f32::to_bits), observed_b.map(f32::to_bits));
        }
    }

    #[test]
    fn a_wrong_file_is_named() {
        let error = MujocoLibrary::load(Path::new("/nonexistent/libmujoco.so")).err().unwrap();
        assert!(error.contains("/nonexistent/libmujoco.so"), "{error}");
    }
}
