//! Effect of the sandbox on a process. Each case runs in a separate process, which executes this test binary again.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use iswitch_sandbox::{FileRules, InForce, ServerSandbox, file_calls, server_calls};

/// Environment variable that makes a process enter the sandbox; its value is the path of the test directory.
const DIRECTORY: &str = "ISWITCH_TEST_DIRECTORY";
/// Exit status of a process that its sandbox terminated, by the convention of shells.
const STATUS: i32 = 128 + libc::SIGSYS;

/// Runs a test in a separate process, and returns the output of that process. In the separate process itself, returns
/// `None`.
fn in_sandbox(test: &str, directory: &Path) -> Option<Output> {
    if std::env::var_os(DIRECTORY).is_some() {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    // The test runs with --nocapture, because a process that ends abruptly would lose captured output.
    command.args(["--exact", test, "--nocapture"]).env(DIRECTORY, directory);
    Some(command.output().unwrap())
}

fn directory() -> std::path::PathBuf {
    std::env::var_os(DIRECTORY).unwrap().into()
}

fn enter() -> InForce {
    let files = FileRules::default().write_directory(&directory());
    ServerSandbox::enter("test", &files).unwrap().filter(&file_calls(server_calls()))
}

fn lacks(in_force: &InForce, part: &str) -> bool {
    in_force.warnings().iter().any(|warning| warning.starts_with(part))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn only_the_data_directory_can_be_read_and_written() {
    let root = tempfile::tempdir().unwrap();
    let inside = root.path().join("inside");
    fs::create_dir(&inside).unwrap();
    fs::write(root.path().join("secret"), "secret").unwrap();
    let test = "only_the_data_directory_can_be_read_and_written";
    if let Some(output) = in_sandbox(test, &inside) {
        assert!(output.status.success(), "{}", text(&output));
        if text(&output).contains("skipped") {
            assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{}", text(&output));
            return;
        }
        assert_eq!(fs::read_to_string(inside.join("renamed")).unwrap(), "content");
        return;
    }
    let inside = directory();
    let outside = inside.parent().unwrap();
    let in_force = enter();
    if lacks(&in_force, "Landlock is not available") {
        eprintln!("skipped: {:?}", in_force.warnings());
        return;
    }
    fs::write(inside.join("file"), "content").unwrap();
    fs::rename(inside.join("file"), inside.join("renamed")).unwrap();
    fs::write(inside.join("other"), "other").unwrap();
    fs::remove_file(inside.join("other")).unwrap();
    assert_eq!(fs::read_dir(&inside).unwrap().count(), 1);
    let refused = [
        fs::read(outside.join("secret")).unwrap_err(),
        File::create(outside.join("new")).unwrap_err(),
        fs::rename(inside.join("renamed"), outside.join("renamed")).unwrap_err(),
        File::open("/etc/passwd").unwrap_err(),
        File::open("/proc/self/status").unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
    }
    // The restrictions also apply to threads that are started later.
    let opened = std::thread::spawn(|| File::open("/etc/passwd").map(drop)).join().unwrap();
    assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn a_forbidden_system_call_ends_the_process_and_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let Some(output) = in_sandbox("a_forbidden_system_call_ends_the_process_and_is_reported", root.path())
    else {
        let other = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            // The filter also applies to a thread that was started before it was installed.
            scope.spawn(|| {
                other.wait();
                let _ = TcpListener::bind("127.0.0.1:0");
                unreachable!("the sandbox should have ended the process");
            });
            if lacks(&enter(), "seccomp is not available") {
                eprintln!("skipped");
                std::process::exit(0);
            }
            other.wait();
        });
        unreachable!("the sandbox should have ended the process");
    };
    if text(&output).contains("skipped") {
        assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{}", text(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(STATUS), "{}", text(&output));
    let named = format!("test: stopped by its sandbox: system call {} is not allowed", libc::SYS_socket);
    assert!(text(&output).contains(&named), "{}", text(&output));
}

#[test]
fn no_program_can_be_started() {
    let root = tempfile::tempdir().unwrap();
    let Some(output) = in_sandbox("no_program_can_be_started", root.path()) else {
        if lacks(&enter(), "seccomp is not available") {
            eprintln!("skipped");
            return;
        }
        let _ = Command::new("true").status();
        unreachable!("the sandbox should have ended the process");
    };
    if text(&output).contains("skipped") {
        return;
    }
    // The standard library blocks all signals before it starts a program, so the process may end without a message.
    assert!(!output.status.success() && !text(&output).contains("unreachable"), "{}", text(&output));
    assert!(!text(&output).contains("panicked"), "{}", text(&output));
}

#[test]
fn threads_memory_and_panics_work() {
    let root = tempfile::tempdir().unwrap();
    let Some(output) = in_sandbox("threads_memory_and_panics_work", root.path()) else {
        enter();
        let threads: Vec<_> =
            (1..=8_usize).map(|len| std::thread::spawn(move || vec![1_u8; len << 20].len())).collect();
        let sum: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(sum, 36 << 20);
        let panicked =
            std::thread::Builder::new().name("one".to_owned()).spawn(|| panic!("on purpose")).unwrap();
        assert!(panicked.join().is_err());
        return;
    };
    assert!(output.status.success() && text(&output).contains("on purpose"), "{}", text(&output));
}
