//! Tests of draws from several shards as if they were one table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use iswitch_replay::client::{ClientConfig, ReplayClient};
use iswitch_replay::table::NewItem;

use crate::support::{Process, address, client};

/// Returns Pearson's chi-squared statistic of the draws. `chances` contains the expected probability of each item.
fn chi_square(drawn: &BTreeMap<u64, u32>, chances: &BTreeMap<u64, f64>) -> f64 {
    let total: u32 = drawn.values().sum();
    let term = |(item, chance): (&u64, &f64)| {
        let want = chance * f64::from(total);
        (f64::from(drawn.get(item).copied().unwrap_or(0)) - want).powi(2) / want
    };
    chances.iter().map(term).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn sampling_across_shards_has_the_probabilities_of_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let sockets: Vec<_> = (0..3).map(|shard| folder.path().join(format!("socket-{shard}"))).collect();
    let table = "name=t,capacity=1000,sampler=prioritized:1";
    let start = |(seed, socket): (usize, &PathBuf)| {
        Process::start(socket, &["--table", table, "--seed", &seed.to_string()])
    };
    let _shards: Vec<_> = sockets.iter().enumerate().map(start).collect();
    let mut priorities = BTreeMap::new();
    // The shards have different sizes and priorities. Each is written to by a client that knows only this shard.
    for (shard, count) in [(0, 4), (1, 8), (2, 18)] {
        let client = client(&sockets[shard..=shard]);
        let writer = client.writer("t", shard as u64);
        for at in 0..count {
            let id = shard as u64 * 100 + at;
            let priority = 1.0 + (id % 5) as f64;
            priorities.insert(id, priority);
            let payload = Bytes::copy_from_slice(&id.to_le_bytes());
            writer.insert(NewItem { priority, version: 0, payload }).await.unwrap();
        }
    }
    let total: f64 = priorities.values().sum();
    let chances: BTreeMap<u64, f64> =
        priorities.iter().map(|(id, priority)| (*id, priority / total)).collect();
    let client = ReplayClient::new(ClientConfig::new(sockets.iter().map(|path| address(path)))).unwrap();
    let mut drawn: BTreeMap<u64, u32> = BTreeMap::new();
    for _ in 0..100 {
        for item in client.sample("t", 60).await.unwrap() {
            let id = u64::from_le_bytes(item.payload[..].try_into().unwrap());
            assert!(
                (item.probability - chances[&id]).abs() < 1e-9,
                "{} instead of {}",
                item.probability,
                chances[&id]
            );
            assert_eq!(item.table_size, 30);
            *drawn.entry(id).or_default() += 1;
        }
    }
    // With 29 degrees of freedom, the statistic exceeds 66.2 with a probability of 1e-4. Seeds are fixed, but the order
    // of responses is not, so the draws are not deterministic.
    let statistic = chi_square(&drawn, &chances);
    assert!(statistic < 66.2, "{statistic}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_holds_back_samples_does_not_delay_other_shards() {
    let folder = tempfile::tempdir().unwrap();
    let sockets: Vec<_> = (0..2).map(|shard| folder.path().join(format!("socket-{shard}"))).collect();
    let start = |(socket, least): (&PathBuf, u32)| {
        let table = format!("name=t,capacity=1000,sampler=prioritized:1,min_size_to_sample={least}");
        Process::start(socket, &["--table", &table])
    };
    let _shards: Vec<_> = sockets.iter().zip([100, 1]).map(start).collect();
    // The first shard holds nearly all of the total priority, and no actor writes to it any more.
    for (shard, count, priority) in [(0, 5, 1e6), (1, 10, 1.0)] {
        let client = client(&sockets[shard..=shard]);
        let writer = client.writer("t", shard as u64);
        for _ in 0..count {
            writer
                .insert(NewItem { priority, version: 0, payload: Bytes::from_static(b"item") })
                .await
                .unwrap();
        }
    }
    let client = ReplayClient::new(ClientConfig::new(sockets.iter().map(|path| address(path)))).unwrap();
    // The client detects that the first shard holds draws back, and then draws from the other one.
    assert_eq!(client.sample("t", 60).await.unwrap().len(), 60);
    for item in client.sample("t", 60).await.unwrap() {
        assert_eq!((item.key.shard, item.table_size), (1, 10));
        assert!((item.probability - 0.1).abs() < 1e-9, "{}", item.probability);
    }
}
