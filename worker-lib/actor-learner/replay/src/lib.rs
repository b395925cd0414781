//! Experience replay between thousands of actors and their learners, with Reverb's vocabulary (Cassirer et al.,
//! "Reverb: a framework for experience replay", 2021), in shards as in Menger (Yazdanbakhsh and Chen, 2020).
//!
//! | module | content |
//! |---|---|
//! | [`table`] | tables, selectors, rate limiters: no I/O, no clock |
//! | [`store`] | journal and snapshots |
//! | [`server`] | one shard: waiting, memory, gRPC |
//! | [`client`] | all shards as one, for actors and learners |
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

/// Messages of the service, made from `proto/replay.proto`.
pub mod proto {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
    tonic::include_proto!("iswitch.replay.v1");
}

pub use bytes::Bytes;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What a panic may have left half done is a table's items, which are consistent after each of its calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
