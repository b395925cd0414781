//! What can end a training run.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::env::EnvError;
use iswitch::AggregateError;
use iswitch::pipeline::PipelineError;

/// Why training cannot start or go on.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The gradients were not aggregated.
    #[error(transparent)]
    Aggregate(#[from] AggregateError),
    /// Asynchronous training ended.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The connection between a worker and an asynchronous parameter server failed.
    #[error("{what} {peer}: {error}")]
    Server {
        /// What was tried.
        what: &'static str,
        /// The other end.
        peer: SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// Hyper-parameters that cannot be.
    #[error("{0}")]
    Config(String),
    /// The shards rejected the learner's credentials; the text has the reason and the next step.
    #[error("{0}")]
    Replay(String),
    /// Workers of one job run different things; the text says who and what.
    #[error("the workers disagree: {0}")]
    Disagreement(String),
    /// Workers were lost of which none may be.
    #[error("{contributors} of {workers} workers contributed to a gradient: all are to start again")]
    Lost {
        /// That are left.
        contributors: usize,
        /// That there were.
        workers: usize,
    },
    /// A checkpoint is missing or unusable.
    #[error("checkpoint {}: {reason}", path.display())]
    Checkpoint {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file could not be written or read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}
