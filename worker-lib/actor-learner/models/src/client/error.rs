//! Errors of the model client.

use std::time::Duration;

use hyper::StatusCode;

use crate::ModelName;

/// Reasons why a model cannot be read or published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The client has no endpoints.
    #[error("the client has no sources, expected at least one cell or learner")]
    NoSources,
    /// An endpoint requires TLS, but the client has no CA certificates with which to verify the endpoint.
    #[error("{source_name} requires TLS: pass its CA certificates with --ca FILE")]
    NoTls {
        /// Cell or learner.
        source_name: String,
    },
    /// The source cannot be reached.
    #[error("{source_name}: {reason}")]
    Unreachable {
        /// Cell or learner.
        source_name: String,
        /// Cause of the failure.
        reason: String,
    },
    /// The source did not send a response, or the rest of it, in time.
    #[error("{source_name}: received nothing for {waited:?}")]
    Stalled {
        /// Cell or learner.
        source_name: String,
        /// Time that the client waited.
        waited: Duration,
    },
    /// A response was interrupted.
    #[error(
        "{source_name}: the response was interrupted after {received_bytes} of {len_bytes} bytes: {reason}"
    )]
    Interrupted {
        /// Cell or learner.
        source_name: String,
        /// Number of bytes of the model received.
        received_bytes: u64,
        /// Size of the model, in bytes.
        len_bytes: u64,
        /// Cause of the interruption.
        reason: String,
    },
    /// The model does not exist, or the version is no longer available.
    #[error("{source_name}: {message}")]
    NotFound {
        /// Cell or learner.
        source_name: String,
        /// Message of the source.
        message: String,
    },
    /// The source refused the request.
    #[error("{source_name}: {status}: {message}")]
    Refused {
        /// Cell or learner.
        source_name: String,
        /// Status of the response.
        status: StatusCode,
        /// Message of the source.
        message: String,
    },
    /// The response does not come from a learner or a cell, or is malformed.
    #[error("{source_name}: {what}")]
    BadAnswer {
        /// Cell or learner.
        source_name: String,
        /// Description of the invalid response.
        what: String,
    },
    /// The received bytes differ from the published bytes.
    #[error(
        "{source_name}: the bytes received as version {version} of model {name} differ from those published"
    )]
    WrongBytes {
        /// Cell or learner that sent the last part of the model.
        source_name: String,
        /// Name of the model.
        name: ModelName,
        /// Version of the model.
        version: u64,
    },
    /// The model is larger than the client allows.
    #[error("{source_name}: the model is {len_bytes} bytes long, expected at most {limit_bytes}")]
    TooLarge {
        /// Cell or learner.
        source_name: String,
        /// Size of the model, in bytes.
        len_bytes: u64,
        /// Maximum size, in bytes.
        limit_bytes: u64,
    },
}

impl ModelError {
    /// Returns whether the error is a reason to avoid the source for a while.
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
