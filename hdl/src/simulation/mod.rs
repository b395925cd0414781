//! The top module in simulation: frames and register accesses in, frames out.

mod device;
mod rust_device;
mod verilated;

pub use device::{Command, Device, Frame, Pause, Report};
pub use rust_device::RustDevice;
pub use verilated::{Verilated, VerilatedError};
