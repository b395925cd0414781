//! Programs of the workspace that tests and benchmarks run, built once per test process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Environment variable with the paths of the workspace's programs. A test that is run again inside namespaces uses
/// it instead of invoking cargo.
const PROGRAMS_VARIABLE: &str = "ISWITCH_TEST_PROGRAMS";

/// Paths of programs, by name.
pub type Paths = HashMap<String, PathBuf>;

/// Returns the path of the daemon.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn iswitchd() -> &'static Path {
    path("iswitchd")
}

/// Returns the path of the daemon's control program.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn iswitchctl() -> &'static Path {
    path("iswitchctl")
}

/// Returns the path of the training command.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn iswitch() -> &'static Path {
    path("iswitch")
}

/// Returns the path of the worker program that checks every sum that it receives.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn all_reduce() -> &'static Path {
    path("all_reduce")
}

/// Returns the path of the program that `testbench peers` runs as a worker.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn reduce_times() -> &'static Path {
    path("reduce_times")
}

/// Returns the path of the program that runs the workers and the server for the asynchronous part of `testbench study`.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn async_times() -> &'static Path {
    path("async_times")
}

/// Returns the path of the program with the model server, cache and client.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn iswitch_models() -> &'static Path {
    path("iswitch-models")
}

/// Returns the path of the replay shard.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn replayd() -> &'static Path {
    path("replayd")
}

/// Returns the path of the program whose actors read a model.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn model_readers() -> &'static Path {
    path("model_readers")
}

/// Returns the path of the program whose actors write to replay shards.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn replay_writers() -> &'static Path {
    path("replay_writers")
}

/// Returns the path of the testbench, which contains the simulations and benchmarks.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn testbench() -> &'static Path {
    path("testbench")
}

/// Returns the path of the program that runs the asynchronous pipeline on a toy problem.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn async_pipeline() -> &'static Path {
    path("async_pipeline")
}

/// Returns the path of the program that puts load on the switch core alone. The program is always optimised, regardless
/// of the caller's profile, because its instructions are counted.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn core_load() -> PathBuf {
    let mut command = cargo("build");
    command.args(["--release", "-p", "iswitch-simulation", "--bin", "core_load"]);
    built(command).remove("core_load").expect("the simulation must have the program core_load")
}

/// Returns the path of the worker library for C, `libiswitch.so`.
///
/// # Panics
/// Panics if the library cannot be built.
pub fn c_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut command = cargo("build");
        command.args(["-p", "iswitch-c", "--profile", &profile()]);
        let output = output(command);
        let library = |message: &str| {
            let message: serde_json::Value = serde_json::from_str(message).ok()?;
            let mut names = message["filenames"].as_array()?.iter().filter_map(|name| name.as_str());
            names.find(|name| name.ends_with("/libiswitch.so")).map(PathBuf::from)
        };
        output.lines().find_map(library).expect("cargo must report the path of libiswitch.so")
    })
}

/// Returns the path of a program of the workspace.
///
/// # Panics
/// Panics if the program cannot be built or no program has that name.
pub fn path(name: &str) -> &'static Path {
    all().get(name).unwrap_or_else(|| panic!("the workspace must have a program {name}"))
}

/// Returns the paths of all programs of the workspace.
///
/// # Panics
/// Panics if the programs cannot be built.
pub fn all() -> &'static Paths {
    static BUILT: OnceLock<Paths> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var(PROGRAMS_VARIABLE) {
        Ok(paths) => {
            serde_json::from_str(&paths).expect("the variable must hold JSON, as the parent process wrote it")
        }
        Err(_) => build(),
    })
}

/// Returns the name and the value of an environment variable with which another test program uses the given programs
/// instead of invoking cargo.
///
/// # Panics
/// Panics if a path is not UTF-8.
pub fn variable(programs: &Paths) -> (&'static str, String) {
    (PROGRAMS_VARIABLE, serde_json::to_string(programs).expect("names and paths must be UTF-8"))
}

/// Returns the path of the test program of a target, such as `iswitch_socket` of the kind `lib`, as
/// `cargo test --workspace` builds it.
///
/// # Panics
/// Panics if the program cannot be built.
pub fn tests_of(target: &str, kind: &str) -> PathBuf {
    let mut command = cargo("test");
    command.args(["--workspace", "--no-run", "--profile", &profile()]);
    let output = output(command);
    let is_it = |message: &&str| {
        let message: serde_json::Value = serde_json::from_str(message).unwrap_or_default();
        message["profile"]["test"] == true
            && message["target"]["name"] == target
            && message["target"]["kind"][0] == kind
    };
    let found = output.lines().find(is_it).and_then(executable);
    found.unwrap_or_else(|| panic!("the workspace must have a {kind} {target} with tests")).1
}

/// Builds the programs with the caller's profile, so that dependencies are compiled once: tests run programs built
/// with the test profile, and a benchmark built with `--release` measures release builds.
///
/// All programs are built in one invocation.
fn build() -> Paths {
    let mut command = cargo("build");
    // Including a test target makes cargo unify features as for `cargo test --workspace`, which has already built
    // everything.
    command.args(["--workspace", "--bins", "--test", "key_file", "--profile", &profile()]);
    built(command)
}

fn cargo(subcommand: &str) -> Command {
    // rustup's proxy is preferred if present: with a toolchain's own cargo, the directories of dependencies would
    // select their own toolchains.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Cargo describes the package of a test program in environment variables. If the build below inherited them, cargo
    // would rerun build scripts that depend on them, such as ring's, and would recompile all dependents.
    let is_about_package = |name: &OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"CARGO_MANIFEST_") || name.starts_with(b"CARGO_PKG_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_about_package(name)) {
        command.env_remove(name);
    }
    command.args([subcommand, "--message-format=json-render-diagnostics"]);
    command.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    command
}

/// Runs a cargo command, and returns the programs that it has built.
fn built(command: Command) -> Paths {
    output(command).lines().filter_map(executable).collect()
}

/// Runs a cargo command, and returns its output.
fn output(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the profile of the current program, which cargo uses as a directory name.
fn profile() -> String {
    let program = std::env::current_exe().expect("the path of the current program must be known");
    let mut directories = program.ancestors().skip(1).filter_map(Path::file_name);
    let directory =
        directories.find(|name| *name != "deps").expect("the program must be in cargo's build directory");
    match directory.to_str().expect("the name of the profile must be UTF-8") {
        "debug" => "dev".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the name and path of a program from a cargo message, or `None` for any other message.
pub fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let name = message["target"]["name"].as_str()?;
    Some((name.to_owned(), message["executable"].as_str()?.into()))
}
