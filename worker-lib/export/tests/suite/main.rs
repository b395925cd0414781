//! Tests of the `iswitch export` command.

mod files;
mod json;
mod refusals;
mod runs;
