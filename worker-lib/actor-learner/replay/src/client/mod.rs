//! Client of all shards, for use by actors and learners.
//!
//! An actor writes to its preferred shard, chosen by rendezvous hashing. While that shard is down, the actor writes to
//! the next one. A learner samples from all shards, in proportion to their shares of the items. Failed calls are
//! retried with randomised exponential backoff. The calls are asynchronous; [`blocking`] is for ordinary threads.

mod affinity;
mod bearer;
pub mod blocking;
mod config;
mod error;
mod flight;
mod grpc;
mod insert_request;
mod reverb;
mod sample;
mod shard;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
pub use tonic::Code;
use tonic::Status;

pub use self::config::ClientConfig;
#[cfg(feature = "tls")]
pub use self::config::ClientTls;
pub use self::error::ClientError;
pub use self::sample::Drawn;
pub use self::writer::{Ticket, Writer};

use self::shard::Shard;
use crate::lock;
use crate::proto::{
    DeleteRequest, DescribeResponse, PriorityUpdate, ResetRequest, SnapshotResponse, UpdatePrioritiesRequest,
};

/// Client of all shards. Clones share their connections.
#[derive(Clone)]
pub struct ReplayClient {
    inner: Arc<Inner>,
}

struct Inner {
    config: ClientConfig,
    shards: Vec<Shard>,
    rng: Mutex<ChaCha8Rng>,
    retries: AtomicU64,
    failovers: AtomicU64,
    possible_duplicates: AtomicU64,
}

/// Counters of retries and failovers of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Number of attempts, over all calls, in addition to the first attempt of each call.
    pub retries: u64,
    /// Number of inserts sent to a shard other than the actor's preferred one.
    pub failovers: u64,
    /// Number of inserts that two shards may have stored: the first shard may have received the insert but did not
    /// respond, so the client sent the insert to the next shard.
    pub possible_duplicates: u64,
}

/// Key of an item, together with the shard that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemKey {
    /// Index of the shard in [`ClientConfig::shards`].
    pub shard: usize,
    /// Key of the item within the shard.
    pub key: u64,
}

impl ReplayClient {
    /// Creates a client. Connections are opened on demand. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// Fails if an option is out of range.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        config.check()?;
        let shards =
            config.shards.iter().map(|address| Shard::new(address, &config)).collect::<Result<_, _>>()?;
        let rng = Mutex::new(ChaCha8Rng::seed_from_u64(config.seed));
        let counters = || AtomicU64::new(0);
        let inner = Inner {
            config,
            shards,
            rng,
            retries: counters(),
            failovers: counters(),
            possible_duplicates: counters(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the counters of retries and failovers.
    pub fn stats(&self) -> ClientStats {
        ClientStats {
            retries: self.inner.retries.load(Relaxed),
            failovers: self.inner.failovers.load(Relaxed),
            possible_duplicates: self.inner.possible_duplicates.load(Relaxed),
        }
    }

    /// Changes priorities, and returns how many of the items still existed. An update that fails is not retried: if its
    /// shard is down, the items are either lost or restored with their previous priorities.
    ///
    /// # Errors
    /// Returns the error of the first shard that fails. Other shards may have applied their updates.
    pub async fn update_priorities(
        &self,
        table: &str,
        updates: &[(ItemKey, f64)],
    ) -> Result<u64, ClientError> {
        let mut updated = 0;
        for (at, shard) in self.inner.shards.iter().enumerate() {
            let own = updates.iter().filter(|(item, _)| item.shard == at);
            let updates: Vec<_> =
                own.map(|(item, priority)| PriorityUpdate { key: item.key, priority: *priority }).collect();
            if !updates.is_empty() {
                let request = UpdatePrioritiesRequest { table: table.to_owned(), updates };
                updated += self.inner.heard(shard, shard.update_priorities(request).await)?.updated;
            }
        }
        Ok(updated)
    }

    /// Removes items, and returns how many still existed.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::update_priorities`].
    pub async fn delete(&self, table: &str, items: &[ItemKey]) -> Result<u64, ClientError> {
        let mut deleted = 0;
        for (at, shard) in self.inner.shards.iter().enumerate() {
            let keys: Vec<u64> = items.iter().filter(|item| item.shard == at).map(|item| item.key).collect();
            if !keys.is_empty() {
                let request = DeleteRequest { table: table.to_owned(), keys };
                deleted += self.inner.heard(shard, shard.delete(request).await)?.deleted;
            }
        }
        Ok(deleted)
    }

    /// Requests the description of each shard.
    pub async fn describe(&self) -> Vec<Result<DescribeResponse, ClientError>> {
        let mut all = Vec::new();
        for shard in &self.inner.shards {
            all.push(self.inner.heard(shard, shard.describe().await));
        }
        all
    }

    /// Asks each shard to write a snapshot.
    pub async fn snapshot(&self) -> Vec<Result<SnapshotResponse, ClientError>> {
        let mut all = Vec::new();
        for shard in &self.inner.shards {
            all.push(self.inner.heard(shard, shard.snapshot().await));
        }
        all
    }

    /// Empties a table on all shards, and returns the number of items removed.
    ///
    /// # Errors
    /// Returns the error of the first shard that fails. Other shards may have emptied their tables.
    pub async fn reset(&self, table: &str) -> Result<u64, ClientError> {
        let mut deleted = 0;
        for shard in &self.inner.shards {
            let request = ResetRequest { table: table.to_owned() };
            deleted += self.inner.heard(shard, shard.reset(request).await)?.deleted;
        }
        Ok(deleted)
    }
}

impl Inner {
    /// Records from a shard's response whether the shard is up, and returns the message in the response.
    fn heard<T>(&self, shard: &Shard, answer: Result<tonic::Response<T>, Status>) -> Result<T, ClientError> {
        match answer {
            Ok(answer) => {
                shard.succeeded();
                Ok(answer.into_inner())
            }
            Err(status) => {
                if error::is_failure_of_shard(&status) {
                    shard.failed(|failures| self.backoff(failures));
                }
                Err(ClientError::refused(&shard.address, &status))
            }
        }
    }

    /// Returns the pause after `failures` consecutive failures: a random time between half the exponential backoff and
    /// the full backoff.
    fn backoff(&self, failures: u32) -> Duration {
        let longest =
            self.config.backoff_min.saturating_mul(1 << failures.min(20)).min(self.config.backoff_max);
        longest.mul_f64(lock(&self.rng).random_range(0.5..=1.0))
    }

    fn wait_ms(&self) -> u64 {
        u64::try_from(self.config.wait.as_millis()).unwrap_or(u64::MAX)
    }
}
