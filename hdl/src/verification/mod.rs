//! Comparison of the generated Verilog with its source: the adder alone, all modules, and Verilog with inserted
//! faults, which these checks and the lock-step must detect.

pub mod adder;
pub mod faults;
pub mod modules;
