//! Sampling. A response is sent in parts, and the items of a part are drawn only after the reader has received the
//! previous part.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::error::ShardError;
use super::shard::{Handle, Shard, Side, Waited};
use crate::limits::{SAMPLE_PART_BYTES, SAMPLE_PART_ITEMS};
use crate::lock;
use crate::store::Record;
use crate::table::{Held, Sampled, Table};

/// Part of a sample response.
#[derive(Debug)]
pub struct Part {
    /// Drawn items; the part has at least one.
    pub items: Vec<Sampled>,
    /// Number of items in the table after the draw.
    pub size: u64,
    /// See [`Table::mass`].
    pub mass: f64,
    /// Memory reserved for the part until it is dropped.
    pub permit: OwnedSemaphorePermit,
}

impl Shard {
    /// Draws one item as soon as possible. Then draws further items, up to `count` in total, until the part is full or
    /// the next draw would have to wait.
    ///
    /// # Errors
    /// Fails if `count` is 0, or if no item could be drawn within `wait`.
    pub async fn sample(&self, table: &str, count: usize, wait: Duration) -> Result<Part, ShardError> {
        let handle = self.handle(table)?;
        if count == 0 {
            return Err(ShardError::Batch { field: "count", len: 0, most: u32::MAX as usize });
        }
        let began = Instant::now();
        let part = self.sample_part(handle, count, began + wait, wait).await;
        handle.sample.latency.record(began.elapsed());
        part
    }

    async fn sample_part(
        &self,
        handle: &Handle,
        count: usize,
        deadline: Instant,
        wait: Duration,
    ) -> Result<Part, ShardError> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let _waiting = handle.sample.enter();
        let _turn = match self.wait(wait, handle.sample.turn.lock()).await {
            Waited::Done(turn) => turn,
            Waited::TimedOut => return Err(handle.queued(&handle.sample, wait)),
            Waited::Stopping => return Err(ShardError::Stopping),
        };
        loop {
            if let Err(held) = { lock(&handle.table).can_sample() } {
                match self.wait(left(), handle.sample.changed.notified()).await {
                    Waited::Done(()) => continue,
                    Waited::TimedOut => return Err(handle.held(held, wait)),
                    Waited::Stopping => return Err(ShardError::Stopping),
                }
            }
            let permit = self.sending_permit(left(), wait).await?;
            // Other clients may have deleted items in the meantime.
            if let Some(part) = self.draw(handle, count, permit) {
                return Ok(part);
            }
        }
    }

    /// Reserves memory for a part of the maximum size.
    async fn sending_permit(
        &self,
        left: Duration,
        wait: Duration,
    ) -> Result<OwnedSemaphorePermit, ShardError> {
        let asked = SAMPLE_PART_BYTES + self.config.item_max_bytes;
        let permits = Arc::clone(&self.sending).acquire_many_owned(asked as u32);
        match self.wait(left, permits).await {
            // This error does not occur, because the semaphore is never closed.
            Waited::Done(permit) => permit.map_err(|_| ShardError::Stopping),
            Waited::TimedOut => {
                let most = self.plan.sending;
                let sending = most.saturating_sub(self.sending.available_permits() as u64);
                Err(ShardError::Sending { sending, most, asked, wait_ms: wait.as_millis() as u64 })
            }
            Waited::Stopping => Err(ShardError::Stopping),
        }
    }

    fn draw(&self, handle: &Handle, count: usize, mut permit: OwnedSemaphorePermit) -> Option<Part> {
        let mut table = lock(&handle.table);
        let (mut items, mut bytes) = (Vec::new(), 0);
        while items.len() < count.min(SAMPLE_PART_ITEMS) && bytes < SAMPLE_PART_BYTES {
            let Ok(sampled) = table.sample() else { break };
            bytes += sampled.item.payload.len() as u64;
            items.push(sampled);
        }
        if items.is_empty() {
            return None;
        }
        self.record_samples(handle, &table, &items);
        let (size, mass) = (table.len() as u64, table.mass());
        drop(table);
        handle.insert.changed.notify_one();
        // Release the reserved memory that the part does not need.
        let kept = permit.split(bytes as usize).unwrap_or(permit);
        Some(Part { items, size, mass, permit: kept })
    }

    fn record_samples(&self, handle: &Handle, table: &Table, items: &[Sampled]) {
        let Some(journal) = &self.journal else { return };
        let (counts, name) = (table.counts(), handle.table_name());
        let kept = items.iter().filter(|sampled| !sampled.is_removed);
        let times = kept.map(|sampled| (sampled.item.key, sampled.item.times_sampled)).collect();
        journal.append(&Record::Sampled { table: Arc::clone(&name), counts, times }, None);
        let removed = items.iter().filter(|sampled| sampled.is_removed);
        let keys: Vec<u64> = removed.map(|sampled| sampled.item.key).collect();
        if !keys.is_empty() {
            journal.append(&Record::Removed { table: name, counts, keys }, None);
        }
    }
}

impl Handle {
    pub(super) fn held(&self, source: Held, wait: Duration) -> ShardError {
        ShardError::Held { table: self.name.clone(), wait_ms: wait.as_millis() as u64, source }
    }

    pub(super) fn queued(&self, side: &Side, wait: Duration) -> ShardError {
        let waiting = side.waiting.load(std::sync::atomic::Ordering::Relaxed);
        ShardError::Queued { table: self.name.clone(), wait_ms: wait.as_millis() as u64, waiting }
    }
}
