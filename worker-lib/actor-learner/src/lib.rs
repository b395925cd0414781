//! Actors and learners in separate processes, as in Menger (Yazdanbakhsh and Chen, Google AI blog 2020).
//!
//! ```text
//!  actors --items--> replay shards --batches--> learners --gradients--> switch
//!    ^                                             |
//!    +------- cells (caches) <----- policies ------+
//! ```
//!
//! A learner is a synchronous trainer that draws its experience from the replay shards ([`ReplaySource`]). If there
//! are several learners, they sum their gradients as other workers do. The first learner publishes the part of the
//! model that actors need ([`Publisher`]) and the description of the run ([`Job`]). Actors and shards need no other
//! configuration. An actor acts with the newest policy that it has received ([`PolicyFeed`]) and inserts its
//! experience into the replay shards ([`Actor`]).
//!
//! docs/actor-learner.md describes what happens when a process exits.

mod actor;
mod episodes;
mod error;
mod items;
mod job;
mod policy;
mod publisher;
mod refusal;
mod retry;
mod source;
mod tables;

pub use actor::{Actor, ActorCounts, ActorOptions};
pub use error::ActorLearnerError;
pub use job::Job;
pub use policy::{Policy, PolicyFeed, PolicyStats};
pub use publisher::Publisher;
pub use source::{ReplaySource, SourceOptions, SourceStats};
pub use tables::tables;
