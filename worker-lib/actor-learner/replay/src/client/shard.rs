//! A client's connection to one shard, with the last known state of the shard.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tonic::transport::Endpoint;
use tonic::{Response, Status, Streaming};

use super::bearer::Bearer;
use super::config::ClientConfig;
use super::error::ClientError;
use super::{affinity, grpc, insert_request, reverb};
use crate::lock;
use crate::proto::replay_client::ReplayClient as Stub;
use crate::proto::{
    DeleteRequest, DeleteResponse, DescribeRequest, DescribeResponse, Extent, InsertRequest, InsertResponse,
    ResetRequest, ResetResponse, SampleRequest, SampleResponse, SnapshotRequest, SnapshotResponse,
    UpdatePrioritiesRequest, UpdatePrioritiesResponse,
};

const INSERT_PATH: &str = "/iswitch.replay.v1.Replay/Insert";
const HTTPS: &str = "https://";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between keep-alive messages. It is also the timeout after which a connection is closed if the shard does
/// not respond to them.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// Returns the endpoint of an address, with a TLS configuration if the address is an `https` address.
#[cfg(feature = "tls")]
fn encrypted(endpoint: Endpoint, address: &str, config: &ClientConfig) -> Result<Endpoint, ClientError> {
    if !address.starts_with(HTTPS) {
        return Ok(endpoint);
    }
    let refused = |reason: String| ClientError::Tls { address: address.to_owned(), reason };
    let tls = config.tls.as_ref().ok_or_else(|| refused("ClientConfig::tls is not set".to_owned()))?;
    endpoint.tls_config(tls.config()).map_err(|error| {
        let reason = std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string);
        refused(reason)
    })
}

/// Rejects an `https` address.
#[cfg(not(feature = "tls"))]
fn encrypted(endpoint: Endpoint, address: &str, _: &ClientConfig) -> Result<Endpoint, ClientError> {
    if address.starts_with(HTTPS) {
        let reason = "this build lacks the tls feature".to_owned();
        return Err(ClientError::Tls { address: address.to_owned(), reason });
    }
    Ok(endpoint)
}

/// A connection to a shard, with the last known state of the shard. The connection is opened on demand and reopened
/// after a failure.
pub(super) struct Shard {
    pub(super) address: String,
    pub(super) hash: u64,
    link: Link,
    state: Mutex<State>,
}

/// Connection to a shard, by type of server.
enum Link {
    /// Connection to a `replayd`.
    Own {
        channel: Bearer,
        stub: Stub<Bearer>,
    },
    Reverb(reverb::Server),
}

/// The response to a sample request. It arrives in parts.
pub(super) enum Parts {
    Own(Streaming<SampleResponse>),
    /// The whole response, as a single part.
    Reverb(Option<SampleResponse>),
}

impl Parts {
    pub(super) async fn next(&mut self) -> Result<Option<SampleResponse>, Status> {
        match self {
            Self::Own(parts) => parts.message().await,
            Self::Reverb(part) => Ok(part.take()),
        }
    }
}

#[derive(Default)]
struct State {
    /// Time before which no attempt is made to reach the shard.
    down_until: Option<Instant>,
    failures: u32,
    /// The last known extent of each table, and the time at which the shard reported it.
    extents: std::collections::HashMap<String, (Extent, Instant)>,
    /// Tables whose rate limiter has held back draws, each with the time until which draws skip the shard.
    held_until: std::collections::HashMap<String, Instant>,
}

impl Shard {
    pub(super) fn new(address: &str, config: &ClientConfig) -> Result<Self, ClientError> {
        let refused = || ClientError::Address { address: address.to_owned() };
        let at_reverb = address.strip_prefix(reverb::SCHEME).map(|rest| format!("http://{rest}"));
        let is_own = ["http://", HTTPS, "unix:"].iter().any(|scheme| address.starts_with(scheme));
        if !is_own && at_reverb.is_none() {
            return Err(refused());
        }
        let is_reverb = at_reverb.is_some();
        let endpoint = Endpoint::from_shared(at_reverb.unwrap_or_else(|| address.to_owned()));
        let channel = endpoint
            .map_err(|_| refused())?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let link = if is_reverb {
            // Reverb's gRPC server treats HTTP/2 pings every few seconds as an attack, so use TCP keep-alive.
            let channel = channel.tcp_keepalive(Some(KEEP_ALIVE)).connect_lazy();
            Link::Reverb(reverb::Server::new(channel))
        } else {
            let channel = channel.http2_keep_alive_interval(KEEP_ALIVE).keep_alive_timeout(KEEP_ALIVE);
            let channel =
                Bearer::new(encrypted(channel, address, config)?.connect_lazy(), config.token.as_ref());
            let stub = Stub::new(channel.clone())
                .max_decoding_message_size(usize::MAX)
                .max_encoding_message_size(usize::MAX);
            Link::Own { channel, stub }
        };
        Ok(Self { address: address.to_owned(), hash: affinity::hash(address), link, state: Mutex::default() })
    }

