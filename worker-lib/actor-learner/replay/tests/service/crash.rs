//! Tests with shards that are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use iswitch_replay::client::{ClientConfig, ReplayClient};

use crate::support::{ONCE, Process, client, config, drain, item, payload};

/// Inserts items from several actors until the test stops them, and returns the acknowledged items of each actor.
fn actors(
    client: &ReplayClient,
    count: u64,
    stop: &Arc<AtomicBool>,
    acknowledged: &Arc<AtomicUsize>,
) -> Vec<tokio::task::JoinHandle<(u64, Vec<u64>)>> {
    let actor = |actor| {
        let (writer, stop, total) = (client.writer("t", actor), Arc::clone(stop), Arc::clone(acknowledged));
        tokio::spawn(async move {
            let mut seqs = Vec::new();
            for seq in 0.. {
                if stop.load(SeqCst) {
                    break;
                }
                if writer.insert(item(actor, seq)).await.is_ok() {
                    seqs.push(seq);
                    total.fetch_add(1, SeqCst);
                }
            }
            (actor, seqs)
        })
    };
    (0..count).map(actor).collect()
}

async fn reached(counter: &AtomicUsize, count: usize) {
    while counter.load(SeqCst) < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Kills and restarts a shard repeatedly while actors write to it. Afterwards, each acknowledged item must be stored
/// intact and exactly once.
async fn kill_and_restart(durability: &str) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let data = folder.path().join("data");
    let arguments = [
        "--table",
        ONCE,
        "--data-dir",
        data.to_str().unwrap(),
        "--durability",
        durability,
        "--snapshot-every",
        "1",
    ];
    let mut shard = Process::start(&socket, &arguments);
    let client = client(std::slice::from_ref(&socket));
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let actors = actors(&client, 6, &stop, &acknowledged);
    for round in 1..=4 {
        reached(&acknowledged, 150 * round).await;
        shard.kill();
        shard = Process::start(&socket, &arguments);
        assert!(shard.ready["restored_items"].as_u64().unwrap() >= 150 * round as u64 - 6);
    }
    reached(&acknowledged, 750).await;
    shard.kill();
    stop.store(true, SeqCst);
    let shard = Process::start(&socket, &arguments);
    let mut expected = BTreeMap::new();
    for actor in actors {
        let (actor, seqs) = actor.await.unwrap();
        expected.insert(actor, seqs);
    }
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for drawn in drain(&client).await {
        assert_eq!(drawn.payload, payload(drawn.actor, drawn.seq));
        found.entry(drawn.actor).or_default().push(drawn.seq);
    }
    for (actor, seqs) in expected {
        let stored = &found[&actor];
        let unique: BTreeSet<u64> = stored.iter().copied().collect();
        assert_eq!(unique.len(), stored.len(), "actor {actor}: an item is present twice");
        let missing: Vec<u64> = seqs.into_iter().filter(|seq| !unique.contains(seq)).collect();
        assert!(missing.is_empty(), "actor {actor}: {missing:?} of the acknowledged items are missing");
    }
    shard.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_items_survive_kill_with_write() {
    kill_and_restart("write").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_items_survive_kill_with_sync() {
    kill_and_restart("sync").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_shard_reports_its_contents_and_restores_them() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, data) = (folder.path().join("socket"), folder.path().join("data"));
    // There is no journal: only the snapshot written on shutdown can be restored.
    let arguments = ["--table", ONCE, "--data-dir", data.to_str().unwrap(), "--durability", "none"];
    let shard = Process::start(&socket, &arguments);
    let client = client(std::slice::from_ref(&socket));
    let writer = client.writer("t", 3);
    for seq in 0..50 {
        writer.insert(item(3, seq)).await.unwrap();
    }
    assert_eq!(client.sample("t", 10).await.unwrap().len(), 10);
    let described = shard.terminate();
    let table = &described["tables"][0];
    assert_eq!(
        (&table["inserts"], &table["samples"], &table["deletes"]),
        (&50.into(), &10.into(), &10.into())
    );
    assert!(!socket.exists());
    let again = Process::start(&socket, &arguments);
    assert_eq!(again.ready["restored_items"], 40);
    let seqs: Vec<u64> = drain(&client).await.into_iter().map(|drawn| drawn.seq).collect();
    assert_eq!(seqs, (10..50).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_costs_one_item_and_the_file_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, data) = (folder.path().join("socket"), folder.path().join("data"));
    let arguments = ["--table", ONCE, "--data-dir", data.to_str().unwrap(), "--durability", "sync"];
    let shard = Process::start(&socket, &arguments);
    let client = client(std::slice::from_ref(&socket));
    let writer = client.writer("t", 3);
    for seq in 0..200 {
        writer.insert(item(3, seq)).await.unwrap();
    }
    shard.kill();
    let journal = data.join("journal-0000000000000000");
    let mut bytes = std::fs::read(&journal).unwrap();
    // This byte is after the header, in the first record.
    bytes[4130] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let shard = Process::start(&socket, &arguments);
    assert_eq!((&shard.ready["restored_items"], &shard.ready["damaged_files"]), (&199.into(), &1.into()));
    shard.terminate();
    assert_eq!(std::fs::read(data.join("journal-0000000000000000.damaged")).unwrap(), bytes);
    let shard = Process::start(&socket, &arguments);
    assert_eq!((&shard.ready["restored_items"], &shard.ready["damaged_files"]), (&199.into(), &0.into()));
    assert_eq!(shard.terminate()["journal"]["kept_files"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn inserts_fail_over_to_the_other_shards() {
    let folder = tempfile::tempdir().unwrap();
    let sockets: Vec<_> = (0..3).map(|shard| folder.path().join(format!("socket-{shard}"))).collect();
    let mut shards: Vec<_> =
        sockets.iter().map(|socket| Process::start(socket, &["--table", ONCE])).collect();
    let config = ClientConfig { failover_after: Duration::from_millis(100), ..config(&sockets) };
    let client = ReplayClient::new(config).unwrap();
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let actors = actors(&client, 48, &stop, &acknowledged);
    reached(&acknowledged, 120).await;
    let sizes = |described: Vec<Result<iswitch_replay::proto::DescribeResponse, _>>| -> Vec<u64> {
        let size = |shard: Result<
            iswitch_replay::proto::DescribeResponse,
            iswitch_replay::client::ClientError,
        >| { shard.map_or(0, |shard| shard.tables[0].inserts) };
        described.into_iter().map(size).collect()
    };
    let before = sizes(client.describe().await);
    assert!(before.iter().all(|inserts| *inserts > 0), "{before:?}");
    shards.remove(0).kill();
    let at_kill = acknowledged.load(SeqCst);
    reached(&acknowledged, at_kill + 240).await;
    let after = sizes(client.describe().await);
    assert!(after[1] > before[1] && after[2] > before[2], "{before:?} {after:?}");
    // Wait until an actor that prefers the killed shard has changed to another shard.
    while client.stats().failovers == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The shard restarts empty, and the actors that prefer it return to it.
    let _again = Process::start(&sockets[0], &["--table", ONCE]);
    while sizes(client.describe().await)[0] == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, SeqCst);
    for actor in actors {
        actor.await.unwrap();
    }
}
