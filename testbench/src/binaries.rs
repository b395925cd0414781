//! The programs of the workspace that tests run, built once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names and paths of programs.
type Paths = HashMap<String, PathBuf>;

/// The daemon.
///
/// # Panics
/// If it cannot be built.
pub fn iswitchd() -> &'static Path {
    daemon("iswitchd")
}

/// The daemon's control program.
///
/// # Panics
/// If it cannot be built.
pub fn iswitchctl() -> &'static Path {
    daemon("iswitchctl")
}

/// The command that trains.
///
/// # Panics
/// If it cannot be built.
pub fn iswitch() -> &'static Path {
    static BUILT: OnceLock<Paths> = OnceLock::new();
    path(BUILT.get_or_init(|| build(&["iswitch-worker"])), "iswitch")
}

/// The checker of sums.
///
/// # Panics
/// If it cannot be built.
pub fn all_reduce() -> &'static Path {
    daemon("all_reduce")
}

fn daemon(name: &str) -> &'static Path {
    static BUILT: OnceLock<Paths> = OnceLock::new();
    path(BUILT.get_or_init(|| build(&["iswitch-daemon", "iswitch-testbench"])), name)
}

fn path<'a>(paths: &'a Paths, name: &str) -> &'a Path {
    paths.get(name).unwrap_or_else(|| panic!("the workspace has no program {name}"))
}

/// Builds packages with optimisation, whatever the profile of the tests, and finds their programs.
fn build(packages: &[&str]) -> Paths {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--release", "--bins", "--message-format=json-render-diagnostics"]);
    command.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
    packages.iter().for_each(|package| {
        command.args(["-p", package]);
    });
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().filter_map(executable).collect()
}

/// Name and path from one of cargo's messages, if that is what it tells.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let name = message["target"]["name"].as_str()?;
    Some((name.to_owned(), message["executable"].as_str()?.into()))
}
