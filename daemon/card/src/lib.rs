//! The accelerator of `hdl/` as the host sees it: its registers, the register writes that configure a job, its tables,
//! and access to a card.
//!
//! The daemon uses this crate to drive a card, and `hdl` generates the hardware from the same register list.

mod access;
mod counters;
pub mod registers;
mod setup;
mod simulated;
mod spec;
mod tables;

pub use access::{Card, CardError, Frame, MIN_FRAME_LEN_BYTES, check_identity};
pub use counters::CardCounters;
pub use setup::{HOST_PORT, JobSetup, MAX_FLOATS, MEMBERS, Member, PACE_10G, SetupError};
pub use simulated::SimulatedCard;
pub use spec::{CardSpec, SpecError};
pub use tables::{MAX_FINISH_SEGMENTS, OpenRound, Tables};
