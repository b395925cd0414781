//! Tests of sockets, standard output, tokens and the systemd unit, and of limits on file descriptors and on file sizes.

use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use iswitch_replay::client::{ClientConfig, ClientError, ReplayClient};
use iswitch_replay::proto::{InsertRequest, NewItem, SampleRequest};
use iswitch_replay::server::Token;
use tonic::Code;

use crate::support::{ONCE, Process, address, client, config, drain, item, stub};

#[tokio::test(flavor = "multi_thread")]
async fn excess_connections_stop_neither_inserts_nor_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, data) = (folder.path().join("socket"), folder.path().join("data"));
    let arguments = ["--table", ONCE, "--data-dir", data.to_str().unwrap(), "--durability", "sync"];
    let _shard = Process::start_after("ulimit -n 100", &socket, &arguments);
    let early = client(std::slice::from_ref(&socket));
    let writer = early.writer("t", 1);
    writer.insert(item(1, 0)).await.unwrap();
    let silent: Vec<_> = (0..150).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    writer.insert(item(1, 1)).await.unwrap();
    // A snapshot and an insert need file descriptors, which must still be available.
    assert_eq!(early.snapshot().await.remove(0).unwrap().items, 2);
    writer.insert(item(1, 2)).await.unwrap();
    drop(silent);
    let late = client(std::slice::from_ref(&socket));
    late.writer("t", 2).insert(item(2, 0)).await.unwrap();
}

#[test]
fn a_connection_limit_above_the_descriptor_limit_is_refused() {
    let limited = format!("ulimit -n 100; exec {}", env!("CARGO_BIN_EXE_replayd"));
    let output = Command::new("bash")
        .args(["-c", &format!("{limited} --table {ONCE} --connections-max 37 --listen 127.0.0.1:0")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(text.contains("connections-max is 37, expected at most 36"), "{text}");
}

#[test]
fn a_regular_file_at_the_socket_path_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    std::fs::write(&path, b"data").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_replayd"))
        .args(["--table", ONCE, "--listen", &address(&path)])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(text.contains("exists and is not a socket, expected an unused path"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), b"data");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_serves_without_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut child = Command::new(env!("CARGO_BIN_EXE_replayd"))
        .args(["--table", ONCE, "--json", "--listen", &address(&socket)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    client(std::slice::from_ref(&socket)).writer("t", 1).insert(item(1, 0)).await.unwrap();
    let kill = format!("kill -TERM {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_the_token_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, file) = (folder.path().join("socket"), folder.path().join("token"));
    std::fs::write(&file, "0123456789abcdef-secret\n").unwrap();
    let _shard = Process::start(&socket, &["--table", ONCE, "--token-file", file.to_str().unwrap()]);
    let sockets = [socket];
    let other = Token::new("0123456789abcdef-Secret").unwrap();
    for token in [None, Some(other)] {
        let client = ReplayClient::new(ClientConfig { token, ..config(&sockets) }).unwrap();
        let refusals = [
            client.writer("t", 1).insert(item(1, 0)).await.err(),
            client.sample("t", 1).await.err(),
            client.delete("t", &[]).await.err().or(client.reset("t").await.err()),
            client.describe().await.remove(0).err(),
        ];
        for refused in refusals {
            let Some(ClientError::Refused { code, text, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!(code, Code::Unauthenticated);
            assert!(text.starts_with("the request has no valid token"), "{text}");
        }
    }
    let token = Some(Token::read(&file).unwrap());
    let client = ReplayClient::new(ClientConfig { token, ..config(&sockets) }).unwrap();
    client.writer("t", 1).insert(item(1, 0)).await.unwrap();
    assert_eq!(client.describe().await.remove(0).unwrap().tables[0].inserts, 1);
    assert_eq!(client.sample("t", 1).await.unwrap().len(), 1);
}

/// Returns a request with one item of 1 KiB.
fn kibibyte(seq: u64) -> InsertRequest {
    let item = NewItem { priority: 1.0, version: 0, payload: vec![seq as u8; 1024].into() };
    InsertRequest {
        table: "t".to_owned(),
        actor: 1,
        session: 1,
        first_seq: seq,
        items: vec![item],
        wait_ms: 1000,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_journal_recovers_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, data) = (folder.path().join("socket"), folder.path().join("data"));
    let arguments = ["--table", ONCE, "--data-dir", data.to_str().unwrap(), "--durability", "sync"];
    // No file can grow beyond 16 KiB: a write beyond that limit fails as on a full disk. The log goes through a pipe,
    // because standard error may be redirected to a file that is already longer.
    let setup = "exec 2> >(exec cat >&2); trap '' XFSZ; ulimit -f 16";
    let shard = Process::start_after(setup, &socket, &arguments);
    let mut stub = stub(address(&socket));
    let mut seq = 0;
    let refused = loop {
        match stub.insert(kibibyte(seq)).await {
            Ok(_) => seq += 1,
            Err(status) => break status,
        }
    };
    assert!(seq > 5, "{seq} inserts");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().starts_with("cannot write the journal: "), "{refused:?}");
    // Draws still succeed, and leave a table that fits into a file.
    let request = SampleRequest { table: "t".to_owned(), count: seq as u32, wait_ms: 1000 };
    let mut drawn = stub.sample(request).await.unwrap().into_inner();
    while drawn.message().await.unwrap().is_some() {}
    let last = seq + 1;
    while let Err(status) = stub.insert(kibibyte(last)).await {
        assert_eq!(status.code(), Code::Unavailable);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    shard.kill();
    let _shard = Process::start(&socket, &arguments);
    let seqs: Vec<u64> =
        drain(&client(std::slice::from_ref(&socket))).await.iter().map(|item| item.seq).collect();
    // The item whose insert was refused had not been drawn, so the snapshot contains it.
    assert_eq!(seqs, [seq, last]);
}

#[test]
fn the_systemd_unit_is_confined() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/replayd.service");
    // A threshold of 25 corresponds to an exposure level of 2.5 on systemd's scale from 0 to 10.
    let checked =
        Command::new("systemd-analyze").args(["security", "--offline=yes", "--threshold=25", unit]).output();
    match checked {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => {
            assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "systemd-analyze: {error}");
            eprintln!("skipped: systemd-analyze: {error}");
        }
    }
}
