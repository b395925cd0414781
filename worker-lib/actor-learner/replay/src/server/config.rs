//! Configuration of a shard.

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "tls")]
use super::tls::ServerTls;
use super::token::Token;
use crate::limits::{
    BACKLOG_BYTES, CONNECTIONS_MAX, ITEM_BYTES_MAX, ITEM_OVERHEAD_BYTES, REQUEST_SLACK_BYTES,
    SAMPLE_PART_BYTES, TABLES_MAX,
};
use crate::store::Durability;
use crate::table::{ConfigError, TableConfig};

/// Default value of [`ShardConfig::connections_max`].
pub const CONNECTIONS_DEFAULT: usize = 4096;

/// Options of a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardConfig {
    /// Tables of the shard. Tables whose `capacity_bytes` is `u64::MAX` share the remaining memory equally.
    pub tables: Vec<TableConfig>,
    /// Maximum memory for tables, requests and responses, in bytes.
    pub memory_max_bytes: u64,
    /// Maximum length of a payload, in bytes; at most 1 GiB.
    pub item_max_bytes: u64,
    /// Maximum number of concurrent connections; 1 to 2^20.
    pub connections_max: usize,
    /// Token that every request must carry, if set.
    pub token: Option<Token>,
    /// TLS configuration. If it is set, TCP connections must use TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<ServerTls>,
    /// Directory of the journal and the snapshots.
    pub data_dir: Option<PathBuf>,
    /// Durability of acknowledged inserts.
    pub durability: Durability,
    /// Interval between periodic snapshots. The shard also writes snapshots to keep the journal short.
    pub snapshot_every: Option<Duration>,
    /// Seed for the selectors' random choices.
    pub seed: u64,
}

/// Invalid configuration of a shard.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ShardConfigError {
    /// A table is invalid.
    #[error(transparent)]
    Table(#[from] ConfigError),
    /// Two tables have the same name.
    #[error("two tables are named {0:?}, expected different names")]
    SameName(String),
    /// A field is out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Invalid value.
        value: String,
        /// Valid values.
        expected: String,
    },
}

/// Division of a shard's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Memory for requests that are being received.
    pub receiving: u64,
    /// Memory for responses that are being sent.
    pub sending: u64,
    /// Memory for journal records that have not been written yet.
    pub backlog: u64,
    /// Memory for items.
    pub tables: u64,
}

impl Default for ShardConfig {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            memory_max_bytes: 1 << 30,
            item_max_bytes: 16 << 20,
            connections_max: CONNECTIONS_DEFAULT,
            token: None,
            #[cfg(feature = "tls")]
            tls: None,
            data_dir: None,
            durability: Durability::None,
            snapshot_every: None,
            seed: 0,
        }
    }
}

impl ShardConfig {
    /// Divides the memory: one eighth for requests, one eighth for responses, a fixed amount for the journal backlog if
    /// there is a journal, and the rest for items. The parts for requests and for responses are each large enough for
    /// at least one item of the maximum length.
    pub fn memory_plan(&self) -> MemoryPlan {
        let eighth = self.memory_max_bytes / 8;
        let receiving = eighth.max(self.item_max_bytes + REQUEST_SLACK_BYTES);
        let sending = eighth.max(self.item_max_bytes + SAMPLE_PART_BYTES);
        let backlog =
            if self.durability == Durability::None { 0 } else { BACKLOG_BYTES + self.item_max_bytes };
        let tables = self.memory_max_bytes.saturating_sub(receiving + sending + backlog);
        MemoryPlan { receiving, sending, backlog, tables }
    }

