//! Verilog and a driver in C++ made into a program by Verilator.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::waivers::VERILATOR;

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file could not be written.
    #[error("writing to {0:?}: {1}")]
    Write(PathBuf, #[source] io::Error),
    /// There is no Verilator.
    #[error("starting verilator: {0}; install it (Debian: apt-get install verilator g++ make)")]
    Start(#[source] io::Error),
    /// It or the C++ compiler refused.
    #[error("verilator failed:\n{0}")]
    Refused(String),
}

/// A module in Verilog, and what drives it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Name of the module; that of its class in C++ is the same with a V before it.
    pub top: &'a str,
    /// Its Verilog, with that of all modules in it.
    pub verilog: &'a str,
    /// A program in C++.
    pub driver: &'a str,
}

/// Compiles them in that directory, and returns the program's path.
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
        // In one piece and with -O2 the compiler needs minutes.
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
