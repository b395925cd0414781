//! Errors of the client.

use tonic::Code;

/// Failure of a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The shard refused the request for a reason that a retry would not change, or the client's wait time expired.
    #[error("shard {shard}: {text}")]
    Refused {
        /// Address of the shard.
        shard: String,
        /// gRPC status code.
        code: Code,
        /// Message of the shard.
        text: String,
    },
    /// No shard answered within the client's timeout.
    #[error("no shard responded within {patience_ms} ms; last error, from {shard}: {text}")]
    Unreachable {
        /// Duration of the retries, in milliseconds.
        patience_ms: u64,
        /// Address of the shard that was tried last.
        shard: String,
        /// Cause of the failure.
        text: String,
    },
    /// An address is invalid.
    #[error(
        "shard is {address:?}, expected http://HOST:PORT, https://HOST:PORT, unix:PATH or reverb://HOST:PORT"
    )]
    Address {
        /// Invalid address.
        address: String,
    },
    /// An address needs TLS, but TLS cannot be set up.
    #[error("cannot set up TLS for shard {address}: {reason}; certificates must be in PEM format")]
    Tls {
        /// Address of the shard.
        address: String,
        /// Cause of the failure.
        reason: String,
    },
    /// The list of shards is empty.
    #[error("shards is empty, expected at least one address")]
    NoShard,
    /// An option is out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Option {
        /// Name of the field.
        field: &'static str,
        /// Invalid value.
        value: String,
        /// Valid values.
        expected: &'static str,
    },
    /// A shard sent an invalid response.
    #[error("shard {shard} responded with {found}, expected {expected}")]
    Answer {
        /// Address of the shard.
        shard: String,
        /// Response received.
        found: String,
        /// Response expected.
        expected: String,
    },
    /// The runtime of the client could not be started, or has stopped.
    #[error("the client's runtime failed: {0}")]
    Runtime(String),
}

impl ClientError {
    /// Returns whether the shard held the request back for the whole wait time. This happens if there are no items to
    /// sample, or no room for an insert.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Refused { code: Code::DeadlineExceeded, .. })
    }

    pub(super) fn refused(shard: &str, status: &tonic::Status) -> Self {
        Self::Refused { shard: shard.to_owned(), code: status.code(), text: with_causes(status) }
    }
}

/// Returns the message of a status, followed by the messages of its causes. The causes are important: for example, the
/// message of a failed TLS handshake is only "transport error".
pub(super) fn with_causes(status: &tonic::Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let own = error.to_string();
        if !text.contains(&own) {
            text.extend([": ", &own]);
        }
        cause = error.source();
    }
    text
}

/// Returns whether a TLS connection failed because the client or the shard rejected the certificate of its peer.
pub(super) fn is_certificate_rejected(status: &tonic::Status) -> bool {
    // Search the text of the error, because h2 does not preserve the type of an I/O error.
    let text = with_causes(status);
    text.contains("invalid peer certificate") || text.contains("received fatal alert")
}

/// Returns whether the failure was caused by the shard and not by the request, in which case another attempt may
/// succeed.
pub(super) fn is_failure_of_shard(status: &tonic::Status) -> bool {
    // tonic maps a broken connection to these codes. A shard itself never returns Unknown or Cancelled, and returns
    // Internal only if its disk fails.
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal)
}
