//! Sampling from all shards as if they were one table.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rand::RngExt as _;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use super::error::{ClientError, is_certificate_rejected, is_failure_of_shard, with_causes};
use super::shard::Shard;
use super::{Inner, ItemKey, ReplayClient};
use crate::lock;
use crate::proto::{Extent, Item, SampleRequest};

/// Maximum time for which a shard may hold back a draw if there are several shards. After this time, the draws are
/// distributed again, based on the current sizes of the shards.
const ROUND: Duration = Duration::from_millis(100);

/// Time for which draws skip a shard that has held back a draw, if other shards have items. Without this pause, a
/// shard without live actors, which holds back draws forever, would delay each call by one [`ROUND`].
const PAUSE: Duration = Duration::from_secs(1);

/// Item that was drawn from one of the shards.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Key of the item; required to update its priority.
    pub key: ItemKey,
    /// Priority of the item when it was drawn.
    pub priority: f64,
    /// Number of times that the item was drawn, including this time.
    pub times_sampled: u32,
    /// Version of the policy that produced the item.
    pub version: u64,
    /// Actor that inserted the item.
    pub actor: u64,
    /// Sequence number of the item within its actor's session.
    pub seq: u64,
    /// Insertion time according to the shard's clock, in milliseconds since the Unix epoch.
    pub inserted_ms: u64,
    /// Payload in the form in which the actor supplied it.
    pub payload: Bytes,
    /// Probability with which this draw selected the item among the items of all shards, based on the last known sizes
    /// of the shards.
    pub probability: f64,
    /// Total number of items on all shards, based on the last known sizes of the shards.
    pub table_size: u64,
}

/// The known contents of all shards, which together act as one table. Vectors are indexed by shard.
struct Union {
    extents: Vec<Option<Extent>>,
    weights: Vec<f64>,
    total: f64,
    size: u64,
}

/// Items drawn from one shard.
struct Answer {
    place: usize,
    items: Vec<Item>,
    failure: Option<Status>,
}

impl ReplayClient {
    /// Draws `count` items. If the sampler uses priorities, the draws are distributed over the shards in proportion to
    /// the total weight of the items on each shard; otherwise, in proportion to the number of items on each shard. A
    /// shard whose rate limiter has held back a draw is skipped for one second if other shards have items. If rate
    /// limiters hold back some of the draws for longer than [`super::ClientConfig::wait`], returns fewer than `count`
    /// items, but at least one.
    ///
    /// # Errors
    /// Fails if no item could be drawn; see [`ClientError`].
    pub async fn sample(&self, table: &str, count: usize) -> Result<Vec<Drawn>, ClientError> {
        let began = Instant::now();
        let mut drawn = Vec::with_capacity(count);
        let mut failures = 0;
        while drawn.len() < count {
            let union = self.inner.union(table).await;
            let wait = self.inner.config.wait.saturating_sub(began.elapsed());
            let answers = if union.total > 0.0 {
                let counts = self.inner.split(&union, count - drawn.len());
                self.inner.ask(table, &counts, wait).await
            } else {
                self.inner.ask_one(table, wait).await
            };
            let before = drawn.len();
            let mut last = None;
            for Answer { place, items, failure } in answers {
                drawn.extend(items.into_iter().map(|item| union.drawn(place, item)));
                last = failure.map(|status| (place, status)).or(last);
            }
            let Some((place, status)) = last else { continue };
            if let Some(error) = self.inner.give_up(place, &status, began.elapsed()) {
                return if drawn.is_empty() { Err(error) } else { Ok(drawn) };
            }
            failures = if drawn.len() > before { 0 } else { failures + 1 };
            tokio::time::sleep(self.inner.backoff(failures)).await;
        }
        Ok(drawn)
    }
}

impl Inner {
    /// Returns the contents of the shards. Uses recent responses if possible, and otherwise asks the shards.
    async fn union(self: &Arc<Self>, table: &str) -> Union {
        let mut asking = JoinSet::new();
        for (place, shard) in self.shards.iter().enumerate() {
            if shard.extent(table, self.config.refresh).is_none() && !shard.is_down() {
                let inner = Arc::clone(self);
                asking.spawn(async move { inner.refresh(place).await });
            }
        }
        while asking.join_next().await.is_some() {}
        let known = |shard: &Shard| shard.extent(table, Duration::MAX).filter(|_| !shard.is_down());
        let free = |shard: &Shard| known(shard).filter(|_| !shard.holds_back(table));
        let union = Union::new(self.shards.iter().map(free).collect());
        if union.total > 0.0 { union } else { Union::new(self.shards.iter().map(known).collect()) }
    }

    async fn refresh(&self, place: usize) {
        let shard = &self.shards[place];
        let Ok(answer) = self.heard(shard, shard.describe().await) else { return };
        answer.tables.into_iter().for_each(|table| shard.learn(&table.name, table.extent));
    }

