//! Errors of the store.

use std::io;
use std::path::{Path, PathBuf};

use super::format::{FORMAT, FORMAT_OLDEST};

/// Reasons why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Failed operation.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error reported by the operating system.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error("{} is in use by another process, expected a directory that no other shard uses", path.display())]
    InUse {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory contains a table that is not configured. Starting the shard would lose the table's items.
    #[error(
        "{} contains records for table {table:?}, which is not configured on this shard: add the table with --table, \
         or move the file away to start without its items",
        path.display()
    )]
    UnknownTable {
        /// Path of the file.
        path: PathBuf,
        /// Name of the table.
        table: String,
    },
    /// The file was written by a newer version of this program, or by another program.
    #[error(
        "{} has format {found}, expected {FORMAT_OLDEST} to {FORMAT}: start the version of replayd that wrote it",
        path.display()
    )]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Format number in the file.
        found: u32,
    },
}

impl StoreError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
