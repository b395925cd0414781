//! Runtime of the aggregation core (`iswitch_switch`): ports, which receive and send packets, and the loop that
//! connects them to the core.
//!
//! [`embedded`] runs a switch with UDP ports in threads of the calling process. The daemon adds ports for raw frames.

pub mod card;
pub mod clock;
pub mod embedded;
pub mod flight;
pub mod handle;
pub mod port;
pub mod runtime;
pub mod snapshot;
mod stalls;
pub mod threads;