    /// Checks all fields, and assigns the remaining memory to tables without a capacity.
    ///
    /// # Errors
    /// Returns an error that names the first field that is out of range.
    pub fn resolve(mut self) -> Result<Self, ShardConfigError> {
        let refuse =
            |field, value: String, expected: String| Err(ShardConfigError::Field { field, value, expected });
        if !(1..=TABLES_MAX).contains(&self.tables.len()) {
            return refuse("tables", self.tables.len().to_string(), format!("1 to {TABLES_MAX} tables"));
        }
        if !(1..=ITEM_BYTES_MAX).contains(&self.item_max_bytes) {
            return refuse(
                "item_max",
                self.item_max_bytes.to_string(),
                format!("1 to {ITEM_BYTES_MAX} bytes"),
            );
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections_max) {
            let value = self.connections_max.to_string();
            return refuse("connections_max", value, format!("1 to {CONNECTIONS_MAX}"));
        }
        if self.durability != Durability::None && self.data_dir.is_none() {
            return refuse(
                "durability",
                self.durability.name().to_owned(),
                "none without a data directory".to_owned(),
            );
        }
        if let Some(every) = self.snapshot_every
            && (every.is_zero() || self.data_dir.is_none())
        {
            let expected = if every.is_zero() { "more than 0" } else { "no value without a data directory" };
            return refuse("snapshot_every", format!("{every:?}"), expected.to_owned());
        }
        self.share_memory()?;
        for (at, table) in self.tables.iter().enumerate() {
            table.check()?;
            if self.tables[..at].iter().any(|other| other.name == table.name) {
                return Err(ShardConfigError::SameName(table.name.clone()));
            }
        }
        Ok(self)
    }

    fn share_memory(&mut self) -> Result<(), ShardConfigError> {
        let plan = self.memory_plan();
        let given = self.tables.iter().map(|table| table.capacity_bytes).filter(|bytes| *bytes != u64::MAX);
        let given = given.fold(0, u64::saturating_add);
        let open = self.tables.iter().filter(|table| table.capacity_bytes == u64::MAX).count() as u64;
        let share = plan.tables.saturating_sub(given).checked_div(open).unwrap_or(u64::MAX);
        let least = self.item_max_bytes + ITEM_OVERHEAD_BYTES;
        if given > plan.tables || share < least {
            let expected = format!(
                "at least the sum of {} bytes for requests, {} for responses, {} for the journal, {given} for tables \
                 with a capacity, and {least} for an item in each of the {open} other tables",
                plan.receiving, plan.sending, plan.backlog
            );
            let value = self.memory_max_bytes.to_string();
            return Err(ShardConfigError::Field { field: "memory_max", value, expected });
        }
        for table in &mut self.tables {
            if table.capacity_bytes == u64::MAX {
                table.capacity_bytes = share;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(capacities: &[u64]) -> ShardConfig {
        let table = |(at, bytes): (usize, &u64)| TableConfig::uniform(&format!("t{at}"), 10, *bytes);
        ShardConfig { tables: capacities.iter().enumerate().map(table).collect(), ..ShardConfig::default() }
    }

    #[test]
    fn memory_is_divided_among_tables_and_requests() {
        let config = config(&[100 << 20, u64::MAX, u64::MAX]).resolve().unwrap();
        let plan = config.memory_plan();
        let tables: u64 = config.tables.iter().map(|table| table.capacity_bytes).sum();
        assert!(tables <= plan.tables && tables > plan.tables - 2);
        assert_eq!(plan.tables + plan.receiving + plan.sending + plan.backlog, 1 << 30);
        assert_eq!(config.tables[1].capacity_bytes, config.tables[2].capacity_bytes);
    }

    #[test]
    fn memory_limits_that_are_too_small_are_refused_with_the_reason() {
        let error = config(&[1 << 30]).resolve().unwrap_err().to_string();
        assert!(
            error.starts_with(
                "memory_max is 1073741824, expected at least the sum of 134217728 bytes for requests"
            ),
            "{error}"
        );
        let error = ShardConfig { memory_max_bytes: 1000, ..config(&[u64::MAX]) }.resolve().unwrap_err();
        assert!(error.to_string().starts_with("memory_max is 1000, expected"), "{error}");
        let error = config(&[]).resolve().unwrap_err().to_string();
        assert_eq!(error, "tables is 0, expected 1 to 1024 tables");
        let error =
            ShardConfig { durability: Durability::Sync, ..config(&[1]) }.resolve().unwrap_err().to_string();
        assert_eq!(error, "durability is sync, expected none without a data directory");
        let mut twice = config(&[5, 5]);
        twice.tables[1].name = "t0".to_owned();
        assert_eq!(twice.resolve(), Err(ShardConfigError::SameName("t0".to_owned())));
    }
}
