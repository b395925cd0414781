//! An experience replay service between thousands of actors and their learners. It uses the terms of Reverb (Cassirer
//! et al., "Reverb: a framework for experience replay", 2021) and is sharded as in Menger (Yazdanbakhsh and Chen,
//! 2020).
//!
//! | module | content |
//! |---|---|
//! | [`table`] | tables, selectors and rate limiters, without I/O or a clock |
//! | [`store`] | journal and snapshots |
//! | [`server`] | one shard: request queues, memory, gRPC |
//! | [`client`] | client of all shards, for actors and learners |
//! | [`options`] | textual form of a shard's options |
//! | [`proto`] | messages of the service |
//! | [`limits`] | all limits |

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

/// Documentation test that compiles the Rust code in docs/replay.md.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/replay.md")]
struct ReplayPage;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if it is poisoned. Poisoning is harmless here, because the items of a table are consistent after
/// each call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
