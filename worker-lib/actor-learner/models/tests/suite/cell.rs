//! Tests of the embedded cell. They cover the single fetch for all readers, the age limit of pointers, failing
//! upstreams, and slow readers.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{ask, cell, client, endpoint, learner, model, name};
use bytes::Bytes;
use iswitch_models::cell::CellOptions;
use iswitch_models::learner::{self, LearnerOptions};
use iswitch_models::{ModelError, Patience, ServerOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_concurrent_readers_cause_one_fetch() {
    const READERS: usize = 200;
    let (store, learner) = learner(LearnerOptions::default()).await;
    let first = cell(&[endpoint(&learner)], CellOptions::default()).await;
    // This cell's upstream is another cell.
    let second = cell(&[endpoint(&first)], CellOptions::default()).await;
    let bytes = model(1, 3 << 20);
    let manifest = store.publish(&name(), 1, bytes.clone()).unwrap();
    let barrier = Arc::new(Barrier::new(READERS));
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (barrier, mut client) = (Arc::clone(&barrier), client(&[endpoint(&second)]));
            tokio::spawn(async move {
                barrier.wait().await;
                client.poll().await.unwrap().unwrap()
            })
        })
        .collect();
    for reader in readers {
        let model = reader.await.unwrap();
        assert!(model.bytes == bytes && model.manifest == manifest);
    }
    for cell in [&first, &second] {
        let stats = cell.stats();
        assert_eq!((stats.fetches, stats.fetched_bytes), (1, bytes.len() as u64));
        // A cell requests the pointer again only when it is no longer fresh.
        assert!(stats.pointer_requests < READERS as u64 / 2, "{stats:?}");
    }
}

#[tokio::test]
async fn concurrent_readers_share_one_pointer_request() {
    const READERS: usize = 20;
    let (store, learner) = learner(LearnerOptions::default()).await;
    // The pointer stays fresh for the whole test, so no cell requests it again.
    let options = CellOptions { pointer_fresh: Duration::from_secs(600), ..CellOptions::default() };
    let first = cell(&[endpoint(&learner)], options.clone()).await;
    let second = cell(&[endpoint(&first)], options).await;
    store.publish(&name(), 1, model(1, 1000)).unwrap();
    let latest = "GET /models/ppo/latest";
    ask(&endpoint(&first), latest, &[]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let at = endpoint(&second);
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let at = at.clone();
            tokio::spawn(async move { ask(&at, latest, &[]).await.json()["version"].clone() })
        })
        .collect();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), 1);
    }
    assert_eq!(second.stats().pointer_requests, 1);
}

/// Simulated learner. It sends a part of an object each time the test requests one.
struct Upstream {
    stream: TcpStream,
}

impl Upstream {
    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }
}

/// Accepts a request for version 1, and sends only the head of the response.
async fn hesitant(listener: &TcpListener, bytes: &[u8]) -> Upstream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = vec![0; 4096];
    let len = stream.read(&mut request).await.unwrap();
    assert!(request[..len].starts_with(b"GET /models/ppo/1 "));
    let manifest = iswitch_models::Manifest::of(1, bytes);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: {}\r\nX-Model-Version: 1\r\n\
         X-Model-Crc32c: {:08x}\r\nX-Model-Published-Unix-Ms: 0\r\n\r\n",
        bytes.len(),
        manifest.etag(),
        manifest.crc32c
    );
    let mut upstream = Upstream { stream };
    upstream.send(head.as_bytes()).await;
    upstream
}

