//! One shard: tables behind a gRPC service.
//!
//! Who has to wait waits in turns and with a deadline of the client's; nothing is dropped to make room that the table's
//! remover would not pick. Memory is divided at the start ([`ShardConfig::memory_plan`]): requests take their share
//! before they are received, answers before they are drawn.

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
