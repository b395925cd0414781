//! The gRPC service. It translates request messages to calls of the shard, and the results to response messages.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::change::Batch;
use super::sample::Part;
use super::shard::{Shard, wait_time};
use crate::proto::replay_server::Replay;
use crate::proto::{
    DeleteRequest, DeleteResponse, DescribeRequest, DescribeResponse, Extent, InsertRequest, InsertResponse,
    Item, ResetRequest, ResetResponse, SampleRequest, SampleResponse, SnapshotRequest, SnapshotResponse,
    UpdatePrioritiesRequest, UpdatePrioritiesResponse,
};
use crate::table::{NewItem, Origin, Sampled};

/// gRPC service of a shard.
#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Shard>);

impl Service {
    pub(super) async fn insert_items(&self, request: InsertRequest) -> Result<InsertResponse, Status> {
        let InsertRequest { table, actor, session, first_seq, items, wait_ms } = request;
        let new = |item: crate::proto::NewItem| NewItem {
            priority: item.priority,
            version: item.version,
            payload: item.payload,
        };
        let batch = Batch {
            table,
            first: Origin { actor, session, seq: first_seq },
            items: items.into_iter().map(new).collect(),
            wait: wait_time(wait_ms),
        };
        let inserted = self.0.insert(batch).await?;
        let (refused_code, refused) = match &inserted.refused {
            Some(error) => (error.code() as i32, error.to_string()),
            None => (0, String::new()),
        };
        let extent = Some(Extent { size: inserted.size, mass: inserted.mass });
        Ok(InsertResponse { keys: inserted.keys, refused, refused_code, extent })
    }
}

#[tonic::async_trait]
impl Replay for Service {
    type SampleStream = Parts;

    async fn insert(&self, request: Request<InsertRequest>) -> Result<Response<InsertResponse>, Status> {
        self.insert_items(request.into_inner()).await.map(Response::new)
    }

    async fn sample(&self, request: Request<SampleRequest>) -> Result<Response<Parts>, Status> {
        let SampleRequest { table, count, wait_ms } = request.into_inner();
        Ok(Response::new(Parts::new(Arc::clone(&self.0), table, count as usize, wait_time(wait_ms))))
    }

    async fn update_priorities(
        &self,
        request: Request<UpdatePrioritiesRequest>,
    ) -> Result<Response<UpdatePrioritiesResponse>, Status> {
        let UpdatePrioritiesRequest { table, updates } = request.into_inner();
        let updates = updates.into_iter().map(|update| (update.key, update.priority)).collect();
        let updated = self.0.update_priorities(&table, updates).await?;
        Ok(Response::new(UpdatePrioritiesResponse { updated }))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        let DeleteRequest { table, keys } = request.into_inner();
        Ok(Response::new(DeleteResponse { deleted: self.0.delete(&table, keys).await? }))
    }

    async fn describe(&self, _: Request<DescribeRequest>) -> Result<Response<DescribeResponse>, Status> {
        Ok(Response::new(self.0.describe()))
    }

    async fn snapshot(&self, _: Request<SnapshotRequest>) -> Result<Response<SnapshotResponse>, Status> {
        let snapshot = self.0.snapshot().await?;
        let path = snapshot.path.display().to_string();
        Ok(Response::new(SnapshotResponse { path, items: snapshot.items, bytes: snapshot.bytes }))
    }

    async fn reset(&self, request: Request<ResetRequest>) -> Result<Response<ResetResponse>, Status> {
        let ResetRequest { table } = request.into_inner();
        Ok(Response::new(ResetResponse { deleted: self.0.reset(&table).await? }))
    }
}

type Drawing = Pin<Box<dyn Future<Output = Result<Part, Status>> + Send>>;

/// Stream of the parts of a sample response. A part is drawn only when the connection has room for it. Therefore, a
/// slow reader occupies memory for only one part, and the shard does not draw items that the reader never reads.
pub(super) struct Parts {
    shard: Arc<Shard>,
    table: String,
    left: usize,
    wait: Duration,
    drawing: Option<Drawing>,
    /// Memory of the part that was sent last. It is released when the connection asks for the next part, because by
    /// then it has passed on this one.
    sent: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl Parts {
    fn new(shard: Arc<Shard>, table: String, left: usize, wait: Duration) -> Self {
        Self { shard, table, left, wait, drawing: None, sent: None }
    }

    fn draw(&self) -> Drawing {
        let (shard, table, left, wait) = (Arc::clone(&self.shard), self.table.clone(), self.left, self.wait);
        Box::pin(async move { Ok(shard.sample(&table, left, wait).await?) })
    }
}

impl Stream for Parts {
    type Item = Result<SampleResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        this.sent = None;
        if this.left == 0 {
            return Poll::Ready(None);
        }
        if this.drawing.is_none() {
            this.drawing = Some(this.draw());
        }
        let Some(drawing) = &mut this.drawing else { return Poll::Pending };
        let part = std::task::ready!(drawing.as_mut().poll(cx));
        this.drawing = None;
        Poll::Ready(Some(match part {
            Ok(Part { items, size, mass, permit }) => {
                this.left -= items.len();
                this.sent = Some(permit);
                let items = items.into_iter().map(message).collect();
                Ok(SampleResponse { items, extent: Some(Extent { size, mass }) })
            }
            Err(status) => {
                this.left = 0;
                Err(status)
            }
        }))
    }
}

fn message(sampled: Sampled) -> Item {
    let Sampled { item, probability, table_size, .. } = sampled;
    Item {
        key: item.key,
        priority: item.priority,
        times_sampled: item.times_sampled,
        version: item.version,
        actor: item.origin.actor,
        seq: item.origin.seq,
        inserted_ms: item.inserted_ms,
        payload: item.payload,
        probability,
        table_size,
    }
}
