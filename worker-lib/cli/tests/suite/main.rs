//! Tests of the `iswitch` command, in a single program so that they are linked only once.

mod closed_output;
mod config_file;
mod elements;
mod env_threads;
mod exceptions;
mod habits;
mod progress;
mod reproducible;
mod restarts;
mod tracking;
