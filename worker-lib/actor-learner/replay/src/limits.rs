//! Limits of the replay service that are not configurable.

/// Maximum number of items in a table.
pub const ITEMS_MAX: u64 = 1 << 28;
/// Maximum number of tables in a shard.
pub const TABLES_MAX: usize = 1024;
/// Maximum length of a table's name, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Upper limit for the configured maximum payload size, in bytes. With this limit, every journal record is shorter than
/// 2^31 bytes.
pub const ITEM_BYTES_MAX: u64 = 1 << 30;
/// Memory that is accounted for each item in addition to its payload. It covers the item's row, and its entries in the
/// selectors and in the key index.
pub const ITEM_OVERHEAD_BYTES: u64 = 384;
/// Maximum number of items in an insert request, and of keys in an update or delete request.
pub const BATCH_ITEMS_MAX: usize = 65_536;
/// Number of recent sequence numbers that a table remembers for each actor. Older sequence numbers are refused.
pub const SEQ_WINDOW: u64 = 1024;
/// Maximum number of actors whose sequence numbers a table remembers. If there are more actors, the table forgets those
/// that have been inactive for the longest time.
pub const WRITERS_MAX: usize = 65_536;
/// Approximate payload size of one part of a sample response, in bytes.
pub const SAMPLE_PART_BYTES: u64 = 256 << 10;
/// Maximum number of items in one part of a sample response.
pub const SAMPLE_PART_ITEMS: usize = 1024;
/// Maximum length, in bytes, of a request for which no request memory is reserved.
pub const SMALL_REQUEST_BYTES: u64 = 16 << 10;
/// Number of bytes by which a request may exceed the maximum size of one payload.
pub const REQUEST_SLACK_BYTES: u64 = 1 << 20;
/// Maximum time that a request waits for request memory, in milliseconds.
pub const RECEIVE_WAIT_MS: u64 = 30_000;
/// Upper limit for the configured maximum number of concurrent connections.
pub const CONNECTIONS_MAX: usize = 1 << 20;
/// File descriptors reserved for uses other than connections: journal, snapshot, listeners, standard streams and the
/// runtime.
pub const DESCRIPTORS_RESERVED: u64 = 64;
/// Timeout for the first request on a connection, in milliseconds. The time includes the handshake, because it starts
/// when the connection is accepted.
pub const FIRST_REQUEST_MS: u64 = 10_000;
/// Idle timeout of a connection, in milliseconds. If no new request arrives for this long, the connection is closed
/// once its pending requests have completed.
pub const IDLE_MS: u64 = 600_000;
/// Minimum length of a token, in bytes.
pub const TOKEN_BYTES_MIN: usize = 16;
/// Maximum length of a token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 512;
/// Maximum wait time that a client may set in a request, in milliseconds.
pub const WAIT_MS_MAX: u64 = 3_600_000;
/// Length in bytes at which a journal segment is closed and the next one is started.
pub const SEGMENT_BYTES: u64 = 256 << 20;
/// Journal backlog in bytes above which inserts are held back.
pub const BACKLOG_BYTES: u64 = 64 << 20;
/// Maximum number of items that a snapshot copies from a table while it holds the table's lock.
pub const SNAPSHOT_PART_ITEMS: usize = 256;
/// Approximate number of payload bytes that a snapshot copies from a table while it holds the table's lock.
pub const SNAPSHOT_PART_BYTES: u64 = 8 << 20;
/// Delay before a failed snapshot is retried, in milliseconds. The delay doubles with each consecutive failure, up to
/// [`SNAPSHOT_RETRY_MAX_MS`].
pub const SNAPSHOT_RETRY_MS: u64 = 1_000;
/// Maximum delay before a failed snapshot is retried, in milliseconds; see [`SNAPSHOT_RETRY_MS`].
pub const SNAPSHOT_RETRY_MAX_MS: u64 = 60_000;
/// Minimum size of the journal, in bytes, at which a snapshot is written to replace it. In addition, the journal must
/// be larger than the total size of the items in the tables.
pub const JOURNAL_BYTES_MIN: u64 = 64 << 20;

const _: () = assert!(SEQ_WINDOW.is_multiple_of(64));
const _: () = assert!(CONNECTIONS_MAX <= u32::MAX as usize);
const _: () = assert!(ITEM_BYTES_MAX + REQUEST_SLACK_BYTES < 1 << 31);
