//! Tests of coflow scheduling, one program so that they are linked once.

mod coflow;
mod coflow_learning;