#[tokio::test]
async fn readers_receive_an_object_while_it_is_still_downloading() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string().parse().unwrap();
    let cell = cell(&[at], CellOptions::default()).await;
    let bytes = model(1, 1 << 20);
    let mut reader = TcpStream::connect(endpoint(&cell).to_string()).await.unwrap();
    reader.write_all(b"GET /models/ppo/1 HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut upstream = hesitant(&listener, &bytes).await;
    upstream.send(&bytes[..bytes.len() / 2]).await;
    // The first half, except for a partial piece of less than 64 KiB, arrives before the second half is sent.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(reader.read_u8().await.unwrap());
    }
    let mut first = vec![0; bytes.len() / 2 - (64 << 10)];
    reader.read_exact(&mut first).await.unwrap();
    upstream.send(&bytes[bytes.len() / 2..]).await;
    let mut rest = vec![0; bytes.len() - first.len()];
    reader.read_exact(&mut rest).await.unwrap();
    assert!([first, rest].concat() == bytes);
}

#[tokio::test]
async fn corrupted_bytes_never_yield_a_complete_object() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string().parse().unwrap();
    let cell = cell(&[at], CellOptions::default()).await;
    let bytes = model(1, 500_000);
    let reading = {
        let at = endpoint(&cell).to_string();
        tokio::spawn(async move {
            let mut reader = TcpStream::connect(at).await.unwrap();
            reader.write_all(b"GET /models/ppo/1 HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            let _ = reader.read_to_end(&mut answer).await;
            answer.len()
        })
    };
    let mut upstream = hesitant(&listener, &bytes).await;
    let mut wrong = bytes.to_vec();
    wrong[0] ^= 1;
    upstream.send(&wrong).await;
    assert!(reading.await.unwrap() < bytes.len(), "the connection ends before the object does");
    crate::support::until(async || cell.stats().fetches_failed == 1).await;
}

#[tokio::test]
async fn a_stale_pointer_is_served_up_to_its_age_limit_and_then_refused() {
    let (store, first) = learner(LearnerOptions::default()).await;
    let listen = first.listens().to_vec();
    store.publish(&name(), 1, model(1, 1000)).unwrap();
    let options = CellOptions {
        pointer_fresh: Duration::ZERO,
        model_age_max: Duration::from_secs(10),
        ..CellOptions::default()
    };
    let cell = cell(&[endpoint(&first)], options).await;
    let (at, latest) = (endpoint(&cell), "GET /models/ppo/latest");
    assert_eq!(ask(&at, latest, &[]).await.json()["version"], 1);
    // The cell revalidates the pointer in the background, so the new version appears even though no request is waiting
    // for it.
    store.publish(&name(), 2, model(2, 1000)).unwrap();
    crate::support::until(async || ask(&at, latest, &[]).await.json()["version"] == 2).await;
    assert!(cell.stats().stale_pointers_served > 0);
    assert_eq!(ask(&at, "GET /models/ppo/2", &[]).await.status, 200);

    drop(first);
    let mut served = 0;
    crate::support::until(async || {
        let answer = ask(&at, latest, &[]).await;
        if answer.status == 200 {
            served += 1;
            assert_eq!(answer.json()["version"], 2);
            assert!(answer.headers["x-model-age-ms"].parse::<u64>().unwrap() <= 10_000);
            return false;
        }
        assert_eq!((answer.status, answer.error().as_str()), (504, "model_too_old"));
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("at most 10000 ms"), "{message}");
        true
    })
    .await;
    assert!(served > 0, "expected stale responses for a limited time");
    // Cached objects stay readable.
    assert_eq!(Bytes::from(ask(&at, "GET /models/ppo/2", &[]).await.body), model(2, 1000));

    let _second = learner::serve(store, &listen, LearnerOptions::default()).await.unwrap();
    crate::support::until(async || ask(&at, latest, &[]).await.status == 200).await;
}

