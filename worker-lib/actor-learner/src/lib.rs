//! Actors and learners in processes of their own, as in Menger (Yazdanbakhsh and Chen, Google AI blog 2020).
//!
//! ```text
//!  actors --items--> replay shards --batches--> learners --gradients--> switch
//!    ^                                             |
//!    +------- cells (caches) <----- policies ------+
//! ```
//!
//! A learner is a synchronous trainer whose experience comes from the replay ([`ReplaySource`]); several of them sum
//! their gradients like all workers. The first publishes what actors need of the model ([`Publisher`]), and what the
//! run is ([`Job`]): actors and shards are told nothing else. An actor acts with the newest policy that it has got
//! ([`PolicyFeed`]) and inserts what came of it ([`Actor`]).
//!
//! What happens when a process ends, see docs/actor-learner.md.

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
