//! The accelerator of figure 7 as RTL for a NetFPGA-SUME, written in rust-hdl.
//!
//! Rules for hardware in this crate, because rust-hdl simulates some constructs otherwise than the Verilog that it
//! writes behaves: one operator for each local signal of exact width; no arithmetic and no complement inside a cast or
//! beside a comparison; a field of a structure is copied before it is sliced; a signal is read only after its last
//! assignment.

// Ports with their usual names (clock, reset, valid, ready, push, pop) need no comment, and the derives write accessors
// without one.
#![allow(missing_docs)]

pub mod accelerator;
pub mod adder;
pub mod axis;
pub mod generate;
pub mod host;
pub mod primitives;
pub mod report;
pub mod simulation;
pub mod verification;
pub mod waivers;
pub mod walkthrough;
