//! Priorities, deletions, resets.

use super::error::ShardError;
use super::shard::Shard;
use crate::limits::BATCH_ITEMS_MAX;
use crate::lock;
use crate::store::{Lsn, Record};

impl Shard {
    /// Changes priorities of items that are still there; how many were.
    ///
    /// # Errors
    /// A priority that cannot be: then none is changed.
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

    /// Removes items; how many there were.
    ///
    /// # Errors
    /// An unknown table, too many keys, a journal that has failed.
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

    /// Empties a table and sets its rate limiter to zero; how many items there were.
    ///
    /// # Errors
    /// An unknown table, a journal that has failed.
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

    /// Refuses a change that could not be made durable, before it is made.
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
