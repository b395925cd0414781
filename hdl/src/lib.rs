//! The accelerator of figure 7 of the iSwitch paper, as RTL for the NetFPGA-SUME, written in rust-hdl.
//!
//! rust-hdl simulates some constructs differently from the Verilog that it generates. The hardware in this crate
//! therefore follows these rules:
//!
//! - Use one operator per local signal, and give the signal the exact width of its value.
//! - Use no arithmetic inside a cast or in an expression that contains a comparison. Do not complement an operand of a
//!   cast or of a comparison.
//! - Copy a field of a structure to a local signal before slicing it.
//! - Read a signal only after its last assignment.

// Ports with conventional names (clock, reset, valid, ready, push, pop) need no comment, and the derives generate
// accessors without one.
#![allow(missing_docs)]

pub mod accelerator;
pub mod adder;
pub mod axis;
pub mod generate;
pub mod host;
pub mod primitives;
pub mod report;
pub mod simulation;
mod stage_chart;
pub mod verification;
pub mod waivers;
pub mod walkthrough;