    pub(super) async fn insert(&self, request: &InsertRequest) -> Result<InsertResponse, Status> {
        match &self.link {
            Link::Own { channel, .. } => {
                let parts = tokio_stream::iter(insert_request::parts(request)?);
                grpc::only(grpc::call(channel.clone(), INSERT_PATH, parts).await?).await
            }
            Link::Reverb(server) => server.insert(request).await,
        }
    }

    pub(super) async fn sample(&self, request: SampleRequest) -> Result<Parts, Status> {
        match &self.link {
            Link::Own { stub, .. } => Ok(Parts::Own(stub.clone().sample(request).await?.into_inner())),
            Link::Reverb(server) => {
                let (items, extent) = server.sample(request).await?;
                Ok(Parts::Reverb(Some(SampleResponse { items, extent })))
            }
        }
    }

    pub(super) async fn update_priorities(
        &self,
        request: UpdatePrioritiesRequest,
    ) -> Result<Response<UpdatePrioritiesResponse>, Status> {
        match &self.link {
            Link::Own { stub, .. } => stub.clone().update_priorities(request).await,
            Link::Reverb(server) => server.update_priorities(request).await,
        }
    }

    pub(super) async fn delete(&self, request: DeleteRequest) -> Result<Response<DeleteResponse>, Status> {
        match &self.link {
            Link::Own { stub, .. } => stub.clone().delete(request).await,
            Link::Reverb(server) => server.delete(request).await,
        }
    }

    pub(super) async fn describe(&self) -> Result<Response<DescribeResponse>, Status> {
        match &self.link {
            Link::Own { stub, .. } => stub.clone().describe(DescribeRequest {}).await,
            Link::Reverb(server) => server.describe().await,
        }
    }

    pub(super) async fn snapshot(&self) -> Result<Response<SnapshotResponse>, Status> {
        match &self.link {
            Link::Own { stub, .. } => stub.clone().snapshot(SnapshotRequest {}).await,
            Link::Reverb(server) => server.snapshot().await,
        }
    }

    pub(super) async fn reset(&self, request: ResetRequest) -> Result<Response<ResetResponse>, Status> {
        match &self.link {
            Link::Own { stub, .. } => stub.clone().reset(request).await,
            Link::Reverb(server) => server.reset(request).await,
        }
    }

    /// Returns whether the last attempt to reach the shard has failed and the next attempt is not due yet.
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
        // When the shard becomes available again, its contents may have changed.
        state.extents.clear();
    }

    pub(super) fn learn(&self, table: &str, extent: Option<Extent>) {
        let Some(extent) = extent else { return };
        lock(&self.state).extents.insert(table.to_owned(), (extent, Instant::now()));
    }

    /// Records that the shard's rate limiter has held back draws from a table. Draws from the table then skip the shard
    /// for `pause`.
    pub(super) fn held_back(&self, table: &str, pause: Duration) {
        lock(&self.state).held_until.insert(table.to_owned(), Instant::now() + pause);
    }

    /// Returns whether the shard is skipped because it has recently held back draws from a table.
    pub(super) fn holds_back(&self, table: &str) -> bool {
        lock(&self.state).held_until.get(table).is_some_and(|until| Instant::now() < *until)
    }

    /// Returns the extent of a table if the shard has reported it within the last `age`.
    pub(super) fn extent(&self, table: &str, age: Duration) -> Option<Extent> {
        let state = lock(&self.state);
        let (extent, heard) = state.extents.get(table)?;
        (heard.elapsed() <= age).then_some(*extent)
    }
}
