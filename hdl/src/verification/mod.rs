//! Comparison of the generated Verilog with its source. [`adder`] compares the adder and [`modules`] compares every
//! module. [`faults`] inserts faults that these comparisons or `testbench lockstep` must detect.

pub mod adder;
pub mod faults;
pub mod modules;
