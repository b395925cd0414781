//! Tests and benchmarks of the other crates: deterministic simulations of the real switch core and worker protocol, and
//! real frames between network namespaces with faults injected by the kernel.

pub mod actors;
pub mod attack;
pub mod contest;
pub mod instructions;
pub mod lockstep;
pub mod models;
pub mod mutants;
pub mod neighbour;
pub mod peers;
pub mod replay;
pub mod rtl_mutants;
pub mod scaling;
pub mod storm;
pub mod study;
pub mod wire_relay;
pub mod year;
