//! The generated Verilog against what it was made from: the adder by itself, all modules, and Verilog with faults put
//! in, which these checks and the lock-step have to find.

pub mod adder;
pub mod faults;
pub mod modules;
