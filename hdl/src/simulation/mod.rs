//! Simulation of the top module. A simulation takes frames and register accesses, and returns frames and register
//! values.

mod device;
mod rust_device;
mod trace;
mod verilated;
pub mod verilator;

pub use device::{BoardError, Command, Device, Frame, Pause, Report};
pub use rust_device::{FrameSpan, FrameSpans, RustDevice};
pub use verilated::{Verilated, VerilatedError};

/// Clock period at the reference switch's 200 MHz, in picoseconds.
pub const CYCLE_PS: u64 = 5_000;
