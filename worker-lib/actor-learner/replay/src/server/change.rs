//! Changes to tables. Inserts are processed in order, have a deadline, are applied at most once, and are durable before
//! they are acknowledged. This module also contains priority updates, deletions and resets.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::error::ShardError;
use super::shard::{Handle, Shard, Waited, milliseconds};
use crate::limits::{BACKLOG_BYTES, BATCH_ITEMS_MAX};
use crate::lock;
use crate::store::{Lsn, Payload, Record};
use crate::table::{Item, NewItem, Origin, OriginError, Table};

/// Payload length in bytes below which a payload is copied out of its message. Otherwise, a short payload would keep
/// the whole message in memory.
const COPY_BYTES: usize = 64 << 10;

/// Batch of items of one actor.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Name of the table.
    pub table: String,
    /// Origin of the first item. The sequence numbers of the other items follow consecutively.
    pub first: Origin,
    /// Items to insert.
    pub items: Vec<NewItem>,
    /// Maximum time for which the shard may hold back the batch as a whole.
    pub wait: Duration,
}

/// Outcome of a batch.
#[derive(Debug)]
pub struct Inserted {
    /// Keys of the stored items, in the order of the batch; 0 for an item that an earlier request had already stored.
    pub keys: Vec<u64>,
    /// Reason why the remaining items were not stored; `None` if all items are stored.
    pub refused: Option<ShardError>,
    /// Number of items in the table.
    pub size: u64,
    /// See [`Table::mass`].
    pub mass: f64,
}

/// Outcome of one attempt to insert an item.
enum Step {
    Done { key: u64, lsn: Option<Lsn> },
    Held(crate::table::Held),
}

impl Shard {
    /// Inserts items. Returns once the items have the durability that the shard's configuration requires.
    ///
    /// # Errors
    /// Returns the reason if none of the items was inserted.
    pub async fn insert(&self, batch: Batch) -> Result<Inserted, ShardError> {
        let handle = self.handle(&batch.table)?;
        let began = Instant::now();
        let inserted = self.insert_batch(handle, batch).await;
        handle.insert.latency.record(began.elapsed());
        if !matches!(inserted, Ok(Inserted { refused: None, .. })) {
            handle.refused.fetch_add(1, Relaxed);
        }
        inserted
    }

    async fn insert_batch(&self, handle: &Handle, batch: Batch) -> Result<Inserted, ShardError> {
        self.check(handle, &batch)?;
        let deadline = Instant::now() + batch.wait;
        let is_alone = batch.items.len() == 1;
        let mut inserted =
            Inserted { keys: Vec::with_capacity(batch.items.len()), refused: None, size: 0, mass: 0.0 };
        let mut durable: Option<Lsn> = None;
        {
            let _waiting = handle.insert.enter();
            let _turn = match self.wait(batch.wait, handle.insert.turn.lock()).await {
                Waited::Done(turn) => turn,
                Waited::TimedOut => return Err(handle.queued(&handle.insert, batch.wait)),
                Waited::Stopping => return Err(ShardError::Stopping),
            };
            for (at, item) in batch.items.into_iter().enumerate() {
                let origin = Origin { seq: batch.first.seq.wrapping_add(at as u64), ..batch.first };
                match self.insert_one(handle, origin, own(item, is_alone), deadline, batch.wait).await {
                    Ok((key, lsn)) => {
                        inserted.keys.push(key);
                        durable = durable.max(lsn);
                    }
                    Err(error) if inserted.keys.is_empty() => return Err(error),
                    Err(error) => {
                        inserted.refused = Some(error);
                        break;
                    }
                }
            }
        }
        if let (Some(journal), Some(lsn)) = (&self.journal, durable) {
            journal.durable(lsn).await?;
        }
        let table = lock(&handle.table);
        (inserted.size, inserted.mass) = (table.len() as u64, table.mass());
        Ok(inserted)
    }

