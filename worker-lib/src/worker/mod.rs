//! A worker: a member of a job that sums vectors through the switch.
//!
//! [`Worker`] is the blocking interface; [`protocol`] the sans-I/O state machine beneath it, which the simulator
//! drives too.

mod bitmap;
mod join;
pub mod protocol;
mod timer;
mod udp;

pub use join::{JoinError, JoinOptions};
pub use udp::Worker;
