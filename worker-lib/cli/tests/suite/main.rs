//! Tests of the command `iswitch`, one program so that they are linked once.

mod closed_output;
mod restarts;
