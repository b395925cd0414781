//! The parts of HTTP that learner and cell have in common.

pub(crate) mod body;
pub(crate) mod conditional;
pub(crate) mod object;
pub(crate) mod pointer;
pub(crate) mod range;
pub(crate) mod refusal;
pub(crate) mod route;

/// The version of an object.
pub(crate) const VERSION_HEADER: &str = "x-model-version";
/// CRC-32C of an object: 8 hexadecimal digits.
pub(crate) const CRC32C_HEADER: &str = "x-model-crc32c";
/// When an object was published, in milliseconds since 1970.
pub(crate) const PUBLISHED_HEADER: &str = "x-model-published-unix-ms";
/// How long ago the pointer was certainly the latest, in milliseconds.
pub(crate) const AGE_HEADER: &str = "x-model-age-ms";
/// When the pointer was certainly the latest, in milliseconds since 1970: for caches that do not count the age.
pub(crate) const AS_OF_HEADER: &str = "x-model-as-of-unix-ms";
/// How long a request was held until there was something to say, in milliseconds.
pub(crate) const HELD_HEADER: &str = "x-model-held-ms";