    fn check(&self, handle: &Handle, batch: &Batch) -> Result<(), ShardError> {
        if !(1..=BATCH_ITEMS_MAX).contains(&batch.items.len()) {
            return Err(ShardError::Batch { field: "items", len: batch.items.len(), most: BATCH_ITEMS_MAX });
        }
        let table = lock(&handle.table);
        for (index, item) in batch.items.iter().enumerate() {
            let (len, most) = (item.payload.len() as u64, self.config.item_max_bytes);
            if len > most {
                return Err(ShardError::ItemTooLong { index, len, most });
            }
            let checked = table.check(item);
            checked.map_err(|source| ShardError::Item { table: handle.name.clone(), index, source })?;
        }
        Ok(())
    }

    async fn insert_one(
        &self,
        handle: &Handle,
        origin: Origin,
        item: NewItem,
        deadline: Instant,
        wait: Duration,
    ) -> Result<(u64, Option<Lsn>), ShardError> {
        let left = || deadline.saturating_duration_since(Instant::now());
        // Compute the checksum before taking any lock.
        let payload = self.journal.is_some().then(|| Payload::new(item.payload.clone()));
        loop {
            if let Some(journal) = &self.journal {
                match self.wait(left(), journal.room()).await {
                    Waited::Done(room) => room?,
                    Waited::TimedOut => {
                        let (backlog, most) = (journal.backlog_bytes(), BACKLOG_BYTES);
                        let wait_ms = wait.as_millis() as u64;
                        return Err(ShardError::JournalBehind { backlog, most, wait_ms });
                    }
                    Waited::Stopping => return Err(ShardError::Stopping),
                }
            }
            let held = match self.try_insert(handle, origin, &item, payload.as_ref())? {
                Step::Done { key, lsn } => return Ok((key, lsn)),
                Step::Held(held) => held,
            };
            match self.wait(left(), handle.insert.changed.notified()).await {
                Waited::Done(()) => {}
                Waited::TimedOut => return Err(handle.held(held, wait)),
                Waited::Stopping => return Err(ShardError::Stopping),
            }
        }
    }

    fn try_insert(
        &self,
        handle: &Handle,
        origin: Origin,
        item: &NewItem,
        payload: Option<&Payload>,
    ) -> Result<Step, ShardError> {
        let mut table = lock(&handle.table);
        if is_known(&table, origin)? {
            handle.duplicates.fetch_add(1, Relaxed);
            // The record of the earlier request may not be on disk yet, so the caller waits for all records appended so
            // far.
            return Ok(Step::Done {
                key: 0,
                lsn: self.journal.as_ref().map(crate::store::Journal::appended),
            });
        }
        if let Err(held) = table.can_insert(item.payload.len()) {
            return Ok(Step::Held(held));
        }
        let key = self.next_key.fetch_add(1, Relaxed);
        let item = Item {
            key,
            priority: item.priority,
            times_sampled: 0,
            version: item.version,
            origin,
            inserted_ms: milliseconds(),
            payload: item.payload.clone(),
        };
        // The caller holds the table's lock, so the journal records are in the same order as the changes.
        let record = payload.map(|_| Box::new(item.clone()));
        let removed = table.insert(item);
        let (counts, name) = (table.counts(), handle.table_name());
        let mut lsn = None;
        if let (Some(journal), Some(item)) = (&self.journal, record) {
            lsn = Some(journal.append(&Record::Item { table: Arc::clone(&name), counts, item }, payload));
            if !removed.is_empty() {
                lsn = Some(journal.append(&Record::Removed { table: name, counts, keys: removed }, None));
            }
        }
        drop(table);
        handle.sample.changed.notify_one();
        Ok(Step::Done { key, lsn })
    }
}

fn is_known(table: &Table, origin: Origin) -> Result<bool, ShardError> {
    let Origin { actor, session, seq } = origin;
    table.writers.has(origin).map_err(|error| match error {
        OriginError::Fenced { latest } => ShardError::Fenced { actor, session, latest },
        OriginError::Forgotten { oldest } => ShardError::Forgotten { actor, seq, oldest },
    })
}

