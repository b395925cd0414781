//! Effect of the sandbox on forbidden operations. Each case runs in a separate process, which executes this test
//! binary again.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use iswitch_daemon::config::{LogFormat, LogLevel};
use iswitch_daemon::flight_file::FlightFile;
use iswitch_daemon::log;
use iswitch_daemon::sandbox::{Account, drop_privileges, filter_system_calls};
use iswitch_protocol::Instant;
use iswitch_runtime::flight::JobFlight;
use signal_hook::consts::SIGSYS;

/// Environment variable that makes a process enter the sandbox; its value is the operation to perform there.
const DEED: &str = "ISWITCH_TEST_DEED";

fn in_sandbox(test: &str, deed: &str) -> Output {
    let program = std::env::current_exe().unwrap();
    // The test runs with --nocapture, because a process that is killed would lose captured output.
    Command::new(program).args(["--exact", test, "--nocapture"]).env(DEED, deed).output().unwrap()
}

fn enter_sandbox() {
    enter_sandbox_after(|| ());
}

/// Enters the sandbox. Calls `start` before the system calls are filtered, because no thread can be started afterwards.
fn enter_sandbox_after<T>(start: impl FnOnce() -> T) -> T {
    log::start(LogFormat::Text, LogLevel::Info);
    drop_privileges(Account::choose(None).unwrap().as_ref()).unwrap();
    log::detach().unwrap();
    let started = start();
    filter_system_calls();
    started
}

#[test]
fn forbidden_system_calls_end_the_process_and_are_reported() {
    match std::env::var(DEED).as_deref() {
        Ok("socket") => {
            enter_sandbox();
            let _ = TcpListener::bind("127.0.0.1:0");
            unreachable!("the sandbox should have ended the process");
        }
        Ok("program") => {
            enter_sandbox();
            let _ = Command::new("true").status();
            unreachable!("the sandbox should have ended the process");
        }
        _ => {}
    }
    let socket = in_sandbox("forbidden_system_calls_end_the_process_and_are_reported", "socket");
    let log = String::from_utf8_lossy(&socket.stderr);
    if log.contains("seccomp is not available") {
        return;
    }
    assert_eq!(socket.status.code(), Some(128 + SIGSYS), "{log}");
    assert!(log.contains("iswitchd: stopped by its sandbox: system call "), "{log}");
    // The standard library blocks all signals before it starts a program, so the handler cannot print a message, and
    // the process dies from the signal.
    let program = in_sandbox("forbidden_system_calls_end_the_process_and_are_reported", "program");
    assert_eq!(program.status.signal(), Some(SIGSYS));
}

#[test]
fn the_sandbox_blocks_files_but_not_ordinary_work() {
    if std::env::var_os(DEED).is_some() {
        enter_sandbox();
        let error = File::open("/etc/hostname").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        tracing::info!("logged by another thread");
        log::flush();
        let many: Vec<_> = (0..10_000_usize).map(|len| vec![1_u8; len]).collect();
        assert_eq!(many.iter().map(Vec::len).sum::<usize>(), 10_000 * 9_999 / 2);
        return;
    }
    let output = in_sandbox("the_sandbox_blocks_files_but_not_ordinary_work", "work");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && log.contains("logged by another thread"), "{log}");
}

/// File length above the limit of the flight recorder, in bytes.
const FULL_LEN_BYTES: u64 = 40 << 20;

#[test]
fn the_flight_recorder_rotates_a_full_file() {
    let test = "the_flight_recorder_rotates_a_full_file";
    if let Ok(path) = std::env::var(DEED) {
        let file = FlightFile::open(Some(path.as_ref())).unwrap();
        let writer = enter_sandbox_after(|| file.start().unwrap());
        let (boot, taken) = (1, Instant::default());
        writer.dumps().push("signal", JobFlight { boot, taken, job: 7, status: None, records: Vec::new() });
        drop(writer);
        log::flush();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flight.jsonl");
    File::create(&path).unwrap().set_len(FULL_LEN_BYTES).unwrap();
    let output = in_sandbox(test, path.to_str().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let newest = std::fs::read_to_string(&path).unwrap();
    assert!(newest.starts_with("{\"dump\":\"signal\"") && newest.lines().count() == 1, "{newest:.200}");
    let older = std::fs::metadata(directory.path().join("flight.jsonl.1")).unwrap();
    assert_eq!(older.len(), FULL_LEN_BYTES);
}

#[test]
fn an_unknown_user_is_reported_by_name() {
    let error = Account::choose(Some("no-such-user")).unwrap_err();
    assert_eq!(error.to_string(), "user is \"no-such-user\", expected an existing user of this system");
}
