use super::*;
use bytes::Bytes;
use std::time::Duration;

use crate::limits::ITEM_OVERHEAD_BYTES;
use crate::store::simulation::disk::SimulatedDisk;
use crate::store::{Directory, Durability};
use crate::table::{NewItem, Origin, TableConfig, WhenFull};

const SOON: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(600);

fn shard(table: TableConfig) -> Shard {
    Shard::open(ShardConfig { tables: vec![table], ..ShardConfig::default() }).unwrap()
}

fn batch(seq: u64, items: usize, wait: Duration) -> Batch {
    let item = NewItem { priority: 1.0, version: 3, payload: Bytes::from_static(b"payload") };
    let first = Origin { actor: 1, session: 1, seq };
    Batch { table: "t".to_owned(), first, items: vec![item; items], wait }
}

#[tokio::test(start_paused = true)]
async fn a_partly_stored_batch_reports_the_number_of_stored_items() {
    let shard = shard(TableConfig::queue("t", 3, 1 << 20));
    let inserted = shard.insert(batch(0, 5, SOON)).await.unwrap();
    assert_eq!(inserted.keys.len(), 3);
    assert_eq!(inserted.refused.as_ref().unwrap().code(), tonic::Code::DeadlineExceeded);
    let error = shard.insert(batch(3, 2, SOON)).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "table \"t\" could not serve the request within 20 ms: the rate limiter is waiting for samples: an insert \
         would raise inserts x samples_per_insert - samples to 4, expected at most 3 (inserts 3, samples 0, items 3)"
    );
    // Retransmit the whole batch: the items that exist must not be stored twice.
    assert_eq!(shard.sample("t", 10, SOON).await.unwrap().items.len(), 3);
    let again = shard.insert(batch(0, 5, SOON)).await.unwrap();
    assert_eq!(again.keys[..3], [0; 3]);
    assert!(again.keys[3..].iter().all(|key| *key > 0) && again.refused.is_none());
    assert_eq!(again.size, 2);
}

