//! Tests of the RTL. They form a single test binary, so that cargo links the crate only once.

mod accelerator;
mod adder;
mod faults;
mod lint;
mod modules;
mod report;
mod timing;
mod verilog;
mod walkthrough;
