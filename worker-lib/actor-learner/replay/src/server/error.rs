//! Errors of a shard.

use tonic::Code;

use crate::store::{JournalFailed, StoreError};
use crate::table::{Held, Refusal};

/// Error response to a request. The message contains the invalid value and the expected one.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The table does not exist.
    #[error("table is {table:?}, expected one of {known:?}")]
    UnknownTable {
        /// Requested table.
        table: String,
        /// Existing tables.
        known: Vec<String>,
    },
    /// An item can never be inserted into the table.
    #[error("table {table:?}, items[{index}]: {source}")]
    Item {
        /// Name of the table.
        table: String,
        /// Index of the invalid item in the request.
        index: usize,
        /// Cause of the error.
        source: Refusal,
    },
    /// A priority is invalid.
    #[error("table {table:?}, updates[{index}]: {source}")]
    Priority {
        /// Name of the table.
        table: String,
        /// Index of the invalid update in the request.
        index: usize,
        /// Cause of the error.
        source: Refusal,
    },
    /// A payload is larger than the shard accepts.
    #[error("items[{index}].payload is {len} bytes long, expected at most {most} (--item-max)")]
    ItemTooLong {
        /// Index of the invalid item in the request.
        index: usize,
        /// Length of the payload, in bytes.
        len: u64,
        /// Maximum length, in bytes.
        most: u64,
    },
    /// A list has too many entries or, if at least one entry is required, none.
    #[error("{field} has {len} entries, expected 1 to {most}")]
    Batch {
        /// Name of the list.
        field: &'static str,
        /// Length of the list.
        len: usize,
        /// Maximum length.
        most: usize,
    },
    /// A later session of this actor exists: either another process uses the number of the actor, or the actor has been
    /// restarted.
    #[error(
        "session of actor {actor} is {session}, expected at least {latest}: a later session has inserted items"
    )]
    Fenced {
        /// Number that identifies the actor.
        actor: u64,
        /// Session of the request.
        session: u64,
        /// Latest known session.
        latest: u64,
    },
    /// The sequence number is too old: the shard no longer knows whether the item was inserted.
    #[error(
        "seq of actor {actor} is {seq}, expected at least {oldest}: the shard no longer knows whether older items were \
         inserted"
    )]
    Forgotten {
        /// Number that identifies the actor.
        actor: u64,
        /// Sequence number of the request.
        seq: u64,
        /// Oldest sequence number that the shard remembers.
        oldest: u64,
    },
    /// The client's deadline expired before the table could serve the request.
    #[error("table {table:?} could not serve the request within {wait_ms} ms: {source}")]
    Held {
        /// Name of the table.
        table: String,
        /// Wait time set by the client, in milliseconds.
        wait_ms: u64,
        /// Condition that the request was waiting for when the deadline expired.
        source: Held,
    },
    /// The deadline expired while earlier requests were still ahead of this one in the queue.
    #[error("table {table:?} did not start the request within {wait_ms} ms: {waiting} requests are waiting")]
    Queued {
        /// Name of the table.
        table: String,
        /// Wait time set by the client, in milliseconds.
        wait_ms: u64,
        /// Number of requests of the same kind (inserts or samples) that are waiting for the table.
        waiting: u64,
    },
    /// No memory is left for another response, because readers receive their responses too slowly.
    #[error(
        "responses being sent hold {sending} of {most} bytes of memory, and the {asked} bytes needed for this response \
         were not available within {wait_ms} ms: the readers are too slow"
    )]
    Sending {
        /// Memory of responses being sent, in bytes.
        sending: u64,
        /// Maximum memory for responses, in bytes.
        most: u64,
        /// Memory that the request needs, in bytes.
        asked: u64,
        /// Wait time set by the client, in milliseconds.
        wait_ms: u64,
    },
    /// The disk cannot keep up with the actors' inserts.
    #[error(
        "the journal backlog is still {backlog} bytes after {wait_ms} ms, expected at most {most}: the disk is too slow"
    )]
    JournalBehind {
        /// Journal backlog, in bytes.
        backlog: u64,
        /// Maximum backlog, in bytes.
        most: u64,
        /// Wait time set by the client, in milliseconds.
        wait_ms: u64,
    },
    /// The journal cannot be written, so the change could not be made durable.
    #[error(transparent)]
    Journal(#[from] JournalFailed),
    /// A snapshot could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no directory for snapshots.
    #[error("this shard cannot write snapshots, because it was started without --data-dir")]
    NoDirectory,
    /// The shard is shutting down.
    #[error("this shard is shutting down")]
    Stopping,
}

impl ShardError {
    /// Returns the gRPC status code.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownTable { .. } => Code::NotFound,
            Self::Item { .. } | Self::Priority { .. } | Self::ItemTooLong { .. } | Self::Batch { .. } => {
                Code::InvalidArgument
            }
            Self::Fenced { .. } | Self::Forgotten { .. } | Self::NoDirectory => Code::FailedPrecondition,
            Self::Held { source: Held::Full { .. }, .. }
            | Self::Sending { .. }
            | Self::JournalBehind { .. } => Code::ResourceExhausted,
            Self::Held { .. } | Self::Queued { .. } => Code::DeadlineExceeded,
            Self::Journal(_) | Self::Stopping => Code::Unavailable,
            Self::Store(_) => Code::Internal,
        }
    }
}

impl From<ShardError> for tonic::Status {
    fn from(error: ShardError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
