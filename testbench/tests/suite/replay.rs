//! Tests of this project's replay client with a real Reverb server, to which it speaks Reverb's own protocol, and tests
//! of the benchmark of replay writes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use iswitch_harness::process::Process;
use iswitch_harness::requirements::{alone, found_and, networks_and, report};
use iswitch_replay::client::blocking::{ReplayClient, Writer};
use iswitch_replay::client::{ClientConfig, ClientError, ItemKey};
use iswitch_replay::table::NewItem;
use iswitch_testbench::contest::{Progress, Row};
use iswitch_testbench::replay::reverb::Sampler;
use iswitch_testbench::replay::throughput::{self, Pair};
use iswitch_testbench::replay::{Contender, Load, Reverb, Testbed, measure};
use serde_json::{Value, json};

/// A Reverb server with two clients: this project's client and Reverb's own.
struct Servers {
    _server: Process,
    client: ReplayClient,
    other: Other,
}

/// Process that runs Reverb's own client.
struct Other {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Servers {
    fn start(reverb: &Reverb, items: usize) -> Self {
        let mut server =
            reverb.start(0, items, Sampler::Prioritized, |python| iswitch_harness::process::command(python));
        let address = format!("127.0.0.1:{}", Reverb::port(&mut server));
        let config = ClientConfig {
            wait: Duration::from_secs(60),
            ..ClientConfig::new([format!("reverb://{address}")])
        };
        let mut command = reverb.script("check.py");
        let mut child = command.arg(&address).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let other = Other { child, input, output: BufReader::new(output) };
        Self { _server: server, client: ReplayClient::new(config).unwrap(), other }
    }

