//! Why a shard does not do what it was asked.

use tonic::Code;

use crate::store::{JournalFailed, StoreError};
use crate::table::{Held, Refusal};

/// The answer to a request that is not carried out. Each names the value and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// There is no such table.
    #[error("table is {table:?}, expected one of {known:?}")]
    UnknownTable {
        /// As it was asked for.
        table: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// An item can never be inserted.
    #[error("table {table:?}, items[{index}]: {source}")]
    Item {
        /// Name of the table.
        table: String,
        /// Its place in the request.
        index: usize,
        /// Why not.
        source: Refusal,
    },
    /// A priority that cannot be.
    #[error("table {table:?}, updates[{index}]: {source}")]
    Priority {
        /// Name of the table.
        table: String,
        /// Its place in the request.
        index: usize,
        /// Why not.
        source: Refusal,
    },
    /// A payload longer than this shard takes.
    #[error("items[{index}].payload is {len} bytes long, expected at most {most} (--item-max)")]
    ItemTooLong {
        /// Its place in the request.
        index: usize,
        /// Bytes.
        len: u64,
        /// Bytes.
        most: u64,
    },
    /// A list that is too long, or empty where that means nothing.
    #[error("{field} has {len} entries, expected 1 to {most}")]
    Batch {
        /// Name of the list.
        field: &'static str,
        /// Its length.
        len: usize,
        /// Longest that is taken.
        most: usize,
    },
    /// Another process calls itself by this actor's number, or the actor was started again.
    #[error(
        "session of actor {actor} is {session}, expected at least {latest}: a later one has inserted already"
    )]
    Fenced {
        /// The actor.
        actor: u64,
        /// Of the request.
        session: u64,
        /// The latest that was heard of.
        latest: u64,
    },
    /// Nobody remembers whether that item was inserted.
    #[error("seq of actor {actor} is {seq}, expected at least {oldest}")]
    Forgotten {
        /// The actor.
        actor: u64,
        /// Of the request.
        seq: u64,
        /// The oldest that is remembered.
        oldest: u64,
    },
    /// The time that the client gave is over.
    #[error("table {table:?} had no room for it within {wait_ms} ms: {source}")]
    Held {
        /// Name of the table.
        table: String,
        /// The client's deadline.
        wait_ms: u64,
        /// What it waited for at the end.
        source: Held,
    },
    /// Others waited before it until the time was over.
    #[error("table {table:?} did not get to it within {wait_ms} ms: {waiting} requests waited")]
    Queued {
        /// Name of the table.
        table: String,
        /// The client's deadline.
        wait_ms: u64,
        /// Requests of the same kind.
        waiting: u64,
    },
    /// Readers are slower than what they ask for.
    #[error(
        "answers on their way take {sending} of {most} bytes, expected room for {asked} within {wait_ms} ms: readers \
         are slow"
    )]
    Sending {
        /// Bytes on their way.
        sending: u64,
        /// Bytes that are allowed.
        most: u64,
        /// Bytes that were needed.
        asked: u64,
        /// The client's deadline.
        wait_ms: u64,
    },
    /// The disk is slower than the actors.
    #[error("the journal is {backlog} bytes behind after {wait_ms} ms, expected at most {most}")]
    JournalBehind {
        /// Bytes to be written.
        backlog: u64,
        /// Bytes that are allowed.
        most: u64,
        /// The client's deadline.
        wait_ms: u64,
    },
    /// The disk does not take what has to be durable.
    #[error(transparent)]
    Journal(#[from] JournalFailed),
    /// A snapshot could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nowhere to write a snapshot to.
    #[error("this shard has no data directory, expected --data-dir for snapshots")]
    NoDirectory,
    /// It ends.
    #[error("this shard is stopping")]
    Stopping,
}

impl ShardError {
    /// The gRPC status code.
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
