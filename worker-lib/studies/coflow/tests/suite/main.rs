//! Tests of coflow scheduling, in one program so that they are linked only once.

mod coflow;
mod coflow_learning;
