//! Why a client cannot do what it was asked.

use tonic::Code;

/// A failure of a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// A shard has answered, and the same request would be answered the same way, or the client's time was over.
    #[error("shard {shard}: {text}")]
    Refused {
        /// Address of the shard.
        shard: String,
        /// gRPC status code.
        code: Code,
        /// What the shard says.
        text: String,
    },
    /// No shard has answered for as long as the client waits.
    #[error("no shard has answered within {patience_ms} ms; the last failure was of {shard}: {text}")]
    Unreachable {
        /// How long it was tried.
        patience_ms: u64,
        /// Address of the shard that was tried last.
        shard: String,
        /// Why it failed.
        text: String,
    },
    /// An address that is none.
    #[error(
        "shard is {address:?}, expected http://HOST:PORT, https://HOST:PORT, unix:PATH or reverb://HOST:PORT"
    )]
    Address {
        /// As it was given.
        address: String,
    },
    /// An address that needs TLS, and certificates that do not fit.
    #[error("shard {address} cannot be reached with TLS, expected certificates in PEM: {reason}")]
    Tls {
        /// Address of the shard.
        address: String,
        /// Why not.
        reason: String,
    },
    /// A client needs a shard.
    #[error("shards is empty, expected at least one address")]
    NoShard,
    /// A field of an option.
    #[error("{field} is {value}, expected {expected}")]
    Option {
        /// Name of the field.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A shard has answered what it should not.
    #[error("shard {shard} has answered {found}, expected {expected}")]
    Answer {
        /// Address of the shard.
        shard: String,
        /// What it said.
        found: String,
        /// What it should have said.
        expected: String,
    },
    /// The runtime of the blocking client could not be started.
    #[error("cannot start the client's runtime: {0}")]
    Runtime(String),
}

impl ClientError {
    /// Whether the request was held back for as long as the client waits: there is nothing to draw, or no room.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Refused { code: Code::DeadlineExceeded, .. })
    }

    pub(super) fn refused(shard: &str, status: &tonic::Status) -> Self {
        Self::Refused { shard: shard.to_owned(), code: status.code(), text: with_causes(status) }
    }
}

/// The message of a status, and those of its causes: a failed handshake is the cause of a "transport error".
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

/// Whether one end of a TLS connection rejected the certificate of the other.
pub(super) fn is_certificate_rejected(status: &tonic::Status) -> bool {
    // h2 keeps only the text of an I/O error.
    let text = with_causes(status);
    text.contains("invalid peer certificate") || text.contains("received fatal alert")
}

/// Whether the shard, not the request, has failed: another attempt may succeed.
pub(super) fn is_failure_of_shard(status: &tonic::Status) -> bool {
    // What tonic makes of a connection that breaks; a shard answers neither Unknown nor Cancelled, and Internal only of
    // its disk.
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal)
}
