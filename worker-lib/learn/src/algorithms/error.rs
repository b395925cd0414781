//! Errors that end a training run.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::env::EnvError;
use iswitch::AggregateError;
use iswitch::pipeline::PipelineError;

/// Reason why training cannot start or continue.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A gradient aggregation failed.
    #[error(transparent)]
    Aggregate(#[from] AggregateError),
    /// The pipeline of asynchronous training failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The connection between a worker and an asynchronous parameter server failed.
    #[error("{what} {peer}: {error}")]
    Server {
        /// The operation that failed.
        what: &'static str,
        /// Address of the peer.
        peer: SocketAddr,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A hyper-parameter is out of range.
    #[error("{0}")]
    Config(String),
    /// The replay shards rejected the learner's credentials; the message contains the reason and the next step.
    #[error("{0}")]
    Replay(String),
    /// The workers of one job have different settings or states; the message names the worker that differs and
    /// describes the difference.
    #[error("the workers disagree: {0}")]
    Disagreement(String),
    /// Workers were lost in a run that requires all of them.
    #[error("{contributors} of {workers} workers contributed to a gradient, expected all; restart the job")]
    Lost {
        /// Number of workers that contributed to the gradient.
        contributors: usize,
        /// World size of the job.
        workers: usize,
    },
    /// A checkpoint is missing or unusable.
    #[error("checkpoint {}: {reason}", path.display())]
    Checkpoint {
        /// The file or directory.
        path: PathBuf,
        /// Why the checkpoint cannot be used.
        reason: String,
    },
    /// A file could not be written or read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
}
