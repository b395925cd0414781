//! Every limit of model distribution, and what is chosen where nobody chooses.

use std::time::Duration;

/// Bytes of the longest name of a model.
pub const NAME_LEN_MAX_BYTES: usize = 64;
/// Names that a store or a cell knows at once.
pub const NAMES_MAX: usize = 64;
/// Names at a cell that upstream does not have, or not yet. While readers wait for one, the cell asks upstream for it
/// four times a second.
pub const UNKNOWN_NAMES_MAX: usize = 16;
/// Versions of a model that a store keeps: as many as a reader may be behind while it reads.
pub const VERSIONS_KEPT: usize = 4;
/// Bytes of the largest object.
pub const OBJECT_LEN_MAX_BYTES: u64 = 1 << 30;
/// Bytes of models that a cell keeps.
pub const CELL_CAPACITY_BYTES: u64 = 4 << 30;
/// Bytes of the largest answer that is not an object: a pointer, or an error.
pub const SMALL_ANSWER_LEN_MAX_BYTES: usize = 64 << 10;
/// Bytes of a model that one call hands to the connection: what follows is asked for when that has left.
pub const SLICE_LEN_BYTES: usize = 256 << 10;
/// Bytes of a connection's buffers, and thus of the longest request head.
pub const CONNECTION_BUFFER_LEN_BYTES: usize = 64 << 10;

/// Connections that are served at once.
pub const CONNECTIONS_MAX: usize = 4096;
/// Connections beyond these that are told so; others are closed without a word.
pub const REFUSALS_MAX: usize = 64;
/// What a reader that was refused is told to wait.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Bytes of the shortest bearer token: 64 bits, if they are hexadecimal digits.
pub const TOKEN_LEN_MIN_BYTES: usize = 16;
/// Bytes of the longest bearer token.
pub const TOKEN_LEN_MAX_BYTES: usize = 512;
/// A TLS handshake has to be complete within this.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Uploads at a time: each holds a whole object.
pub const UPLOADS_MAX: usize = 1;

/// A request's head has to arrive within this; an idle connection is closed after it.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// A peer that takes nothing, or sends nothing of a body, for so long is given up.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(15);
/// A reader may be waited for as long as its answer takes at this rate, and [`STALL_TIMEOUT`] more.
pub const READER_BYTES_PER_S_MIN: u64 = 32 << 10;

/// The longest that a request may wait for a newer version.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// A pointer is fresh for so long.
pub const POINTER_FRESH: Duration = Duration::from_secs(1);
/// A pointer may be so old if its source cannot be reached.
pub const MODEL_AGE_MAX: Duration = Duration::from_secs(30);
/// A cell goes on watching a model that nobody asks for, for so long.
pub const WATCH_IDLE: Duration = Duration::from_secs(60);

/// Opening a connection may take so long.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// An answer's head, or the next piece of its body, may take so long before another source is tried.
pub const SOURCE_STALL_TIMEOUT: Duration = Duration::from_secs(4);
/// Times that one download may be interrupted without a single byte in between.
pub const RESUMES_MAX: u32 = 8;
/// A source that failed is left alone for so long, then twice as long, up to [`PENALTY_MAX`].
pub const PENALTY: Duration = Duration::from_millis(250);
/// The longest that a source that fails is left alone.
pub const PENALTY_MAX: Duration = Duration::from_secs(5);
/// Idle connections that are kept to each source.
pub const IDLE_CONNECTIONS_MAX: usize = 4;

const _: () = assert!(VERSIONS_KEPT >= 2, "a reader that begins as the next version is published has to end");
const _: () = assert!(SLICE_LEN_BYTES >= CONNECTION_BUFFER_LEN_BYTES);