    fn writer(&self, actor: u64) -> Writer {
        self.client.writer("t", actor)
    }
}

impl Other {
    fn tell(&mut self, words: &Value) -> Value {
        writeln!(self.input, "{words}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{words}: {error} in {line:?}"))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn item(len: usize, byte: u8, priority: f64) -> NewItem {
    NewItem { priority, version: 7, payload: vec![byte; len].into() }
}

#[test]
fn a_reverb_server_stores_and_returns_items_of_the_rust_client() {
    let Some(reverb) = found_and(
        "a_reverb_server_stores_and_returns_items_of_the_rust_client",
        Reverb::find(),
        &["setpriv"],
    ) else {
        return;
    };
    let servers = Servers::start(&reverb, 1000);
    let writer = servers.writer(3);
    let lens = [0, 1, 59, 60, 61, 4095, 4096, 65_536, 300_000, 2 << 20];
    let mut keys: Vec<ItemKey> = lens
        .iter()
        .enumerate()
        .map(|(at, len)| writer.insert(item(*len, at as u8 + 1, 1.0)).unwrap())
        .collect();
    keys.extend(writer.insert_batch(vec![item(10, 99, 1.0); 3]).unwrap());
    let mut seen = std::collections::HashSet::new();
    while seen.len() < keys.len() {
        for drawn in servers.client.sample("t", 64).unwrap() {
            let seq = drawn.seq as usize;
            let (len, byte) = lens.get(seq).map_or((10, 99), |len| (*len, seq as u8 + 1));
            assert_eq!((drawn.payload.len(), drawn.actor, drawn.version), (len, 3, 7));
            assert!(drawn.payload.iter().all(|found| *found == byte), "item {seq}");
            assert_eq!((drawn.key, drawn.table_size), (keys[seq], 13));
            assert!((drawn.probability - 1.0 / 13.0).abs() < 1e-6 && drawn.times_sampled > 0);
            seen.insert(seq);
        }
    }

    // With these priorities, only one item is ever sampled, and none after it is deleted.
    let updates: Vec<_> = keys.iter().map(|key| (*key, if *key == keys[4] { 2.5 } else { 0.0 })).collect();
    assert_eq!(servers.client.update_priorities("t", &updates).unwrap(), 13);
    for drawn in servers.client.sample("t", 20).unwrap() {
        assert_eq!((drawn.key, drawn.priority, drawn.probability), (keys[4], 2.5, 1.0));
    }

    let described = servers.client.describe().remove(0).unwrap();
    let table = &described.tables[0];
    assert_eq!((table.name.as_str(), table.inserts, table.extent.unwrap().size), ("t", 13, 13));
    assert_eq!((table.sampler.as_str(), table.remover.as_str()), ("prioritized:1", "fifo"));
    assert_eq!((table.capacity_items, table.min_size_to_sample), (1000, 1));
}

#[test]
fn items_of_the_rust_client_and_the_reverb_client_are_identical() {
    let Some(reverb) = found_and(
        "items_of_the_rust_client_and_the_reverb_client_are_identical",
        Reverb::find(),
        &["setpriv"],
    ) else {
        return;
    };
    let mut servers = Servers::start(&reverb, 1000);
    servers.writer(1).insert(item(70_000, 3, 1.5)).unwrap();
    for drawn in servers.other.tell(&json!(["sample", 5])).as_array().unwrap() {
        assert_eq!(*drawn, json!({ "len": 70_000, "sum": 210_000, "priority": 1.5 }));
    }
    servers.client.update_priorities("t", &drawn_keys(&servers.client)).unwrap();
    // From here on, only the item of Reverb's client is sampled.
    servers.other.tell(&json!(["insert", 100_000, 9, 0.5]));
    for drawn in servers.client.sample("t", 5).unwrap() {
        assert!(drawn.payload.len() == 100_000 && drawn.payload.iter().all(|byte| *byte == 9));
        assert_eq!((drawn.priority, drawn.probability, drawn.actor, drawn.version), (0.5, 1.0, 0, 0));
    }
    servers.client.update_priorities("t", &drawn_keys(&servers.client)).unwrap();
    servers.other.tell(&json!(["steps", 4]));
    let drawn = servers.client.sample("t", 1).unwrap();
    assert_eq!(drawn[0].payload[..], [0, 255, 1, 254, 2, 253, 3, 252]);
}

/// Samples items. Returns their keys, each with a priority that excludes the item from further sampling.
fn drawn_keys(client: &ReplayClient) -> Vec<(ItemKey, f64)> {
    client.sample("t", 20).unwrap().into_iter().map(|drawn| (drawn.key, 0.0)).collect()
}

#[test]
fn refusals_of_a_reverb_server_are_reported_with_their_reason() {
    let Some(reverb) =
        found_and("refusals_of_a_reverb_server_are_reported_with_their_reason", Reverb::find(), &["setpriv"])
    else {
        return;
    };
    let servers = Servers::start(&reverb, 4);
    let text = |error: ClientError| match error {
        ClientError::Refused { text, .. } => text,
        other => panic!("{other}"),
    };
    let unknown = servers.client.writer("nowhere", 1).insert(item(9, 1, 1.0)).unwrap_err();
    assert!(text(unknown).contains("nowhere"));
    assert!(text(servers.client.sample("nowhere", 1).unwrap_err()).contains("nowhere"));
    let writer = servers.writer(1);
    for priority in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = text(writer.insert(item(9, 1, priority)).unwrap_err());
        assert!(refused.contains("items[0].priority") && refused.contains("finite"), "{refused}");
    }
    // The server continues after all these errors, and does not exceed its capacity.
    for _ in 0..10 {
        writer.insert(item(9, 1, 1.0)).unwrap();
    }
    assert_eq!(servers.client.describe()[0].as_ref().unwrap().tables[0].extent.unwrap().size, 4);
}

#[test]
fn replay_writes_are_measured_with_iswitch_shards() {
    if !networks_and("replay_writes_are_measured_with_iswitch_shards", &["tc"]) {
        return;
    }
    let _alone = alone();
    let reverb = Reverb::find().ok();
    let rate = "0.5gbit".parse().unwrap();
    let least = Duration::from_millis(300);
    let load = Load { actors: vec![2, 12], len_bytes: 100_000, rate, turns: 2, least };
    let testbed = Testbed::new(2, &load, reverb.as_ref());
    let contenders = Contender::all(&[1, 2], reverb.is_some());
    let table = measure(&testbed, &contenders, &load, &Progress::silent());
    report(&table.text());
    assert!(table.contenders().map(|(contender, _)| contender).eq(contenders.iter().copied()));
    for Row { contender, runs } in &table.standings.rows {
        assert_eq!(runs.len(), 2, "{contender}");
        for run in runs {
            assert!(run.inserts > 0 && run.mean_ms > 0.0 && run.p99_ms >= run.p50_ms, "{contender}: {run:?}");
        }
    }
    assert_eq!(table.json()["rows"][0]["contender"], "replayd, 1 shard");
    assert_eq!(table.csv().lines().count(), 4 * contenders.len());
    assert!(table.figure().contains("replayd, 2 shards"));
}

#[test]
fn replay_throughput_is_measured_next_to_reverb() {
    let _alone = alone();
    let reverb = Reverb::find().ok();
    let measured = Duration::from_millis(300);
    let load = throughput::Load { len_bytes: 65_536, actors: 4, turns: 1, measured };
    let measured = throughput::measure(reverb.as_ref(), load, &Progress::silent());
    report(&measured.text());
    let rows = &measured.standings.rows;
    assert_eq!((rows[0].contender, rows.len()), (Pair::Own, if reverb.is_some() { 3 } else { 1 }));
    assert!(rows.iter().all(|row| row.runs.len() == 1 && row.runs[0] > 0.0));
}
