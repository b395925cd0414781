//! Why actors and learners do not come together.

use iswitch_learn::algorithms::TrainError;

/// A failure between actors, replay and learners.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ActorLearnerError {
    /// What is published, or an item of the replay, is not what it should be.
    #[error("{what} is {found}, expected {expected}")]
    Malformed {
        /// Such as `policy`.
        what: &'static str,
        /// What it was.
        found: String,
        /// What it should have been.
        expected: String,
    },
    /// The environments or the algorithm.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The replay's client.
    #[error(transparent)]
    Replay(#[from] iswitch_replay::client::ClientError),
    /// A table that the algorithm would need.
    #[error(transparent)]
    Table(#[from] iswitch_replay::table::LimiterError),
    /// The models' client.
    #[error(transparent)]
    Model(#[from] iswitch_models::ModelError),
    /// A model that cannot be published.
    #[error(transparent)]
    Publish(#[from] iswitch_models::PublishError),
    /// A server rejected this process's credentials, or this process rejected the server's certificate.
    #[error("{error}: {next_step}")]
    Credentials {
        /// What the server, or TLS, says.
        error: String,
        /// The next step.
        next_step: &'static str,
    },
    /// A server or a thread cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the operating system says.
        source: std::io::Error,
    },
}

/// An error of something that came from elsewhere.
pub(super) fn malformed(
    what: &'static str,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> ActorLearnerError {
    ActorLearnerError::Malformed { what, found: found.into(), expected: expected.into() }
}
