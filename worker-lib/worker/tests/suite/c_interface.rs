//! Tests of the C interface: the header is the one that cbindgen generates, and the examples compile, link and run.

#![cfg(feature = "capi")]

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_c_header_is_up_to_date() {
    let config = cbindgen::Config::from_file(manifest_dir().join("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(manifest_dir().join("src/capi.rs"))
        .with_src(manifest_dir().join("src/capi/asynchronous.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = manifest_dir().join("include/iswitch.h");
    if std::env::var_os("ISWITCH_BLESS").is_some() {
        return std::fs::write(path, header).unwrap();
    }
    let present = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        present == header,
        "include/iswitch.h is out of date; regenerate it with ISWITCH_BLESS=1 cargo test"
    );
}

/// Returns the directory of the shared library: either the directory of the test binary or its parent.
fn library_dir() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let candidates = [deps.clone(), deps.parent().unwrap().to_owned()];
    let found = candidates.into_iter().find(|dir| dir.join("libiswitch.so").exists());
    found.expect("cargo builds the cdylib together with the tests")
}

/// Returns whether a program is installed. If it is not, prints a line to standard error that names the skipped test.
///
/// # Panics
/// Panics if the program is missing and `ISWITCH_REQUIRE_ALL_TESTS` is set.
fn has(program: &str, skipped: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok() {
        return true;
    }
    let line = format!("SKIPPED {skipped}: {program} is not installed\n");
    assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
    // Written directly, because the test harness captures the output of the print macros.
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    false
}

/// Returns a command that runs a program under Memcheck, which finds invalid memory accesses of the program and of the
/// library. If valgrind is not installed, the command runs the program directly.
fn checked(program: &Path) -> Command {
    if !has("valgrind", "Memcheck of the C interface") {
        return Command::new(program);
    }
    let mut command = Command::new("valgrind");
    command.args(["-q", "--error-exitcode=99"]).arg(program);
    command
}

/// Returns the compiler command that is stated in the introductory comment of an example.
fn compiler_line(source: &Path) -> String {
    let text = std::fs::read_to_string(source).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(" *   "));
    lines.find(|line| line.starts_with("cc ")).expect("the example must state how to compile it").to_owned()
}

/// Compiles an example with the command in its introductory comment and runs it as two workers. Returns the output of
/// each worker, or an empty vector if no C compiler is installed.
fn run_example(name: &str) -> Vec<String> {
    if !has("cc", &format!("the C example {name}")) {
        return Vec::new();
    }
    // A directory with the layout of the repository after a release build.
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("target")).unwrap();
    symlink(library_dir(), root.path().join("target/release")).unwrap();
    symlink(manifest_dir().parent().unwrap(), root.path().join("worker-lib")).unwrap();
    let line = compiler_line(&manifest_dir().join("examples/c").join(name).with_extension("c"));
    let strict = "-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror";
    let compile = Command::new("sh").args(["-c", &format!("{line} {strict}")]).current_dir(&root).status();
    assert!(compile.unwrap().success(), "{line} should compile the example without warnings");

    let any_port = "127.0.0.1:0".parse().unwrap();
    let switch = EmbeddedSwitch::start(any_port, &EmbeddedOptions::default()).unwrap();
    let start = |rank: u32| {
        let mut command = checked(&root.path().join(name));
        command.args([switch.address().to_string(), "2".into(), rank.to_string()]);
        // The path of the library that the compiler recorded must suffice.
        command.env_remove("LD_LIBRARY_PATH").current_dir(&root).stdout(Stdio::piped()).spawn().unwrap()
    };
    let workers: Vec<_> = (0..2).map(start).collect();
    let printed = workers.into_iter().map(|worker| {
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    });
    printed.collect()
}

#[test]
fn the_c_example_runs() {
    for text in run_example("all_reduce") {
        assert_eq!(text.lines().count(), 10);
        assert!(text.lines().all(|line| line.ends_with("sum of 2 gradients")), "{text}");
    }
}

#[test]
fn the_asynchronous_c_example_runs() {
    for text in run_example("asynchronous") {
        assert_eq!(text, "50 sums of 100 gradients\n");
    }
}
