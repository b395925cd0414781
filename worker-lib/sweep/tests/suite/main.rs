//! Tests of the commands `iswitch sweep` and `iswitch plot`.

mod plots;
mod refusals;
mod sweeps;
