//! What proves the rest: a deterministic simulation of the real switch core and the real worker protocol, and
//! real frames between network namespaces, with faults injected by the kernel.

pub mod actors;
pub mod attack;
pub mod binaries;
pub mod cluster;
pub mod faults;
pub mod instructions;
pub mod lockstep;
pub mod models;
pub mod mutants;
pub mod neighbour;
pub mod netns;
pub mod peers;
pub mod ports;
pub mod process;
pub mod replay;
pub mod requirements;
pub mod rtl_mutants;
pub mod scaling;
pub mod scratch;
pub mod spread;
pub mod storm;
pub mod study;
pub mod tree;
pub mod wire_relay;
pub mod witness;
