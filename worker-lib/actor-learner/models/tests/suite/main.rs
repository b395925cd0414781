//! Tests of model distribution through its interfaces and programs.

mod access;
mod cell;
mod closed_output;
mod confinement;
mod http;
mod killed_cell;
mod store;
mod support;
mod units;