#[tokio::test]
async fn waiting_actors_are_notified_of_a_version_and_know_its_age() {
    let (store, learner) = learner(LearnerOptions::default()).await;
    let cell = cell(&[endpoint(&learner)], CellOptions::default()).await;
    let mut actor = client(&[endpoint(&cell)]);
    let waiting = tokio::spawn(async move {
        let first = actor.wait_newer(Duration::from_secs(60)).await;
        (first, actor)
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    store.publish(&name(), 10, model(10, 5000)).unwrap();
    let (first, mut actor) = waiting.await.unwrap();
    assert_eq!(first.unwrap().unwrap().bytes, model(10, 5000));
    let age = actor.model_age().unwrap();
    assert!(actor.wait_newer(Duration::from_millis(1)).await.unwrap().is_none());
    assert!(actor.model_age().unwrap() < age + crate::support::PATIENCE);
    for version in 11..20 {
        store.publish(&name(), version, model(version, 5000)).unwrap();
        let read = actor.wait_newer(Duration::from_secs(60)).await.unwrap().unwrap();
        assert_eq!(read.bytes, model(version, 5000));
        assert_eq!(read.manifest.version, version);
    }
    assert_eq!(actor.stats().models, 10);
    assert!(actor.poll().await.unwrap().is_none(), "nothing is newer");
}

#[tokio::test]
async fn an_interrupted_download_resumes_from_another_source() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let broken = listener.local_addr().unwrap().to_string().parse().unwrap();
    let (store, learner) = learner(LearnerOptions::default()).await;
    let bytes = model(1, 400_000);
    let manifest = store.publish(&name(), 1, bytes.clone()).unwrap();
    let mut actor = client(&[broken, endpoint(&learner)]);
    let mut sink = Collected::default();
    let (read, ()) = tokio::join!(actor.fetch(&manifest, &mut sink), async {
        let mut upstream = hesitant(&listener, &bytes).await;
        upstream.send(&bytes[..150_000]).await;
        drop((upstream, listener));
    });
    read.unwrap();
    assert!(sink.0 == bytes);
    assert_eq!(actor.stats().resumes, 1);
    assert!(learner.stats().sent_bytes < 300_000, "expected only the rest: {:?}", learner.stats());
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

#[tokio::test]
async fn a_model_too_large_for_a_cell_is_read_from_the_learner() {
    let (store, learner) = learner(LearnerOptions::default()).await;
    store.publish(&name(), 1, model(1, 10_001)).unwrap();
    let options = CellOptions { object_len_max_bytes: 10_000, ..CellOptions::default() };
    let cell = cell(&[endpoint(&learner)], options).await;
    let refused = ask(&endpoint(&cell), "GET /models/ppo/1", &[]).await;
    assert_eq!((refused.status, refused.error().as_str()), (502, "source_too_large"));
    let mut actor = client(&[endpoint(&cell), endpoint(&learner)]);
    assert_eq!(actor.poll().await.unwrap().unwrap().bytes, model(1, 10_001));
    let mut only_cell = client(&[endpoint(&cell)]);
    let error = only_cell.poll().await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Refused { message, .. } if message.contains("at most 10000")),
        "{error}"
    );
}

#[tokio::test]
async fn a_cell_does_not_exceed_its_capacity() {
    let (store, learner) = learner(LearnerOptions::default()).await;
    let options = CellOptions { capacity_bytes: 1 << 20, ..CellOptions::default() };
    let cell = cell(&[endpoint(&learner)], options).await;
    let mut actor = client(&[endpoint(&cell)]);
    for version in 1..=12 {
        store.publish(&name(), version, model(version, 300 << 10)).unwrap();
        assert_eq!(
            actor.wait_newer(Duration::from_secs(60)).await.unwrap().unwrap().manifest.version,
            version
        );
    }
    assert_eq!(cell.stats().fetches, 12);
    crate::support::until(async || {
        let metrics = String::from_utf8(ask(&endpoint(&cell), "GET /metrics", &[]).await.body).unwrap();
        let kept = metrics.lines().find_map(|line| line.strip_prefix("iswitch_models_kept_bytes ")).unwrap();
        // Objects beyond the capacity are evicted shortly after they have arrived.
        kept.parse::<u64>().unwrap() <= 1 << 20
    })
    .await;
}

