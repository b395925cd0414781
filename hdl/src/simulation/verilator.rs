//! Compilation of Verilog and its C++ driver into a program, by Verilator.

use std::fs;
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

/// Compiles `source`, using `directory` for the build files, and returns the path of the executable.
pub fn compile(source: Source<'_>, directory: &Path) -> Result<PathBuf, BuildError> {
    let Source { top, verilog, driver } = source;
    let files = [(format!("{top}.v"), verilog), ("driver.cpp".to_owned(), driver)];
    fs::create_dir_all(directory).map_err(|error| BuildError::Write(directory.to_owned(), error))?;
    for (name, text) in &files {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| BuildError::Write(path, error))?;
    }
    let output = Command::new("verilator")
        .current_dir(directory)
        .args(["--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--noassert"])
        .args(["-Wno-fatal", "-CFLAGS", "-std=c++17", "--top-module", top])
        // Without splitting and with -O2, the C++ compilation would take minutes.
        .args(["--output-split", "5000", "--output-split-cfuncs", "500", "--build-jobs", "0"])
        .args(["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0", "--Mdir", "build", "-o", "driver"])
        .args(VERILATOR.iter().map(|waiver| format!("-Wno-{}", waiver.code)))
        .args(files.map(|(name, _)| name))
        .output()
        .map_err(BuildError::Start)?;
    if output.status.success() {
        Ok(directory.join("build/driver"))
    } else {
        Err(BuildError::Refused(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}
