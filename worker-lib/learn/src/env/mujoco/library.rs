//! libmujoco, opened at run time: it is not needed for building, and every version from 3.2.7 to 4.0.0 works. The
//! code uses thirteen C functions and no struct layouts, which makes it independent of the version.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use libloading::Library;

use crate::env::{EnvError, python};

/// An opaque MuJoCo object.
pub(super) type Handle = *mut c_void;

/// The functions of libmujoco that this crate calls. Their signatures are the same in `mujoco.h` of every version from
/// 3.2.7 to 4.0.0.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) parse: unsafe extern "C" fn(*const c_char, *const c_void, *mut c_char, c_int) -> Handle,
    pub(super) compile: unsafe extern "C" fn(Handle, *const c_void) -> Handle,
    pub(super) delete_spec: unsafe extern "C" fn(Handle),
    pub(super) delete_model: unsafe extern "C" fn(Handle),
    pub(super) make_data: unsafe extern "C" fn(Handle) -> Handle,
    pub(super) delete_data: unsafe extern "C" fn(Handle),
    pub(super) reset_data: unsafe extern "C" fn(Handle, Handle),
    pub(super) forward: unsafe extern "C" fn(Handle, Handle),
    pub(super) step: unsafe extern "C" fn(Handle, Handle),
    pub(super) state_size: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) get_state: unsafe extern "C" fn(Handle, Handle, *mut f64, c_int),
    pub(super) set_state: unsafe extern "C" fn(Handle, Handle, *const f64, c_int),
    pub(super) version: unsafe extern "C" fn() -> *const c_char,
}

/// The loaded libmujoco library and its functions.
pub struct MujocoLibrary {
    pub(super) functions: Functions,
    path: PathBuf,
    /// The library handle. The functions are valid only while it exists.
    _library: Library,
}

impl MujocoLibrary {
    /// Loads libmujoco, once per process. Tries, in this order: the file that `MUJOCO_LIBRARY` names; `libmujoco.so`
    /// through the dynamic loader; the files `libmujoco.so*` in `LD_LIBRARY_PATH`; and the `mujoco` wheel of the Python
    /// interpreter that `ISWITCH_PYTHON` names, or of the `python3` on `PATH`.
    ///
    /// # Errors
    /// [`EnvError::Mujoco`] lists the locations that were searched and explains how to install libmujoco.
    pub fn open() -> Result<Arc<Self>, EnvError> {
        static OPENED: OnceLock<Result<Arc<MujocoLibrary>, String>> = OnceLock::new();
        OPENED.get_or_init(|| Self::search().map(Arc::new)).clone().map_err(EnvError::Mujoco)
    }

    /// Returns the path of the loaded file, or the name that was passed to the dynamic loader.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version that the library reports, such as `3.3.7`.
    pub fn version(&self) -> String {
        // SAFETY: mj_versionString takes no arguments and returns a pointer to a static, NUL-terminated string.
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
            "libmujoco was not found. The search covered libmujoco.so through the dynamic loader, libmujoco.so* in \
             LD_LIBRARY_PATH, and the mujoco wheel of {} (set {} to use another Python):\n{}\nInstall it with `pip \
             install mujoco` (3.2.7 to 4.0.0), or set MUJOCO_LIBRARY to the file libmujoco.so.X.Y.Z.",
            python::program().display(),
            python::VARIABLE,
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
        // SAFETY: opening runs the library's initialisers. The user named this file, or it has MuJoCo's name and is in
        // the loader's path or in the wheel; MuJoCo's initialisers only register plug-ins and do not access anything
        // that belongs to this program.
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

/// Returns the files named `libmujoco.so*` in the directories of `LD_LIBRARY_PATH`.
fn loader_path_files() -> Vec<PathBuf> {
    let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&paths).flat_map(|directory| library_files(&directory)).collect()
}

/// Returns the library files in the `mujoco` wheel of the Python interpreter. Python only locates the package and does
/// not import it.
fn python_wheel_files() -> Vec<PathBuf> {
    const ASK: &str =
        "import importlib.util as u; s = u.find_spec('mujoco'); print(s.submodule_search_locations[0])";
    let output = Command::new(python::program()).args(["-c", ASK]).output();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_missing_mujoco_library() {
        let error = MujocoLibrary::load(Path::new("/nonexistent/libmujoco.so")).err().unwrap();
        assert!(error.contains("/nonexistent/libmujoco.so"), "{error}");
    }
}
