//! What runs the aggregation core (`iswitch_switch`): ports that bring it packets, and the loop between them and it.
//!
//! [`embedded`] is a switch in a thread of the calling process, with a UDP port. The daemon adds ports of raw frames.

pub mod clock;
pub mod embedded;
pub mod flight;
pub mod handle;
pub mod port;
pub mod runtime;
pub mod snapshot;
mod stalls;
