//! The library that a training program links against: it implements the worker side of the wire protocol and, on top of
//! it, gradient aggregation.
//!
//! The library depends neither on the switch nor on a neural-network crate. The crate `iswitch-c` provides its C
//! interface.

#![warn(missing_docs)]

pub mod aggregate;
pub mod pipeline;
pub mod reception;
pub mod worker;

/// Compiles the Rust code in the documentation page on embedding.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;

pub use aggregate::{AggregateError, AggregatorStats, GradientAggregator, Loopback, Round};
pub use iswitch_protocol::wire::{AbsentMember, NameRepr};
pub use iswitch_protocol::{ElementType, ElementTypes, Key, Label, LabelError, key_file};
pub use reception::{Refusal, Refusals};
pub use worker::asynchronous::AsyncWorker;
pub use worker::{AnyLengthWorker, JoinError, JoinOptions, ShardedWorker, Worker};
