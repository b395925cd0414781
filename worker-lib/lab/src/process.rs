//! Commands that create a network or run inside it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::LabError;

/// Directories of system programs that Debian omits from the `PATH` of ordinary users.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Returns a command whose process is killed by the kernel when the calling thread ends, even if the calling thread is
/// killed. System programs such as `tc` are found even if the caller is an ordinary user.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.env("PATH", search_path()).args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Returns the directories of `PATH`, followed by the directories of system programs.
pub fn search_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = env::split_paths(&path).collect();
    for directory in SYSTEM_DIRECTORIES.map(PathBuf::from) {
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    // This fails only if a directory name contains the separator, which is impossible for an entry of `PATH`.
    env::join_paths(directories).unwrap_or(path)
}

/// Searches the directories of [`search_path`] for a program. Returns its path, if it is found.
pub fn find_program(name: &str) -> Option<PathBuf> {
    env::split_paths(&search_path()).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}

/// Runs a command to completion and returns its standard output.
///
/// # Errors
/// Fails if the command cannot be started or fails.
pub fn run(command: &mut Command) -> Result<String, LabError> {
    let output = command.output().map_err(LabError::system(text(command)))?;
    checked(command, &output)
}

/// Runs a command with `input` as its standard input, and waits until it succeeds.
///
/// # Errors
/// Fails if the command cannot be started or fails.
pub fn feed(command: &mut Command, input: &str) -> Result<(), LabError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(LabError::system(text(command)))?;
    // The write fails only if the program exits without reading all of its input. Its exit status is checked below.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(LabError::system(text(command)))?;
    checked(command, &output).map(drop)
}

fn checked(command: &Command, output: &Output) -> Result<String, LabError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let written = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let reason = format!("{}\n{}", output.status, written.concat().trim());
    Err(LabError::Command { command: text(command), reason: reason.trim().to_owned() })
}

/// Formats a command line for messages.
fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_system_directories_are_found() {
        let directories: Vec<_> = env::split_paths(&search_path()).collect();
        for directory in SYSTEM_DIRECTORIES.map(PathBuf::from) {
            assert_eq!(directories.iter().filter(|it| **it == directory).count(), 1, "{directories:?}");
        }
        assert!(find_program("sh").is_some() && find_program("no such program").is_none());
    }

    #[test]
    fn command_failures_include_the_error_output() {
        let error =
            run(command("sh").args(["-c", "echo early; echo late >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.starts_with("setpriv --pdeathsig KILL -- sh -c "), "{error}");
        assert!(error.ends_with("exit status: 3\nearly\nlate"), "{error}");
        assert_eq!(run(command("echo").arg("text")).unwrap(), "text\n");
        feed(command("grep").arg("-q").arg("needle"), "hay\nneedle\n").unwrap();
        feed(command("grep").arg("-q").arg("needle"), "hay\n").unwrap_err();
    }
}
