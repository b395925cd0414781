//! Tests of model reads through nginx, and of the benchmark of model reads.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use iswitch_harness::process::command;
use iswitch_harness::requirements::{alone, networks_and, programs, report};
use iswitch_harness::scratch;
use iswitch_harness::wait;
use iswitch_models::learner::LearnerOptions;
use iswitch_models::runtime::Background;
use iswitch_models::{
    BlockingModelClient, Bytes, ClientOptions, Endpoint, Listen, ModelName, ModelStore, StoreOptions, Times,
};
use iswitch_testbench::contest::{Progress, Row};
use iswitch_testbench::models::nginx::Nginx;
use iswitch_testbench::models::{Contender, Load, Testbed, measure};

const LEN: usize = 1 << 20;
const READERS: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);

fn name() -> ModelName {
    "ppo".parse().unwrap()
}

fn model(version: u64) -> Bytes {
    (0..LEN as u64).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(version * 97) >> 7) as u8).collect()
}

fn client(endpoint: &Endpoint) -> BlockingModelClient {
    let options =
        ClientOptions { times: Times { connect: PATIENCE, stall: PATIENCE }, ..ClientOptions::default() };
    BlockingModelClient::new(name(), std::slice::from_ref(endpoint), options).unwrap()
}

/// A learner and an nginx server that caches its models. Both listen on Unix sockets.
struct Cell {
    _nginx: Nginx,
    learner: Option<Background>,
    store: Arc<ModelStore>,
    endpoint: Endpoint,
    directory: tempfile::TempDir,
}

impl Cell {
    fn start() -> Self {
        let directory = scratch::directory();
        let everyone = |path: &std::path::Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        everyone(directory.path(), 0o755);
        let store = Arc::new(ModelStore::new(StoreOptions::default()));
        let learner = start_learner(&store, &directory);
        // If nginx runs as root, its workers run as `nobody`.
        everyone(&directory.path().join("learner"), 0o777);
        let upstream = learner.listens()[0].to_string().parse().unwrap();
        let listen = format!("unix:{}", directory.path().join("nginx").display());
        let nginx = Nginx::start(&listen, &[upstream], |program| command(program));
        Self { _nginx: nginx, learner: Some(learner), store, endpoint: listen.parse().unwrap(), directory }
    }

    fn learner(&self) -> &Background {
        self.learner.as_ref().unwrap()
    }
}

fn start_learner(store: &Arc<ModelStore>, directory: &tempfile::TempDir) -> Background {
    let listen = Listen::Unix(directory.path().join("learner"));
    Background::learner(Arc::clone(store), &[listen], LearnerOptions::default()).unwrap()
}

#[test]
fn nginx_as_a_cell_fetches_each_version_once() {
    if !programs("nginx_as_a_cell_fetches_each_version_once", &["nginx", "setpriv"]) {
        return;
    }
    let cell = Cell::start();
    for version in 1..=3 {
        let manifest = cell.store.publish(&name(), version, model(version)).unwrap();
        let before = cell.learner().stats().sent_bytes;
        std::thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| {
                    let mut client = client(&cell.endpoint);
                    let mut sink = Collected::default();
                    client.fetch(&manifest, &mut sink).unwrap();
                    assert!(sink.0 == model(version));
                });
            }
        });
        let sent = cell.learner().stats().sent_bytes - before;
        assert!((LEN as u64..2 * LEN as u64).contains(&sent), "{sent} bytes have left the learner");
    }
}

#[derive(Default)]
struct Collected(Vec<u8>);

impl iswitch_models::Sink for Collected {
    fn begin(&mut self, _: &iswitch_models::Manifest) {
        self.0.clear();
    }

    fn take(&mut self, bytes: Bytes) {
        self.0.extend_from_slice(&bytes);
    }
}

#[test]
fn actors_behind_nginx_follow_versions_and_survive_the_learner() {
    if !programs("actors_behind_nginx_follow_versions_and_survive_the_learner", &["nginx", "setpriv"]) {
        return;
    }
    let mut cell = Cell::start();
    let mut actor = client(&cell.endpoint);
    for version in 1..=3 {
        cell.store.publish(&name(), version, model(version)).unwrap();
        let read = actor.wait_newer(PATIENCE).unwrap().expect("a newer version must arrive");
        assert!(read.manifest.version == version && read.bytes == model(version));
    }
    assert!(actor.wait_newer(Duration::from_millis(1)).unwrap().is_none());
    // Now the pointer and the objects are in the cache.
    assert_eq!(actor.latest().unwrap().version, 3);
    let age = actor.model_age().unwrap();
    cell.learner = None;
    let mut another = client(&cell.endpoint);
    let read = another.poll().unwrap().expect("the latest version must arrive");
    assert!(read.manifest.version == 3 && read.bytes == model(3));
    assert!(another.model_age().unwrap() <= age + PATIENCE);

    cell.learner = Some(start_learner(&cell.store, &cell.directory));
    let socket = cell.directory.path().join("learner");
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o777)).unwrap();
    cell.store.publish(&name(), 4, model(4)).unwrap();
    wait::until_some("the learner to come back", PATIENCE, || another.poll().ok().flatten());
    assert_eq!(another.current().unwrap().version, 4);
}

#[test]
fn model_reads_are_measured_from_learner_and_cells() {
    if !networks_and("model_reads_are_measured_from_learner_and_cells", &["nginx", "tc"]) {
        return;
    }
    let _alone = alone();
    let mut testbed = Testbed::new(2, "0.5gbit".parse().unwrap(), true);
    let contenders = Contender::all(&[1, 2], true);
    let load = Load { actors: 12, len_bytes: 300_000, turns: 2 };
    let table = measure(&mut testbed, &contenders, load, &Progress::silent());
    report(&table.text());
    assert_eq!(table.standings.rows.len(), 5);
    for Row { contender, runs } in &table.standings.rows {
        assert_eq!(runs.len(), 2);
        for run in runs {
            assert!(run.mean_ms > 0.0 && run.p99_ms >= run.mean_ms, "{contender}: {run:?}");
        }
    }
    let json = table.json();
    assert_eq!(json["rows"][0]["speedup"]["median"], 1.0);
    assert_eq!(json["rows"][4]["contender"], "nginx, 2 cells");
    assert_eq!(table.csv().lines().count(), 10);
    let figure = table.figure();
    assert!(figure.contains("embedded cache") && figure.contains("learner itself"), "{figure}");
    assert!(table.best(|it| matches!(it, Contender::Embedded(_))).is_some());
}
