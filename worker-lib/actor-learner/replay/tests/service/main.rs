//! Tests of complete shards. Some run as processes that are killed; others are used by clients over sockets.

mod confinement;
mod crash;
mod limits;
mod memory;
mod round_trip;
mod support;
mod tls;
mod union;