#[tokio::test(start_paused = true)]
async fn a_held_insert_resumes_when_the_limiter_permits_it() {
    let shard = std::sync::Arc::new(shard(TableConfig::queue("t", 2, 1 << 20)));
    shard.insert(batch(0, 2, SOON)).await.unwrap();
    let waiting = tokio::spawn({
        let shard = std::sync::Arc::clone(&shard);
        async move { shard.insert(batch(2, 2, LONG)).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(shard.describe().tables[0].inserts_waiting, 1);
    assert_eq!(shard.sample("t", 1, SOON).await.unwrap().items[0].item.origin.seq, 0);
    assert_eq!(shard.sample("t", 1, SOON).await.unwrap().items[0].item.origin.seq, 1);
    assert_eq!(waiting.await.unwrap().unwrap().keys.len(), 2);
    assert_eq!(shard.describe().tables[0].inserts_waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_sample_resumes_when_the_limiter_permits_it() {
    let shard = std::sync::Arc::new(shard(TableConfig::queue("t", 2, 1 << 20)));
    let error = shard.sample("t", 1, SOON).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::DeadlineExceeded);
    let waiting = tokio::spawn({
        let shard = std::sync::Arc::clone(&shard);
        async move { shard.sample("t", 1, LONG).await }
    });
    tokio::task::yield_now().await;
    shard.insert(batch(0, 1, SOON)).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_shard_ends_all_waiting_requests() {
    let shard = std::sync::Arc::new(shard(TableConfig::queue("t", 2, 1 << 20)));
    let waiting = tokio::spawn({
        let shard = std::sync::Arc::clone(&shard);
        async move { shard.sample("t", 1, LONG).await }
    });
    tokio::task::yield_now().await;
    shard.stop();
    assert!(matches!(waiting.await.unwrap(), Err(ShardError::Stopping)));
}

#[tokio::test(start_paused = true)]
async fn requests_that_can_never_succeed_are_refused_with_the_reason() {
    let config = ShardConfig {
        item_max_bytes: 1000,
        tables: vec![TableConfig::uniform("t", 5, u64::MAX)],
        ..ShardConfig::default()
    };
    let shard = Shard::open(config).unwrap();
    let mut long = batch(0, 2, SOON);
    long.items[1].payload = Bytes::from(vec![0; 1001]);
    let refusals = [
        (shard.insert(long).await, "items[1].payload is 1001 bytes long, expected at most 1000 (--item-max)"),
        (shard.insert(batch(0, 0, SOON)).await, "items has 0 entries, expected 1 to 65536"),
        (
            shard.insert(Batch { table: "u".to_owned(), ..batch(0, 1, SOON) }).await,
            "table is \"u\", expected one of [\"t\"]",
        ),
    ];
    for (refused, text) in refusals {
        assert_eq!(refused.unwrap_err().to_string(), text);
    }
    shard.insert(batch(2000, 1, SOON)).await.unwrap();
    let error = shard.insert(batch(5, 1, SOON)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "seq of actor 1 is 5, expected at least 977: the shard no longer knows whether older items were inserted"
    );
    let mut later = batch(0, 1, SOON);
    later.first.session = 2;
    shard.insert(later).await.unwrap();
    let error = shard.insert(batch(2001, 1, SOON)).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::FailedPrecondition);
    assert!(error.to_string().starts_with("session of actor 1 is 1, expected at least 2"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn unread_responses_hold_back_other_responses() {
    let item_max_bytes = 1 << 20;
    let tables = vec![TableConfig::uniform("t", 5, u64::MAX)];
    let memory_max_bytes = 8 << 20;
    let shard =
        Shard::open(ShardConfig { tables, memory_max_bytes, item_max_bytes, ..ShardConfig::default() })
            .unwrap();
    let mut large = batch(0, 1, SOON);
    large.items[0].payload = Bytes::from(vec![1; 1 << 20]);
    shard.insert(large).await.unwrap();
    let part = shard.sample("t", 1, SOON).await.unwrap();
    let error = shard.sample("t", 1, SOON).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::ResourceExhausted);
    assert!(error.to_string().starts_with("responses being sent hold 1048576 of 1310720 bytes"), "{error}");
    drop(part);
    shard.sample("t", 1, SOON).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_table_that_blocks_when_full_is_bounded_in_bytes() {
    let capacity_bytes = 3 * (ITEM_OVERHEAD_BYTES + 7);
    let shard =
        shard(TableConfig { when_full: WhenFull::Wait, ..TableConfig::uniform("t", 100, capacity_bytes) });
    let inserted = shard.insert(batch(0, 5, SOON)).await.unwrap();
    assert_eq!(inserted.keys.len(), 3);
    assert_eq!(inserted.refused.unwrap().code(), tonic::Code::ResourceExhausted);
    shard.delete("t", inserted.keys).await.unwrap();
    assert_eq!(shard.insert(batch(3, 2, SOON)).await.unwrap().keys.len(), 2);
}

#[tokio::test]
async fn a_reopened_shard_has_all_acknowledged_items() {
    let folder = tempfile::tempdir().unwrap();
    let config = ShardConfig {
        tables: vec![TableConfig::uniform("t", 100, u64::MAX)],
        data_dir: Some(folder.path().to_owned()),
        durability: Durability::Write,
        ..ShardConfig::default()
    };
    let mut keys = Vec::new();
    for start in 0..5 {
        let shard = Shard::open(config.clone()).unwrap();
        assert_eq!(shard.restored(), (keys.len() as u64, 0));
        let fresh = shard.insert(batch(4 * start, 4, SOON)).await.unwrap().keys;
        assert!(fresh.iter().all(|key| keys.iter().all(|old| key > old)));
        keys.extend(fresh);
        // Retransmit the batch, as after a lost response. Deleted items must not reappear.
        assert_eq!(shard.insert(batch(4 * start, 4, SOON)).await.unwrap().keys, [0; 4]);
        let gone = keys.remove(0);
        assert_eq!(shard.delete("t", vec![gone]).await.unwrap(), 1);
        assert_eq!(shard.update_priorities("t", vec![(keys[0], 9.0), (gone, 1.0)]).await.unwrap(), 1);
        if start == 2 {
            assert_eq!(shard.snapshot().await.unwrap().items, keys.len() as u64);
        }
    }
    let shard = Shard::open(config).unwrap();
    let part = shard.sample("t", 50, SOON).await.unwrap();
    assert!(part.items.iter().all(|sampled| keys.contains(&sampled.item.key)));
    assert!(
        part.items
            .iter()
            .filter(|sampled| sampled.item.key == keys[0])
            .all(|sampled| sampled.item.priority == 9.0)
    );
}

#[tokio::test]
async fn writes_are_refused_while_the_disk_is_full() {
    let disk = SimulatedDisk::new(1);
    let config = ShardConfig {
        tables: vec![TableConfig::uniform("t", 100, u64::MAX)],
        data_dir: Some("simulated".into()),
        durability: Durability::Sync,
        ..ShardConfig::default()
    };
    let open = || {
        let disk = std::sync::Arc::new(disk.clone());
        let directory = Directory::on(std::path::Path::new("simulated"), disk, None).unwrap();
        std::sync::Arc::new(Shard::on(Some(directory), config.clone().resolve().unwrap()).unwrap())
    };
    let shard = open();
    let key = shard.insert(batch(0, 1, SOON)).await.unwrap().keys[0];
    disk.set_room(30);
    let error = shard.insert(batch(1, 1, SOON)).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::Unavailable);
    let text = error.to_string();
    assert!(
        text.starts_with("cannot write the journal: ") && text.contains("; writes are refused until "),
        "{text}"
    );
    // Changes that would not be durable are refused; draws are still served.
    assert_eq!(shard.delete("t", vec![key]).await.unwrap_err().code(), tonic::Code::Unavailable);
    assert_eq!(shard.reset("t").await.unwrap_err().code(), tonic::Code::Unavailable);
    let updated = shard.update_priorities("t", vec![(key, 2.0)]).await;
    assert_eq!(updated.unwrap_err().code(), tonic::Code::Unavailable);
    assert_eq!(shard.sample("t", 1, SOON).await.unwrap().items.len(), 1);
    assert!(shard.snapshot().await.is_err());
    assert_eq!(shard.insert(batch(1, 1, SOON)).await.unwrap_err().code(), tonic::Code::Unavailable);
    assert!(disk.file_names().iter().all(|name| !name.contains('.')), "{:?}", disk.file_names());
    // Once the disk has room again, the shard recovers automatically.
    let snapshots = tokio::spawn(housekeeping::write_snapshots(std::sync::Arc::clone(&shard)));
    disk.set_room(u64::MAX);
    while shard.is_journal_failed() {
        tokio::time::sleep(SOON).await;
    }
    snapshots.abort();
    // The item whose insert was refused is in the table, and is now durable.
    assert_eq!(shard.insert(batch(1, 2, SOON)).await.unwrap().keys[0], 0);
    assert!(shard.describe().journal.unwrap().failures > 0);
    drop((snapshots.await, shard));
    disk.end(crate::store::simulation::disk::End::Machine);
    assert_eq!(open().restored(), (3, 0));
}