    /// Distributes `count` draws randomly over the shards, in proportion to the shards' weights.
    fn split(&self, union: &Union, count: usize) -> Vec<usize> {
        let mut counts = vec![0; self.shards.len()];
        let last = union.weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
        let mut rng = lock(&self.rng);
        for _ in 0..count {
            let mut point = rng.random_range(0.0..union.total);
            let place = union.weights.iter().position(|weight| {
                point -= weight;
                point < 0.0
            });
            // Rounding may leave a remainder after the last weight.
            counts[place.unwrap_or(last)] += 1;
        }
        counts
    }

    async fn ask(self: &Arc<Self>, table: &str, counts: &[usize], wait: Duration) -> Vec<Answer> {
        let asked = counts.iter().filter(|count| **count > 0).count();
        let wait = if self.shards.len() > 1 { wait.min(ROUND) } else { wait };
        let mut asking = JoinSet::new();
        let mut answers = Vec::with_capacity(asked);
        for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (inner, table, count) = (Arc::clone(self), table.to_owned(), *count);
            asking.spawn(async move { inner.ask_shard(place, &table, count, wait).await });
        }
        while let Some(answer) = asking.join_next().await {
            answers.extend(answer.ok());
        }
        answers
    }

    /// Samples from one shard, preferably one that is up. This function is used if no shard is known to have items:
    /// the shard's response then names the condition that the request is waiting for.
    async fn ask_one(self: &Arc<Self>, table: &str, wait: Duration) -> Vec<Answer> {
        let up: Vec<usize> = (0..self.shards.len()).filter(|place| !self.shards[*place].is_down()).collect();
        let place = match up.len() {
            0 => lock(&self.rng).random_range(0..self.shards.len()),
            some => up[lock(&self.rng).random_range(0..some)],
        };
        let mut counts = vec![0; self.shards.len()];
        counts[place] = 1;
        self.ask(table, &counts, wait).await
    }

    async fn ask_shard(&self, place: usize, table: &str, count: usize, wait: Duration) -> Answer {
        let shard = &self.shards[place];
        let mut answer = Answer { place, items: Vec::with_capacity(count), failure: None };
        let request = SampleRequest {
            table: table.to_owned(),
            count: count as u32,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        };
        answer.failure = self.collect(place, request, &mut answer.items).await.err();
        match &answer.failure {
            None => shard.succeeded(),
            Some(status) if is_failure_of_shard(status) => shard.failed(|failures| self.backoff(failures)),
            // The shard could not serve the draw, so its last known size is outdated.
            Some(status) => {
                if is_held_back(status) {
                    shard.held_back(table, PAUSE);
                }
                self.refresh(place).await;
            }
        }
        answer
    }

    async fn collect(
        &self,
        place: usize,
        request: SampleRequest,
        items: &mut Vec<Item>,
    ) -> Result<(), Status> {
        let shard = &self.shards[place];
        let (table, count) = (request.table.clone(), request.count as usize);
        let mut parts = shard.sample(request).await?;
        while let Some(part) = parts.next().await? {
            shard.learn(&table, part.extent);
            items.extend(part.items);
        }
        if items.len() > count {
            return Err(Status::data_loss(format!("{} items, expected at most {count}", items.len())));
        }
        Ok(())
    }

    /// Returns an error if another attempt would not help, or if no time is left for one.
    fn give_up(&self, place: usize, status: &Status, spent: Duration) -> Option<ClientError> {
        let shard = &self.shards[place].address;
        if is_failure_of_shard(status) {
            if spent < self.config.patience {
                self.retries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                return None;
            }
            if is_certificate_rejected(status) {
                return Some(ClientError::refused(shard, status));
            }
            let patience_ms = self.config.patience.as_millis() as u64;
            let text = with_causes(status);
            return Some(ClientError::Unreachable { patience_ms, shard: shard.clone(), text });
        }
        if is_held_back(status) && spent < self.config.wait {
            return None;
        }
        Some(ClientError::refused(shard, status))
    }
}

/// Returns whether the status means that a rate limiter is holding the request back.
fn is_held_back(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded | Code::ResourceExhausted)
}

impl Union {
    fn new(extents: Vec<Option<Extent>>) -> Self {
        let sum = |of: fn(&Extent) -> f64| extents.iter().flatten().map(of).sum::<f64>();
        let by_mass = sum(|extent| extent.mass) > 0.0;
        let weight = |extent: &Extent| if by_mass { extent.mass } else { extent.size as f64 };
        let weights: Vec<f64> = extents.iter().map(|extent| extent.as_ref().map_or(0.0, weight)).collect();
        let total = weights.iter().sum();
        let size = extents.iter().flatten().map(|extent| extent.size).sum();
        Self { extents, weights, total, size }
    }

    fn drawn(&self, place: usize, item: Item) -> Drawn {
        // The probability of a draw is that of the item within its shard times that of the shard.
        let share = if self.total > 0.0 { self.weights[place] / self.total } else { 1.0 };
        let own = self.extents[place].as_ref().map_or(0, |extent| extent.size);
        Drawn {
            key: ItemKey { shard: place, key: item.key },
            priority: item.priority,
            times_sampled: item.times_sampled,
            version: item.version,
            actor: item.actor,
            seq: item.seq,
            inserted_ms: item.inserted_ms,
            payload: item.payload,
            probability: item.probability * share,
            table_size: self.size.saturating_sub(own) + item.table_size,
        }
    }
}
