//! One shard as a client sees it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::error::ClientError;
use super::{affinity, grpc, insert_request};
use crate::lock;
use crate::proto::replay_client::ReplayClient as Stub;
use crate::proto::{Extent, InsertRequest, InsertResponse};

const INSERT_PATH: &str = "/iswitch.replay.v1.Replay/Insert";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection on which nothing comes back for so long is given up.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// A connection that is made when it is needed and again when it has broken, and what is known of its other end.
pub(super) struct Shard {
    pub(super) address: String,
    pub(super) hash: u64,
    channel: Channel,
    stub: Stub<Channel>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Until when it is not worth trying.
    down_until: Option<Instant>,
    failures: u32,
    /// By table: what it had, and when it said so.
    extents: std::collections::HashMap<String, (Extent, Instant)>,
}

impl Shard {
    pub(super) fn new(address: &str) -> Result<Self, ClientError> {
        let refused = || ClientError::Address { address: address.to_owned() };
        if !address.starts_with("http://") && !address.starts_with("unix:") {
            return Err(refused());
        }
        let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|_| refused())?;
        let channel = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .connect_lazy();
        let stub = Stub::new(channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        Ok(Self {
            address: address.to_owned(),
            hash: affinity::hash(address),
            channel,
            stub,
            state: Mutex::default(),
        })
    }

    pub(super) async fn insert(&self, request: &InsertRequest) -> Result<InsertResponse, Status> {
        let parts = insert_request::parts(request)?;
        grpc::only(grpc::call(self.channel.clone(), INSERT_PATH, tokio_stream::iter(parts)).await?).await
    }

    pub(super) fn stub(&self) -> Stub<Channel> {
        self.stub.clone()
    }

    /// Whether the last attempt has failed and the next one is not due.
    pub(super) fn is_down(&self) -> bool {
        lock(&self.state).down_until.is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn succeeded(&self) {
        let mut state = lock(&self.state);
        (state.down_until, state.failures) = (None, 0);
    }

    pub(super) fn failed(&self, backoff: impl Fn(u32) -> Duration) {
        let mut state = lock(&self.state);
        state.down_until = Some(Instant::now() + backoff(state.failures));
        state.failures = state.failures.saturating_add(1);
        // Nobody knows what it has when it comes back.
        state.extents.clear();
    }

    pub(super) fn learn(&self, table: &str, extent: Option<Extent>) {
        let Some(extent) = extent else { return };
        lock(&self.state).extents.insert(table.to_owned(), (extent, Instant::now()));
    }

    /// What it has of a table, if it said so not longer ago than `age`.
    pub(super) fn extent(&self, table: &str, age: Duration) -> Option<Extent> {
        let state = lock(&self.state);
        let (extent, heard) = state.extents.get(table)?;
        (heard.elapsed() <= age).then_some(*extent)
    }
}
