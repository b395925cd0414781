//! Limits and defaults of model distribution.

use std::time::Duration;

/// Maximum length of a model's name, in bytes.
pub const NAME_LEN_MAX_BYTES: usize = 64;
/// Maximum number of names that a store or a cell knows.
pub const NAMES_MAX: usize = 64;
/// Maximum number of names that a cell remembers although upstream has no model for them. While readers wait for such a
/// name, the cell queries upstream for it four times a second.
pub const UNKNOWN_NAMES_MAX: usize = 16;
/// Default number of versions that a store keeps of each model. A version is removed once this number of newer versions
/// has been published.
pub const VERSIONS_KEPT: usize = 4;
/// Maximum size of an object, in bytes.
pub const OBJECT_LEN_MAX_BYTES: u64 = 1 << 30;
/// Default capacity of a cell, in bytes.
pub const CELL_CAPACITY_BYTES: u64 = 4 << 30;
/// Maximum length of a pointer response or an error response, in bytes.
pub const SMALL_ANSWER_LEN_MAX_BYTES: usize = 64 << 10;
/// Maximum number of bytes of a model that are passed to a connection at once. The connection requests more bytes after
/// it has sent them.
pub const SLICE_LEN_BYTES: usize = 256 << 10;
/// Size of a connection's buffers, and thus the maximum length of a request head, in bytes.
pub const CONNECTION_BUFFER_LEN_BYTES: usize = 64 << 10;

/// Default maximum number of concurrent connections.
pub const CONNECTIONS_MAX: usize = 4096;
/// Maximum number of connections that receive an error response because they exceed the connection limit. Any further
/// connections are closed without a response.
pub const REFUSALS_MAX: usize = 64;
/// Value of Retry-After in the response to a refused reader.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Minimum length of a bearer token, in bytes. A random token of this many hexadecimal digits has 64 bits of entropy.
pub const TOKEN_LEN_MIN_BYTES: usize = 16;
/// Maximum length of a bearer token, in bytes.
pub const TOKEN_LEN_MAX_BYTES: usize = 512;
/// Timeout of a TLS handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent uploads, each of which buffers a whole object.
pub const UPLOADS_MAX: usize = 1;

/// Timeout for the head of a request, and idle timeout of a connection.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout after which the server disconnects a client that has stopped reading its response or sending its request
/// body.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Minimum rate of a reader, in bytes per second. The server disconnects a reader that delays a response for longer
/// than the transfer would take at this rate, plus [`STALL_TIMEOUT`].
pub const READER_BYTES_PER_S_MIN: u64 = 32 << 10;

/// Maximum time that a request may wait for a newer version.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// Freshness lifetime of a pointer.
pub const POINTER_FRESH: Duration = Duration::from_secs(1);
/// Maximum age of a pointer that a cell serves while upstream cannot be reached.
pub const MODEL_AGE_MAX: Duration = Duration::from_secs(30);
/// Time after which a cell stops watching a model that no reader requests.
pub const WATCH_IDLE: Duration = Duration::from_secs(60);

/// Timeout for opening a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout for the head of a response and for each further piece of its body. When it expires, the client tries another
/// source.
pub const SOURCE_STALL_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum number of consecutive attempts to resume a download without receiving a byte.
pub const RESUMES_MAX: u32 = 8;
/// Time for which a failed source is avoided. It doubles with each consecutive failure, up to [`PENALTY_MAX`].
pub const PENALTY: Duration = Duration::from_millis(250);
/// Maximum time for which a failed source is avoided.
pub const PENALTY_MAX: Duration = Duration::from_secs(5);
/// Maximum number of idle connections kept for each source.
pub const IDLE_CONNECTIONS_MAX: usize = 4;

const _: () = assert!(
    VERSIONS_KEPT >= 2,
    "a reader that begins just before the next version is published must be able to finish"
);
const _: () = assert!(SLICE_LEN_BYTES >= CONNECTION_BUFFER_LEN_BYTES);
