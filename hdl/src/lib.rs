//! The accelerator of the paper's figure 7 as RTL for a NetFPGA-SUME, written in rust-hdl.
//!
//! The hardware in this crate follows rules, because rust-hdl simulates some constructs differently from the Verilog
//! that it generates: use one operator per local signal of exact width; use no arithmetic and no complement inside a
//! cast or beside a comparison; copy a field of a structure before slicing it; read a signal only after its last
//! assignment.

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
