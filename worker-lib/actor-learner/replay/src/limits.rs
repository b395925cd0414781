//! Every limit of the replay service that is not an option.

/// Items of one table.
pub const ITEMS_MAX: u64 = 1 << 28;
/// Tables of one shard.
pub const TABLES_MAX: usize = 1024;
/// Length of a table's name.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest payload that an option may allow: a journal record with it has a length below 2^31.
pub const ITEM_BYTES_MAX: u64 = 1 << 30;
/// What an item is accounted for beside its payload: its row, its places in the selectors and in the index of keys.
pub const ITEM_OVERHEAD_BYTES: u64 = 384;
/// Items of one insert request, keys of one update or delete request.
pub const BATCH_ITEMS_MAX: usize = 65_536;
/// Numbers of an actor's items that may be under way at a time: what is older than that is refused.
pub const SEQ_WINDOW: u64 = 1024;
/// Actors whose last numbers a table remembers; the one that was silent for longest is forgotten.
pub const WRITERS_MAX: usize = 65_536;
/// An answer to a sample request is sent in parts of about this many payload bytes.
pub const SAMPLE_PART_BYTES: u64 = 256 << 10;
/// Items of such a part.
pub const SAMPLE_PART_ITEMS: usize = 1024;
/// Requests up to this length are received without a share of the memory for requests.
pub const SMALL_REQUEST_BYTES: u64 = 16 << 10;
/// What a request may have beside one payload of the greatest length.
pub const REQUEST_SLACK_BYTES: u64 = 1 << 20;
/// How long a request waits for its share of the memory for requests.
pub const RECEIVE_WAIT_MS: u64 = 30_000;
/// Connections at a time that an option may allow.
pub const CONNECTIONS_MAX: usize = 1 << 20;
/// File descriptors that are not for connections: journal, snapshot, listeners, standard streams, the runtime.
pub const DESCRIPTORS_RESERVED: u64 = 64;
/// A connection that has had no request for so long since it was accepted is closed, handshake included.
pub const FIRST_REQUEST_MS: u64 = 10_000;
/// A connection that has had no request for so long since the last one is closed when its requests have ended.
pub const IDLE_MS: u64 = 600_000;
/// Shortest and longest token.
pub const TOKEN_BYTES_MIN: usize = 16;
/// See [`TOKEN_BYTES_MIN`].
pub const TOKEN_BYTES_MAX: usize = 512;
/// Longest time that a client may ask a shard to wait.
pub const WAIT_MS_MAX: u64 = 3_600_000;
/// A journal segment ends after this many bytes.
pub const SEGMENT_BYTES: u64 = 256 << 20;
/// Inserts wait while more than this is still to be written.
pub const BACKLOG_BYTES: u64 = 64 << 20;
/// Items that a snapshot takes from a table at a time, and their payload bytes.
pub const SNAPSHOT_PART_ITEMS: usize = 256;
/// See [`SNAPSHOT_PART_ITEMS`].
pub const SNAPSHOT_PART_BYTES: u64 = 8 << 20;
/// After a snapshot that failed the next one is tried this much later, in milliseconds; twice as late each time that it
/// fails again, up to [`SNAPSHOT_RETRY_MAX_MS`].
pub const SNAPSHOT_RETRY_MS: u64 = 1_000;
/// See [`SNAPSHOT_RETRY_MS`].
pub const SNAPSHOT_RETRY_MAX_MS: u64 = 60_000;
/// The journal is replaced by a snapshot when it is longer than this and than the items in the tables.
pub const JOURNAL_BYTES_MIN: u64 = 64 << 20;

const _: () = assert!(SEQ_WINDOW.is_multiple_of(64));
const _: () = assert!(CONNECTIONS_MAX <= u32::MAX as usize);
const _: () = assert!(ITEM_BYTES_MAX + REQUEST_SLACK_BYTES < 1 << 31);
