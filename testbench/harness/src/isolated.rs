//! Support for ordinary users who run tests and programs that need networks. Each such test or program is run again in
//! its own namespaces, where it may create networks.
//!
//! A process with several threads, such as a test program, cannot enter a user namespace. A test that needs networks
//! therefore starts its test program again inside a user namespace to run only this test, and passes or fails with it.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Output, Stdio};

use iswitch_lab::isolation;
use tempfile::TempDir;

use crate::{binaries, scratch};

/// First process in the namespaces: it reaps orphans and exits with the program's status.
const INIT: [&str; 3] = ["-c", r#""$@"; exit $?"#, "sh"];
const SHOWS_OUTPUT: [&str; 2] = ["--nocapture", "--no-capture"];

/// Runs the calling test inside the namespaces. If the caller is not a test, runs the calling program there and ends
/// this process.
///
/// # Panics
/// Panics if the test fails.
pub(crate) fn run_again() {
    let thread = std::thread::current();
    // The standard test harness names the thread of each test after the test.
    match thread.name().filter(|name| *name != "main") {
        Some(test) => run_test(test),
        None => run_program(),
    }
}

fn program() -> Command {
    let mut command = isolation::command_inside("sh");
    command.args(INIT).arg(env::current_exe().expect("the path of the current program must be known"));
    command
}

fn run_program() -> ! {
    let mut command = program();
    let status = command.args(env::args_os().skip(1)).status().expect("unshare must run");
    std::process::exit(status.code().unwrap_or(1));
}

fn run_test(test: &str) {
    // Process ids inside differ from those outside, so the files of inner processes need a separate directory.
    let directory = scratch::directory();
    let mut command = program();
    command.args(["--exact", test, "--include-ignored", "--test-threads=1"]);
    let (variable, programs) = binaries::variable(binaries::all());
    command.env("TMPDIR", directory.path()).env(variable, programs);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let shows_output = env::args_os().find(|argument| SHOWS_OUTPUT.map(OsString::from).contains(argument));
    if let Some(option) = shows_output {
        command.arg(option);
    }
    let output = command.output().expect("unshare must run");
    check(test, &output, directory);
}

fn check(test: &str, output: &Output, directory: TempDir) {
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.contains("test result: ok. 1 passed; 0 failed") {
        return;
    }
    // Later test processes do not delete a directory with this prefix.
    let directory = directory.keep();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let kept = env::temp_dir().join(format!("iswitch-failed-{name}"));
    let kept = if std::fs::rename(&directory, &kept).is_ok() { kept } else { directory };
    panic!("{test} failed in its own namespaces: {}\n{text}\nfiles: {}", output.status, kept.display());
}
