//! Why a model is not read.

use std::time::Duration;

use hyper::StatusCode;

use crate::ModelName;

/// Why a model is not read, or not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A client needs somewhere to ask.
    #[error("no sources: expected at least one cell or learner")]
    NoSources,
    /// An endpoint that needs TLS, and nothing to verify its certificate with.
    #[error("{source_name} needs TLS: expected the certificates of an authority (--ca FILE)")]
    NoTls {
        /// The cell or the learner.
        source_name: String,
    },
    /// Nobody answers there.
    #[error("{source_name}: {reason}")]
    Unreachable {
        /// The cell or the learner.
        source_name: String,
        /// What the operating system says.
        reason: String,
    },
    /// No answer, or no more of it, in time.
    #[error("{source_name}: nothing came for {waited:?}")]
    Stalled {
        /// The cell or the learner.
        source_name: String,
        /// How long we waited.
        waited: Duration,
    },
    /// An answer broke off.
    #[error("{source_name}: the answer broke off after {received_bytes} of {len_bytes} bytes: {reason}")]
    Interrupted {
        /// The cell or the learner.
        source_name: String,
        /// Bytes of the model that have come.
        received_bytes: u64,
        /// Bytes of the model.
        len_bytes: u64,
        /// What broke it.
        reason: String,
    },
    /// There is no such model, or not that version any more.
    #[error("{source_name}: {message}")]
    NotFound {
        /// The cell or the learner.
        source_name: String,
        /// What it says.
        message: String,
    },
    /// Another answer than the one asked for.
    #[error("{source_name}: {status}: {message}")]
    Refused {
        /// The cell or the learner.
        source_name: String,
        /// The status.
        status: StatusCode,
        /// What it says.
        message: String,
    },
    /// An answer that is none of a learner or a cell.
    #[error("{source_name}: {what}")]
    BadAnswer {
        /// The cell or the learner.
        source_name: String,
        /// What is wrong.
        what: String,
    },
    /// The bytes are others than those that were published.
    #[error("{source_name}: version {version} of model {name} came with other bytes than were published")]
    WrongBytes {
        /// The cell or the learner from which the last of them came.
        source_name: String,
        /// The model.
        name: ModelName,
        /// Its version.
        version: u64,
    },
    /// The model is larger than is allowed here.
    #[error("{source_name}: the model has {len_bytes} bytes, at most {limit_bytes} are taken")]
    TooLarge {
        /// The cell or the learner.
        source_name: String,
        /// Bytes of the model.
        len_bytes: u64,
        /// Bytes that are allowed.
        limit_bytes: u64,
    },
}

impl ModelError {
    /// Whether the source is to be left alone for a while.
    pub(crate) fn is_sick(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Stalled { .. }
            | Self::BadAnswer { .. }
            | Self::WrongBytes { .. }
            | Self::Interrupted { .. } => true,
            Self::Refused { status, .. } => status.is_server_error(),
            Self::NoSources | Self::NoTls { .. } | Self::NotFound { .. } | Self::TooLarge { .. } => false,
        }
    }
}
