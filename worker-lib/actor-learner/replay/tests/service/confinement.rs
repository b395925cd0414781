//! Tests of `replayd` in its sandbox.

use std::path::Path;
use std::process::{Command, Stdio};

use super::support::{ONCE, Process, client, drain, item};

fn status_of(process: &Process) -> String {
    std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_works_and_restarts_in_its_sandbox() {
    let directory = tempfile::tempdir().unwrap();
    let (socket, data) = (directory.path().join("socket"), directory.path().join("new/data"));
    let arguments = ["--table", ONCE, "--durability", "sync", "--data-dir", data.to_str().unwrap()];
    let sockets = std::slice::from_ref(&socket);

    let shard = Process::start(&socket, &arguments);
    let status = status_of(&shard);
    for field in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"] {
        assert!(status.lines().any(|line| line == field), "no {field} in {status}");
    }
    let writing = client(sockets);
    let writer = writing.writer("t", 1);
    for seq in 0..200 {
        writer.insert(item(1, seq)).await.unwrap();
        if seq == 100 {
            writing.snapshot().await.into_iter().for_each(|written| drop(written.unwrap()));
        }
    }
    shard.kill();

    let shard = Process::start(&socket, &arguments);
    assert_eq!(shard.ready["restored_items"], 200);
    shard.terminate();
    assert!(!socket.exists(), "the socket is removed on shutdown");

    let _shard = Process::start(&socket, &arguments);
    assert_eq!(drain(&client(sockets)).await.len(), 200);
}

#[test]
fn the_sandbox_is_logged_and_can_be_disabled() {
    let directory = tempfile::tempdir().unwrap();
    let log = |arguments: &[&str]| log_of(&directory.path().join("socket"), arguments);
    let confined = log(&[]);
    assert!(confined.contains("sandbox: no capabilities"), "{confined}");
    let free = log(&["--no-sandbox"]);
    assert!(free.contains("listening on") && !free.contains("sandbox"), "{free}");
}

/// Starts a shard, stops it once it is ready, and returns its log.
fn log_of(socket: &Path, arguments: &[&str]) -> String {
    let script =
        "\"$0\" \"$@\" & until test -S \"$SOCKET\"; do sleep 0.05; done; sleep 0.5; kill -TERM $!; wait $!";
    let mut shell = Command::new("bash");
    shell.args([
        "-c",
        script,
        env!("CARGO_BIN_EXE_replayd"),
        "--listen",
        &format!("unix:{}", socket.display()),
    ]);
    shell.args(["--table", ONCE]).args(arguments).env("SOCKET", socket).env_remove("RUST_LOG");
    let output = shell.stdout(Stdio::null()).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    log
}
