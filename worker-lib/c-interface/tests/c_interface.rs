//! Tests of the C interface: the header is the one that cbindgen generates, and the examples compile, link and run.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use iswitch_harness::binaries::c_library;
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
        .with_src(manifest_dir().join("src/lib.rs"))
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

/// Returns the two commands with which the introductory comment of an example builds it: the one that creates the
/// symbolic link with the library's SONAME, and the one that compiles the example.
fn build_lines(source: &Path) -> [String; 2] {
    let text = std::fs::read_to_string(source).unwrap();
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(" *   ")).collect();
    ["ln ", "cc worker-lib/"].map(|start| {
        let found = lines.iter().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{} must contain a command {start:?}", source.display())).to_string()
    })
}

/// Compiles an example with the command in its introductory comment and runs it as two workers. Returns the output of
/// each worker, or an empty vector if no C compiler is installed.
fn run_example(name: &str) -> Vec<String> {
    if !has("cc", &format!("the C example {name}")) {
        return Vec::new();
    }
    // A directory with the layout of the repository after a release build.
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("target/release")).unwrap();
    symlink(c_library(), root.path().join("target/release/libiswitch.so")).unwrap();
    symlink(manifest_dir().parent().unwrap(), root.path().join("worker-lib")).unwrap();
    let [link, compile] = build_lines(&manifest_dir().join("examples").join(name).with_extension("c"));
    let strict = "-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror";
    for line in [link, format!("{compile} {strict}")] {
        let status = Command::new("sh").args(["-c", &line]).current_dir(&root).status().unwrap();
        assert!(status.success(), "{line} should succeed without warnings");
    }

    let any_port = "127.0.0.1:0".parse().unwrap();
    let switch = EmbeddedSwitch::start(any_port, &EmbeddedOptions::default()).unwrap();
    let start = |rank: u32| {
        let mut command = checked(&root.path().join(name));
        command.args([switch.address().to_string(), "2".into(), rank.to_string()]);
        // The path that the linker recorded in the program must suffice to find the library.
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

/// Program that prints the version of the library that it has loaded.
const VERSION_PROGRAM: &str = "#include <stdio.h>\n#include \"iswitch.h\"\n\
                               int main(void) { puts(iswitch_version()); return 0; }\n";

#[test]
fn the_library_states_its_version_and_has_a_soname() {
    if !has("cc", "the version of the library") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("version.c"), VERSION_PROGRAM).unwrap();
    let library = c_library();
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let soname =
        if major == "0" { format!("libiswitch.so.0.{minor}") } else { format!("libiswitch.so.{major}") };
    // Only a file with the name of the SONAME can satisfy the loader.
    symlink(library, directory.path().join(&soname)).unwrap();
    let compile = Command::new("cc")
        .args(["version.c", "-o", "version", "-Wl,-rpath,$ORIGIN", "-I"])
        .arg(manifest_dir().join("include"))
        .arg(library)
        .current_dir(&directory)
        .status();
    assert!(compile.unwrap().success());
    let run =
        || Command::new(directory.path().join("version")).env_remove("LD_LIBRARY_PATH").output().unwrap();
    let output = run();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), env!("CARGO_PKG_VERSION"), "{output:?}");
    std::fs::remove_file(directory.path().join(&soname)).unwrap();
    let missing = run();
    assert!(!missing.status.success(), "the program should look for {soname}");
    assert!(String::from_utf8_lossy(&missing.stderr).contains(&soname), "{missing:?}");
}
