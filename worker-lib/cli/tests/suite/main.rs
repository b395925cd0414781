//! Tests of the command `iswitch`, in a single program so that they are linked only once.

mod closed_output;
mod elements;
mod exceptions;
mod habits;
mod reproducible;
mod restarts;
