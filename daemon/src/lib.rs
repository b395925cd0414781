//! The switch of iSwitch: a sans-I/O aggregation core, and the drivers that feed it with packets.
//!
//! [`switch`] is the core. Without features the crate is that core alone: `no_std`, no I/O, no clock.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod switch;

#[cfg(feature = "std")]
pub mod clock;
#[cfg(feature = "daemon")]
pub mod config;
#[cfg(feature = "daemon")]
pub mod control_socket;
#[cfg(feature = "daemon")]
pub mod daemon;
#[cfg(feature = "std")]
pub mod embedded;
#[cfg(feature = "std")]
pub mod flight;
#[cfg(feature = "daemon")]
pub mod flight_file;
#[cfg(feature = "std")]
mod handle;
#[cfg(feature = "daemon")]
pub mod log;
#[cfg(feature = "daemon")]
pub mod memory;
#[cfg(feature = "daemon")]
pub mod metrics;
#[cfg(feature = "daemon")]
pub mod monitor;
#[cfg(feature = "std")]
pub mod port;
#[cfg(feature = "std")]
pub mod runtime;
#[cfg(feature = "daemon")]
pub mod sandbox;
#[cfg(feature = "daemon")]
pub mod service_manager;
#[cfg(feature = "daemon")]
mod side_thread;
#[cfg(feature = "std")]
pub mod snapshot;
#[cfg(feature = "std")]
mod stalls;
#[cfg(feature = "daemon")]
pub mod table;
