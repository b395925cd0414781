//! Subcommands that are implemented by separate programs. For example, `iswitch-coflow` implements `iswitch coflow`.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;

/// Arguments that are forwarded to the subcommand's program, which parses them.
#[derive(Args)]
pub(crate) struct Forwarded {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl Forwarded {
    /// Replaces this process with `program`. The arguments of the program are `first`, followed by those of the user.
    ///
    /// # Errors
    /// See [`replace`].
    pub(crate) fn run(&self, program: &str, first: &[&str]) -> anyhow::Result<ExitCode> {
        let first = first.iter().map(OsString::from);
        replace(program, first.chain(self.arguments.iter().cloned()))
    }
}

/// Replaces this process with `program`.
///
/// # Errors
/// Fails if the program is neither in this program's directory nor in `PATH`, or if it cannot be started.
pub(crate) fn replace(program: &str, arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let own = env::current_exe().context("finding the directory of this program")?;
    let beside = own.with_file_name(program);
    let path = if beside.is_file() { beside } else { PathBuf::from(program) };
    // exec() returns only if it fails.
    let error = Command::new(&path).args(arguments).exec();
    if error.kind() == ErrorKind::NotFound {
        let directory = own.parent().unwrap_or(Path::new("/")).display();
        bail!(
            "the program {program} is neither in {directory} nor in PATH; build it with `cargo build --release` \
             in the iSwitch source tree"
        );
    }
    Err(error).with_context(|| format!("starting {}", path.display()))
}
