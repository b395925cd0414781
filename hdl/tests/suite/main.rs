//! The tests of the RTL, one program so that they are linked once.

mod accelerator;
mod adder;
mod faults;
mod lint;
mod modules;
mod report;
mod timing;
mod verilog;
mod walkthrough;
