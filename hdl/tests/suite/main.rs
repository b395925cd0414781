//! Tests of the RTL in a single program, so that they are linked only once.

mod accelerator;
mod adder;
mod faults;
mod lint;
mod modules;
mod report;
mod timing;
mod verilog;
mod walkthrough;
