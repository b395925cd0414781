//! The client for plain threads. It must not be used inside of an asynchronous runtime.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::{ClientConfig, ClientError, ClientStats, Drawn, ItemKey};
use crate::proto::DescribeResponse;
use crate::table::NewItem;

/// A client of all shards, with a thread of its own for their connections. Clones share both.
#[derive(Clone)]
pub struct ReplayClient {
    client: super::ReplayClient,
    runtime: Arc<Runtime>,
}

/// Inserts items of one actor into one table.
pub struct Writer {
    writer: super::Writer,
    runtime: Arc<Runtime>,
}

/// An insert that is under way.
pub struct Ticket {
    ticket: super::Ticket,
    runtime: Arc<Runtime>,
}

impl ReplayClient {
    /// As [`super::ReplayClient::new`].
    ///
    /// # Errors
    /// Options out of their ranges, or no thread.
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

    /// As [`super::ReplayClient::writer`].
    pub fn writer(&self, table: &str, actor: u64) -> Writer {
        Writer { writer: self.client.writer(table, actor), runtime: Arc::clone(&self.runtime) }
    }

    /// As [`super::ReplayClient::sample`].
    ///
    /// # Errors
    /// None could be drawn.
    pub fn sample(&self, table: &str, count: usize) -> Result<Vec<Drawn>, ClientError> {
        self.runtime.block_on(self.client.sample(table, count))
    }

    /// As [`super::ReplayClient::update_priorities`].
    ///
    /// # Errors
    /// What the first shard that fails says.
    pub fn update_priorities(&self, table: &str, updates: &[(ItemKey, f64)]) -> Result<u64, ClientError> {
        self.runtime.block_on(self.client.update_priorities(table, updates))
    }

    /// What each shard says of itself.
    pub fn describe(&self) -> Vec<Result<DescribeResponse, ClientError>> {
        self.runtime.block_on(self.client.describe())
    }

    /// As [`super::ReplayClient::stats`].
    pub fn stats(&self) -> ClientStats {
        self.client.stats()
    }
}

impl Writer {
    /// As [`super::Writer::insert`].
    ///
    /// # Errors
    /// The item is not stored.
    pub fn insert(&self, item: NewItem) -> Result<ItemKey, ClientError> {
        self.runtime.block_on(self.writer.insert(item))
    }

    /// As [`super::Writer::insert_batch`].
    ///
    /// # Errors
    /// Not all items are stored.
    pub fn insert_batch(&self, items: Vec<NewItem>) -> Result<Vec<ItemKey>, ClientError> {
        self.runtime.block_on(self.writer.insert_batch(items))
    }

    /// As [`super::Writer::submit`]: returns before the items are stored, unless too many are under way.
    pub fn submit(&self, items: Vec<NewItem>) -> Ticket {
        let ticket = self.runtime.block_on(self.writer.submit(items));
        Ticket { ticket, runtime: Arc::clone(&self.runtime) }
    }
}

impl Ticket {
    /// As [`super::Ticket::stored`].
    ///
    /// # Errors
    /// Not all items are stored.
    pub fn stored(self) -> Result<Vec<ItemKey>, ClientError> {
        self.runtime.block_on(self.ticket.stored())
    }
}
