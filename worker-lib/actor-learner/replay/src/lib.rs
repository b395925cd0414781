//! Experience replay between thousands of actors and their learners. It uses the vocabulary of Reverb (Cassirer et
//! al., "Reverb: a framework for experience replay", 2021) and is sharded as in Menger (Yazdanbakhsh and Chen, 2020).
//!
//! | module | content |
//! |---|---|
//! | [`table`] | tables, selectors and rate limiters, without I/O or a clock |
//! | [`store`] | journal and snapshots |
//! | [`server`] | one shard: queueing, memory, gRPC |
//! | [`client`] | client of all shards, for actors and learners |
//! | [`options`] | a shard's options as text |
//! | [`proto`] | messages of the service |
//! | [`limits`] | every limit |

#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
pub mod limits;
pub mod options;
pub mod server;
pub mod store;
pub mod table;

/// Messages of the service, generated from `proto/replay.proto`.
pub mod proto {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
    tonic::include_proto!("iswitch.replay.v1");
}

pub use bytes::Bytes;

/// Compiles the Rust code of the page on experience replay.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/replay.md")]
struct ReplayPage;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if it is poisoned. Ignoring the poison is safe because a table's items are consistent after
/// each of its calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
