//! Why something cannot be written or read.

use std::io;
use std::path::{Path, PathBuf};

use super::format::{FORMAT, FORMAT_OLDEST};

/// A failure of the shard's directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refuses.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Two shards must not write to one directory.
    #[error("{} is in use by another process, expected a directory of this shard's own", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The items of a table would be lost.
    #[error(
        "{} has records of a table {table:?} that is not configured, expected one of this shard's: add it with \
         --table, or move the file away to start without its items",
        path.display()
    )]
    UnknownTable {
        /// The file.
        path: PathBuf,
        /// Name of the table.
        table: String,
    },
    /// Of a later version of this program, or not of it at all.
    #[error(
        "{} has format {found}, expected {FORMAT_OLDEST} to {FORMAT}: start the version of replayd that wrote it",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u32,
    },
}

impl StoreError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
