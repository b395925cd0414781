//! Programs that implement subcommands. For example, `iswitch-coflow` implements `iswitch coflow`.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

/// Returns the path of `program`, which is searched for first in this program's directory and then in `PATH`.
///
/// # Errors
/// Fails if the program is in neither.
pub fn find(program: &str) -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("cannot determine the path of this program")?;
    let beside = own.with_file_name(program);
    if beside.is_file() {
        return Ok(beside);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(found) =
        env::split_paths(&path).map(|directory| directory.join(program)).find(|it| it.is_file())
    {
        return Ok(found);
    }
    let directory = own.parent().unwrap_or(Path::new("/")).display();
    bail!(
        "the program {program} is neither in {directory} nor in PATH; build it with `cargo build --release` in the \
         iSwitch source tree"
    )
}

/// Replaces this process with `program`.
///
/// # Errors
/// Fails if the program is neither in this program's directory nor in `PATH`, or if it cannot be started.
pub fn replace(program: &str, arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let path = find(program)?;
    // exec() returns only if it fails.
    let error = Command::new(&path).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", path.display()))
}
