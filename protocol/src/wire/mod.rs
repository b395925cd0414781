//! Parsing and emission of packets.
//!
//! Each format has two types. A *view* (`DataPacket`, `ControlPacket`) wraps a buffer and reads fields at named
//! positions; `new_checked` verifies once that no accessor can panic. A *Repr* is the plain value: `parse` reads it
//! from a view, and `emit` writes it into a buffer. `emit` writes every byte of the packet, so the buffer need not be
//! cleared.

mod class;
pub mod control;
pub mod data;
mod error;
#[cfg(feature = "frame")]
pub mod frame;

pub use class::{Class, Classifier};
pub use control::{
    AbsentList, AbsentMember, AbsentRepr, AckRepr, Action, ControlBody, ControlPacket, ControlRepr,
    DigestRepr, Exceeded, JoinRepr, Kind, Limit, Mode, NameRepr, ResumeRepr, Standing, Status,
};
pub use data::{DataPacket, emit_seg};
pub use error::WireError;
#[cfg(feature = "frame")]
pub use frame::{FrameAddresses, FrameView};