/// Copies the payload if it would otherwise keep a larger buffer than necessary in memory.
fn own(item: NewItem, is_alone: bool) -> NewItem {
    if is_alone && item.payload.len() >= COPY_BYTES {
        return item;
    }
    NewItem { payload: Bytes::copy_from_slice(&item.payload), ..item }
}

impl Shard {
    /// Changes priorities, and returns how many of the items still existed.
    ///
    /// # Errors
    /// Fails without changing anything if any of the priorities is invalid.
    pub async fn update_priorities(&self, table: &str, updates: Vec<(u64, f64)>) -> Result<u64, ShardError> {
        let handle = self.handle(table)?;
        check_batch("updates", updates.len())?;
        self.check_journal()?;
        let (updated, lsn) = {
            let mut table = lock(&handle.table);
            for (index, (_, priority)) in updates.iter().enumerate() {
                let checked = table.check_priority(*priority);
                checked.map_err(|source| ShardError::Priority {
                    table: handle.name.clone(),
                    index,
                    source,
                })?;
            }
            let mut done = Vec::new();
            for (key, priority) in updates {
                if table.set_priority(key, priority) == Ok(true) {
                    done.push((key, priority));
                }
            }
            let (updated, counts) = (done.len() as u64, table.counts());
            (
                updated,
                self.append(&Record::Priorities { table: handle.table_name(), counts, priorities: done }),
            )
        };
        self.durable(lsn).await?;
        Ok(updated)
    }

    /// Removes items, and returns how many of them existed.
    ///
    /// # Errors
    /// Fails if the table is unknown, there are too many keys, or the journal has failed.
    pub async fn delete(&self, table: &str, keys: Vec<u64>) -> Result<u64, ShardError> {
        let handle = self.handle(table)?;
        check_batch("keys", keys.len())?;
        self.check_journal()?;
        let (deleted, lsn) = {
            let mut table = lock(&handle.table);
            let keys: Vec<u64> = keys.into_iter().filter(|key| table.delete(*key)).collect();
            let (deleted, counts) = (keys.len() as u64, table.counts());
            (deleted, self.append(&Record::Removed { table: handle.table_name(), counts, keys }))
        };
        handle.insert.changed.notify_one();
        self.durable(lsn).await?;
        Ok(deleted)
    }

    /// Empties a table, resets the counts of its rate limiter to zero, and returns the number of items removed.
    ///
    /// # Errors
    /// Fails if the table is unknown or the journal has failed.
    pub async fn reset(&self, table: &str) -> Result<u64, ShardError> {
        let handle = self.handle(table)?;
        self.check_journal()?;
        let (deleted, lsn) = {
            let mut table = lock(&handle.table);
            (table.reset(), self.append(&Record::Reset { table: handle.table_name() }))
        };
        handle.insert.changed.notify_one();
        handle.sample.changed.notify_one();
        self.durable(lsn).await?;
        Ok(deleted)
    }

    /// Rejects a change in advance if the journal cannot make it durable.
    fn check_journal(&self) -> Result<(), ShardError> {
        match self.journal.as_ref().and_then(crate::store::Journal::failure) {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }

    fn append(&self, record: &Record) -> Option<Lsn> {
        self.journal.as_ref().map(|journal| journal.append(record, None))
    }

    async fn durable(&self, lsn: Option<Lsn>) -> Result<(), ShardError> {
        match (&self.journal, lsn) {
            (Some(journal), Some(lsn)) => Ok(journal.durable(lsn).await?),
            _ => Ok(()),
        }
    }
}

fn check_batch(field: &'static str, len: usize) -> Result<(), ShardError> {
    if (1..=BATCH_ITEMS_MAX).contains(&len) {
        return Ok(());
    }
    Err(ShardError::Batch { field, len, most: BATCH_ITEMS_MAX })
}
