//! Tests of the command `iswitch sweep`.

mod refusals;
mod sweeps;
