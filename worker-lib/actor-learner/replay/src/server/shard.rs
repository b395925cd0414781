//! Tables and their journal, which many clients share.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;

use super::config::{MemoryPlan, ShardConfig, ShardConfigError};
use super::error::ShardError;
use super::histogram::{Histogram, Quantiles};
use crate::limits::WAIT_MS_MAX;
use crate::lock;
use crate::proto::{DescribeResponse, Extent, JournalInfo, LatencyInfo, MemoryInfo, TableInfo};
use crate::store::{
    Directory, Durability, Journal, Pace, Restored, Snapshot, StoreError, TableName, restore, write_snapshot,
};
use crate::table::Table;

/// Shard of the replay service, run by one process.
pub struct Shard {
    pub(super) config: ShardConfig,
    pub(super) plan: MemoryPlan,
    tables: BTreeMap<String, Arc<Handle>>,
    pub(super) journal: Option<Journal>,
    pub(super) store: Option<Store>,
    pub(super) receiving: Arc<Semaphore>,
    pub(super) sending: Arc<Semaphore>,
    pub(super) next_key: AtomicU64,
    pub(super) started: Instant,
    stopping: watch::Sender<bool>,
}

/// The data directory, with the outcome of restoring it.
pub(super) struct Store {
    pub(super) directory: Arc<Directory>,
    pub(super) restored: Restored,
    pub(super) restore_time: Duration,
    pub(super) snapshots: AtomicU64,
    /// Lock that serialises snapshots. Its value is the number of the next snapshot, and is used only if there is no
    /// journal that assigns these numbers.
    turn: tokio::sync::Mutex<u64>,
    /// Journal position at which the last snapshot was started.
    covered: AtomicU64,
}

/// A table, with the requests that are waiting for it. Requests of each kind are served in order: the first one waits
/// for the table, and the others wait for the first one.
pub(super) struct Handle {
    pub(super) name: String,
    in_records: TableName,
    pub(super) table: Arc<Mutex<Table>>,
    pub(super) insert: Side,
    pub(super) sample: Side,
    pub(super) duplicates: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// Waiting requests of one kind, which are either inserts or samples.
#[derive(Default)]
pub(super) struct Side {
    pub(super) turn: tokio::sync::Mutex<()>,
    /// Notifies the first request of events that it may be waiting for.
    pub(super) changed: Notify,
    pub(super) waiting: AtomicU64,
    pub(super) latency: Histogram,
}

/// Error that prevents a shard from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ShardConfigError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Outcome of a wait.
pub(super) enum Waited<T> {
    Done(T),
    TimedOut,
    Stopping,
}

impl Shard {
    /// Opens a shard and restores the contents of its data directory. Blocks until everything is restored.
    ///
    /// # Errors
    /// Fails if an option is out of range or the data directory cannot be used.
    pub fn open(config: ShardConfig) -> Result<Self, StartError> {
        let config = config.resolve()?;
        let directory = config.data_dir.as_deref().map(Directory::open).transpose()?;
        Self::on(directory, config)
    }

    /// Opens a shard like [`Self::open`], but with a data directory that is already open.
    pub(super) fn on(directory: Option<Directory>, config: ShardConfig) -> Result<Self, StartError> {
        let mut tables = Vec::new();
        for (at, table) in config.tables.iter().enumerate() {
            tables.push(
                Table::new(table.clone(), config.seed.wrapping_add(at as u64))
                    .map_err(ShardConfigError::Table)?,
            );
        }
        let began = Instant::now();
        let directory = directory.map(Arc::new);
        let restored = match &directory {
            Some(directory) => {
                restore(directory, config.durability, &mut tables.iter_mut().collect::<Vec<_>>())?
            }
            None => Restored::default(),
        };
        let journal = match &directory {
            Some(directory) if config.durability != Durability::None => {
                Some(Journal::open(Arc::clone(directory), restored.next_number, config.durability)?)
            }
            _ => None,
        };
        let handles = tables.into_iter().map(|table| {
            let handle = Handle::new(table);
            (handle.name.clone(), Arc::new(handle))
        });
        let plan = config.memory_plan();
        Ok(Self {
            plan,
            tables: handles.collect(),
            journal,
            store: directory.map(|directory| Store::new(directory, restored, began.elapsed())),
            receiving: Arc::new(Semaphore::new(plan.receiving as usize)),
            sending: Arc::new(Semaphore::new(plan.sending as usize)),
            // A shard without a data directory must not reuse the keys of its previous run.
            next_key: AtomicU64::new(nanoseconds().max(restored.next_key)),
            started: Instant::now(),
            stopping: watch::channel(false).0,
            config,
        })
    }

