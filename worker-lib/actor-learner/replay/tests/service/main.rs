//! Tests of whole shards: processes that are killed, and clients over sockets.

mod confinement;
mod crash;
mod limits;
mod memory;
mod round_trip;
mod support;
mod tls;
mod union;
