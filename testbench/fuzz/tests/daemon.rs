//! Fuzz targets: the daemon's command line and configuration, and the messages between the daemon and its client.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use iswitch_control::{Command, Request};
use iswitch_daemon::config::{Cli, Config};
use iswitch_daemon::control_socket::{ControlListener, Controlled};
use iswitch_daemon::reload::{Arguments, Reloader, Source};
use iswitch_runtime::runtime::{Handle, Runtime};
use serde_json::Value;

/// Longest request that the daemon reads, in bytes.
const REQUEST_LEN_MAX_BYTES: usize = 64;

/// Checks that a configuration that the daemon accepts respects the limits.
fn check(config: &Config) {
    let iswitch_switch::Config { lease_ms, memory_bytes, job_memory_bytes, .. } = config.switch;
    assert!((100..=3_600_000).contains(&lease_ms));
    assert!(job_memory_bytes <= memory_bytes && memory_bytes >= 1 << 20);
    assert_ne!(config.classifier.control_tos, config.classifier.data_tos);
    assert!(!config.udp.is_empty() || !config.interfaces.is_empty());
    assert!(
        config.interfaces.iter().all(|port| !port.interface.contains('"')),
        "a quotation mark would end the string in the nft rule"
    );
    let (first, count) = config.uplink_ports;
    assert!(u32::from(first) + u32::from(count) <= 1 << 16);
    assert!(config.parents.is_empty() == (count == 0));
}

#[test]
fn configuration_file() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join("iswitchd.toml");
    bolero::check!().with_iterations(200).for_each(|text: &[u8]| {
        fs::write(&path, text).expect("the file must be writable");
        let arguments = [OsStr::new("iswitchd"), OsStr::new("--config"), path.as_os_str()];
        match Cli::try_parse_from(arguments).expect("the command line must be valid").resolve() {
            Ok(config) => check(&config),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

/// The input has one argument on each line.
#[test]
fn command_line() {
    bolero::check!().with_iterations(200).for_each(|text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let arguments = std::iter::once("iswitchd").chain(text.lines());
        match Cli::try_parse_from(arguments) {
            Ok(cli) => {
                if let Ok(config) = cli.resolve() {
                    check(&config);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

fn controlled(handle: &Handle) -> Controlled {
    let cli = Cli::parse_from(["iswitchd", "--udp", "127.0.0.1:0"]);
    let config = cli.resolve().expect("the configuration is valid");
    let source = Source::Files(Arguments::of_this_process().expect("there must be a current directory"));
    Controlled { handle: handle.clone(), reloader: Arc::new(Reloader::new(config, source, handle.clone())) }
}

/// If a request is text, the daemon answers it with one line of JSON.
#[test]
fn control_socket_request() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join("socket");
    let config = iswitch_switch::Config { memory_bytes: 1 << 20, ..iswitch_switch::Config::default() };
    let (runtime, handle) =
        Runtime::new(config, Vec::new(), Duration::ZERO).expect("a runtime without ports must start");
    let running = std::thread::spawn(move || runtime.run());
    let listener = ControlListener::bind(&path).expect("the socket must be usable");
    let serving = listener.serve(controlled(&handle)).expect("a thread must start");
    bolero::check!().with_iterations(1000).for_each(|asked: &[u8]| {
        // The request is cut to the length that the daemon reads, because unread bytes would reset the connection.
        let asked = &asked[..asked.len().min(REQUEST_LEN_MAX_BYTES)];
        // A Drain request would stop the daemon, because it has no jobs.
        if std::str::from_utf8(asked).is_ok_and(|line| Command::parse(line.trim()) == Ok(Command::Drain)) {
            return;
        }
        let mut client = UnixStream::connect(&path).expect("the daemon must listen");
        client.write_all(asked).expect("the daemon must read");
        client.shutdown(Shutdown::Write).expect("the connection must be open");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("the daemon must answer");
        let line = asked.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        // A line that is not UTF-8 gets no answer.
        let Ok(line) = std::str::from_utf8(line) else { return };
        let answer: Value = serde_json::from_slice(&answer).expect("the answer must be JSON");
        // There are no jobs that a command could apply to, and the command line of this process is not a daemon's.
        let is_known = Request::parse(line.trim()).is_some();
        assert_eq!(answer.get("error").is_none(), is_known, "{answer}");
    });
    drop(serving);
    handle.stop();
    let _ = running.join();
}

/// Whatever a daemon answers, the client prints the answer without a panic, even if the daemon has a different version.
#[test]
fn control_socket_answer() {
    bolero::check!().with_iterations(1000).for_each(|text: &[u8]| {
        let Ok(answer) = serde_json::from_slice::<Value>(text) else { return };
        for request in [Request::Status, Request::Counters, Request::Jobs, Request::Config] {
            let _ = request.text(answer.clone());
        }
    });
}
