//! The switch daemon: the drivers that feed the aggregation core (`iswitch_switch`) with packets.
//!
//! Without the feature `daemon` the crate is the UDP port, the loop that drives it, and [`embedded`], a switch in a
//! thread of the calling process.

pub mod clock;
#[cfg(feature = "daemon")]
pub mod config;
#[cfg(feature = "daemon")]
pub mod control_socket;
#[cfg(feature = "daemon")]
pub mod daemon;
pub mod embedded;
pub mod flight;
#[cfg(feature = "daemon")]
pub mod flight_file;
mod handle;
#[cfg(feature = "daemon")]
pub mod log;
#[cfg(feature = "daemon")]
pub mod memory;
#[cfg(feature = "daemon")]
pub mod metrics;
#[cfg(feature = "daemon")]
pub mod monitor;
pub mod port;
pub mod runtime;
#[cfg(feature = "daemon")]
pub mod sandbox;
#[cfg(feature = "daemon")]
pub mod service_manager;
#[cfg(feature = "daemon")]
mod side_thread;
pub mod snapshot;
mod stalls;
#[cfg(feature = "daemon")]
pub mod table;