#[tokio::test]
async fn a_stalled_reader_is_disconnected_while_others_are_served() {
    let patience = Patience { stall: Duration::from_millis(200), bytes_per_s_min: 1 << 20 };
    let server = ServerOptions { patience, ..ServerOptions::default() };
    let (store, learner) =
        learner(LearnerOptions { server: server.clone(), ..LearnerOptions::default() }).await;
    // The object is larger than the buffers of a connection.
    let len = 64 << 20;
    store.publish(&name(), 1, model(1, len)).unwrap();
    let cell = cell(&[endpoint(&learner)], CellOptions { server, ..CellOptions::default() }).await;
    for server in [&learner, &cell] {
        let mut slow = TcpStream::connect(endpoint(server).to_string()).await.unwrap();
        slow.write_all(b"GET /models/ppo/1 HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        crate::support::until(async || {
            server.stats().slow_readers_cut >= 1 && server.stats().connections == 0
        })
        .await;
        let mut got = Vec::new();
        let _ = slow.read_to_end(&mut got).await;
        assert!(got.len() < len, "expected an incomplete response, received {} bytes", got.len());
    }
    let good = ask(&endpoint(&cell), "GET /models/ppo/1", &[("Range", "bytes=0-9")]).await;
    assert_eq!(good.body, model(1, 10));
}

#[tokio::test]
async fn names_unknown_upstream_do_not_occupy_the_cache() {
    let (store, learner) = learner(LearnerOptions::default()).await;
    let options = CellOptions { names_max: 2, unknown_names_max: 3, ..CellOptions::default() };
    let cell = cell(&[endpoint(&learner)], options).await;
    let at = endpoint(&cell);
    let bogus = async |from: u32| {
        for number in from..from + 10 {
            let answer = ask(&at, &format!("GET /models/bogus{number}/latest"), &[]).await;
            assert_eq!((answer.status, answer.error()), (404, "unknown_model".to_owned()));
        }
    };
    bogus(0).await;
    // Readers wait for this name before it is published, like actors that start before their learner.
    let waiting = {
        let at = at.clone();
        tokio::spawn(async move { ask(&at, "GET /models/ppo/latest?wait=60000", &[]).await })
    };
    crate::support::until(async || cell.stats().pointer_requests > 10).await;
    // Names without waiting readers are displaced first.
    bogus(10).await;
    store.publish(&name(), 1, model(1, 1000)).unwrap();
    assert_eq!(waiting.await.unwrap().json()["version"], 1);
    bogus(20).await;
    assert_eq!(ask(&at, "GET /models/ppo/latest", &[]).await.json()["version"], 1);
    ask(&at, "GET /metrics", &[]).await;
    let stats = cell.stats();
    assert_eq!((stats.names, stats.names_unknown), (1, 3), "{stats:?}");
    assert!(stats.names_displaced >= 27, "{stats:?}");
    // The cell can serve more models than it has entries, because a new model displaces an older one.
    for version in [1, 2] {
        for other in ["dqn", "a2c", "ddpg"] {
            store.publish(&other.parse().unwrap(), version, model(version, 10)).unwrap();
            let answer = ask(&at, &format!("GET /models/{other}/latest"), &[]).await;
            assert_eq!(answer.status, 200, "{other}");
        }
    }
}

#[tokio::test]
async fn a_reader_whose_name_is_displaced_is_asked_to_retry() {
    let (_store, learner) = learner(LearnerOptions::default()).await;
    let options = CellOptions { unknown_names_max: 1, ..CellOptions::default() };
    let cell = cell(&[endpoint(&learner)], options).await;
    let at = endpoint(&cell);
    let waiting = {
        let at = at.clone();
        tokio::spawn(async move { ask(&at, "GET /models/ppo/latest?wait=60000", &[]).await })
    };
    crate::support::until(async || cell.stats().pointer_requests > 0).await;
    ask(&at, "GET /models/other/latest", &[]).await;
    let answer = waiting.await.unwrap();
    assert_eq!((answer.status, answer.error()), (503, "busy".to_owned()));
    assert!(answer.headers.contains_key("retry-after"));
}
