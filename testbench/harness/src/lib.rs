//! Resources for tests and benchmarks: network namespaces, processes, fault injection, and checks that the machine
//! fulfils the requirements of a test.

pub mod binaries;
pub mod cluster;
pub mod copies;
pub mod faults;
mod isolated;
pub mod netns;
pub mod ports;
pub mod process;
pub mod requirements;
pub mod scratch;
pub mod tree;
pub mod wait;
pub mod witness;

pub use iswitch_lab::links::shaper;
