//! The top module in simulation: frames and register accesses in, frames out.

mod device;
mod rust_device;
mod trace;
mod verilated;
pub mod verilator;

pub use device::{BoardError, Command, Device, Frame, Pause, Report};
pub use rust_device::{Passage, Passages, RustDevice};
pub use verilated::{Verilated, VerilatedError};

/// A cycle at the 200 MHz of the reference switch.
pub const CYCLE_PS: u64 = 5_000;
