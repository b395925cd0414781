//! What a table is made from.

use serde::{Deserialize, Serialize};

use super::limiter::LimiterError;
use super::{RateLimiter, Remover, Sampler, Selector};
use crate::limits::{ITEMS_MAX, NAME_BYTES_MAX};

/// Properties of a table that do not change.
#[derive(Clone, Debug, PartialEq)]
pub struct TableConfig {
    /// Names it among the tables of a shard; 1 to 200 bytes.
    pub name: String,
    /// Items that it holds at most; 1 to 2^28.
    pub capacity_items: u64,
    /// Bytes that it holds at most, with 384 for each item beside its payload.
    pub capacity_bytes: u64,
    /// Picks the item to draw.
    pub sampler: Sampler,
    /// Picks the item that gives way.
    pub remover: Remover,
    /// An item that was drawn so often is removed; 0: never.
    pub max_times_sampled: u32,
    /// How far samples and inserts may run ahead of each other.
    pub limiter: RateLimiter,
    /// What a new item does in a full table.
    pub when_full: WhenFull,
}

/// What a new item does in a full table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// The remover picks items that give way to it, as in Reverb.
    #[default]
    Remove,
    /// It waits: nothing is lost that was not sampled or deleted.
    Wait,
}

/// A table that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A field is out of its range.
    #[error("{field} of table {table:?} is {value}, expected {expected}")]
    Field {
        /// The table's name.
        table: String,
        /// Name of the field.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// Its rate limiter is refused.
    #[error("table {table:?}: {source}")]
    Limiter {
        /// The table's name.
        table: String,
        /// Why.
        source: LimiterError,
    },
}

impl TableConfig {
    /// A table of uniform samples from the newest `capacity_items` items, as soon as it has one.
    pub fn uniform(name: &str, capacity_items: u64, capacity_bytes: u64) -> Self {
        Self {
            name: name.to_owned(),
            capacity_items,
            capacity_bytes,
            sampler: Selector::Uniform,
            remover: Selector::Fifo,
            max_times_sampled: 0,
            limiter: RateLimiter::min_size(1),
            when_full: WhenFull::Remove,
        }
    }

    /// Each item is drawn once, in the order of insertion; inserts wait while there are `capacity_items`.
    pub fn queue(name: &str, capacity_items: u64, capacity_bytes: u64) -> Self {
        Self {
            sampler: Selector::Fifo,
            max_times_sampled: 1,
            limiter: RateLimiter::queue(capacity_items),
            when_full: WhenFull::Wait,
            ..Self::uniform(name, capacity_items, capacity_bytes)
        }
    }

    /// Each item is drawn once, the newest first; inserts wait while there are `capacity_items`.
    pub fn stack(name: &str, capacity_items: u64, capacity_bytes: u64) -> Self {
        Self {
            sampler: Selector::Lifo,
            remover: Selector::Lifo,
            limiter: RateLimiter::stack(capacity_items),
            ..Self::queue(name, capacity_items, capacity_bytes)
        }
    }

    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, value: String, expected: String| {
            Err(ConfigError::Field { table: self.name.clone(), field, value, expected })
        };
        if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX {
            let value = format!("{} bytes long", self.name.len());
            return refuse("name", value, format!("1 to {NAME_BYTES_MAX} bytes"));
        }
        if !(1..=ITEMS_MAX).contains(&self.capacity_items) {
            return refuse("capacity_items", self.capacity_items.to_string(), format!("1 to {ITEMS_MAX}"));
        }
        if self.capacity_bytes == 0 {
            return refuse("capacity_bytes", "0".to_owned(), "at least 1".to_owned());
        }
        match self.limiter.checked() {
            Ok(_) => Ok(()),
            Err(source) => Err(ConfigError::Limiter { table: self.name.clone(), source }),
        }
    }
}
