//! Checks that the generated Verilog agrees with its source. They compare the adder alone and every module. Faults
//! inserted into the Verilog must be detected by these checks or by `testbench lockstep`.

pub mod adder;
pub mod faults;
pub mod modules;
