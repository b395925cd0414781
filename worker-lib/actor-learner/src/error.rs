//! Errors of actors and learners.

use iswitch_learn::algorithms::TrainError;

/// Failure of an actor or a learner, or of its communication with replay shards or model servers.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ActorLearnerError {
    /// A published object or a replay item is malformed.
    #[error("{what} is {found}, expected {expected}")]
    Malformed {
        /// Name of the malformed value, such as "policy".
        what: &'static str,
        /// Malformed value.
        found: String,
        /// Expected value.
        expected: String,
    },
    /// The environments or the algorithm failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The replay client failed.
    #[error(transparent)]
    Replay(#[from] iswitch_replay::client::ClientError),
    /// A table that the algorithm needs cannot be configured.
    #[error(transparent)]
    Table(#[from] iswitch_replay::table::LimiterError),
    /// The model client failed.
    #[error(transparent)]
    Model(#[from] iswitch_models::ModelError),
    /// A model cannot be published.
    #[error(transparent)]
    Publish(#[from] iswitch_models::PublishError),
    /// A server rejected the credentials of this process, or this process rejected the server's certificate.
    #[error("{error}: {next_step}")]
    Credentials {
        /// Error message of the server or of TLS.
        error: String,
        /// Next step for the user.
        next_step: &'static str,
    },
    /// A server or a thread cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// Failed operation.
        what: &'static str,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// Returns the error for a malformed value that was received from another process.
pub(super) fn malformed(
    what: &'static str,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> ActorLearnerError {
    ActorLearnerError::Malformed { what, found: found.into(), expected: expected.into() }
}
