//! Fuzz targets: what operators give the daemon, and what it and its client say to each other.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use clap::Parser;
use iswitch_control::Request;
use iswitch_daemon::config::{Cli, Config};
use iswitch_daemon::control_socket::ControlListener;
use iswitch_runtime::runtime::Runtime;
use serde_json::Value;

/// Longest request that the daemon reads, in bytes.
const REQUEST_LEN_MAX_BYTES: usize = 64;

/// What a daemon would be started with keeps the limits that it was given.
fn check(config: &Config) {
    let iswitch_switch::Config { lease_ms, memory_bytes, job_memory_bytes, .. } = config.switch;
    assert!((100..=3_600_000).contains(&lease_ms));
    assert!(job_memory_bytes <= memory_bytes && memory_bytes >= 1 << 20);
    assert_ne!(config.classifier.control_tos, config.classifier.data_tos);
    assert!(!config.udp.is_empty() || !config.interfaces.is_empty());
    assert!(
        config.interfaces.iter().all(|port| !port.interface.contains('"')),
        "it would end the rule's string"
    );
    let (first, count) = config.uplink_ports;
    assert!(u32::from(first) + u32::from(count) <= 1 << 16);
    assert!(config.parents.is_empty() == (count == 0));
}

#[test]
fn configuration_file() {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let path = directory.path().join("iswitchd.toml");
    bolero::check!().with_iterations(200).for_each(|text: &[u8]| {
        fs::write(&path, text).expect("the disk has room");
        let arguments = [OsStr::new("iswitchd"), OsStr::new("--config"), path.as_os_str()];
        match Cli::try_parse_from(arguments).expect("the command line is right").resolve() {
            Ok(config) => check(&config),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

/// One argument a line.
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

/// Whatever a client sends, it gets one line of JSON.
#[test]
fn control_socket_request() {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let path = directory.path().join("socket");
    let config = iswitch_switch::Config { memory_bytes: 1 << 20, ..iswitch_switch::Config::default() };
    let (runtime, handle) =
        Runtime::new(config, Vec::new(), Duration::ZERO).expect("a loop without ports runs");
    let running = std::thread::spawn(move || runtime.run());
    let listener = ControlListener::bind(&path).expect("the socket is ours");
    let serving = listener.serve(handle.clone()).expect("there is room for a thread");
    bolero::check!().with_iterations(1000).for_each(|asked: &[u8]| {
        // What it leaves unread would cut the connection.
        let asked = &asked[..asked.len().min(REQUEST_LEN_MAX_BYTES)];
        let mut client = UnixStream::connect(&path).expect("the daemon listens");
        client.write_all(asked).expect("the daemon reads");
        client.shutdown(Shutdown::Write).expect("the connection is up");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("the daemon answers");
        let line = asked.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        // What is no text gets no answer.
        let Ok(line) = std::str::from_utf8(line) else { return };
        let answer: Value = serde_json::from_slice(&answer).expect("the answer is JSON");
        let is_known = ["status", "counters", "jobs"].contains(&line.trim());
        assert_eq!(answer.get("error").is_none(), is_known, "{answer}");
    });
    drop(serving);
    handle.stop();
    let _ = running.join();
}

/// The client shows whatever a daemon, perhaps of another version, answers.
#[test]
fn control_socket_answer() {
    bolero::check!().with_iterations(1000).for_each(|text: &[u8]| {
        let Ok(answer) = serde_json::from_slice::<Value>(text) else { return };
        for request in [Request::Status, Request::Counters, Request::Jobs] {
            let _ = request.text(answer.clone());
        }
    });
}
