//! Tests of coflow scheduling, in one program so that they are linked only once.

mod by_hand;
mod coflow;
mod coflow_learning;
mod flow_level;
mod reference;
