//! Configuration of a table.

use serde::{Deserialize, Serialize};

use super::limiter::LimiterError;
use super::{RateLimiter, Remover, Sampler, Selector};
use crate::limits::{ITEMS_MAX, NAME_BYTES_MAX};

/// Immutable properties of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableConfig {
    /// Name of the table, 1 to 200 bytes long and unique within its shard.
    pub name: String,
    /// Maximum number of items; 1 to 2^28.
    pub capacity_items: u64,
    /// Maximum size in bytes, including 384 bytes of overhead for each item.
    pub capacity_bytes: u64,
    /// Selector that picks the item to draw.
    pub sampler: Sampler,
    /// Selector that picks the item to remove when the table is full.
    pub remover: Remover,
    /// Number of draws after which an item is removed; 0 if there is no limit.
    pub max_times_sampled: u32,
    /// The rate limiter, which limits how far inserts and samples can run ahead of each other.
    pub limiter: RateLimiter,
    /// Behaviour of an insert into a full table.
    pub when_full: WhenFull,
}

/// Behaviour of an insert into a full table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// The remover picks items to remove, as in Reverb.
    #[default]
    Remove,
    /// The insert waits for room. Items are removed only by a deletion, or when they have been drawn
    /// `max_times_sampled` times.
    Wait,
}

/// Invalid configuration of a table.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A field is out of its range.
    #[error("{field} of table {table:?} is {value}, expected {expected}")]
    Field {
        /// Name of the table.
        table: String,
        /// Name of the field.
        field: &'static str,
        /// Invalid value.
        value: String,
        /// Valid values.
        expected: String,
    },
    /// The rate limiter is invalid.
    #[error("table {table:?}: {source}")]
    Limiter {
        /// Name of the table.
        table: String,
        /// Cause of the error.
        source: LimiterError,
    },
}

impl TableConfig {
    /// Returns a table that samples uniformly from the newest `capacity_items` items, once it contains at least one
    /// item.
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

    /// Returns a table that draws each item once, in insertion order. Inserts wait while the table holds
    /// `capacity_items` items.
    pub fn queue(name: &str, capacity_items: u64, capacity_bytes: u64) -> Self {
        Self {
            sampler: Selector::Fifo,
            max_times_sampled: 1,
            limiter: RateLimiter::queue(capacity_items),
            when_full: WhenFull::Wait,
            ..Self::uniform(name, capacity_items, capacity_bytes)
        }
    }

    /// Returns a table that draws each item once, the newest first. Inserts wait while the table holds
    /// `capacity_items` items.
    pub fn stack(name: &str, capacity_items: u64, capacity_bytes: u64) -> Self {
        Self {
            sampler: Selector::Lifo,
            remover: Selector::Lifo,
            limiter: RateLimiter::stack(capacity_items),
            ..Self::queue(name, capacity_items, capacity_bytes)
        }
    }

    /// # Errors
    /// Returns an error that names the first field that is out of range.
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