    pub(super) fn handle(&self, table: &str) -> Result<&Arc<Handle>, ShardError> {
        self.tables.get(table).ok_or_else(|| ShardError::UnknownTable {
            table: table.to_owned(),
            known: self.tables.keys().cloned().collect(),
        })
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = &Arc<Handle>> {
        self.tables.values()
    }

    /// Cancels all waiting requests. They fail with the error [`ShardError::Stopping`].
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits for `future` until it completes, `wait` has elapsed or the shard is stopping.
    pub(super) async fn wait<T>(&self, wait: Duration, future: impl Future<Output = T>) -> Waited<T> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            done = timeout(wait, future) => done.map_or(Waited::TimedOut, Waited::Done),
            _ = stopping.wait_for(|stopping| *stopping) => Waited::Stopping,
        }
    }

    /// Writes a snapshot of all tables, which replaces all journal records written before it. If the journal has
    /// failed, the snapshot contains the changes whose records were lost, and the shard accepts writes again.
    ///
    /// # Errors
    /// Fails if there is no data directory, or if the snapshot cannot be written.
    pub(super) async fn snapshot(&self) -> Result<Snapshot, ShardError> {
        let store = self.store.as_ref().ok_or(ShardError::NoDirectory)?;
        let mut turn = store.turn.lock().await;
        let (number, recoverable_failures) = match &self.journal {
            Some(journal) => {
                store.covered.store(journal.appended(), Relaxed);
                journal.rotate().await
            }
            None => (*turn, None),
        };
        *turn = number + 1;
        let directory = Arc::clone(&store.directory);
        let tables: Vec<_> = self.tables.values().map(|handle| Arc::clone(&handle.table)).collect();
        let write = move || write_snapshot(&directory, number, &tables, &mut Pace::new(&mut || {}));
        let written = tokio::task::spawn_blocking(write).await;
        let snapshot = written.map_err(|_| ShardError::Stopping)??;
        store.snapshots.fetch_add(1, Relaxed);
        if let (Some(journal), Some(recoverable_failures)) = (&self.journal, recoverable_failures) {
            journal.recover(recoverable_failures);
        }
        Ok(snapshot)
    }

    /// Returns whether the journal since the last snapshot is longer than `least` bytes and longer than a new snapshot
    /// would be.
    pub(super) fn is_journal_long(&self, least: u64) -> bool {
        let (Some(store), Some(journal)) = (&self.store, &self.journal) else { return false };
        let mut since = journal.appended().saturating_sub(store.covered.load(Relaxed));
        if store.snapshots.load(Relaxed) == 0 {
            since += store.restored.journal_bytes;
        }
        since > least.max(self.table_bytes())
    }

    /// Returns whether writes are refused until a snapshot has been written.
    pub(super) fn is_journal_failed(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.failure().is_some())
    }

    pub(super) fn table_bytes(&self) -> u64 {
        self.tables.values().map(|handle| lock(&handle.table).bytes()).sum()
    }

    /// Returns the number of items that were restored at startup, and the number of bytes that were found to be
    /// damaged.
    pub fn restored(&self) -> (u64, u64) {
        self.store.as_ref().map_or((0, 0), |store| (store.restored.items, store.restored.damaged_bytes))
    }

    /// Returns the number of files that were found to be damaged at startup.
    pub fn damaged_files(&self) -> u64 {
        self.store.as_ref().map_or(0, |store| store.restored.damaged_files)
    }
}

impl Handle {
    fn new(table: Table) -> Self {
        Self {
            name: table.config().name.clone(),
            in_records: TableName::from(&*table.config().name),
            table: Arc::new(Mutex::new(table)),
            insert: Side::default(),
            sample: Side::default(),
            duplicates: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the name of the table as it is stored in journal records.
    pub(super) fn table_name(&self) -> TableName {
        Arc::clone(&self.in_records)
    }
}

impl Side {
    /// Counts a request as waiting until the returned value is dropped.
    pub(super) fn enter(&self) -> impl Drop + use<'_> {
        struct Left<'a>(&'a AtomicU64);
        impl Drop for Left<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Relaxed);
            }
        }
        self.waiting.fetch_add(1, Relaxed);
        Left(&self.waiting)
    }
}

impl Store {
    fn new(directory: Arc<Directory>, restored: Restored, restore_time: Duration) -> Self {
        Self {
            directory,
            restored,
            restore_time,
            snapshots: AtomicU64::new(0),
            turn: tokio::sync::Mutex::new(restored.next_number),
            covered: AtomicU64::new(0),
        }
    }
}

/// Converts a client's wait time in milliseconds to a duration.
pub(super) fn wait_time(wait_ms: u64) -> Duration {
    Duration::from_millis(wait_ms.min(WAIT_MS_MAX))
}

pub(super) fn milliseconds() -> u64 {
    nanoseconds() / 1_000_000
}

fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Shard {
    /// Describes the shard: sizes, limits, latencies and the state of the journal.
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
        let backlog = self.journal.as_ref().map_or(0, Journal::backlog_bytes);
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
