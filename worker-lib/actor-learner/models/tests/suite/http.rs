//! Tests of the exact HTTP responses of a learner and of a cell. The cell fetches from the learner, and the same tests
//! apply to both.

use crate::support::{ask, cell, endpoint, learner, model, name, send};
use bytes::Bytes;
use iswitch_models::learner::{LearnerOptions, PublishFrom};
use iswitch_models::{ClientOptions, Endpoint, ServerOptions, publish};

const LEN: usize = 700_001;
const ROUTE: &str = "GET /models/ppo/7";

/// Starts a learner with version 7, and a cell.
async fn servers() -> Vec<(iswitch_models::Server, Endpoint)> {
    let (store, learner) = learner(LearnerOptions::default()).await;
    store.publish(&name(), 7, model(7, LEN)).unwrap();
    let cell = cell(&[endpoint(&learner)], iswitch_models::cell::CellOptions::default()).await;
    [learner, cell]
        .into_iter()
        .map(|server| {
            let at = endpoint(&server);
            (server, at)
        })
        .collect()
}

#[tokio::test]
async fn objects_are_immutable_and_have_strong_etags() {
    for (_server, at) in &servers().await {
        let whole = ask(at, ROUTE, &[]).await;
        assert_eq!((whole.status, Bytes::from(whole.body)), (200, model(7, LEN)));
        assert!(whole.headers["cache-control"].contains("immutable"));
        assert_eq!(whole.headers["accept-ranges"], "bytes");
        assert_eq!(whole.headers["x-model-version"], "7");
        let etag = whole.headers["etag"].as_str();
        assert_eq!(etag.len(), 66, "a quoted SHA-256");
        let known = ask(at, ROUTE, &[("If-None-Match", etag)]).await;
        assert_eq!((known.status, known.body.len(), known.headers["etag"].as_str()), (304, 0, etag));
        assert_eq!(ask(at, ROUTE, &[("If-None-Match", "\"other\"")]).await.status, 200);
        assert_eq!(ask(at, ROUTE, &[("If-Match", etag)]).await.status, 200);
        let other = ask(at, ROUTE, &[("If-Match", "\"other\"")]).await;
        assert_eq!((other.status, other.error().as_str()), (412, "precondition_failed"));
        let head = ask(at, "HEAD /models/ppo/7", &[("Range", "bytes=1-2")]).await;
        assert_eq!((head.status, head.headers["content-length"].as_str()), (200, "700001"));
        assert!(head.body.is_empty());
    }
}

#[tokio::test]
async fn single_ranges_are_served() {
    let bytes = model(7, LEN);
    for (_server, at) in &servers().await {
        let etag = ask(at, ROUTE, &[]).await.headers["etag"].clone();
        for (range, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=262143-262144", 262_143..262_145),
            ("bytes=600000-", 600_000..LEN),
            ("bytes=-5", LEN - 5..LEN),
            ("bytes=700000-900000", 700_000..LEN),
        ] {
            let answer = ask(at, ROUTE, &[("Range", range), ("If-Range", &etag)]).await;
            assert_eq!(answer.status, 206, "{range}");
            assert_eq!(answer.body, bytes[part.clone()], "{range}");
            let expected = format!("bytes {}-{}/{LEN}", part.start, part.end - 1);
            assert_eq!(answer.headers["content-range"], expected);
        }
        for fields in [
            [("Range", "bytes=1-2,5-6"), ("Accept", "*/*")],
            [("Range", "bytes=1-2"), ("If-Range", "\"another\"")],
            [("Range", "bytes=2-1"), ("Accept", "*/*")],
        ] {
            let whole = ask(at, ROUTE, &fields).await;
            assert_eq!((whole.status, whole.body.len()), (200, LEN), "{fields:?}");
        }
        let behind = ask(at, ROUTE, &[("Range", "bytes=700001-")]).await;
        assert_eq!((behind.status, behind.error().as_str()), (416, "range_not_satisfiable"));
        assert_eq!(behind.headers["content-range"], "bytes */700001");
    }
}

#[tokio::test]
async fn the_latest_pointer_is_small_and_briefly_cacheable() {
    for (_server, at) in &servers().await {
        let latest = ask(at, "GET /models/ppo/latest", &[]).await;
        let json = latest.json();
        assert_eq!(
            (latest.status, json["version"].as_u64(), json["len_bytes"].as_u64()),
            (200, Some(7), Some(LEN as u64))
        );
        let object = ask(at, ROUTE, &[]).await;
        assert_eq!(object.headers["etag"], format!("\"{}\"", json["sha256"].as_str().unwrap()));
        let control = &latest.headers["cache-control"];
        assert_eq!(control, "max-age=1, stale-while-revalidate=30, stale-if-error=30");
        assert!(latest.headers.contains_key("age") && latest.headers.contains_key("x-model-age-ms"));
        let known = ask(at, "GET /models/ppo/latest", &[("If-None-Match", &latest.headers["etag"])]).await;
        assert_eq!((known.status, known.body.len()), (304, 0));
        let waited = ask(at, "GET /models/ppo/latest?after=6&wait=60000", &[]).await;
        assert_eq!((waited.status, waited.json()), (200, json));
        assert_eq!(waited.headers["cache-control"], "no-store");
        let nothing = ask(at, "GET /models/ppo/latest?after=7&wait=1", &[]).await;
        assert_eq!((nothing.status, nothing.body.len()), (204, 0));
        assert!(nothing.headers["x-model-held-ms"].parse::<u64>().unwrap() >= 1);
    }
}

