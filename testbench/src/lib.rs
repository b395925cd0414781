//! What proves the rest: a deterministic simulation of the real switch core and the real worker protocol.

pub mod simulation;
