//! What a shard says of itself.

use std::sync::atomic::Ordering::Relaxed;

use super::histogram::{Histogram, Quantiles};
use super::shard::{Handle, Shard, milliseconds};
use crate::lock;
use crate::proto::{DescribeResponse, Extent, JournalInfo, LatencyInfo, MemoryInfo, TableInfo};

impl Shard {
    /// Sizes, limits, latencies, and how the journal is.
    pub fn describe(&self) -> DescribeResponse {
        DescribeResponse {
            tables: self.handles().map(|handle| table(handle)).collect(),
            memory: Some(self.memory()),
            journal: Some(self.journal_info()),
            uptime_ms: self.started.elapsed().as_millis() as u64,
        }
    }

    fn memory(&self) -> MemoryInfo {
        let used = |most: u64, free: usize| most.saturating_sub(free as u64);
        let receiving = used(self.plan.receiving, self.receiving.available_permits());
        let sending = used(self.plan.sending, self.sending.available_permits());
        let backlog = self.journal.as_ref().map_or(0, crate::store::Journal::backlog_bytes);
        MemoryInfo {
            max_bytes: self.config.memory_max_bytes,
            used_bytes: self.table_bytes() + receiving + sending + backlog,
            receiving_bytes: receiving,
            receiving_max_bytes: self.plan.receiving,
            sending_bytes: sending,
            sending_max_bytes: self.plan.sending,
            item_max_bytes: self.config.item_max_bytes,
        }
    }

    fn journal_info(&self) -> JournalInfo {
        let durability = self.config.durability.name().to_owned();
        let mut info = JournalInfo { durability, ..JournalInfo::default() };
        if let Some(journal) = &self.journal {
            info.backlog_bytes = journal.backlog_bytes();
            info.failure = journal.failure().map(|failure| failure.to_string()).unwrap_or_default();
            info.failures = journal.failures();
        }
        if let Some(store) = &self.store {
            info.bytes = store.directory.bytes();
            info.snapshots = store.snapshots.load(Relaxed);
            info.damaged_bytes = store.restored.damaged_bytes;
            info.damaged_files = store.restored.damaged_files;
            info.torn_bytes = store.restored.torn_bytes;
            info.kept_files = store.directory.kept_files();
            info.restored_items = store.restored.items;
            info.restore_ms = store.restore_time.as_millis() as u64;
        }
        info
    }
}

fn table(handle: &Handle) -> TableInfo {
    let table = lock(&handle.table);
    let (config, counts) = (table.config(), table.counts());
    let now = milliseconds();
    let age = |inserted_ms: u64| now.saturating_sub(inserted_ms);
    let (oldest, newest) = table.insertion_times_ms().unwrap_or((now, now));
    TableInfo {
        name: config.name.clone(),
        sampler: config.sampler.to_string(),
        remover: config.remover.to_string(),
        capacity_items: config.capacity_items,
        capacity_bytes: config.capacity_bytes,
        extent: Some(Extent { size: table.len() as u64, mass: table.mass() }),
        bytes: table.bytes(),
        inserts: counts.inserts,
        samples: counts.samples,
        deletes: counts.deletes,
        difference: config.limiter.difference(&counts),
        samples_per_insert: config.limiter.samples_per_insert,
        min_size_to_sample: config.limiter.min_size_to_sample,
        min_diff: config.limiter.min_diff,
        max_diff: config.limiter.max_diff,
        duplicates: handle.duplicates.load(Relaxed),
        refused: handle.refused.load(Relaxed),
        inserts_waiting: handle.insert.waiting.load(Relaxed),
        samples_waiting: handle.sample.waiting.load(Relaxed),
        oldest_age_ms: age(oldest),
        newest_age_ms: age(newest),
        insert_latency: Some(latency(&handle.insert.latency)),
        sample_latency: Some(latency(&handle.sample.latency)),
    }
}

fn latency(histogram: &Histogram) -> LatencyInfo {
    let Quantiles { count, at: [p50_us, p90_us, p99_us, p999_us], max } = histogram.quantiles();
    LatencyInfo { count, p50_us, p90_us, p99_us, p999_us, max_us: max }
}
