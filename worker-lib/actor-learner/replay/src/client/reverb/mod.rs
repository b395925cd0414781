//! Reverb servers as shards. The client translates its requests to Reverb's own protocol, `proto/reverb.proto`.
//!
//! An item is a trajectory of one step with two columns. The first is the payload, of type uint8. The second consists
//! of the version, the actor and the sequence number, of type int64. If another program inserted an item, the first
//! column of the item is its payload, provided that the type is uint8.

mod describe;
mod insert;
mod item;

/// Messages of Reverb, generated from `proto/reverb.proto`.
mod proto {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, dead_code, clippy::all, clippy::pedantic)]
    tonic::include_proto!("deepmind.reverb");
}

use std::sync::Mutex;
use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Response, Status};

use self::insert::InsertStream;
use self::proto::reverb_service_client::ReverbServiceClient as Stub;
use self::proto::{
    CheckpointRequest, KeyWithPriority, MutatePrioritiesRequest, ResetRequest as ReverbResetRequest,
    SampleStreamRequest, ServerInfoRequest, ServerInfoResponse, Timeout,
};
use crate::lock;
use crate::proto::{
    DeleteRequest, DeleteResponse, DescribeResponse, Extent, InsertRequest, InsertResponse, Item,
    ResetRequest, ResetResponse, SampleRequest, SnapshotResponse, UpdatePrioritiesRequest,
    UpdatePrioritiesResponse,
};

/// Scheme of the addresses of Reverb servers.
pub(super) const SCHEME: &str = "reverb://";

/// Connection to a Reverb server.
pub(super) struct Server {
    channel: Channel,
    stub: Stub<Channel>,
    /// Insert streams that are not in use. They are reused, because opening a new stream for each insert would cost the
    /// server more than the insert itself does.
    idle: Mutex<Vec<InsertStream>>,
}

impl Server {
    pub(super) fn new(channel: Channel) -> Self {
        let stub = Stub::new(channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        Self { channel, stub, idle: Mutex::default() }
    }

    /// Inserts all items of a request, or fails. Reverb supports neither sessions nor insert deadlines. Therefore, the
    /// client derives the key of each item from the actor, the session and the sequence number, so that a retransmitted
    /// request has no effect while the items exist. The deadline is enforced only by the client.
    pub(super) async fn insert(&self, request: &InsertRequest) -> Result<InsertResponse, Status> {
        check_priorities("items", request.items.iter().map(|item| item.priority))?;
        let idle = lock(&self.idle).pop();
        let inserting = async {
            let mut stream = idle.unwrap_or_default();
            let keys = stream.insert(&self.channel, request).await?;
            Ok::<_, Status>((stream, keys))
        };
        let wait = Duration::from_millis(request.wait_ms);
        let Ok(inserted) = tokio::time::timeout(wait, inserting).await else {
            let text =
                format!("table {:?} did not accept the items within {} ms", request.table, request.wait_ms);
            return Err(Status::deadline_exceeded(text));
        };
        let (stream, keys) = inserted.inspect_err(|_| lock(&self.idle).clear())?;
        lock(&self.idle).push(stream);
        Ok(InsertResponse { keys, refused: String::new(), refused_code: 0, extent: None })
    }

    /// Draws up to `count` items.
    pub(super) async fn sample(&self, request: SampleRequest) -> Result<(Vec<Item>, Option<Extent>), Status> {
        let SampleRequest { table, count, wait_ms } = request;
        let milliseconds = i64::try_from(wait_ms).unwrap_or(i64::MAX);
        let request = SampleStreamRequest {
            table,
            num_samples: i64::from(count),
            rate_limiter_timeout: Some(Timeout { milliseconds }),
        };
        let mut stub = self.stub.clone();
        let mut answers = stub.sample_stream(tokio_stream::once(request)).await?.into_inner();
        let mut items = Vec::new();
        let mut pieces = item::Pieces::default();
        loop {
            match answers.message().await {
                Ok(Some(answer)) => {
                    for entry in answer.entries {
                        items.extend(pieces.take(entry)?);
                    }
                }
                Ok(None) => break,
                // Return the items that were drawn before the error.
                Err(_) if !items.is_empty() => break,
                Err(status) => return Err(status),
            }
        }
        let extent = items.last().map(|item| extent(item.table_size));
        Ok((items, extent))
    }

    /// Updates priorities. Reverb does not report how many of the items existed, so all of them are counted.
    pub(super) async fn update_priorities(
        &self,
        request: UpdatePrioritiesRequest,
    ) -> Result<Response<UpdatePrioritiesResponse>, Status> {
        check_priorities("updates", request.updates.iter().map(|update| update.priority))?;
        let updated = request.updates.len() as u64;
        let update = |update: crate::proto::PriorityUpdate| KeyWithPriority {
            key: update.key,
            priority: update.priority,
        };
        let updates = request.updates.into_iter().map(update).collect();
        let request = MutatePrioritiesRequest { table: request.table, updates, delete_keys: Vec::new() };
        self.stub.clone().mutate_priorities(request).await?;
        Ok(Response::new(UpdatePrioritiesResponse { updated }))
    }

    /// Removes items. Reverb does not report how many of the items existed, so all of them are counted.
    pub(super) async fn delete(&self, request: DeleteRequest) -> Result<Response<DeleteResponse>, Status> {
        let deleted = request.keys.len() as u64;
        let request =
            MutatePrioritiesRequest { table: request.table, updates: Vec::new(), delete_keys: request.keys };
        self.stub.clone().mutate_priorities(request).await?;
        Ok(Response::new(DeleteResponse { deleted }))
    }

    pub(super) async fn describe(&self) -> Result<Response<DescribeResponse>, Status> {
        Ok(Response::new(describe::response(self.info().await?)))
    }

    pub(super) async fn reset(&self, request: ResetRequest) -> Result<Response<ResetResponse>, Status> {
        let tables = self.info().await?.table_info;
        let table = tables.iter().find(|info| info.name == request.table);
        let deleted = table.map_or(0, |info| info.current_size as u64);
        self.stub.clone().reset(ReverbResetRequest { table: request.table }).await?;
        Ok(Response::new(ResetResponse { deleted }))
    }

    /// Makes the server write a checkpoint. Reverb does not report the size of the checkpoint.
    pub(super) async fn snapshot(&self) -> Result<Response<SnapshotResponse>, Status> {
        let answer = self.stub.clone().checkpoint(CheckpointRequest {}).await?.into_inner();
        Ok(Response::new(SnapshotResponse { path: answer.checkpoint_path, items: 0, bytes: 0 }))
    }

    async fn info(&self) -> Result<ServerInfoResponse, Status> {
        Ok(self.stub.clone().server_info(ServerInfoRequest {}).await?.into_inner())
    }
}

/// Rejects priorities that a prioritized selector does not accept. If a Reverb server received one such priority, it
/// would permanently stop serving the table.
fn check_priorities(field: &str, priorities: impl Iterator<Item = f64>) -> Result<(), Status> {
    let is_wrong = |priority: &f64| !(priority.is_finite() && *priority >= 0.0);
    let mut priorities = priorities.enumerate();
    match priorities.find(|(_, priority)| is_wrong(priority)) {
        Some((at, priority)) => Err(Status::invalid_argument(format!(
            "{field}[{at}].priority is {priority}, expected a finite number >= 0"
        ))),
        None => Ok(()),
    }
}

/// Returns the extent of a table. Reverb does not report the sum of the priorities, so draws are distributed over the
/// shards in proportion to the table's size on each shard.
fn extent(size: u64) -> Extent {
    Extent { size, mass: size as f64 }
}
