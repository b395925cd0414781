//! Learners and cells on unused ports, distinguishable models, and an HTTP client that uses no library.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use iswitch_models::cell::{self, CellOptions};
use iswitch_models::learner::{self, LearnerOptions};
use iswitch_models::{
    ClientOptions, Endpoint, Listen, ModelClient, ModelName, ModelStore, Server, StoreOptions, Times,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Timeout that no operation exceeds, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Timeouts of clients. They give a running process enough time to respond on a busy machine. They do not delay tests
/// that involve a dead process, because connections to it are refused immediately.
const PATIENT: Times = Times { connect: PATIENCE, stall: PATIENCE };

pub(crate) fn name() -> ModelName {
    "ppo".parse().unwrap()
}

/// Returns bytes that depend on the version and on the position, so that no two versions have equal content.
pub(crate) fn model(version: u64, len: usize) -> Bytes {
    (0..len as u64).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(version * 97) >> 7) as u8).collect()
}

pub(crate) fn any_port() -> Vec<Listen> {
    vec!["127.0.0.1:0".parse().unwrap()]
}

pub(crate) fn endpoint(server: &Server) -> Endpoint {
    server.listens()[0].to_string().parse().unwrap()
}

pub(crate) async fn learner(options: LearnerOptions) -> (Arc<ModelStore>, Server) {
    let store = Arc::new(ModelStore::new(StoreOptions::default()));
    let server = learner::serve(Arc::clone(&store), &any_port(), options).await.unwrap();
    (store, server)
}

pub(crate) async fn cell(upstream: &[Endpoint], options: CellOptions) -> Server {
    cell::serve(upstream, &any_port(), CellOptions { times: PATIENT, ..options }).await.unwrap()
}

pub(crate) fn client(endpoints: &[Endpoint]) -> ModelClient {
    let options = ClientOptions { times: PATIENT, ..ClientOptions::default() };
    ModelClient::new(name(), endpoints, options).unwrap()
}

/// Complete response, including its body.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

/// Sends the request `METHOD PATH` with the given header fields on a new connection.
pub(crate) async fn ask(endpoint: &Endpoint, request: &str, fields: &[(&str, &str)]) -> Answer {
    let mut text = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    fields.iter().for_each(|(name, value)| text.extend([*name, ": ", *value, "\r\n"]));
    send(endpoint, format!("{text}\r\n").as_bytes(), request.starts_with("HEAD")).await
}

/// Sends bytes, and reads the response until the server closes the connection.
pub(crate) async fn send(endpoint: &Endpoint, request: &[u8], is_head: bool) -> Answer {
    let mut stream = TcpStream::connect(endpoint.to_string()).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").expect("the end of a head");
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let field =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: HashMap<_, _> = lines.filter_map(field).collect();
    let body = bytes[end + 4..].to_vec();
    if !is_head && let Some(len) = headers.get("content-length") {
        assert_eq!(len.parse(), Ok(body.len()), "{head}");
    }
    Answer { status, headers, body }
}

/// Waits until a condition holds.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the condition holds before the timeout");
}
