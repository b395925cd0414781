//! Kills a cell while actors read from it, and restarts it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{client, endpoint, learner, model, name, until};
use iswitch_models::learner::LearnerOptions;
use iswitch_models::{Endpoint, ModelStore};

const LEN: usize = 1 << 20;
const ACTORS: usize = 8;

/// The process of a cell. The process is killed when this value is dropped.
struct Cell {
    child: Child,
    listen: String,
}

impl Cell {
    fn start(listen: &str, upstream: &Endpoint) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-models"));
        command.args(["cell", "--listen", listen, "--upstream", &upstream.to_string()]);
        command.args(["--upstream-stall-ms", "120000"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines: Vec<_> = lines.map(Result::unwrap).take_while(|line| line != "ready").collect();
        let listen = lines[0].strip_prefix("listening at ").unwrap().to_owned();
        Self { child, listen }
    }

    fn endpoint(&self) -> Endpoint {
        self.listen.parse().unwrap()
    }

    /// Kills the process with SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads each new version until `end` is set, and compares it with the expected bytes. Returns the last version number.
async fn act(endpoints: Vec<Endpoint>, read: Arc<AtomicU64>, end: Arc<AtomicBool>) -> u64 {
    let mut client = client(&endpoints);
    while !end.load(Ordering::Relaxed) {
        let model = client.wait_newer(Duration::from_millis(500)).await.expect("the learner runs");
        if let Some(found) = model {
            assert!(
                found.bytes == model_of(found.manifest.version),
                "the digest is correct, but the bytes are not"
            );
            read.fetch_max(found.manifest.version, Ordering::Relaxed);
        }
    }
    client.current().unwrap().version
}

fn model_of(version: u64) -> bytes::Bytes {
    model(version, LEN)
}

fn publish(store: &ModelStore, version: u64) {
    store.publish(&name(), version, model_of(version)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actors_fail_over_when_their_cell_is_killed_and_return_to_it() {
    let (store, learner) = learner(LearnerOptions::default()).await;
    let upstream = endpoint(&learner);
    let mut cells = [Cell::start("127.0.0.1:0", &upstream), Cell::start("127.0.0.1:0", &upstream)];
    let end = Arc::new(AtomicBool::default());
    let read: Vec<Arc<AtomicU64>> = (0..ACTORS).map(|_| Arc::default()).collect();
    let actors: Vec<_> = read
        .iter()
        .map(|read| {
            let endpoints = vec![cells[0].endpoint(), cells[1].endpoint(), upstream.clone()];
            tokio::spawn(act(endpoints, Arc::clone(read), Arc::clone(&end)))
        })
        .collect();
    let all_have = async |version| {
        until(async || read.iter().all(|read| read.load(Ordering::Relaxed) >= version)).await;
    };
    publish(&store, 1);
    all_have(1).await;
    // Kill the cell while it transfers the next version.
    publish(&store, 2);
    cells[0].kill();
    all_have(2).await;
    publish(&store, 3);
    all_have(3).await;
    cells[1].kill();
    publish(&store, 4);
    all_have(4).await;

    let listen = cells[0].listen.clone();
    cells[0] = Cell::start(&listen, &upstream);
    let mut version = 4;
    let served = async || {
        version += 1;
        publish(&store, version);
        all_have(version).await;
        let metrics = crate::support::ask(&cells[0].endpoint(), "GET /metrics", &[]).await.body;
        String::from_utf8(metrics)
            .unwrap()
            .lines()
            .any(|line| line.strip_prefix("iswitch_models_fetches_total ").is_some_and(|count| count != "0"))
    };
    until(served).await;
    end.store(true, Ordering::Relaxed);
    for actor in actors {
        assert!(actor.await.unwrap() >= 5);
    }
}

#[test]
fn a_model_is_published_from_a_file_and_fetched_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let (file, copy) = (directory.path().join("model"), directory.path().join("copy"));
    std::fs::write(&file, model(1, 123_456)).unwrap();
    let socket = format!("unix:{}", directory.path().join("socket").display());
    let program = || Command::new(env!("CARGO_BIN_EXE_iswitch-models"));
    let mut server = program().args(["serve", "--listen", &socket]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(
        lines.take_while(|line| line != "ready").collect::<Vec<_>>(),
        [format!("listening at {socket}")]
    );
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let publish = ["publish", "--learner", &socket, "--name", "ppo", "--version", "5"];
    assert_eq!(run(program().args(publish).arg(&file))["len_bytes"], 123_456);
    let fetched = run(program().args(["fetch", "--from", &socket, "--name", "ppo", "--output"]).arg(&copy));
    assert_eq!(fetched["version"], 5);
    assert!(fetched["latency_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read(copy).unwrap(), model(1, 123_456));
    server.kill().unwrap();
    server.wait().unwrap();
}
