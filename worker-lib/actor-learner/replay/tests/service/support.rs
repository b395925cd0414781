//! Functions that run shards as processes, and unique payloads.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use iswitch_replay::client::{ClientConfig, Drawn, ReplayClient};
use iswitch_replay::proto::replay_client::ReplayClient as Stub;
use iswitch_replay::table::NewItem;
use tonic::transport::{Channel, Endpoint};

/// A process of `replayd`. The process is killed when this value is dropped.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Line of JSON that the shard prints when it is ready.
    pub(crate) ready: serde_json::Value,
}

impl Process {
    /// Starts a shard that listens on `socket`. `arguments` contains further arguments.
    pub(crate) fn start(socket: &Path, arguments: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_replayd")), socket, arguments)
    }

    /// Starts a shard like [`Self::start`], but from a shell that first runs `setup`.
    pub(crate) fn start_after(setup: &str, socket: &Path, arguments: &[&str]) -> Self {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{setup}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_replayd")]);
        Self::spawn(shell, socket, arguments)
    }

    fn spawn(mut command: Command, socket: &Path, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["--json", "--listen", &address(socket)])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        Self { child, output, ready }
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the process with SIGTERM, and returns the JSON that it prints before it exits.
    pub(crate) fn terminate(mut self) -> serde_json::Value {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the size of the resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the plain gRPC client, without the retries and the other logic of [`ReplayClient`].
pub(crate) fn stub(address: String) -> Stub<Channel> {
    Stub::new(Endpoint::from_shared(address).unwrap().connect_lazy())
        .max_encoding_message_size(usize::MAX)
        .max_decoding_message_size(usize::MAX)
}

pub(crate) fn address(socket: &Path) -> String {
    format!("unix:{}", socket.display())
}

/// Returns a client that waits only briefly for rate limiters, but long enough for a process to start on a busy
/// machine.
pub(crate) fn client(sockets: &[PathBuf]) -> ReplayClient {
    ReplayClient::new(config(sockets)).unwrap()
}

pub(crate) fn config(sockets: &[PathBuf]) -> ClientConfig {
    let wait = Duration::from_secs(30);
    ClientConfig {
        wait,
        backoff_max: Duration::from_millis(50),
        ..ClientConfig::new(sockets.iter().map(|path| address(path)))
    }
}

/// Returns a payload that is unique to the given item of the given actor. Every seventh payload is so long that the
/// journal writes it separately from its record.
pub(crate) fn payload(actor: u64, seq: u64) -> Bytes {
    let len = if seq.is_multiple_of(7) { 9000 } else { 40 + seq % 300 };
    let mut state = actor.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seq.wrapping_mul(0xd6e8_feb8_6659_fd93);
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(byte).collect::<Vec<u8>>().into()
}

pub(crate) fn item(actor: u64, seq: u64) -> NewItem {
    NewItem { priority: 1.0, version: seq / 100, payload: payload(actor, seq) }
}

/// Options of a table from which each item is drawn once, in the order of insertion.
pub(crate) const ONCE: &str = "name=t,capacity=1000000,sampler=fifo,max_times_sampled=1,min_size_to_sample=1";

/// Draws all items of a table that was created with the options [`ONCE`].
pub(crate) async fn drain(client: &ReplayClient) -> Vec<Drawn> {
    let described = client.describe().await;
    let sizes = described.iter().map(|shard| shard.as_ref().unwrap().tables[0].extent.unwrap().size);
    let size: u64 = sizes.sum();
    let drawn = client.sample("t", size as usize).await.unwrap();
    assert_eq!(drawn.len() as u64, size);
    drawn
}
