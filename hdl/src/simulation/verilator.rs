//! Compilation of Verilog and its C++ driver into a program, by Verilator.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::waivers::VERILATOR;

/// Reason why a compilation failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file or directory could not be written.
    #[error("cannot write to {0:?}: {1}")]
    Write(PathBuf, #[source] io::Error),
    /// Verilator could not be started.
    #[error("cannot start verilator: {0}; install it (Debian: apt-get install verilator g++ make)")]
    Start(#[source] io::Error),
    /// Verilator or the C++ compiler reported an error.
    #[error("verilator failed:\n{0}")]
    Refused(String),
}

/// A Verilog module and the C++ program that drives it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Name of the module. Verilator's C++ class for it has this name with the prefix V.
    pub top: &'a str,
    /// Verilog of the module and of all its submodules.
    pub verilog: &'a str,
    /// C++ source of the driver.
    pub driver: &'a str,
}

/// Compiles `source`, using `directory` for the build files, and returns the path of the executable. If `directory`
/// already contains the executable of the same source, does not compile it again. Processes that use the same
/// directory wait for each other.
pub fn compile(source: Source<'_>, directory: &Path) -> Result<PathBuf, BuildError> {
    let Source { top, verilog, driver } = source;
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| BuildError::Write(path.to_owned(), error))
    };
    fs::create_dir_all(directory).map_err(|error| BuildError::Write(directory.to_owned(), error))?;
    let _lock = lock(&directory.join("lock"))?;
    let (names, program) = ([format!("{top}.v"), "driver.cpp".to_owned()], directory.join("build/driver"));
    let mut command = Command::new("verilator");
    command
        .current_dir(directory)
        .args(["--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--noassert"])
        .args(["-Wno-fatal", "-CFLAGS", "-std=c++17", "--top-module", top])
        // Without splitting and with -O2, the C++ compilation would take minutes.
        .args(["--output-split", "5000", "--output-split-cfuncs", "500", "--build-jobs", "0"])
        .args(["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0", "--Mdir", "build", "-o", "driver"])
        .args(VERILATOR.iter().map(|waiver| format!("-Wno-{}", waiver.code)))
        .args(&names);
    // Everything that determines the program, whatever the path of the directory. It is written last: without it, a
    // build was interrupted.
    let arguments: Vec<_> = command.get_args().collect();
    let recipe = format!("{}{arguments:?}\n{verilog}\n{driver}", version()?);
    let made_from = directory.join("recipe");
    if program.exists() && fs::read_to_string(&made_from).is_ok_and(|it| it == recipe) {
        return Ok(program);
    }
    write(&made_from, "")?;
    for (name, text) in names.iter().zip([verilog, driver]) {
        write(&directory.join(name), text)?;
    }
    let output = command.output().map_err(BuildError::Start)?;
    if !output.status.success() {
        return Err(BuildError::Refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    write(&made_from, &recipe)?;
    Ok(program)
}

/// Returns the version of Verilator as it prints it.
fn version() -> Result<String, BuildError> {
    let output = Command::new("verilator").arg("--version").output().map_err(BuildError::Start)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until no other process holds the lock, and holds it until the returned file is dropped.
fn lock(path: &Path) -> Result<File, BuildError> {
    let taken = File::create(path).and_then(|file| file.lock().map(|()| file));
    taken.map_err(|error| BuildError::Write(path.to_owned(), error))
}
