//! What a training binary links.
//!
//! With default features off this is the worker side of the wire protocol and nothing else: no daemon, no
//! neural-network crate. Feature `learn` adds networks, environments and algorithms, `capi` the C interface,
//! `cli` the `iswitch` command.

#![warn(missing_docs)]

pub mod aggregate;
pub mod pipeline;
mod reception;
pub mod worker;

#[cfg(feature = "capi")]
pub mod capi;

#[cfg(feature = "learn")]
pub mod algorithms;
#[cfg(feature = "learn")]
pub mod env;
#[cfg(feature = "learn")]
pub mod learners;
#[cfg(feature = "learn")]
pub mod nn;

pub use aggregate::{AggregateError, AggregatorStats, GradientAggregator, Loopback, Round};
pub use iswitch_protocol::{Key, key_file};
pub use reception::{Refusal, Refusals};
pub use worker::asynchronous::AsyncWorker;
pub use worker::{AnyLengthWorker, JoinError, JoinOptions, ShardedWorker, Worker};
