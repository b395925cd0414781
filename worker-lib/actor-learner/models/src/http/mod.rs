//! HTTP code shared by the learner and the cell.

pub(crate) mod body;
pub(crate) mod conditional;
pub(crate) mod object;
pub(crate) mod pointer;
pub(crate) mod range;
pub(crate) mod refusal;
pub(crate) mod route;

/// Header with the version of an object.
pub(crate) const VERSION_HEADER: &str = "x-model-version";
/// Header with the CRC-32C of an object, as 8 hexadecimal digits.
pub(crate) const CRC32C_HEADER: &str = "x-model-crc32c";
/// Header with the time at which an object was published, in milliseconds since the Unix epoch.
pub(crate) const PUBLISHED_HEADER: &str = "x-model-published-unix-ms";
/// Header with the time since the pointer was last known to be the latest, in milliseconds.
pub(crate) const AGE_HEADER: &str = "x-model-age-ms";
/// Header with the time at which the pointer was last known to be the latest, in milliseconds since the Unix epoch.
/// Clients need this time if a cache does not report the age of its responses.
pub(crate) const AS_OF_HEADER: &str = "x-model-as-of-unix-ms";
/// Header with the time for which the server held a request before answering it, in milliseconds.
pub(crate) const HELD_HEADER: &str = "x-model-held-ms";
