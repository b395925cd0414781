//! Tests of the command `iswitch export`.

mod files;
mod json;
mod refusals;
mod runs;