#[tokio::test]
async fn refusals_have_specific_error_codes() {
    for (_server, at) in &servers().await {
        for (request, status, error) in [
            ("GET /models/ppo/6", 404, "unknown_version"),
            ("GET /models/dqn/latest", 404, "unknown_model"),
            ("GET /models/dqn/latest?wait=1", 404, "unknown_model"),
            ("GET /", 404, "unknown_path"),
            ("GET /models/ppo/x", 400, "bad_request"),
            ("GET /models/ppo/latest?wait=1h", 400, "bad_request"),
            ("DELETE /models/ppo/7", 405, "method_not_allowed"),
        ] {
            let answer = ask(at, request, &[]).await;
            assert_eq!((answer.status, answer.error().as_str()), (status, error), "{request}");
            assert_eq!(answer.headers["cache-control"], "no-store");
        }
        let metrics = String::from_utf8(ask(at, "GET /metrics", &[]).await.body).unwrap();
        assert!(metrics.contains("iswitch_models_refusals_total 7\n"), "{metrics}");
    }
    let (server, at) = &servers().await[0];
    assert_eq!(ask(at, "GET /models/ppo/6", &[]).await.json()["kept"], serde_json::json!([7]));
    assert_eq!(server.stats().refusals, 1);
}

#[tokio::test]
async fn an_excess_connection_is_asked_to_retry() {
    let server = ServerOptions { connections_max: 1, ..ServerOptions::default() };
    let (store, learner) = learner(LearnerOptions { server, ..LearnerOptions::default() }).await;
    store.publish(&name(), 1, model(1, 10)).unwrap();
    let at = endpoint(&learner);
    let held = tokio::net::TcpStream::connect(at.to_string()).await.unwrap();
    crate::support::until(async || learner.stats().connections == 1).await;
    let refused = ask(&at, "GET /models/ppo/1", &[]).await;
    assert_eq!((refused.status, refused.error().as_str()), (503, "busy"));
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(learner.stats().connections_refused, 1);
    drop(held);
    crate::support::until(async || ask(&at, "GET /models/ppo/1", &[]).await.status == 200).await;
}

#[tokio::test]
async fn only_authorized_clients_publish_models() {
    let everywhere = LearnerOptions { publish_from: PublishFrom::Everywhere, ..LearnerOptions::default() };
    let store = iswitch_models::StoreOptions { object_len_max_bytes: 100, ..Default::default() };
    let store = std::sync::Arc::new(iswitch_models::ModelStore::new(store));
    let learner =
        iswitch_models::learner::serve(store, &crate::support::any_port(), everywhere).await.unwrap();
    let at = endpoint(&learner);
    let put = |version: u64, len| publish_to(&at, version, len);
    assert_eq!(put(3, 100).await.unwrap().version, 3);
    put(3, 100).await.expect("it is the same model");
    assert!(put(2, 100).await.unwrap_err().contains("not newer than the latest, 3"));
    assert!(put(4, 0).await.unwrap_err().contains("the model is empty"));
    assert!(put(4, 101).await.unwrap_err().contains("101 bytes long, expected at most 100"));
    // This chunked upload declares no length and has no final chunk.
    let endless = [
        &b"PUT /models/ppo/5 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
        &b"64\r\n"[..],
        &[7; 100][..],
        &b"\r\n1\r\n7\r\n"[..],
    ]
    .concat();
    let refused = send(&at, &endless, false).await;
    assert_eq!((refused.status, refused.error().as_str()), (413, "too_large"));
    assert_eq!(ask(&at, "GET /models/ppo/latest", &[]).await.json()["version"], 3);
    let (_store, closed) = crate::support::learner(LearnerOptions::default()).await;
    assert!(publish_to(&endpoint(&closed), 1, 1).await.unwrap_err().contains("may not publish"));
}

async fn publish_to(at: &Endpoint, version: u64, len: usize) -> Result<iswitch_models::Manifest, String> {
    let published = publish(at, &name(), version, model(version, len), &ClientOptions::default()).await;
    published.map_err(|error| error.to_string())
}
