//! Paths of programs, and environment variables of the processes in the emulated network.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use iswitch_lab::network::{SWITCH_ADDRESS, worker_address};
use iswitch_lab::process::{find_program, search_path};
use iswitch_protocol::limits::DEFAULT_PORT;

/// Environment variables that other launchers set. They are removed, because they would contradict the rank that the
/// lab assigns.
pub(crate) const OTHER_LAUNCHERS: [&str; 5] =
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "JOB_COMPLETION_INDEX"];
/// Directory of the control socket, passed as `XDG_RUNTIME_DIR`. The switch daemon creates its socket in this
/// directory, and iswitchctl looks for it there.
pub(crate) const RUNTIME_DIRECTORY: &str = "/run/iswitch-lab";
/// Port of the torch store on worker 0. It equals torchrun's default.
const MASTER_PORT: u16 = 29500;

/// Returns the directory of this program, which also contains the project's other programs.
fn own_directory() -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("cannot determine the path of this program")?;
    Ok(own.parent().unwrap_or(Path::new("/")).to_owned())
}

/// Returns the path of the switch daemon, which is in the directory of this program or in `PATH`.
pub(crate) fn iswitchd() -> anyhow::Result<PathBuf> {
    let directory = own_directory()?;
    let beside = directory.join("iswitchd");
    if beside.is_file() {
        return Ok(beside);
    }
    find_program("iswitchd").with_context(|| {
        format!(
            "the program iswitchd is neither in {} nor in PATH; build it with `cargo build --release` in the iSwitch \
             source tree",
            directory.display()
        )
    })
}

/// Returns the `PATH` of the workers' commands. It consists of the directories of the user's `PATH`, those of system
/// programs, and that of this program.
fn path() -> anyhow::Result<OsString> {
    let path = search_path();
    let directories = env::split_paths(&path).chain([own_directory()?]);
    env::join_paths(directories).context("cannot set the PATH of the commands")
}

/// Checks that a command exists.
pub(crate) fn check_command(command: &OsStr) -> anyhow::Result<()> {
    let name = Path::new(command);
    let exists = if name.components().count() > 1 {
        name.exists()
    } else {
        env::split_paths(&path()?).any(|directory| directory.join(name).is_file())
    };
    if !exists {
        bail!("the command {} does not exist", name.display());
    }
    Ok(())
}

/// Returns the environment variables for the command of a worker.
pub(crate) fn variables(rank: u16, workers: u16) -> anyhow::Result<Vec<(&'static str, OsString)>> {
    let number = |value: u16| OsString::from(value.to_string());
    Ok(vec![
        ("PATH", path()?),
        ("ISWITCH_SWITCH", format!("{SWITCH_ADDRESS}:{DEFAULT_PORT}").into()),
        ("RANK", number(rank)),
        ("WORLD_SIZE", number(workers)),
        ("LOCAL_RANK", number(0)),
        ("LOCAL_WORLD_SIZE", number(1)),
        ("MASTER_ADDR", worker_address(0).to_string().into()),
        ("MASTER_PORT", number(MASTER_PORT)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_looked_up_as_by_a_shell() {
        check_command(OsStr::new("sh")).unwrap();
        check_command(OsStr::new("/bin/sh")).unwrap();
        let error = check_command(OsStr::new("no-such-program")).unwrap_err().to_string();
        assert_eq!(error, "the command no-such-program does not exist");
        check_command(OsStr::new("./no-such-program")).unwrap_err();
    }

    #[test]
    fn a_worker_is_given_its_rank_and_the_switch() {
        let variables = variables(2, 4).unwrap();
        let value = |name| variables.iter().find(|(key, _)| *key == name).unwrap().1.to_str().unwrap();
        assert_eq!((value("RANK"), value("WORLD_SIZE"), value("LOCAL_RANK")), ("2", "4", "0"));
        assert_eq!((value("ISWITCH_SWITCH"), value("MASTER_ADDR")), ("10.9.0.254:7711", "10.9.0.1"));
    }
}
