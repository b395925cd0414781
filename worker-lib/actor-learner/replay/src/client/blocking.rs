//! Client for ordinary threads. It must not be used inside an asynchronous runtime.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::{ClientConfig, ClientError, ClientStats, Drawn, ItemKey};
use crate::proto::DescribeResponse;
use crate::table::NewItem;

/// Blocking client of all shards. A dedicated thread drives the connections. Clones share the connections and the
/// thread.
#[derive(Clone)]
pub struct ReplayClient {
    client: super::ReplayClient,
    runtime: Arc<Runtime>,
}

/// Writer that inserts items of one actor into one table.
pub struct Writer {
    writer: super::Writer,
    runtime: Arc<Runtime>,
}

/// Insert that is in flight. [`Self::stored`] waits for its completion.
pub struct Ticket {
    ticket: super::Ticket,
    runtime: Arc<Runtime>,
}

impl ReplayClient {
    /// Creates a client; see [`super::ReplayClient::new`].
    ///
    /// # Errors
    /// Fails if an option is out of range or the thread cannot be started.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("replay-client").enable_all().build();
        let runtime = Arc::new(runtime.map_err(|error| ClientError::Runtime(error.to_string()))?);
        let client = {
            let _entered = runtime.enter();
            super::ReplayClient::new(config)?
        };
        Ok(Self { client, runtime })
    }

    /// Creates a writer; see [`super::ReplayClient::writer`].
    pub fn writer(&self, table: &str, actor: u64) -> Writer {
        Writer { writer: self.client.writer(table, actor), runtime: Arc::clone(&self.runtime) }
    }

    /// Draws items; see [`super::ReplayClient::sample`].
    ///
    /// # Errors
    /// Fails if no item could be drawn.
    pub fn sample(&self, table: &str, count: usize) -> Result<Vec<Drawn>, ClientError> {
        self.runtime.block_on(self.client.sample(table, count))
    }

    /// Changes priorities; see [`super::ReplayClient::update_priorities`].
    ///
    /// # Errors
    /// Returns the error of the first shard that fails.
    pub fn update_priorities(&self, table: &str, updates: &[(ItemKey, f64)]) -> Result<u64, ClientError> {
        self.runtime.block_on(self.client.update_priorities(table, updates))
    }

    /// Requests the description of each shard.
    pub fn describe(&self) -> Vec<Result<DescribeResponse, ClientError>> {
        self.runtime.block_on(self.client.describe())
    }

    /// Returns the counters of retries and failovers; see [`super::ReplayClient::stats`].
    pub fn stats(&self) -> ClientStats {
        self.client.stats()
    }
}

impl Writer {
    /// Inserts an item; see [`super::Writer::insert`].
    ///
    /// # Errors
    /// Fails if the item could not be stored.
    pub fn insert(&self, item: NewItem) -> Result<ItemKey, ClientError> {
        self.runtime.block_on(self.writer.insert(item))
    }

    /// Inserts several items with one request; see [`super::Writer::insert_batch`].
    ///
    /// # Errors
    /// Fails if any of the items could not be stored.
    pub fn insert_batch(&self, items: Vec<NewItem>) -> Result<Vec<ItemKey>, ClientError> {
        self.runtime.block_on(self.writer.insert_batch(items))
    }

    /// Submits items; see [`super::Writer::submit`]. If too many requests are in flight, waits until there is room.
    /// Does not wait until the items are stored.
    pub fn submit(&self, items: Vec<NewItem>) -> Ticket {
        let ticket = self.runtime.block_on(self.writer.submit(items));
        Ticket { ticket, runtime: Arc::clone(&self.runtime) }
    }
}

impl Ticket {
    /// Waits until the items are stored; see [`super::Ticket::stored`].
    ///
    /// # Errors
    /// Fails if any of the items could not be stored.
    pub fn stored(self) -> Result<Vec<ItemKey>, ClientError> {
        self.runtime.block_on(self.ticket.stored())
    }
}
