//! Tests of every call, and of every refusal, over a socket.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use iswitch_replay::client::{ClientConfig, ClientError, ReplayClient, blocking};
use iswitch_replay::proto::{InsertRequest, NewItem as Message};
use iswitch_replay::server::{Address, Listener, Shard, ShardConfig, serve};
use iswitch_replay::table::{NewItem, Selector, TableConfig, WhenFull};
use tokio::sync::oneshot;
use tonic::Code;

use crate::support::stub;

/// Shard in this process on an unused port.
struct Served {
    url: String,
    _stop: oneshot::Sender<()>,
}

async fn served(tables: Vec<TableConfig>) -> Served {
    let config =
        ShardConfig { tables, item_max_bytes: 1 << 20, memory_max_bytes: 64 << 20, ..ShardConfig::default() };
    let shard = Arc::new(Shard::open(config).unwrap());
    let listener = Listener::bind(&"127.0.0.1:0".parse::<Address>().unwrap()).await.unwrap();
    let url = format!("http://{}", listener.address().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(serve(shard, vec![listener], async move {
        // The receiver completes when the sender is dropped.
        let _ = stopped.await;
    }));
    Served { url, _stop: stop }
}

fn new(priority: f64, text: &'static str) -> NewItem {
    NewItem { priority, version: 4, payload: Bytes::from_static(text.as_bytes()) }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> (Code, String) {
    match result {
        Err(ClientError::Refused { code, text, .. }) => (code, text),
        other => panic!("{other:?} is not a refusal"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_calls() {
    let table = TableConfig { sampler: Selector::MaxHeap, ..TableConfig::uniform("t", 10, u64::MAX) };
    let served = served(vec![table]).await;
    let client = ReplayClient::new(ClientConfig::new([&served.url])).unwrap();
    let writer = client.writer("t", 5);
    let low = writer.insert(new(1.0, "low")).await.unwrap();
    let high = writer.insert_batch(vec![new(2.0, "high"), new(-3.0, "least")]).await.unwrap()[0];
    let drawn = client.sample("t", 2).await.unwrap();
    assert_eq!(drawn.len(), 2);
    assert_eq!((drawn[1].key, &drawn[1].payload[..]), (high, &b"high"[..]));
    assert_eq!((drawn[1].actor, drawn[1].seq, drawn[1].version), (5, 1, 4));
    assert_eq!((drawn[1].times_sampled, drawn[1].table_size, drawn[1].probability), (2, 3, 1.0));
    assert_eq!(client.update_priorities("t", &[(low, 9.0)]).await.unwrap(), 1);
    assert_eq!(client.sample("t", 1).await.unwrap()[0].key, low);
    assert_eq!(client.delete("t", &[low, low]).await.unwrap(), 1);
    assert_eq!(client.update_priorities("t", &[(low, 9.0)]).await.unwrap(), 0);
    let described = client.describe().await.remove(0).unwrap();
    let table = &described.tables[0];
    assert_eq!((table.inserts, table.samples, table.deletes), (3, 3, 1));
    assert_eq!((table.extent.unwrap().size, table.insert_latency.unwrap().count), (2, 2));
    assert_eq!(client.reset("t").await.unwrap(), 2);
    let (code, text) = refusal(client.snapshot().await.remove(0));
    assert_eq!(
        (code, &text[..]),
        (
            Code::FailedPrecondition,
            "this shard cannot write snapshots, because it was started without --data-dir"
        )
    );
}

#[test]
fn plain_threads() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let served = runtime.block_on(served(vec![TableConfig::queue("q", 4, u64::MAX)]));
    let client = blocking::ReplayClient::new(ClientConfig::new([&served.url])).unwrap();
    std::thread::scope(|scope| {
        for actor in 0..3 {
            let writer = client.writer("q", actor);
            scope.spawn(move || {
                // The queue holds only 4 items, so the actors wait for the learner.
                let tickets: Vec<_> = (0..20).map(|_| writer.submit(vec![new(1.0, "rollout")])).collect();
                tickets.into_iter().for_each(|ticket| assert_eq!(ticket.stored().unwrap().len(), 1));
            });
        }
        let mut drawn = 0;
        while drawn < 60 {
            drawn += client.sample("q", (60 - drawn).min(8)).unwrap().len();
        }
    });
    assert_eq!(client.describe().remove(0).unwrap().tables[0].samples, 60);
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_specific_error_codes() {
    let full = TableConfig { when_full: WhenFull::Wait, ..TableConfig::uniform("full", 1, 4 << 20) };
    let served = served(vec![full, TableConfig::queue("q", 1, 4 << 20)]).await;
    let config = ClientConfig { wait: Duration::from_millis(50), ..ClientConfig::new([&served.url]) };
    let client = ReplayClient::new(config).unwrap();
    let (code, text) = refusal(client.writer("none", 1).insert(new(1.0, "x")).await);
    assert_eq!((code, &text[..]), (Code::NotFound, "table is \"none\", expected one of [\"full\", \"q\"]"));

    let writer = client.writer("full", 1);
    writer.insert(new(1.0, "x")).await.unwrap();
    let (code, text) = refusal(writer.insert(new(1.0, "x")).await);
    assert_eq!(code, Code::ResourceExhausted);
    assert!(
        text.starts_with(
            "table \"full\" could not serve the request within 50 ms: the table is full with 1 items"
        ),
        "{text}"
    );

    let (code, text) = refusal(client.sample("q", 1).await);
    assert_eq!(code, Code::DeadlineExceeded);
    assert!(
        text.contains("the rate limiter is waiting for inserts: the table has 0 items, expected at least 1"),
        "{text}"
    );

    let long = |len: usize| NewItem { priority: 1.0, version: 0, payload: Bytes::from(vec![0; len]) };
    let (code, text) = refusal(writer.insert(long((1 << 20) + 1)).await);
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(text, "items[0].payload is 1048577 bytes long, expected at most 1048576 (--item-max)");
    let (code, text) = refusal(writer.insert(long(5 << 20)).await);
    assert_eq!(code, Code::InvalidArgument, "{text}");
    assert!(text.contains("expected at most 2097152 (--item-max plus 1 MiB)"), "{text}");

    let (code, text) = refusal(client.writer("q", 1).insert(NewItem { priority: f64::NAN, ..long(1) }).await);
    assert_eq!(
        (code, &text[..]),
        (Code::InvalidArgument, "table \"q\", items[0]: priority is NaN, expected a finite number")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retransmitted_request_stores_no_item_twice() {
    let served = served(vec![TableConfig::uniform("t", 10, u64::MAX)]).await;
    let mut stub = stub(served.url.clone());
    let item = Message { priority: 1.0, version: 0, payload: Bytes::from_static(b"x") };
    let request = |first_seq, items| InsertRequest {
        table: "t".to_owned(),
        actor: 1,
        session: 1,
        first_seq,
        items: vec![item.clone(); items],
        wait_ms: 0,
    };
    let first = stub.insert(request(0, 2)).await.unwrap().into_inner();
    let again = stub.insert(request(0, 3)).await.unwrap().into_inner();
    assert!(first.keys.iter().all(|key| *key > 0));
    assert_eq!(again.keys[..2], [0, 0]);
    assert!(again.keys[2] > first.keys[1]);
    let described = stub.describe(iswitch_replay::proto::DescribeRequest {}).await.unwrap().into_inner();
    assert_eq!((described.tables[0].inserts, described.tables[0].duplicates), (3, 2));
}
