//! Experience replay between thousands of actors and their learners.
pub mod client;
pub mod limits;
pub mod server;
pub mod store;
pub mod table;

/// Messages of the service, made from `proto/replay.proto`.
pub mod proto {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
    tonic::include_proto!("iswitch.replay.v1");
}

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What a panic may have left half done is a table's items, which are consistent after each of its calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
