//! One shard: tables that are accessible through a gRPC service.
//!
//! Requests that must wait are queued in order and carry a deadline set by the client. Only the table's remover drops
//! items to make room. Memory is divided at startup ([`ShardConfig::memory_plan`]): a request reserves its share before
//! it is received, and a response reserves its share before its items are drawn.

mod address;
mod admission;
mod change;
mod config;
mod connections;
mod error;
mod histogram;
mod housekeeping;
mod sample;
mod serve;
mod service;
mod shard;
#[cfg(feature = "tls")]
mod tls;
mod token;
mod unary;

pub use self::address::{Address, Listener, Reserved, SocketFile};
pub use self::change::{Batch, Inserted};
pub use self::config::{CONNECTIONS_DEFAULT, MemoryPlan, ShardConfig, ShardConfigError};
pub use self::error::ShardError;
pub use self::sample::Part;
pub use self::serve::serve;
pub use self::shard::{Shard, StartError};
#[cfg(feature = "tls")]
pub use self::tls::{ServerTls, TlsError};
pub use self::token::{Token, TokenError};

#[cfg(test)]
mod tests;
